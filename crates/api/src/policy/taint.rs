//! Taints that follow from the conditions of Clusters.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClusterAffinity;

/// Which Clusters get which taints, and when. Source: Karmada reference 4.1.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "policy.karmada.io",
    version = "v1alpha1",
    kind = "ClusterTaintPolicy",
    doc = "Sets taints on Clusters by their conditions, and removes them.",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintSpec {
    /// The Clusters that the policy is about. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,

    /// What a Cluster's conditions must be for the taints to be put on it; all must hold. Left out: never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,

    /// What a Cluster's conditions must be for the taints to be removed; all must hold. Left out: never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,

    /// The taints. Key and effect of each are unique.
    #[schemars(length(min = 1, max = 64))]
    pub taints: Vec<PolicyTaint>,
}

/// What one condition of a Cluster must be.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Type of the condition, such as Ready.
    pub condition_type: String,

    /// How its status relates to the values: In or NotIn.
    pub operator: String,

    /// The values: True, False, Unknown.
    pub status_values: Vec<String>,
}

/// A taint that a policy puts on Clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyTaint {
    /// Key.
    #[schemars(length(max = 317))]
    pub key: String,

    /// What it does to bindings that do not tolerate it: NoSchedule or NoExecute.
    #[schemars(length(max = 32))]
    pub effect: String,

    /// Value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}
