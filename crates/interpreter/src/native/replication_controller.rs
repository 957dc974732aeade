//! ReplicationController.

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC,
    counters::{self, retains_replicas},
    replica_set::{self, COUNTERS},
};

/// v1 ReplicationController: the predecessor of ReplicaSet, interpreted as one.
///
/// Retained: `spec.replicas`, if the template carries the retain-replicas label. Karmada does not interpret it.
pub(super) struct ReplicationController;

impl NativeKind for ReplicationController {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "ReplicationController",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: pods in any number, of one template, from before there were ReplicaSets"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("replicationcontrollers"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Replicas,
            Operation::Revise,
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

    fn is_scaled(&self) -> bool {
        true
    }

    fn needs_live(&self, desired: &Value) -> bool {
        retains_replicas(desired)
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        counters::retain_replicas(desired, live);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        counters::reflect(live, COUNTERS)
    }

    fn health(&self, live: &Value) -> Health {
        replica_set::health(live)
    }

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        counters::aggregate(template, items, COUNTERS)
    }
}
