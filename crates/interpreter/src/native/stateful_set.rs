//! StatefulSet.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC,
    counters::{self, Counter, always, count, counter},
};
use crate::json::{int, items, text};

/// apps/v1 StatefulSet.
///
/// Retained: `spec.replicas`, if the template carries the retain-replicas label. The immutable parts of its spec
/// (`serviceName`, `selector`, `podManagementPolicy`, `volumeClaimTemplates`) are always the user's: what the API
/// server fills into a claim template, it fills in again on a PUT. A hub StatefulSet that was deleted and recreated
/// with other immutable parts is refused by the member, which must be visible.
pub(super) struct StatefulSet;

const COUNTERS: &[Counter] = &[
    always("replicas"),
    always("availableReplicas"),
    counter("currentReplicas"),
    counter("readyReplicas"),
    counter("updatedReplicas"),
];

impl NativeKind for StatefulSet {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apps",
            version: "v1",
            kind: "StatefulSet",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: numbered pods with claims of their own"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("statefulsets"))
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

    /// A volume named like a claim template is bound to the claim that the StatefulSet controller makes, whatever
    /// its own source is. Source: Karmada reference 2.9 (#5568).
    fn own_claims<'a>(&self, object: &'a Value) -> BTreeSet<&'a str> {
        let templates = items(object, &["spec", "volumeClaimTemplates"]);
        templates
            .iter()
            .map(|template| text(template, &["metadata", "name"]))
            .collect()
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
        counters::retains_replicas(desired)
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        counters::retain_replicas(desired, live);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        counters::reflect(live, COUNTERS)
    }

    /// Healthy: the latest spec is observed, every replica from the partition on is of it (unless they are replaced only
    /// when somebody deletes them), and all replicas are available.
    fn health(&self, live: &Value) -> Health {
        let status = &live["status"];
        if !status.is_object() {
            return Health::Unknown;
        }
        let wanted = int(live, &["spec", "replicas"]).unwrap_or(1);
        let kept = int(live, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or_default();
        let (updated, available) = (
            count(status, "updatedReplicas"),
            count(status, "availableReplicas"),
        );
        let healthy = counters::is_observed(live)
            && (counters::is_replaced_on_delete(live) || updated >= wanted.saturating_sub(kept))
            && available >= wanted
            && available >= updated;
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
