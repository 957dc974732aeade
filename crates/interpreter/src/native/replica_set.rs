//! ReplicaSet.

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC,
    counters::{self, Counter, always, count, counter},
};
use crate::json::int;

/// apps/v1 ReplicaSet.
///
/// Retained: `spec.replicas`, if the template carries the retain-replicas label. Nothing else is set by the member.
pub(super) struct ReplicaSet;

pub(super) const COUNTERS: &[Counter] = &[
    always("replicas"),
    counter("fullyLabeledReplicas"),
    counter("readyReplicas"),
    counter("availableReplicas"),
];

impl NativeKind for ReplicaSet {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apps",
            version: "v1",
            kind: "ReplicaSet",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: pods in any number, of one template"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("replicasets"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Replicas,
            Operation::Revise,
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        Some(TEMPLATE_SPEC)
    }

    fn replicas(&self, object: &Value) -> Option<i64> {
        counters::replicas(object)
    }

    fn revise_replicas(&self, object: &mut Value, replicas: i64) {
        counters::revise_replicas(object, replicas);
    }

    /// The annotations of a Deployment controller on a ReplicaSet that it owns.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[
            "deployment.kubernetes.io/desired-replicas",
            "deployment.kubernetes.io/max-replicas",
            "deployment.kubernetes.io/revision",
            "deployment.kubernetes.io/revision-history",
        ]
    }

    fn is_scaled(&self) -> bool {
        true
    }

    fn needs_live(&self, desired: &Value) -> bool {
        counters::retains_replicas(desired)
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        counters::retain_replicas(desired, live);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        counters::reflect(live, COUNTERS)
    }

    fn health(&self, live: &Value) -> Health {
        health(live)
    }

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        counters::aggregate(template, items, COUNTERS)
    }
}

/// Healthy: the latest spec is observed and as many replicas are available as it requests.
pub(super) fn health(live: &Value) -> Health {
    if !live["status"].is_object() {
        return Health::Unknown;
    }
    let wanted = int(live, &["spec", "replicas"]).unwrap_or(1);
    let healthy = counters::is_observed(live) && count(&live["status"], "availableReplicas") >= wanted;
    if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}
