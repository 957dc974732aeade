//! PodDisruptionBudget.

use serde_json::{Map, Value};

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource,
    counters::{self, Counter, always, count},
};
use crate::json::same;

/// policy/v1 PodDisruptionBudget, and policy/v1beta1 of servers before 1.21; the field is the version.
///
/// It guards the pods of its own cluster: a minimum holds in each cluster, not over all.
///
/// Retained: nothing. Its controller on the member writes status only.
pub(super) struct PodDisruptionBudget(pub(super) &'static str);

const COUNTERS: &[Counter] = &[
    always("currentHealthy"),
    always("desiredHealthy"),
    always("disruptionsAllowed"),
    always("expectedPods"),
];

const DISRUPTED: &str = "disruptedPods";

impl NativeKind for PodDisruptionBudget {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "policy",
            version: self.0,
            kind: "PodDisruptionBudget",
        }
    }

    fn summary(&self) -> &'static str {
        "availability: how many pods may be evicted, in each cluster for itself"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("poddisruptionbudgets"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Reflect, Operation::Aggregate, Operation::Health]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        let mut reflected = counters::reflect_counts(live, COUNTERS)?;
        if let Some(pods) = live["status"][DISRUPTED]
            .as_object()
            .filter(|pods| !pods.is_empty())
        {
            reflected[DISRUPTED] = Value::Object(pods.clone());
        }
        Some(reflected)
    }

    /// Healthy: as many pods are healthy as must be. Zeros of a generation that its controller has not observed, as the API
    /// server writes them, do not count. Source: Karmada reference 3.1; the exception is ours.
    fn health(&self, live: &Value) -> Health {
        let status = &live["status"];
        let is_new = status["observedGeneration"].is_null()
            && COUNTERS.iter().all(|each| count(status, each.name) == 0);
        if !status.is_object() || is_new {
            Health::Unknown
        } else if count(status, "currentHealthy") >= count(status, "desiredHealthy") {
            Health::Healthy
        } else {
            Health::Unhealthy
        }
    }

    /// Sums over the clusters, and every cluster's disrupted pods under `<cluster>/<pod>`. Source: Karmada reference 3.1.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        let stored = &template["status"];
        let summed = counters::sums(template, items, COUNTERS);
        let mut status = summed.unwrap_or_else(|| stored.clone());
        let mut pods = Map::new();
        for (cluster, item) in items {
            for (pod, since) in item
                .and_then(|item| item[DISRUPTED].as_object())
                .into_iter()
                .flatten()
            {
                pods.insert(format!("{cluster}/{pod}"), since.clone());
            }
        }
        if let Some(status) = status.as_object_mut() {
            if pods.is_empty() {
                status.remove(DISRUPTED);
            } else {
                status.insert(DISRUPTED.to_owned(), Value::Object(pods));
            }
        }
        (!same(&status, stored)).then_some(status)
    }
}
