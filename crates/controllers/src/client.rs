//! The client of one API server: it builds clients, sends requests, counts them, and reads responses.
//!
//! Requests go through [`kube::Client::send`] (authentication, TLS, connection pool) but not through its typed layer: responses
//! are read once into the JSON that the core projects, without `managedFields`, which are half of most objects. Every call has a
//! deadline (a list: an idle timeout), and its latency goes to the server's [`crate::limiter::Limiter`].

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use entourage_core::observation::Server;
use http::{Method, Request, Response, StatusCode, header};
use kube::client::Body;
use tokio::{
    sync::{Notify, SemaphorePermit},
    time::Instant,
};

use crate::{
    clock,
    error::{Answer, Class, Failure},
    lease::Leadership,
    limiter::CallOutcome,
    metrics::{Metrics, Verb},
    traces,
};

mod body;
pub mod capacity;
pub mod catalog;
pub(crate) mod denied;
mod identity;
pub(crate) mod lines;
pub mod path;
mod pauses;
pub mod read;
mod response_limits;
pub mod served;
mod stack;
pub(crate) mod trust;
pub(crate) mod tunnel;
mod verbs;

use body::collect;
use capacity::Capacity;
use denied::Denied;
use identity::Identity;
use path::Path;
use pauses::Pauses;
use response_limits::ResponseLimits;

/// The maximum sizes of responses, in bytes: a page of a list, one object (etcd accepts 1.5 MiB), an error.
const LARGEST_LIST: usize = 64 << 20;
const LARGEST: usize = 8 << 20;
const LARGEST_ERROR: usize = 64 << 10;
/// The maximum duration of a page of a list while bytes arrive.
const LONGEST_LIST: Duration = Duration::from_secs(300);

/// Builds the client of a server: the scope is "hub" or the name of a member. Tests inject faults here.
pub type ClientFactory = Arc<dyn Fn(&str, kube::Config) -> kube::Result<kube::Client> + Send + Sync>;

/// The factory of production: without retries of its own (architecture 2.7).
#[must_use]
pub fn plain_clients() -> ClientFactory {
    Arc::new(|_, mut config| {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        config.default_retry = false;
        // The name that managedFields and audit logs show.
        let agent = http::HeaderValue::from_static(concat!("entourage/", env!("CARGO_PKG_VERSION")));
        config.headers.push((http::header::USER_AGENT, agent));
        stack::client(config)
    })
}

/// The same for requests that are sent on: it adds no User-Agent, as they have that of their sender.
#[must_use]
pub fn passing_clients() -> ClientFactory {
    Arc::new(|_, mut config| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        config.default_retry = false;
        stack::client(config)
    })
}

/// The form in which an object is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole object.
    Whole,
    /// Its metadata, if the server supports that.
    Metadata,
}

impl Form {
    /// The Accept header for an object or a watch.
    #[must_use]
    pub const fn accept(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }

    /// The Accept header for a list.
    #[must_use]
    pub const fn accept_list(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }
}

/// One request.
pub struct Call<'a> {
    /// For metrics; also the HTTP method.
    pub verb: Verb,
    /// The address.
    pub path: &'a Path,
    /// The Accept header.
    pub accept: &'a str,
    /// Media type and bytes of the body.
    pub body: Option<(&'static str, Vec<u8>)>,
    /// Replaces the server's usual deadline. Lists have only an idle timeout.
    pub deadline: Option<Duration>,
}

/// The options of an [`Api`].
pub struct ApiOptions {
    /// The server.
    pub server: Server,
    /// The deadline of every call without its own.
    pub deadline: Duration,
    /// The number of requests at a time. Clients that reach the same server share it.
    pub capacity: Capacity,
    /// The metrics for calls.
    pub metrics: Metrics,
    /// Notified when the server does not respond or refuses the credentials.
    pub suspect: Arc<Notify>,
    /// True if the discovery of the server is what somebody reports of it: it proves the absence of nothing.
    pub is_reported: bool,
    /// True while this process may write. A plan that outlives leadership makes no further write (architecture 2.10).
    pub may_write: Leadership,
}

/// The client of one API server. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    client: kube::Client,
    options: ApiOptions,
    /// The paths for which the server asked to retry later.
    pauses: Mutex<Pauses>,
    denied: Denied,
    /// The time that lists and watches take to begin.
    response_limits: Mutex<ResponseLimits>,
    /// True if the discovery results may be out of date.
    doubted: AtomicBool,
    /// The number of times that the server was found to be restored.
    restores: AtomicUsize,
    identity: Identity,
}

impl Api {
    /// Wraps a client that does not retry by itself.
    #[must_use]
    pub fn new(client: kube::Client, options: ApiOptions) -> Self {
        Self(Arc::new(Inner {
            client,
            options,
            pauses: Mutex::default(),
            denied: Denied::default(),
            response_limits: Mutex::default(),
            doubted: AtomicBool::new(false),
            restores: AtomicUsize::new(0),
            identity: Identity::default(),
        }))
    }

    /// The server's name in metrics and logs: "hub" or the member's.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0.options.server {
            Server::Hub => "hub",
            Server::Member(name) => name,
        }
    }

    /// The number of plans that may be executed on this server at a time, by all of its clients.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.capacity().limiter(|limiter| limiter.limit())
    }

    /// The capacity of the server.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.0.options.capacity
    }

    /// True while a request is running; watches do not count.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.capacity().requests() > 0
    }

    /// A kind is served that was not, so the discovery results are out of date: discovery runs again soon.
    pub fn doubt_apis(&self) {
        self.0.doubted.store(true, Ordering::Relaxed);
        self.0.options.suspect.notify_one();
    }

    /// True if discovery results were reported out of date since the last call of this function.
    #[must_use]
    pub fn take_doubt(&self) -> bool {
        self.0.doubted.swap(false, Ordering::Relaxed)
    }

    /// Records that the server was restored from a backup: its revisions went back, and earlier observations are uncertain.
    /// Callers that `know` the same number of restores count once.
    pub fn was_restored(&self, known: usize) {
        let (relaxed, more) = (Ordering::Relaxed, known + 1);
        // A failure means that another caller has recorded it.
        let _ = self.0.restores.compare_exchange(known, more, relaxed, relaxed);
    }

    /// The number of times the server was found to be restored: while it does not change, its watches may be resumed.
    #[must_use]
    pub fn restores(&self) -> usize {
        self.0.restores.load(Ordering::Relaxed)
    }

    /// Waits for a permit to list: a list needs much memory.
    pub async fn list_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.capacity().list_turn().await
    }

    /// The client below, for callers that need kube's typed layer.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.0.client
    }

    /// Sends one request and returns the body of a successful response. A list that makes progress is not cut off; a write ends
    /// with leadership. After a broken connection the cluster's identity is checked first.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn bytes(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let deadline = call.deadline.unwrap_or(self.0.options.deadline);
        match tokio::time::timeout(deadline, self.is_the_same()).await {
            Ok(is_the_same) => is_the_same?,
            Err(_) => return Err(Failure::Timeout(deadline)),
        }
        self.exchange(call).await
    }

    /// As [`Self::bytes`], without the check of the cluster's identity.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn exchange(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let (verb, deadline) = (call.verb, call.deadline.unwrap_or(self.0.options.deadline));
        let path = call.path;
        let is_write = !matches!(verb, Verb::Get | Verb::List | Verb::Watch);
        if is_write && !self.0.options.may_write.is_held() {
            return Err(Failure::Abandoned);
        }
        self.is_paused(path)?;
        let began = Instant::now();
        let in_flight = self.capacity().request();
        let result = if verb == Verb::List {
            self.list(call).await
        } else {
            let exchange = async {
                let answer = self.send(call).await?;
                collect(answer.into_body(), LARGEST, deadline).await
            };
            let bound = async {
                match is_write {
                    // It is unknown whether it was sent.
                    true => (self.0.options.may_write.bound(exchange).await)
                        .unwrap_or_else(|| Err(Failure::Timeout(began.elapsed()))),
                    false => exchange.await,
                }
            };
            match tokio::time::timeout(deadline, bound).await {
                Ok(result) => result,
                Err(_) => Err(Failure::Timeout(deadline)),
            }
        };
        let took = began.elapsed();
        // What the Cluster object responds to says nothing about the hub.
        let is_sent = !self.is_reported() || path.gvk.is_some();
        if verb != Verb::List && is_sent {
            let outcome = match &result {
                Err(failure) if failure.is_overload() => CallOutcome::Overloaded,
                _ => CallOutcome::Answered,
            };
            let (now, count) = (clock::now(), in_flight.count);
            self.capacity()
                .limiter(|limiter| limiter.record(now, took, count, outcome));
        }
        self.account(verb, path, result.as_ref().err(), took);
        result
    }

    /// Fails without a request while the path is paused by an earlier Retry-After.
    fn is_paused(&self, path: &Path) -> Result<(), Failure> {
        match self.pauses().of(&path.uri, clock::now()) {
            Some(answer) => Err(Failure::Answer(Box::new(answer))),
            None => Ok(()),
        }
    }

    fn pauses(&self) -> MutexGuard<'_, Pauses> {
        self.0.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let begun = self.begin(&call).await?;
        let body = collect(begun.answer.into_body(), LARGEST_LIST, begun.given);
        let result = match tokio::time::timeout(LONGEST_LIST, body).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Timeout(LONGEST_LIST)),
        };
        let mut response_limits = self.response_limits();
        match &result {
            Err(Failure::Timeout(_)) => response_limits.missed(&request(&call)),
            _ => response_limits.answered(&request(&call), begun.took),
        }
        drop(response_limits);
        result
    }

    /// Opens a watch: the body of the response continues until either side ends it.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn open(&self, path: &Path, accept: &str) -> Result<Body, Failure> {
        let call = Call {
            verb: Verb::Watch,
            path,
            accept,
            body: None,
            deadline: None,
        };
        self.is_paused(path)?;
        let began = Instant::now();
        let opened = async {
            self.is_the_same().await?;
            self.begin(&call).await
        };
        let result = opened.await.map(|begun| {
            self.response_limits().answered(&request(&call), begun.took);
            begun.answer.into_body()
        });
        self.account(Verb::Watch, path, result.as_ref().err(), began.elapsed());
        result
    }

    /// Waits until a response begins, for as long as such responses take on this server.
    async fn begin(&self, call: &Call<'_>) -> Result<Begun, Failure> {
        let given = self.response_limits().of(&request(call));
        let bare = Call {
            verb: call.verb,
            path: call.path,
            accept: call.accept,
            body: None,
            deadline: None,
        };
        let began = Instant::now();
        match tokio::time::timeout(given, self.send(bare)).await {
            Ok(answer) => Ok(Begun {
                answer: answer?,
                given,
                took: began.elapsed(),
            }),
            Err(_) => {
                self.response_limits().missed(&request(call));
                Err(Failure::Timeout(given))
            }
        }
    }

    fn response_limits(&self) -> MutexGuard<'_, ResponseLimits> {
        self.0
            .response_limits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, call: Call<'_>) -> Result<Response<Body>, Failure> {
        let method = match call.verb {
            Verb::Get | Verb::List | Verb::Watch => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(&call.path.uri)
            .header(header::ACCEPT, call.accept);
        if let Some(span) = traces::current() {
            request = request.header(traces::TRACEPARENT, span.to_string());
        }
        // For a client that is no connection: see `pull`.
        if let Some(gvk) = &call.path.gvk {
            request = request.extension(gvk.clone());
        }
        let body = match call.body {
            Some((media, bytes)) => {
                request = request.header(header::CONTENT_TYPE, media);
                Body::from(bytes)
            }
            None => Body::empty(),
        };
        let request = request
            .body(body)
            .map_err(|error| Failure::Transport(error.to_string()))?;
        let answer = self
            .0
            .client
            .send(request)
            .await
            .map_err(|error| Failure::transport(&error))?;
        if answer.status().is_success() || answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let after = answer
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let body = match collect(answer.into_body(), LARGEST_ERROR, self.0.options.deadline).await {
            Ok(body) => body,
            // The code is enough.
            Err(Failure::Garbled(_)) => Bytes::new(),
            Err(failure) => return Err(failure),
        };
        let answer = Answer::read(code, after, &body);
        self.pauses().answered(&call.path.uri, &answer, clock::now());
        Err(Failure::Answer(Box::new(answer)))
    }

    fn account(&self, verb: Verb, path: &Path, failure: Option<&Failure>, took: Duration) {
        let code = match failure {
            None => Some(200),
            Some(Failure::Answer(answer)) => Some(answer.code),
            Some(_) => None,
        };
        self.0
            .options
            .metrics
            .request(self.name(), verb, &path.resource, code, took);
        // Those on members are reported on the Cluster and on bindings.
        if let (Some(failure), Server::Hub) = (failure, &self.0.options.server) {
            self.0.denied.note(failure, clock::now());
        }
        if failure.is_some_and(Failure::has_no_response) {
            self.doubt_identity();
        }
        if failure.is_some_and(|each| each.has_no_response() || each.class() == Class::Unauthorized) {
            self.0.options.suspect.notify_one();
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Api({})", self.name())
    }
}

/// A response that has begun.
struct Begun {
    answer: Response<Body>,
    /// The time limit for it to begin.
    given: Duration,
    /// The time that it took.
    took: Duration,
}

/// The key of a list or watch for its usual response time.
fn request(call: &Call<'_>) -> String {
    format!("{:?} {}", call.verb, call.path.resource)
}

#[cfg(test)]
pub(crate) mod tests;
