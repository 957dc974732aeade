//! Cuts a member off from the controllers, and reconnects it: requests fail as those to a host that is down.
//!
//! A [`Switch`] is between the controllers and one cluster. A cut ends all open requests, watches included; until it is
//! reconnected every request is refused. The cluster itself keeps running, and its own clients reach it: the controllers
//! observe the same as with a dead cluster or a broken network.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use entourage_apiserver::Service;
use futures::{Stream, StreamExt as _, future::Either, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use kube::client::Body;
use tokio::sync::watch;

/// The body of a response, which fails if the cluster is cut off while it is read.
type Frames = Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>;

/// The state of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    cut: bool,
    /// The number of cuts: a request that began before a cut does not survive it, however soon it is reconnected.
    cuts: u64,
}

/// Cuts one cluster off and reconnects it.
#[derive(Debug, Default)]
pub(super) struct Switch(watch::Sender<State>);

impl Switch {
    /// Ends every open request and watch, and refuses those that follow.
    pub(super) fn disconnect(&self) {
        self.0.send_modify(|state| {
            state.cut = true;
            state.cuts += 1;
        });
    }

    /// Accepts requests again.
    pub(super) fn reconnect(&self) {
        self.0.send_modify(|state| state.cut = false);
    }

    /// The service behind this switch.
    pub(super) fn guard(&self, service: Service) -> Switched {
        Switched {
            service,
            line: Line(self.0.subscribe()),
        }
    }
}

/// A cluster's service behind its switch.
#[derive(Clone)]
pub(super) struct Switched {
    service: Service,
    line: Line,
}

impl Switched {
    /// The same switch with another service of the same cluster.
    pub(super) fn map(self, change: impl FnOnce(Service) -> Service) -> Self {
        Self {
            service: change(self.service),
            line: self.line,
        }
    }
}

impl tower::Service<Request<Body>> for Switched {
    type Response = Response<StreamBody<Frames>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let began = self.line.now();
        if began.cut {
            return Box::pin(std::future::ready(Err(refused())));
        }
        let answer = self.service.call(request);
        let line = self.line.clone();
        Box::pin(async move {
            let mut cut = line.clone();
            let answer = tokio::select! {
                biased;
                () = cut.is_cut_after(began) => return Err(reset()),
                answer = answer => match answer {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                },
            };
            Ok(answer.map(|body| StreamBody::new(until_cut(BodyStream::new(body), line, began))))
        })
    }
}

/// The frames of a body up to the next cut, which is an error.
fn until_cut(body: BodyStream<entourage_apiserver::Body>, line: Line, began: State) -> Frames {
    let frames = stream::unfold(Some((body, line)), move |open| async move {
        let (mut body, mut line) = open?;
        let next = tokio::select! {
            biased;
            () = line.is_cut_after(began) => Either::Left(()),
            frame = body.next() => Either::Right(frame),
        };
        match next {
            Either::Left(()) => Some((Err(reset()), None)),
            Either::Right(Some(Ok(frame))) => Some((Ok(frame), Some((body, line)))),
            Either::Right(Some(Err(error))) => Some((Err(error), None)),
            Either::Right(None) => None,
        }
    });
    Box::pin(frames)
}

/// A request's view of a switch.
#[derive(Clone)]
struct Line(watch::Receiver<State>);

impl Line {
    fn now(&self) -> State {
        *self.0.borrow()
    }

    /// Returns when the cluster is cut off after that state. A dropped switch cuts nothing.
    async fn is_cut_after(&mut self, began: State) {
        if self.0.wait_for(|state| state.cuts != began.cuts).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionRefused,
        "connection refused: the cluster is cut off",
    )
}

fn reset() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "connection reset: the cluster was cut off",
    )
}

#[cfg(test)]
mod tests;
