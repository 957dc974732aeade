//! The HTTP server for users, probes and Prometheus: `/healthz`, `/readyz`, `/metrics`. [`listen`] is its loop alone.
//!
//! `/readyz` is 200 if all checks pass, else 503 with the failed ones. `/readyz?exclude=leading` excludes a check, as on
//! Kubernetes' own servers: a standby that only waits for the lease is then ready, so that a rolling update proceeds. Plain HTTP
//! without authentication: it serves counts by member, hook and ResourceDistribution, never the content of an object.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{lease::Leadership, metrics::Exposition};

/// The media type of [`Exposition::render`].
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A client that does not send its request within this time is cut off.
const HEADER_DEADLINE: Duration = Duration::from_secs(5);

/// Connections served at once; further ones wait in the listener's queue.
const CONNECTIONS: usize = 64;

/// The inputs of `/readyz`.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// The right of this process to act; always held without leader election.
    pub leading: Leadership,
    /// True if all required lists are synced.
    pub synced: watch::Receiver<bool>,
}

impl Readiness {
    /// Ready as long as it serves: for a process that needs no lists and no election.
    #[must_use]
    pub fn always() -> Self {
        let (_, held) = watch::channel(true);
        Self {
            leading: Leadership::from(held.clone()),
            synced: held,
        }
    }

    /// The names of the failed checks, without those in `exclude`.
    #[must_use]
    pub fn missing(&self, exclude: &[&str]) -> Vec<&'static str> {
        [
            ("leading", self.leading.is_held()),
            ("synced", *self.synced.borrow()),
        ]
        .into_iter()
        .filter(|(name, passes)| !passes && !exclude.contains(name))
        .map(|(name, _)| name)
        .collect()
    }
}

/// Serves until `stop`; requests in progress are completed.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    metrics: impl Exposition,
    stop: CancellationToken,
) {
    listen(listener, stop, move |request| {
        let answer = answer(
            request.method(),
            request.uri().path(),
            request.uri().query(),
            &readiness,
            &metrics,
        );
        async move { answer }
    })
    .await;
}

/// Answers each request, whose body is not read, over plain HTTP until `stop`; requests in progress are completed.
pub async fn listen<A, F, B>(listener: TcpListener, stop: CancellationToken, answer: A)
where
    A: Fn(Request<()>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            () = stop.cancelled() => return,
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
        let (answer, stop) = (answer.clone(), stop.clone());
        tokio::spawn(async move {
            connection(stream, answer, stop).await;
            drop(permit);
        });
    }
}

async fn connection<A, F, B>(stream: TcpStream, answer: A, stop: CancellationToken)
where
    A: Fn(Request<()>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = Infallible> + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.map(drop));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
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

/// The response to one request; pure except for reads of `readiness` and `metrics`.
fn answer(
    method: &Method,
    path: &str,
    query: Option<&str>,
    readiness: &Readiness,
    metrics: &impl Exposition,
) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n");
    }
    match path {
        "/healthz" | "/livez" => text(StatusCode::OK, "ok\n"),
        "/readyz" => {
            let exclude: Vec<&str> = query
                .into_iter()
                .flat_map(|query| query.split('&'))
                .filter_map(|pair| pair.strip_prefix("exclude="))
                .collect();
            match readiness.missing(&exclude).as_slice() {
                [] => text(StatusCode::OK, "ok\n"),
                missing => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("missing: {}\n", missing.join(", ")),
                ),
            }
        }
        "/metrics" => {
            let mut response = text(StatusCode::OK, metrics.render());
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                header::HeaderValue::from_static(OPENMETRICS),
            );
            response
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "served here: /healthz, /readyz, /metrics\n",
        ),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::metrics::Metrics;

    struct Served {
        address: SocketAddr,
        leading: watch::Sender<bool>,
        synced: watch::Sender<bool>,
        stop: CancellationToken,
        task: tokio::task::JoinHandle<()>,
    }

    async fn served() -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((leading, leads), (synced, syncs)) = (watch::channel(false), watch::channel(false));
        let stop = CancellationToken::new();
        let readiness = Readiness {
            leading: leads.into(),
            synced: syncs,
        };
        let task = tokio::spawn(serve(listener, readiness, Metrics::new(), stop.clone()));
        Served {
            address,
            leading,
            synced,
            stop,
            task,
        }
    }

    /// Status and body of a request over a socket of its own.
    async fn ask(address: SocketAddr, method: &str, target: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
            .unwrap();
        (status, body)
    }

    #[tokio::test]
    async fn readyz_names_what_is_missing_until_nothing_is() {
        let it = served().await;
        assert_eq!(
            ask(it.address, "GET", "/readyz").await,
            (503, "missing: leading, synced\n".into())
        );
        it.synced.send_replace(true);
        assert_eq!(
            ask(it.address, "GET", "/readyz").await,
            (503, "missing: leading\n".into())
        );
        assert_eq!(
            ask(it.address, "GET", "/readyz?exclude=leading").await,
            (200, "ok\n".into())
        );
        it.leading.send_replace(true);
        assert_eq!(ask(it.address, "GET", "/readyz").await, (200, "ok\n".into()));
    }

    #[tokio::test]
    async fn healthz_is_ok_before_anything_is_ready() {
        let it = served().await;
        assert_eq!(ask(it.address, "GET", "/healthz").await, (200, "ok\n".into()));
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let it = served().await;
        let (status, body) = ask(it.address, "GET", "/metrics").await;
        assert_eq!(status, 200);
        assert!(
            body.contains("# TYPE entourage_leading gauge") && body.ends_with("# EOF\n"),
            "{body}"
        );
    }

    #[tokio::test]
    async fn anything_else_learns_what_is_served() {
        let it = served().await;
        assert_eq!(ask(it.address, "GET", "/debug").await.0, 404);
        assert_eq!(ask(it.address, "POST", "/metrics").await.0, 405);
    }

    #[tokio::test]
    async fn stop_ends_the_server_and_idle_connections() {
        let it = served().await;
        let mut idle = TcpStream::connect(it.address).await.unwrap();
        assert_eq!(ask(it.address, "GET", "/healthz").await.0, 200);
        it.stop.cancel();
        it.task.await.unwrap();
        let mut rest = Vec::new();
        assert_eq!(idle.read_to_end(&mut rest).await.unwrap_or(0), 0);
    }
}
