//! The HTTP of the page: its files, the stream of changes, and answers about one object. All of it is read-only.
//!
//! | path | answer |
//! |---|---|
//! | `/`, `/main.js` … | the files of the page: without the token, since they have no data |
//! | `/api/changes?run=R&since=N` | Server-Sent Events: all rows, then changes |
//! | `/api/explain?object=KIND/NAME&namespace=N` | why it is on its clusters, or not, and its dependencies |
//! | `/api/history?object=KIND/NAME&namespace=N` | its known changes |

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Shared, assets,
    explain::Explainer,
    guard::{self, Token},
};

/// The least time between two messages to one page.
const PACE: Duration = Duration::from_millis(250);

/// The time after which a page without changes gets a comment, which shows that the connection is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// The pages that follow changes at once.
const STREAMS: usize = 16;

/// The policy of the page: its own files and its own server, and no text becomes markup.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The page's server.
pub(super) struct Site {
    pub(super) port: u16,
    pub(super) token: Token,
    /// Tells this process from a former one at the same port.
    pub(super) run: String,
    pub(super) shared: Shared,
    pub(super) explainer: Explainer,
    pub(super) streams: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
}

/// The permits of [`Site::streams`].
pub(super) fn streams() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(STREAMS))
}

impl Site {
    /// The response to a request.
    pub(super) async fn answer(&self, request: Request<()>) -> Response<Body> {
        let mut response = self.unprotected(&request).await;
        let headers = response.headers_mut();
        for (name, value) in [
            ("content-security-policy", CONTENT_SECURITY_POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn unprotected(&self, request: &Request<()>) -> Response<Body> {
        let (method, headers) = (request.method(), request.headers());
        if let Some((status, cause)) = guard::refusal(method, headers, self.port) {
            let mut response = text(status, cause);
            if status == StatusCode::METHOD_NOT_ALLOWED {
                let allowed = HeaderValue::from_static("GET, HEAD");
                response.headers_mut().insert(header::ALLOW, allowed);
            }
            return response;
        }
        let path = request.uri().path();
        if let Some(asset) = assets::find(path) {
            return full(StatusCode::OK, asset.media_type, asset.text);
        }
        if !path.starts_with("/api/") {
            return text(StatusCode::NOT_FOUND, "not found\n");
        }
        if let Some((status, cause)) = guard::refusal_of_data(headers, self.port, &self.token) {
            return text(status, cause);
        }
        let query = Query(request.uri().query().unwrap_or_default());
        let (object, namespace) = (query.get("object"), query.get("namespace"));
        match path {
            "/api/changes" if *method == Method::GET => self.changes(&query),
            "/api/explain" => answer_of(self.explainer.explain(&object, &namespace).await),
            "/api/history" => answer_of(self.explainer.history(&object, &namespace).await),
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    /// The stream of changes since the revision that the page has.
    fn changes(&self, query: &Query<'_>) -> Response<Body> {
        let Ok(permit) = self.streams.clone().try_acquire_owned() else {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many open pages: close some of them\n",
            );
        };
        let is_of_this_run = query.get("run") == self.run;
        let since = query.get("since").parse().ok().filter(|_| is_of_this_run);
        let follower = Follower {
            shared: self.shared.clone(),
            changed: self.shared.changes(),
            since: since.unwrap_or_default(),
            run: self.run.clone(),
            begun: false,
            at: Instant::now(),
            stop: self.stop.clone(),
            _permit: permit,
        };
        let messages = stream::unfold(follower, |mut follower| async move {
            let message = follower.next().await?;
            Some((message, follower))
        });
        let frames = messages.map(|message| Ok(Frame::data(Bytes::from(message))));
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// One open page.
struct Follower {
    shared: Shared,
    changed: watch::Receiver<u64>,
    /// The revision that the page has.
    since: u64,
    run: String,
    /// True once a message was sent.
    begun: bool,
    /// The earliest time of the next message.
    at: Instant,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    /// The next message; `None` when the server ends.
    async fn next(&mut self) -> Option<String> {
        let stop = self.stop.clone();
        tokio::select! {
            () = stop.cancelled() => None,
            message = self.message() => Some(message),
        }
    }

    async fn message(&mut self) -> String {
        sleep_until(self.at).await;
        loop {
            self.changed.borrow_and_update();
            let delta = self.shared.delta(self.since);
            if !delta.is_empty || !self.begun {
                self.since = delta.revision;
                self.begun = true;
                // The parts of one state follow each other at once: the connection itself slows them down.
                self.at = Instant::now() + if delta.is_complete { PACE } else { Duration::ZERO };
                let run = &self.run;
                return format!(
                    "id: {run}/{}\nevent: change\ndata: {}\n\n",
                    delta.revision, delta.json
                );
            }
            match timeout(ALIVE, self.changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => {
                    self.at = Instant::now() + PACE;
                    return ": alive\n\n".to_owned();
                }
            }
        }
    }
}

/// The query of a request.
struct Query<'a>(&'a str);

impl Query<'_> {
    /// The value of a name; empty if there is none.
    fn get(&self, name: &str) -> String {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(each, _)| *each == name);
        value.map_or_else(String::new, |(_, value)| decoded(value))
    }
}

/// The text that `encodeURIComponent` encoded; what is no such text stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answer_of(answer: Result<Value>) -> Response<Body> {
    let (status, value) = match answer {
        Ok(value) => (StatusCode::OK, value),
        // The hub refused, or does not respond: the server itself works.
        Err(error) => (StatusCode::BAD_GATEWAY, json!({"error": format!("{error:#}")})),
    };
    full(status, "application/json", value.to_string())
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    full(status, "text/plain; charset=utf-8", text)
}

fn full(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_what_the_page_encoded() {
        let query = Query("object=Deployment.apps%2Fweb&namespace=&odd=a%2&since=7&umlaut=%C3%A4%zz");
        for (name, wanted) in [
            ("object", "Deployment.apps/web"),
            ("namespace", ""),
            ("odd", "a%2"),
            ("since", "7"),
            ("umlaut", "ä%zz"),
            ("absent", ""),
        ] {
            assert_eq!(query.get(name), wanted, "{name}");
        }
    }

    #[test]
    fn the_policy_permits_no_script_in_the_page_and_nothing_from_elsewhere() {
        assert!(!CONTENT_SECURITY_POLICY.contains("unsafe") && !CONTENT_SECURITY_POLICY.contains("http"));
        assert!(CONTENT_SECURITY_POLICY.starts_with("default-src 'none'; script-src 'self';"));
    }
}
