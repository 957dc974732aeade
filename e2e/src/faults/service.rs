//! The layer and the service that it makes: carries out what was decided.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use tokio::sync::Mutex;
use tower::{BoxError, Layer, Service};

use super::answer::answer;
use super::call::{Call, Verb};
use super::decide::{self, Fate};
use super::life::Crashed;
use super::plan::Moment;
use super::recorder::Outcome;
use super::{Faults, frames};

/// The body of a response that went through the layer.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Puts the faults of one run before the server of one scope: `ClientBuilder::with_layer(&layer)`.
#[derive(Clone)]
pub struct FaultLayer {
    faults: Faults,
    scope: Arc<str>,
}

impl FaultLayer {
    /// `scope` is `hub` or the name of a member.
    #[must_use]
    pub fn new(faults: &Faults, scope: &str) -> Self {
        Self {
            faults: faults.clone(),
            scope: scope.into(),
        }
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    /// The service belongs to the generation of now.
    fn layer(&self, inner: S) -> FaultService<S> {
        FaultService {
            inner: Arc::new(Mutex::new(inner)),
            faults: self.faults.clone(),
            scope: self.scope.clone(),
            generation: self.faults.0.life.generation(),
        }
    }
}

/// A client's stack under faults.
pub struct FaultService<S> {
    /// kube's stack cannot be cloned, and a call may be delayed past the moment at which tower's contract wants it made:
    /// the sender locks the stack while it passes the request on, in order.
    inner: Arc<Mutex<S>>,
    faults: Faults,
    scope: Arc<str>,
    generation: u64,
}

impl<S, B> Service<Request<Body>> for FaultService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = this.faults.0.life.died(this.generation) => Err(Crashed.into()),
                answer = this.drive(request) => answer,
            }
        })
    }
}

impl<S, B> FaultService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn drive(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (faults, recorder) = (&self.faults, self.faults.recorder());
        let call = Call::read(&self.scope, &request);
        let decision = decide::call(faults.plan(), &call, faults.ordinal(&call.key));
        let write = recorder.begin(&call);
        if !decision.latency.is_zero() {
            tokio::time::sleep(decision.latency).await;
        }
        match decision.fate {
            Fate::ErrorBefore(what) => {
                recorder.struck("error-before");
                return answer(what).map(|response| response.map(whole));
            }
            Fate::HangBefore => {
                recorder.struck("hang");
                return pending().await;
            }
            Fate::Pass | Fate::ErrorAfter(_) | Fate::HangAfter => {}
        }
        // Not left to the select around this: it may be late by one poll, and the dead send nothing.
        if faults.0.life.is_dead(self.generation) {
            return Err(Crashed.into());
        }
        let crash = faults.count_sent(&call);
        if crash == Some(Moment::Before) {
            recorder.struck("crash-before");
            faults.0.life.kill(self.generation);
            return Err(Crashed.into());
        }
        recorder.became(write, Outcome::Sent);
        let answered = self.send(request).await;
        if let Ok(response) = &answered {
            recorder.answered(&call, response.status().as_u16());
        }
        recorder.became(
            write,
            answered
                .as_ref()
                .map_or(Outcome::Failed, |r| Outcome::Answered(r.status().as_u16())),
        );
        if crash == Some(Moment::After) {
            recorder.struck("crash-after");
            faults.0.life.kill(self.generation);
            return Err(Crashed.into());
        }
        match decision.fate {
            Fate::ErrorAfter(what) => {
                recorder.struck("error-after");
                answer(what).map(|response| response.map(whole))
            }
            Fate::HangAfter => {
                recorder.struck("hang");
                pending().await
            }
            Fate::Pass | Fate::ErrorBefore(_) | Fate::HangBefore => {
                answered.map(|response| self.body(call, response))
            }
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        let sent = {
            let mut inner = self.inner.lock().await;
            poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Into::into)?;
            inner.call(request)
        };
        sent.await.map_err(Into::into)
    }

    fn body(&self, call: Call, response: Response<B>) -> Response<ResponseBody> {
        let struck = call.verb == Verb::Watch
            && response.status().is_success()
            && self.faults.plan().strikes(&call.scope);
        response.map(|body| match struck {
            true => frames::watch(body, &self.faults, self.generation, call.key),
            false => frames::mortal(body, &self.faults, self.generation),
        })
    }
}

impl<S> Clone for FaultService<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            faults: self.faults.clone(),
            scope: self.scope.clone(),
            generation: self.generation,
        }
    }
}

impl<S> fmt::Debug for FaultService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultService")
            .field("scope", &self.scope)
            .field("generation", &self.generation)
            .finish()
    }
}

fn whole(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
