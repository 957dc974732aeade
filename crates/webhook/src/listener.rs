//! A TLS listener for HTTP services: limits on connections and time, graceful shutdown.
//!
//! The next connection uses a new certificate. HTTP/2 is offered if the TLS configuration of the certificate offers it.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

/// The limits of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of concurrent connections; more wait to be accepted.
    pub connections: usize,
    /// The number of concurrent requests on one HTTP/2 connection.
    pub streams: u32,
}

/// The limits of a server whose caller is one API server.
pub const FOR_API_SERVER: Limits = Limits {
    connections: 256,
    streams: 128,
};

/// Keepalive: the idle time of a connection before the first probe, and the interval of the probes. After a change of the protocol
/// nothing else tells that the other side is gone.
const ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// The deadline of a handshake, of headers, and of a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time that requests in progress have to finish at shutdown.
const END: Duration = Duration::from_secs(5);

/// The certificate's bytes, and the configuration made of it; `None` until there is one.
pub type Current = Option<(Vec<u8>, Arc<ServerConfig>)>;

/// Serves until `stop`; requests in progress are finished, within a limit.
pub async fn serve<A, F, B>(
    listener: TcpListener,
    tls: watch::Receiver<Current>,
    limits: Limits,
    stop: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Limits { connections, streams } = limits;
    let (places, tasks) = (Arc::new(Semaphore::new(connections)), TaskTracker::new());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            break;
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Usually a lack of file descriptors: accepting again at once would spin.
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (tls, stop, answer) = (tls.clone(), stop.clone(), answer.clone());
        tasks.spawn(async move {
            connection(stream, &tls, streams, stop, answer).await;
            drop(place);
        });
    }
    drop(listener);
    tasks.close();
    let _ = tokio::time::timeout(END, tasks.wait()).await;
}

async fn connection<A, F, B>(
    stream: TcpStream,
    tls: &watch::Receiver<Current>,
    streams: u32,
    stop: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let _ = stream.set_nodelay(true);
    let (idle, interval) = ALIVE;
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    let Some((_, config)) = tls.borrow().clone() else {
        return;
    };
    let handshake = TlsAcceptor::from(config).accept(stream);
    let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, handshake).await else {
        return;
    };
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let stream = TokioIo::new(stream);
    // Both kinds of connection are driven in the same way and have no trait in common.
    macro_rules! drive {
        ($connection:expr) => {{
            let connection = $connection;
            tokio::pin!(connection);
            tokio::select! {
                ended = &mut connection => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }};
    }
    let ended = if is_h2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .keep_alive_interval(Duration::from_secs(60));
        drive!(builder.serve_connection(stream, service))
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(120));
        drive!(builder.serve_connection(stream, service).with_upgrades())
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

/// Returns the body of a request that posts JSON, up to a limit of bytes; `what` names the content in messages.
///
/// # Errors
/// The response to any other request.
pub(crate) async fn posted<B>(
    request: Request<B>,
    what: &str,
    largest: usize,
) -> Result<Bytes, Response<Full<Bytes>>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if request.method() != Method::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, format!("POST {what}\n"));
        let post = header::HeaderValue::from_static("POST");
        response.headers_mut().insert(header::ALLOW, post);
        return Err(response);
    }
    let media = request.headers().get(header::CONTENT_TYPE);
    let media = media.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media.split(';').next().map(str::trim) != Some("application/json") {
        return Err(text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json\n",
        ));
    }
    let body = Limited::new(request.into_body(), largest).collect();
    match tokio::time::timeout(PATIENCE, body).await {
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body did not come\n")),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(text(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a review has at most {largest} bytes\n"),
        )),
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the body broke off\n")),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

/// A response with text.
pub(crate) fn text(code: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// A response with JSON.
pub(crate) fn json(body: &serde_json::Value) -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::OK, body.to_string());
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
