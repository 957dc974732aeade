//! Deployment.

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC,
    counters::{self, Counter, count, counter},
};
use crate::json::int;

/// apps/v1 Deployment.
///
/// Retained: `spec.replicas`, if the template carries the retain-replicas label (an autoscaler on the member decides). Nothing
/// else of its spec is set by the member: the API server's defaults are the hub's, the selector is immutable but always the
/// user's. The revision annotations are the Deployment controller's and stay on the copy as those of another writer.
pub(super) struct Deployment;

const COUNTERS: &[Counter] = &[
    counter("replicas"),
    counter("updatedReplicas"),
    counter("readyReplicas"),
    counter("availableReplicas"),
    counter("unavailableReplicas"),
];

impl NativeKind for Deployment {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apps",
            version: "v1",
            kind: "Deployment",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: pods in any number, replaced in a rolling update"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("deployments"))
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

    fn annotations_count_as_content(&self) -> bool {
        true
    }

    /// The hub's revision counts the hub's ReplicaSets; sent to a member, it would contend with the member's own.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[
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

    /// Healthy: the latest spec is observed, all replicas are of it, and all of those are available.
    fn health(&self, live: &Value) -> Health {
        if !live["status"].is_object() {
            return Health::Unknown;
        }
        let updated = count(&live["status"], "updatedReplicas");
        let healthy = counters::is_observed(live)
            && updated >= int(live, &["spec", "replicas"]).unwrap_or(1)
            && count(&live["status"], "availableReplicas") >= updated;
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
