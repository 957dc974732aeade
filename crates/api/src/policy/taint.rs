//! Taints that are derived from the conditions of Clusters.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClusterAffinity;

/// The taints of Clusters and the conditions that set them. Source: Karmada reference 4.1.
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
    /// The Clusters that the policy applies to. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,

    /// Requirements on a Cluster's conditions for adding the taints; all must hold. Left out: never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,

    /// Requirements on a Cluster's conditions for removing the taints; all must hold. Left out: never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,

    /// The taints. Key and effect of each are unique.
    #[schemars(length(min = 1, max = 64))]
    pub taints: Vec<PolicyTaint>,
}

/// A requirement on one condition of a Cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Type of the condition, such as Ready.
    pub condition_type: String,

    /// The relation of its status to the values: In or NotIn.
    pub operator: String,

    /// The values: True, False, Unknown.
    pub status_values: Vec<String>,
}

/// A taint that a policy adds to Clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyTaint {
    /// Key.
    #[schemars(length(max = 317))]
    pub key: String,

    /// Its effect on bindings that do not tolerate it: NoSchedule or NoExecute.
    #[schemars(length(max = 32))]
    pub effect: String,

    /// Value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}
