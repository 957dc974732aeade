//! `apps.karmada.io/v1alpha1`: WorkloadRebalancer, which has workloads scheduled afresh.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which workloads shall be placed afresh.
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

    /// How many seconds after it finished the object is deleted. Left out: it stays.
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

/// What came of it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRebalancerStatus {
    /// One entry a workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_workloads: Vec<ObservedWorkload>,

    /// The generation that the status is about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,

    /// When every workload was dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
}

/// The result of a workload whose binding was asked for a fresh choice.
pub const SUCCESSFUL: &str = "Successful";

/// The result of one whose binding was not.
pub const FAILED: &str = "Failed";

/// Why it was not: there is no binding.
pub const REFERENCED_BINDING_NOT_FOUND: &str = "ReferencedBindingNotFound";

/// Ours. Why it was not: another component keeps the binding.
pub const BINDING_MANAGED_BY_OTHERS: &str = "BindingManagedByOthers";

/// What came of one workload.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedWorkload {
    /// Which workload.
    pub workload: WorkloadReference,

    /// Successful or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,

    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests;
