//! DaemonSet.

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC,
    counters::{self, Counter, always, count, counter},
};

/// apps/v1 DaemonSet.
///
/// Retained: nothing. The member sets nothing in its spec; the selector is immutable but always the user's.
pub(super) struct DaemonSet;

const COUNTERS: &[Counter] = &[
    always("currentNumberScheduled"),
    always("desiredNumberScheduled"),
    always("numberMisscheduled"),
    always("numberReady"),
    counter("numberAvailable"),
    counter("numberUnavailable"),
    counter("updatedNumberScheduled"),
];

impl NativeKind for DaemonSet {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apps",
            version: "v1",
            kind: "DaemonSet",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: one pod on each node"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("daemonsets"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Prune,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        Some(TEMPLATE_SPEC)
    }

    /// Each API server counts template changes in this annotation by itself.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &["deprecated.daemonset.template.generation"]
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        counters::reflect(live, COUNTERS)
    }

    /// Healthy: the latest spec is observed, every wanted pod is of it (unless they are replaced only when somebody deletes
    /// them), and all of those are available.
    fn health(&self, live: &Value) -> Health {
        let status = &live["status"];
        if !status.is_object() {
            return Health::Unknown;
        }
        let wanted = count(status, "desiredNumberScheduled");
        let current = if counters::is_replaced_on_delete(live) {
            wanted
        } else {
            count(status, "updatedNumberScheduled")
        };
        let healthy =
            counters::is_observed(live) && current >= wanted && count(status, "numberAvailable") >= current;
        if healthy {
            Health::Healthy
        } else {
            Health::Unhealthy
        }
    }

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        counters::aggregate(template, items, COUNTERS)
    }
}
