//! One unary call of gRPC: a POST over HTTP/2, its answer, and the status in the trailers.
//!
//! Of gRPC that is five bytes before a message, and three headers: no further library is needed for it.
//! A connection is shared by concurrent calls, and closed after a minute without any. It is not pinged: a gRPC server closes one that is
//! pinged more often than every five minutes, with all its calls.

use std::{error::Error as StdError, io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;
use tokio::time::Instant;

/// The method that estimates replicas.
pub(super) const REPLICAS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas";
/// The method that estimates sets of components; estimators have it since Karmada 1.16.
pub(super) const SETS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableComponentSets";
/// The largest answer, in bytes: it has one number.
const LARGEST: usize = 64 << 10;
/// The time that a connection without calls is kept.
const IDLE: Duration = Duration::from_secs(60);
/// The number of characters of an estimator's message that are shown.
const SHOWN: usize = 200;

/// The status of a call that succeeded.
const OK: &str = "0";
/// That of a method that the estimator does not have.
pub(super) const UNIMPLEMENTED: &str = "12";
/// Those of an estimator that cannot be used: DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL,
/// UNAVAILABLE and UNAUTHENTICATED.
const OUT: [&str; 7] = ["4", "7", "8", "12", "13", "14", "16"];
/// The beginning of the error of a name that cannot be resolved.
const UNRESOLVED: &str = "failed to lookup address information";

/// The client of an estimator. Cheap to clone; clones share connections.
#[derive(Clone)]
pub(super) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    connector: HttpsConnector<HttpConnector>,
    scheme: &'static str,
}

/// The reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no connection.
    Unconnected(String),
    /// The host of the address does not exist.
    Unknown,
    /// The connection broke.
    Broken,
    /// The response is not one of gRPC.
    Foreign(StatusCode),
    /// The estimator answers with an error: its code and its words.
    Refused(String, String),
    /// The answer cannot be read.
    Wrong(&'static str),
}

impl Client {
    pub(super) fn new(tls: ClientConfig, is_plain: bool) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http2()
            .wrap_connector(tcp);
        Self::over(connector, if is_plain { "http" } else { "https" })
    }

    /// A client with the same settings and no connection.
    pub(super) fn renewed(&self) -> Self {
        Self::over(self.connector.clone(), self.scheme)
    }

    fn over(connector: HttpsConnector<HttpConnector>, scheme: &'static str) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new())
            .http2_only(true)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .build(connector.clone());
        Self {
            http,
            connector,
            scheme,
        }
    }

    /// Calls a method of the estimator at `HOST:PORT` with a message; returns the one that it answers with. It is told the time that is left until
    /// the deadline; the caller must end the call itself.
    pub(super) async fn call(
        &self,
        address: &str,
        (method, message): (&'static str, Bytes),
        deadline: Instant,
    ) -> Result<Bytes, Failure> {
        match self.once(address, (method, message.clone()), deadline).await {
            // As one does that was kept while the estimator restarted.
            Err(Failure::Broken) => self.once(address, (method, message), deadline).await,
            other => other,
        }
    }

    async fn once(
        &self,
        address: &str,
        (method, message): (&'static str, Bytes),
        deadline: Instant,
    ) -> Result<Bytes, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let uri = Uri::builder()
            .scheme(self.scheme)
            .authority(address)
            .path_and_query(method)
            .build();
        let uri = uri.map_err(|_| Failure::Unconnected("its address is none".into()))?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(
                "grpc-timeout",
                format!("{}m", left.as_millis().clamp(1, 99_999_999)),
            )
            .header(
                header::USER_AGENT,
                concat!("entourage/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(message));
        let request = request.map_err(|_| Failure::Broken)?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| failure_of(&error))?;
        let (head, body) = response.into_parts();
        let kind = head.headers.get(header::CONTENT_TYPE);
        let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if head.status != StatusCode::OK || !is_grpc {
            return Err(Failure::Foreign(head.status));
        }
        // Without a message the status is in the head.
        status(&head.headers).unwrap_or(Ok(()))?;
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                Failure::Wrong("it is too large")
            } else {
                Failure::Broken
            }
        })?;
        match (body.trailers().and_then(status), status(&head.headers)) {
            (Some(status), _) | (None, Some(status)) => status?,
            (None, None) => return Err(Failure::Wrong("it has no status")),
        }
        Ok(body.to_bytes())
    }
}

impl Failure {
    /// True if the estimator as a whole fails. An error of its own may be about this question.
    pub(super) fn has_no_response(&self) -> bool {
        match self {
            Self::Refused(code, _) => OUT.contains(&code.as_str()),
            Self::Unconnected(_) | Self::Unknown | Self::Broken | Self::Foreign(_) | Self::Wrong(_) => true,
        }
    }

    pub(super) fn text(&self, address: &str) -> String {
        match self {
            Self::Unconnected(why) => {
                format!(
                    "cannot connect to {address}: {why}; is an estimator running for this member, and is its Service right?"
                )
            }
            Self::Unknown => format!("the host of {address} does not exist"),
            Self::Broken => format!("{address} breaks the connection off; does it expect TLS, or none?"),
            Self::Foreign(status) => {
                format!(
                    "{address} responds with status {}, not with gRPC",
                    status.as_u16()
                )
            }
            Self::Refused(code, words) => format!("{address} answers with the error {code}: {words}"),
            Self::Wrong(why) => format!("the answer of {address} cannot be used: {why}"),
        }
    }
}

/// The status of a call in a header or trailer, if it is there.
fn status(headers: &HeaderMap) -> Option<Result<(), Failure>> {
    let code = headers.get("grpc-status")?.to_str().unwrap_or_default();
    if code == OK {
        return Some(Ok(()));
    }
    let words = headers.get("grpc-message").and_then(|words| words.to_str().ok());
    let words = words.unwrap_or_default().escape_debug();
    let words = words.to_string().chars().take(SHOWN).collect();
    Some(Err(Failure::Refused(code.to_owned(), words)))
}

/// The failure of an error of the HTTP client.
fn failure_of(error: &legacy::Error) -> Failure {
    if !error.is_connect() {
        return Failure::Broken;
    }
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(each) = at {
        if let Some(tls) = each.downcast_ref::<rustls::Error>() {
            return Failure::Unconnected(format!("no TLS with it: {tls}"));
        }
        let io = each.downcast_ref::<io::Error>();
        let unresolved = io.map(ToString::to_string);
        if let Some(words) = unresolved.filter(|words| words.starts_with(UNRESOLVED)) {
            return failure_of_lookup(words);
        }
        // The cause that an io::Error wraps is not its source.
        if let Some(inner) = io.and_then(io::Error::get_ref) {
            at = Some(inner);
            continue;
        }
        if let Some(io) = io {
            return Failure::Unconnected(io.to_string());
        }
        at = each.source();
    }
    Failure::Unconnected("the connection was not made".to_owned())
}

/// The failure of a lookup: the host does not exist, or that is not known now.
fn failure_of_lookup(words: String) -> Failure {
    let is_temporary = ["emporary failure", "ry again"]
        .iter()
        .any(|each| words.contains(each));
    if is_temporary {
        Failure::Unconnected(words)
    } else {
        Failure::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_is_known_not_to_exist_is_unknown() {
        for (words, is_unknown) in [
            ("Name or service not known", true),
            ("No address associated with hostname", true),
            ("Name does not resolve", true),
            ("Temporary failure in name resolution", false),
            ("Try again", false),
        ] {
            let failure = failure_of_lookup(format!("{UNRESOLVED}: {words}"));
            assert_eq!(failure == Failure::Unknown, is_unknown, "{words}");
        }
    }
}
