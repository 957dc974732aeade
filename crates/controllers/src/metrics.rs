//! The metrics of this process, and their text exposition for Prometheus.
//!
//! Labels never hold a namespace or an error text, and of objects only the names of members, hooks and ResourceDistributions:
//! the number of series is bounded by servers × verbs × kinds × codes, members × outcomes, members × conditions, configured hooks ×
//! operations × outcomes, and ResourceDistributions. They hold no data of a Secret. Counters of a removed member stay, so that sums over
//! all members never fall; its gauges and histograms are dropped ([`Metrics::forget`]).

use std::{
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::Duration,
};

use entourage_core::{
    distribution,
    fleet::{Eviction, ProblemCounts, Propagated},
};
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{
    clock,
    traces::{Exporter, SpanCounts, TraceOptions, Traces},
};

mod labels;
mod problems;
mod process;
mod proxy;

pub use labels::{Asked, NO_ANSWER, Outcome, Verb};
use labels::{
    DistributionLabels, EstimatorLabels, EvictionLabels, HookLabels, HookName, KindLabels, LatencyLabels,
    NameLabels, PlanLabels, RequestLabels, ServerLabels, of,
};
pub use process::process_families;
pub use proxy::{ProxyMetrics, Target};

/// Upper bounds of the latency buckets in seconds: a member on the same machine responds in a millisecond, one behind a slow
/// link in seconds, and no call outlives its deadline of ten (architecture 2.7).
const LATENCY: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Upper bounds of the buckets for the way of a change to all members, in seconds: the median is below one, and a member that does not
/// respond holds it up for hours.
const PROPAGATION: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0,
];

/// The metrics of this process. Cheap to clone; clones share the state.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<LatencyLabels, Histogram>,
    plans: Family<PlanLabels, Counter>,
    events_dropped: Counter,
    spans: SpanCounts,
    traces: OnceLock<Traces>,
    queue: Family<ServerLabels, Gauge>,
    oldest: Family<ServerLabels, Gauge<f64, AtomicU64>>,
    in_flight: Family<ServerLabels, Gauge>,
    limit: Family<ServerLabels, Gauge<f64, AtomicU64>>,
    objects: Family<KindLabels, Gauge>,
    distributions: Family<DistributionLabels, Gauge>,
    lag: Family<NameLabels, Gauge<f64, AtomicU64>>,
    hooks: Family<HookLabels, Counter>,
    hook_latency: Family<HookName, Histogram>,
    estimators: Family<EstimatorLabels, Counter>,
    evictions: Family<EvictionLabels, Counter>,
    problems: Arc<problems::Problems>,
    propagation: Histogram,
    credentials: Family<ServerLabels, Gauge>,
    leading: Gauge,
    pending: Gauge,
    synced: Gauge,
}

impl Metrics {
    /// Creates metrics with the value zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let latency = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let plans = Family::default();
        let (queue, in_flight, limit, objects) = (
            Family::default(),
            Family::default(),
            Family::default(),
            Family::default(),
        );
        let (leading, synced, pending) = (Gauge::default(), Gauge::default(), Gauge::default());

        let ours = registry.sub_registry_with_prefix("entourage");
        ours.register(
            "api_requests",
            "Requests sent to API servers, by response",
            requests.clone(),
        );
        ours.register(
            "api_request_duration_seconds",
            "Time from sending a request to its complete response, without watches",
            latency.clone(),
        );
        ours.register("plans", "Plans made, by controller and outcome", plans.clone());
        let events_dropped = Counter::default();
        ours.register(
            "events_dropped",
            "Events that were not recorded because too many were waiting",
            events_dropped.clone(),
        );
        let spans = SpanCounts::default();
        ours.register(
            "spans_exported",
            "Spans that the collector of traces accepted",
            spans.exported.clone(),
        );
        ours.register(
            "spans_dropped",
            "Spans that were lost because the collector of traces was slow, refused them or did not respond",
            spans.dropped.clone(),
        );
        ours.register("queue_depth", "Keys waiting for a server", queue.clone());
        let oldest = Family::default();
        ours.register(
            "queue_oldest_age_seconds",
            "For how long the oldest key has been waiting for a server, 0 when none does",
            oldest.clone(),
        );
        ours.register(
            "requests_in_flight",
            "Plans being carried out on a server",
            in_flight.clone(),
        );
        ours.register(
            "concurrency_limit",
            "Plans a server may have in flight now",
            limit.clone(),
        );
        ours.register(
            "objects",
            "Records held in memory, by kind of record",
            objects.clone(),
        );
        let (distributions, lag) = (Family::default(), Family::default());
        ours.register(
            "distribution_copies",
            "Namespaces of a ResourceDistribution, by state: desired, succeeded, failed, conflicts",
            distributions.clone(),
        );
        ours.register(
            "distribution_lag_seconds",
            "For how long copies of a ResourceDistribution have been waiting to be written, 0 when none are",
            lag.clone(),
        );
        let estimators = Family::default();
        ours.register(
            "estimator_requests",
            "Questions to the estimators of members, by outcome",
            estimators.clone(),
        );
        let evictions = Family::default();
        ours.register(
            "evictions",
            "Evictions begun, by the member that the workload leaves and the reason",
            evictions.clone(),
        );
        let hooks = Family::default();
        let hook_latency = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        ours.register(
            "hook_questions",
            "Calls of interpreter and exploring webhooks, by outcome",
            hooks.clone(),
        );
        ours.register(
            "hook_request_duration_seconds",
            "Time from calling a webhook to its whole response",
            hook_latency.clone(),
        );
        let propagation = Histogram::new(PROPAGATION.iter().copied());
        ours.register(
            "propagation_seconds",
            "Time from the first copy outdated by a change to the last copy written",
            propagation.clone(),
        );
        let credentials = Family::default();
        ours.register(
            "credentials_expiration_timestamp_seconds",
            "When the credentials for a server expire, in seconds since 1970",
            credentials.clone(),
        );
        ours.register("leading", "1 while this process may act", leading.clone());
        ours.register(
            "synced",
            "1 when everything that must be listed was listed",
            synced.clone(),
        );
        ours.register(
            "pending",
            "Keys that wait, are being carried out, or come back at a time; 0 at rest",
            pending.clone(),
        );
        let problems = Arc::new(problems::Problems::default());
        registry.register_collector(Box::new(problems.clone()));
        registry.register_collector(Box::new(process::Process));

        Self(Arc::new(Inner {
            registry,
            requests,
            latency,
            plans,
            events_dropped,
            spans,
            traces: OnceLock::new(),
            queue,
            oldest,
            in_flight,
            limit,
            objects,
            distributions,
            lag,
            hooks,
            hook_latency,
            estimators,
            evictions,
            problems,
            propagation,
            credentials,
            leading,
            pending,
            synced,
        }))
    }

    /// Has spans recorded and sent from now on, if a collector is given; the first call counts.
    #[must_use]
    pub fn export_spans(&self, options: Option<&TraceOptions>) -> Option<Exporter> {
        let (traces, exporter) = Traces::start(options?, self.0.spans.clone());
        self.trace(traces);
        Some(exporter)
    }

    /// Has spans recorded from now on; the first call counts.
    pub(crate) fn trace(&self, traces: Traces) {
        let _ = self.0.traces.set(traces);
    }

    /// The recorder of spans.
    #[must_use]
    pub fn traces(&self) -> &Traces {
        static OFF: Traces = Traces::OFF;
        self.0.traces.get().unwrap_or(&OFF)
    }

    /// Counts a request: the server ("hub" or a member's name), the resource's plural, the HTTP status or `None` without a
    /// response, and the duration.
    pub fn request(&self, server: &str, verb: Verb, resource: &str, code: Option<u16>, took: Duration) {
        let labels = RequestLabels {
            server: server.to_owned(),
            verb: verb.name(),
            resource: resource.to_owned(),
            code: code.map_or_else(|| NO_ANSWER.to_owned(), |code| code.to_string()),
        };
        self.0.requests.get_or_create(&labels).inc();
        self.traces().requested(server, verb.name(), resource, code, took);
        if verb != Verb::Watch {
            let labels = LatencyLabels {
                server: labels.server,
                verb: labels.verb,
            };
            self.0.latency.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }

    /// Counts a plan of a controller (a module of the core: `detector`, `scheduler`, `delivery` …).
    pub fn planned(&self, controller: &'static str, outcome: Outcome) {
        self.0
            .plans
            .get_or_create(&PlanLabels {
                controller,
                outcome: outcome.name(),
            })
            .inc();
    }

    /// Counts an Event that is not recorded because too many are waiting.
    pub fn event_dropped(&self) {
        self.0.events_dropped.inc();
    }

    /// Sets the number of keys that wait for a server, and for how long the oldest one has been waiting.
    pub fn queue(&self, server: &str, keys: usize, oldest: Duration) {
        self.0.queue.get_or_create(&of(server)).set(gauge(keys));
        let oldest = oldest.as_secs_f64();
        self.0.oldest.get_or_create(&of(server)).set(oldest);
    }

    /// Sets the number of plans running on a server, and its limit.
    pub fn concurrency(&self, server: &str, in_flight: usize, limit: f64) {
        self.0.in_flight.get_or_create(&of(server)).set(gauge(in_flight));
        self.0.limit.get_or_create(&of(server)).set(limit);
    }

    /// Sets the number of records of a kind (`templates`, `bindings`, `copies`, `clusters`, `policies`) in memory.
    pub fn objects(&self, kind: &'static str, count: usize) {
        self.0
            .objects
            .get_or_create(&KindLabels { kind })
            .set(gauge(count));
    }

    /// Sets the state of every distribution; others are dropped.
    pub fn distributions(&self, reports: &[distribution::Report]) {
        self.0.distributions.clear();
        self.0.lag.clear();
        for report in reports {
            let states = [
                ("desired", report.desired),
                ("succeeded", report.succeeded),
                ("failed", report.failed),
                ("conflicts", report.conflicts),
            ];
            for (state, count) in states {
                let labels = DistributionLabels {
                    distribution: report.name.to_string(),
                    state,
                };
                self.0.distributions.get_or_create(&labels).set(gauge(count));
            }
            let labels = NameLabels {
                distribution: report.name.to_string(),
            };
            self.0.lag.get_or_create(&labels).set(report.lag as f64 / 1000.0);
        }
    }

    /// Sets the problems that conditions report; others are dropped.
    pub fn problems(&self, counts: &ProblemCounts) {
        self.0.problems.publish(counts);
    }

    /// Counts a change that has reached all members.
    pub fn propagated(&self, change: &Propagated) {
        let took = clock::duration(change.millis());
        self.0.propagation.observe(took.as_secs_f64());
        self.traces().propagated(change);
    }

    /// Counts evictions that began.
    pub fn evicted(&self, eviction: &Eviction, count: u64) {
        let labels = EvictionLabels {
            member: eviction.from.to_string(),
            reason: eviction.reason,
        };
        self.0.evictions.get_or_create(&labels).inc_by(count);
    }

    /// Sets when the credentials for a server expire, in seconds since 1970; `None` if they do not, or it is not known.
    pub fn credentials_expire(&self, server: &str, at: Option<i64>) {
        match at {
            Some(at) => {
                self.0.credentials.get_or_create(&of(server)).set(at);
            }
            None => {
                self.0.credentials.remove(&of(server));
            }
        }
    }

    /// Counts a question to a hook, `<configuration>/<webhook>`: the operation by its name in the contract, the outcome, and the
    /// duration if a call was made.
    pub fn asked(&self, hook: &str, operation: Option<&'static str>, outcome: Asked, took: Option<Duration>) {
        let labels = HookLabels {
            hook: hook.to_owned(),
            operation: operation.unwrap_or_default(),
            outcome: outcome.name(),
        };
        self.0.hooks.get_or_create(&labels).inc();
        if let Some(took) = took {
            let labels = HookName { hook: labels.hook };
            self.0
                .hook_latency
                .get_or_create(&labels)
                .observe(took.as_secs_f64());
        }
    }

    /// Counts a question to the estimator of a member.
    pub fn estimated(&self, member: &str, outcome: Asked) {
        let labels = EstimatorLabels {
            member: member.to_owned(),
            outcome: outcome.name(),
        };
        self.0.estimators.get_or_create(&labels).inc();
    }

    /// Sets the number of keys that wait, run, or have a timer.
    pub fn pending(&self, keys: usize) {
        self.0.pending.set(gauge(keys));
    }

    /// Sets whether this process may act.
    pub fn leading(&self, leading: bool) {
        self.0.leading.set(i64::from(leading));
    }

    /// Sets whether all required lists are synced.
    pub fn synced(&self, synced: bool) {
        self.0.synced.set(i64::from(synced));
    }

    /// Drops the series of a server that is gone: its gauges and its latencies.
    pub fn forget(&self, server: &str) {
        self.0.queue.remove(&of(server));
        self.0.oldest.remove(&of(server));
        self.0.credentials.remove(&of(server));
        self.0.in_flight.remove(&of(server));
        self.0.limit.remove(&of(server));
        for verb in Verb::ALL {
            self.0.latency.remove(&LatencyLabels {
                server: server.to_owned(),
                verb: verb.name(),
            });
        }
    }

    /// All metrics as OpenMetrics text.
    #[must_use]
    pub fn render(&self) -> String {
        text_of(&self.0.registry)
    }
}

/// The source of the page `/metrics`.
pub trait Exposition: Clone + Send + Sync + 'static {
    /// All metrics as OpenMetrics text.
    fn render(&self) -> String;
}

impl Exposition for Metrics {
    fn render(&self) -> String {
        Self::render(self)
    }
}

/// The metrics of a registry as OpenMetrics text.
fn text_of(registry: &Registry) -> String {
    let mut out = String::new();
    // Writing to a String fails only if a collector returns an error, and ours do not.
    if text::encode(&mut out, registry).is_err() {
        out.clear();
    }
    out
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn latency_histogram() -> Histogram {
    Histogram::new(LATENCY.iter().copied())
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod openmetrics;
#[cfg(test)]
mod tests;
