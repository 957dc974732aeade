//! HTTPS: `POST /mutate`, `POST /validate`, `GET /healthz`, `GET /readyz`.
//!
//! Bounded in every direction: connections, bytes of a body, time for a handshake, headers and a body. A new certificate is
//! used by the next connection.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use entourage_core::admission::Settings;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use rustls::ServerConfig;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use crate::{
    distributions::{Denial, Distributions},
    review::{Question, Review},
};

/// The largest review that is read, in bytes: two objects of the largest size that an API server stores, and their books.
pub const LARGEST: usize = 8 << 20;

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// For a handshake, for headers, and for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a look at other objects may take: less than the API server waits for us when something is made. A change that
/// has to wait longer than a second passes.
const LOOK: Duration = Duration::from_secs(2);

/// How long a look at other objects may take when something changes: less than the second that the API server waits for us
/// then, since it lets a change pass that it gets no answer to.
const LOOK_AT_CHANGE: Duration = Duration::from_millis(700);

/// How long requests that have begun may take to end.
const END: Duration = Duration::from_secs(5);

/// The certificate's bytes, and the configuration made of it; `None` until there is one.
pub(crate) type Current = Option<(Vec<u8>, Arc<ServerConfig>)>;

/// What every connection shares.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
    settings: Settings,
    distributions: Distributions,
    tls: watch::Receiver<Current>,
    ready: watch::Receiver<bool>,
}

impl Server {
    pub(crate) const fn new(
        client: kube::Client,
        settings: Settings,
        distributions: Distributions,
        tls: watch::Receiver<Current>,
        ready: watch::Receiver<bool>,
    ) -> Self {
        Self {
            client,
            settings,
            distributions,
            tls,
            ready,
        }
    }

    /// Serves until `stop`; requests that have begun are answered, if they end soon.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let (places, tasks) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                break;
            };
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of file descriptors, as a rule: accepting again at once would spin.
                        warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let (server, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move {
                server.connection(stream, stop).await;
                drop(place);
            });
        }
        drop(listener);
        tasks.close();
        let _ = tokio::time::timeout(END, tasks.wait()).await;
    }

    async fn connection(self, stream: TcpStream, stop: CancellationToken) {
        let _ = stream.set_nodelay(true);
        let Some((_, config)) = self.tls.borrow().clone() else {
            return;
        };
        let handshake = TlsAcceptor::from(config).accept(stream);
        let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, handshake).await else {
            return;
        };
        let service = service_fn(|request| {
            let server = &self;
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(120))
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        }
    }

    /// The answer to one request.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path();
        let Some(question) = Question::at(path) else {
            let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
            return match path {
                "/healthz" | "/livez" | "/readyz" if !is_get => {
                    text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n")
                }
                "/healthz" | "/livez" => text(StatusCode::OK, "ok\n"),
                "/readyz" if *self.ready.borrow() => text(StatusCode::OK, "ok\n"),
                "/readyz" => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "not ready: the hub's configurations do not point here yet, or the end has come\n",
                ),
                _ => text(
                    StatusCode::NOT_FOUND,
                    "served here: /mutate, /validate, /healthz, /readyz\n",
                ),
            };
        };
        if request.method() != Method::POST {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview\n");
            let post = header::HeaderValue::from_static("POST");
            response.headers_mut().insert(header::ALLOW, post);
            return response;
        }
        let media = request.headers().get(header::CONTENT_TYPE);
        let media = media.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media.split(';').next().map(str::trim) != Some("application/json") {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json\n");
        }
        let body = Limited::new(request.into_body(), LARGEST).collect();
        let body = match tokio::time::timeout(PATIENCE, body).await {
            Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the body did not come\n"),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return text(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("a review has at most {LARGEST} bytes\n"),
                );
            }
            Ok(Err(_)) => return text(StatusCode::BAD_REQUEST, "the body broke off\n"),
            Ok(Ok(body)) => body.to_bytes(),
        };
        match Review::read(&body) {
            Err(why) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
            Ok(review) => {
                let answer = self.judged(&review, question).await;
                let mut response = text(StatusCode::OK, answer.to_string());
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
        }
    }

    async fn judged(&self, review: &Review, question: Question) -> Value {
        let others = match review.looks_around() {
            Some(kind) if question == Question::Validate => match self.others(kind).await {
                Ok(others) => others,
                Err(why) => return review.unanswerable(&why),
            },
            _ => Vec::new(),
        };
        let answer = review.answered(question, &others, self.settings);
        if question != Question::Validate || answer["response"]["allowed"] != true {
            return answer;
        }
        let Some((inquiry, author, is_change)) = review.inquiry() else {
            return answer;
        };
        let patience = if is_change { LOOK_AT_CHANGE } else { LOOK };
        match self.distributions.judged(&inquiry, author, patience).await {
            Ok(warnings) => review.allowed(&warnings),
            Err(Denial::Refused(refusal)) => review.denied(&refusal),
            Err(Denial::Unknown(why)) => review.unanswerable(&why),
        }
    }

    /// All objects of a kind.
    async fn others(&self, (group, version, kind): (&str, &str, &str)) -> Result<Vec<Value>, String> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let failed = |why: String| {
            format!(
                "cannot see the other objects of {kind}, which this one is compared with: {why}; try again"
            )
        };
        match tokio::time::timeout(LOOK, api.list(&ListParams::default())).await {
            Err(_) => Err(failed("the hub does not answer".to_owned())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Ok(Ok(list)) => {
                let values = list
                    .items
                    .iter()
                    .map(|item| serde_json::to_value(item).unwrap_or_default());
                Ok(values.collect())
            }
        }
    }
}

fn text(code: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
