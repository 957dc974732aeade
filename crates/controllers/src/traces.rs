//! Spans of this process, sent to an OpenTelemetry collector: OTLP over HTTP, as JSON. Off by default.
//!
//! | span | from, to | parent |
//! |---|---|---|
//! | `plan` | the plan of a key that changes something | |
//! | `apply` | the execution of that plan on its server | `plan` |
//! | `request` | one request of it, to its complete response | `apply` |
//! | `propagate` | the first copy that a change outdates, the last copy written | |
//! | `review` | the request of an API server to the webhook, its response | that of the API server, if it names one |
//!
//! Invariants:
//! - Recording never waits: when the queue is full the span is dropped, and counted.
//! - A span has names of objects and clusters, words of our own, numbers and codes. Nothing of an object's content, of a response or of an
//!   error is in it: there is no attribute that could have it.
//! - Off, nothing is allocated, read from a clock or sent.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use entourage_core::{fleet::Propagated, observation::Server, plan::Key};
use prometheus_client::metrics::counter::Counter;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock;

mod context;
mod export;
mod otlp;

pub use context::TRACEPARENT;
pub(crate) use context::{SpanContext, current, within};
pub use export::{Endpoint, InvalidEndpoint};

/// The number of spans that wait to be sent; further ones are dropped.
const QUEUE: usize = 2048;
/// The outcome of an execution that is retried.
const FAILED: &str = "failed";
/// The time that a stop waits for the last spans to be sent.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// The settings of traces.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The collector.
    pub endpoint: Endpoint,
    /// The share of plans, changes and reviews that are traced, from 0 to 1.
    pub ratio: f64,
    /// The attribute `service.name`.
    pub service: &'static str,
    /// The attribute `service.instance.id`.
    pub instance: String,
}

/// The numbers of spans, for metrics. Cheap to clone; clones share the state.
#[derive(Clone, Debug, Default)]
pub struct SpanCounts {
    /// Spans that the collector accepted.
    pub exported: Counter,
    /// Spans that were lost.
    pub dropped: Counter,
}

/// Records spans, if traces are on. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<Recorder>>);

/// The task that sends spans.
#[derive(Debug)]
pub struct Exporter {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Recorder {
    queue: mpsc::Sender<Span>,
    counts: SpanCounts,
    /// Traces whose id is below are recorded.
    threshold: u64,
    /// Source of ids: unique, not secret.
    keys: RandomState,
    next: AtomicU64,
}

/// A span that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    context: SpanContext,
    parent: Option<u64>,
    /// In nanoseconds since 1970.
    began: u64,
}

/// The side of a request that the span is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Internal,
    Server,
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attribute {
    Text(String),
    Number(i64),
}

/// A span that has ended.
#[derive(Debug)]
struct Span {
    begun: Begun,
    ended: u64,
    name: &'static str,
    kind: Kind,
    attributes: Vec<(&'static str, Attribute)>,
    is_failed: bool,
}

impl Traces {
    /// Records nothing.
    pub const OFF: Self = Self(None);

    /// Starts the task that sends spans; [`Exporter::finish`] ends it.
    #[must_use]
    pub fn start(options: &TraceOptions, counts: SpanCounts) -> (Self, Exporter) {
        let (traces, spans) = Self::queued(options.ratio, counts.clone());
        let stop = CancellationToken::new();
        let export = export::run(options.clone(), spans, counts, stop.clone());
        let task = tokio::spawn(export);
        (traces, Exporter { stop, task })
    }

    fn queued(ratio: f64, counts: SpanCounts) -> (Self, mpsc::Receiver<Span>) {
        let (queue, spans) = mpsc::channel(QUEUE);
        let recorder = Recorder {
            queue,
            counts,
            threshold: (ratio.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            keys: RandomState::new(),
            next: AtomicU64::new(1),
        };
        (Self(Some(Arc::new(recorder))), spans)
    }

    /// Begins a trace; `None` if it is not recorded.
    pub(crate) fn root(&self) -> Option<Begun> {
        let recorder = self.0.as_deref()?;
        let (high, low) = (recorder.id(), recorder.id());
        // The last half is compared, as OpenTelemetry's samplers do.
        (low <= recorder.threshold).then(|| Begun {
            context: SpanContext {
                trace: u128::from(high) << 64 | u128::from(low),
                span: recorder.id(),
            },
            parent: None,
            began: clock::nanos(),
        })
    }

    /// Begins a span of the same trace.
    pub(crate) fn child(&self, parent: SpanContext) -> Option<Begun> {
        let recorder = self.0.as_deref()?;
        Some(Begun {
            context: SpanContext {
                trace: parent.trace,
                span: recorder.id(),
            },
            parent: Some(parent.span),
            began: clock::nanos(),
        })
    }

    /// Ends the plan of a key. Returns the begun span of its execution.
    pub(crate) fn planned(&self, begun: Begun, subject: Subject, changes: usize) -> Option<Begun> {
        let apply = self.child(begun.context);
        let mut attributes = subject.attributes();
        attributes.push(("changes", number(changes)));
        self.end(begun, "plan", Kind::Internal, attributes, false);
        apply
    }

    /// Ends the execution of a plan, with the outcome as in metrics.
    pub(crate) fn applied(&self, begun: Begun, subject: Subject, outcome: &'static str) {
        let mut attributes = subject.attributes();
        attributes.push(("outcome", text(outcome)));
        let is_failed = outcome == FAILED;
        self.end(begun, "apply", Kind::Internal, attributes, is_failed);
    }

    /// Records a request that has ended, if it belongs to a span.
    pub(crate) fn requested(
        &self,
        server: &str,
        verb: &'static str,
        resource: &str,
        code: Option<u16>,
        took: Duration,
    ) {
        if self.0.is_none() {
            return;
        }
        let Some(mut begun) = current().and_then(|parent| self.child(parent)) else {
            return;
        };
        begun.began = begun.began.saturating_sub(nanos(took));
        let mut attributes = vec![
            ("server", text(server)),
            ("verb", text(verb)),
            ("resource", text(resource)),
        ];
        attributes.extend(code.map(|code| ("http.response.status_code", number(code.into()))));
        let is_failed = code.is_none_or(|code| code >= 400);
        self.end(begun, "request", Kind::Client, attributes, is_failed);
    }

    /// Records a change that has reached all members.
    pub(crate) fn propagated(&self, change: &Propagated) {
        let Some(mut begun) = self.root() else { return };
        let nanos = |millis: i64| u64::try_from(millis).unwrap_or(0) * 1_000_000;
        begun.began = nanos(change.began.0);
        let span = Span {
            begun,
            ended: nanos(change.reached.0),
            name: "propagate",
            kind: Kind::Internal,
            attributes: vec![("object", text(&change.template.to_string()))],
            is_failed: false,
        };
        self.record(span);
    }

    /// Records a review of the webhook that has ended. `parent` is the value of [`TRACEPARENT`]: the API server decides then whether
    /// it is recorded.
    pub fn reviewed(&self, webhook: &'static str, code: u16, took: Duration, parent: Option<&str>) {
        let begun = match parent.and_then(SpanContext::read) {
            Some((parent, true)) => self.child(parent),
            Some((_, false)) => None,
            None => self.root(),
        };
        let Some(mut begun) = begun else { return };
        begun.began = begun.began.saturating_sub(nanos(took));
        let attributes = vec![
            ("webhook", text(webhook)),
            ("http.response.status_code", number(code.into())),
        ];
        self.end(begun, "review", Kind::Server, attributes, code >= 500);
    }

    fn end(
        &self,
        begun: Begun,
        name: &'static str,
        kind: Kind,
        attributes: Vec<(&'static str, Attribute)>,
        is_failed: bool,
    ) {
        self.record(Span {
            begun,
            ended: clock::nanos(),
            name,
            kind,
            attributes,
            is_failed,
        });
    }

    fn record(&self, span: Span) {
        if let Some(recorder) = &self.0
            && recorder.queue.try_send(span).is_err()
        {
            recorder.counts.dropped.inc();
        }
    }
}

impl Exporter {
    /// Sends what is left, within two seconds.
    pub async fn finish(mut self) {
        self.stop.cancel();
        if timeout(LAST_SPANS, &mut self.task).await.is_err() {
            warn!("the last spans were not sent within {} s", LAST_SPANS.as_secs());
            self.task.abort();
        }
    }
}

impl Recorder {
    /// An id that is not 0.
    fn id(&self) -> u64 {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.keys.hash_one(next).max(1)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl Begun {
    /// The span, for children.
    pub(crate) fn context(&self) -> SpanContext {
        self.context
    }
}

/// The subject of a plan and of its execution.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The controller, as in metrics.
    pub(crate) controller: &'static str,
    /// `hub`, or the name of a member.
    pub(crate) server: String,
    /// Kind, namespace and name, or a name.
    pub(crate) object: String,
}

impl Subject {
    /// The subject of a key.
    pub(crate) fn of(key: &Key) -> Self {
        let object = match key {
            Key::Template(id)
            | Key::TemplateStatus(id)
            | Key::Scaling(id)
            | Key::Binding(id)
            | Key::BindingStatus(id)
            | Key::Copy(id, _)
            | Key::Work(id, _) => id.to_string(),
            Key::Policy(name)
            | Key::Override(name)
            | Key::Quota(name)
            | Key::QuotaCopy(name, _)
            | Key::Endpoints(_, name)
            | Key::DerivedService(name) => name.to_string(),
            Key::Cluster(name)
            | Key::Namespace(name, _)
            | Key::Distribution(name)
            | Key::DistributionStatus(name)
            | Key::Distributed(name, _)
            | Key::Rebalancer(name)
            | Key::ExecutionNamespace(name) => name.to_string(),
        };
        let server = match key.server() {
            Server::Hub => "hub".to_owned(),
            Server::Member(name) => name.to_string(),
        };
        Self {
            controller: key.controller(),
            server,
            object,
        }
    }

    fn attributes(self) -> Vec<(&'static str, Attribute)> {
        vec![
            ("controller", text(self.controller)),
            ("server", Attribute::Text(self.server)),
            ("object", Attribute::Text(self.object)),
        ]
    }
}

fn text(text: &str) -> Attribute {
    Attribute::Text(text.to_owned())
}

fn number(number: usize) -> Attribute {
    Attribute::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
