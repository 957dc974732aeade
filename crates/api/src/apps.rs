//! `apps.karmada.io/v1alpha1`: requests to reschedule workloads.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workloads to reschedule.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "apps.karmada.io",
    version = "v1alpha1",
    kind = "WorkloadRebalancer",
    doc = "Reschedules some workloads once.",
    status = "WorkloadRebalancerStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRebalancerSpec {
    /// The workloads.
    #[schemars(length(min = 1))]
    pub workloads: Vec<WorkloadReference>,

    /// The number of seconds after which the object is deleted once it has finished. Left out: it is never deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Names a workload.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Group and version.
    pub api_version: String,

    /// Kind.
    pub kind: String,

    /// Name.
    pub name: String,

    /// Namespace. Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// The result of a rebalancing.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRebalancerStatus {
    /// One entry for each workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_workloads: Vec<ObservedWorkload>,

    /// The generation that the status was computed from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,

    /// The time at which the last workload was processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
}

/// The result of a workload: its binding was asked to reschedule.
pub const SUCCESSFUL: &str = "Successful";

/// The result of a workload: its binding was not asked to reschedule.
pub const FAILED: &str = "Failed";

/// The reason of a failure: the binding was not found.
pub const REFERENCED_BINDING_NOT_FOUND: &str = "ReferencedBindingNotFound";

/// Ours. The reason of a failure: the binding is managed by another component.
pub const BINDING_MANAGED_BY_OTHERS: &str = "BindingManagedByOthers";

/// The result for one workload.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedWorkload {
    /// The workload.
    pub workload: WorkloadReference,

    /// Successful or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,

    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests;
