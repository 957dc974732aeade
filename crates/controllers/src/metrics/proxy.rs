//! The metrics of `entourage proxy`, in a registry of their own: a proxy leads nothing and has no queues.
//!
//! The label `target` says whether a request is for the hub or for a member, and never for which: its name is in a path that anybody
//! can send.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::{
    Exposition,
    labels::{ProxyLabels, TargetLabels},
    latency_histogram, process, text_of,
};

/// The server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The hub.
    Hub,
    /// A member.
    Member,
}

/// The metrics of a proxy. Cheap to clone; clones share the state.
#[derive(Clone, Debug)]
pub struct ProxyMetrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    requests: Family<ProxyLabels, Counter>,
    latency: Family<TargetLabels, Histogram>,
}

impl ProxyMetrics {
    /// Creates metrics with the value zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let latency = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let ours = registry.sub_registry_with_prefix("entourage");
        ours.register(
            "proxy_requests",
            "Requests of users, by target and code of the response",
            requests.clone(),
        );
        ours.register(
            "proxy_request_duration_seconds",
            "Time from the head of a request to the head of its response",
            latency.clone(),
        );
        registry.register_collector(Box::new(process::Process));
        Self(Arc::new(Inner {
            registry,
            requests,
            latency,
        }))
    }

    /// Counts a request: the code of the response, and the time until it began.
    pub fn request(&self, target: Target, code: u16, took: Duration) {
        let target = match target {
            Target::Hub => "hub",
            Target::Member => "member",
        };
        let labels = ProxyLabels {
            target,
            code: code.to_string(),
        };
        self.0.requests.get_or_create(&labels).inc();
        let labels = TargetLabels { target };
        self.0.latency.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

impl Default for ProxyMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Exposition for ProxyMetrics {
    fn render(&self) -> String {
        text_of(&self.0.registry)
    }
}
