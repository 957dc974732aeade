//! Sends spans to the collector, in batches.
//!
//! A batch that the collector does not accept is sent three times in all, then dropped and counted. Meanwhile the queue fills, and what
//! finds no room there is dropped: a collector that is slow or gone costs a bounded amount of memory and no time of anything else.

use std::{fmt, str::FromStr, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Span, SpanCounts, TraceOptions, otlp};

/// The number of spans in one request.
pub(super) const BATCH: usize = 512;
/// The time for which a batch is collected.
const PAUSE: Duration = Duration::from_secs(2);
/// The deadline of a request.
const DEADLINE: Duration = Duration::from_secs(10);
/// The number of times that a batch is sent.
const ATTEMPTS: u32 = 3;

/// The address of a collector.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// The address of a collector cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give http://HOST:PORT or https://HOST:PORT, without a user; OTLP over HTTP usually has the port 4318"
)]
pub struct InvalidEndpoint;

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    /// Parses the base address, to which OTLP's own path is added.
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let uri: Uri = text.parse().map_err(|_| InvalidEndpoint)?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_plain =
            uri.query().is_none() && !uri.authority().is_none_or(|each| each.as_str().contains('@'));
        if !is_known || !is_plain {
            return Err(InvalidEndpoint);
        }
        let path = format!("{}/v1/traces", uri.path().trim_end_matches('/'));
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(|_| InvalidEndpoint)?);
        Uri::from_parts(parts).map(Self).map_err(|_| InvalidEndpoint)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends spans until `stop`, and then those that wait.
pub(super) async fn run(
    options: TraceOptions,
    mut spans: mpsc::Receiver<Span>,
    counts: SpanCounts,
    stop: CancellationToken,
) {
    let client = match client(&options.endpoint) {
        Ok(client) => client,
        Err(error) => {
            warn!(endpoint = ?options.endpoint, "traces are off: {error}");
            spans.close();
            return;
        }
    };
    let mut losses = Losses::default();
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let is_last = !collect(&mut spans, &mut batch, &stop).await;
        if !batch.is_empty() {
            let count = batch.len() as u64;
            let body = otlp::body(options.service, &options.instance, &batch).to_string();
            batch.clear();
            let sent = send(&client, &options.endpoint.0, body.into(), &stop).await;
            let counter = if sent.is_ok() {
                &counts.exported
            } else {
                &counts.dropped
            };
            counter.inc_by(count);
            match losses.news(sent, counts.dropped.get()) {
                Some(News::Lost(why)) => warn!(endpoint = ?options.endpoint, "spans are dropped: {why}"),
                Some(News::Over) => info!(endpoint = ?options.endpoint, "no spans are dropped any more"),
                None => {}
            }
        }
        if is_last && spans.is_empty() {
            return;
        }
    }
}

/// The losses so far: their beginning and their end are logged, not each of them.
#[derive(Default)]
struct Losses {
    dropped: u64,
    is_reported: bool,
}

/// A change that is logged.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Lost(String),
    Over,
}

impl Losses {
    /// The news after a batch: its result, and the number of spans that were dropped so far.
    fn news(&mut self, sent: Result<(), String>, dropped: u64) -> Option<News> {
        let is_lossy = std::mem::replace(&mut self.dropped, dropped) < dropped;
        let was_lossy = std::mem::replace(&mut self.is_reported, is_lossy);
        let full = || "more are recorded than the collector takes".to_owned();
        match (was_lossy, is_lossy) {
            (false, true) => Some(News::Lost(sent.err().unwrap_or_else(full))),
            (true, false) => Some(News::Over),
            _ => None,
        }
    }
}

/// Waits for the first span, and then for further ones. Returns false once nothing more is to be waited for.
async fn collect(spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => {
            while batch.len() < BATCH && let Ok(span) = spans.try_recv() {
                batch.push(span);
            }
            return false;
        }
        count = spans.recv_many(batch, BATCH) => if count == 0 {
            return false;
        },
    }
    let until = Instant::now() + PAUSE;
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        tokio::select! {
            () = stop.cancelled() => return true,
            more = timeout_at(until, spans.recv_many(batch, room)) => match more {
                Ok(1..) => {}
                Ok(0) | Err(_) => return true,
            },
        }
    }
    true
}

async fn send(client: &HttpClient, uri: &Uri, body: Bytes, stop: &CancellationToken) -> Result<(), String> {
    let mut why = String::new();
    for attempt in 1..=ATTEMPTS {
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        let json = header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        why = match timeout(DEADLINE, client.request(request)).await {
            // The response is not read: what a collector rejected of a batch is not sent again.
            Ok(Ok(response)) if response.status().is_success() => return Ok(()),
            Ok(Ok(response)) if is_permanent(response.status()) => {
                return Err(format!("the collector responds {}", response.status()));
            }
            Ok(Ok(response)) => format!("the collector responds {}", response.status()),
            Ok(Err(error)) if error.is_connect() => "no connection to the collector".to_owned(),
            Ok(Err(_)) => "the connection to the collector broke".to_owned(),
            Err(_) => format!("no response from the collector in {} s", DEADLINE.as_secs()),
        };
        if attempt < ATTEMPTS {
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(Duration::from_secs(attempt.into())) => {}
            }
        }
    }
    Err(why)
}

/// True if OTLP says that the same request must not be sent again.
fn is_permanent(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn client(endpoint: &Endpoint) -> Result<HttpClient, String> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tls = ClientConfig::builder();
    let tls = if endpoint.0.scheme_str() == Some("https") {
        hyper_rustls::ConfigBuilderExt::with_native_roots(tls)
            .map_err(|error| format!("the certificates that the system trusts cannot be read: {error}"))?
    } else {
        tls.with_root_certificates(RootCertStore::empty())
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls.with_no_client_auth())
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build(connector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_logged_when_they_begin_and_when_they_end() {
        let failed = || Err("no connection".to_owned());
        let lost = |why: &str| Some(News::Lost(why.to_owned()));
        let mut losses = Losses::default();
        for (sent, dropped, wanted) in [
            (Ok(()), 0, None),
            (failed(), 1, lost("no connection")),
            (failed(), 2, None),
            (Ok(()), 3, None),
            (Ok(()), 3, Some(News::Over)),
            (Ok(()), 3, None),
            (Ok(()), 9, lost("more are recorded than the collector takes")),
        ] {
            assert_eq!(losses.news(sent, dropped), wanted, "{dropped}");
        }
    }
}
