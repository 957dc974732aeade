//! Quotas of a namespace over all clusters.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::Resources;

/// The limits of a namespace over all clusters, and the parts of them that are assigned to single clusters.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "policy.karmada.io",
    version = "v1alpha1",
    kind = "FederatedResourceQuota",
    doc = "Limits the resources that the workloads of its namespace use over all clusters.",
    namespaced,
    status = "FederatedResourceQuotaStatus",
    shortname = "frq",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "OVERALL", type_ = "string", json_path = ".status.overall"),
    printcolumn(name = "OVERALL_USED", type_ = "string", json_path = ".status.overallUsed")
)]
#[serde(rename_all = "camelCase")]
pub struct FederatedResourceQuotaSpec {
    /// The limits over all clusters, by resource name.
    #[schemars(schema_with = "crate::schema::quantities")]
    pub overall: Resources,

    /// The limits of single clusters: each of them gets a ResourceQuota of the same name, in the same namespace. A cluster that is
    /// not listed gets none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_assignments: Vec<StaticClusterAssignment>,
}

/// The limits of one cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StaticClusterAssignment {
    /// The cluster.
    pub cluster_name: String,

    /// Its limits, by resource name.
    #[schemars(schema_with = "crate::schema::quantities")]
    pub hard: Resources,
}

/// The limits in force and their use.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FederatedResourceQuotaStatus {
    /// The limits over all clusters that are in force.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub overall: Resources,

    /// The amounts of them that are used, over all clusters.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub overall_used: Resources,

    /// The limits of single clusters and their use, sorted by cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<ClusterQuotaStatus>,
}

/// The limits of one cluster and their use, as its ResourceQuota reports them.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQuotaStatus {
    /// The cluster.
    pub cluster_name: String,

    /// The limits that the cluster enforces.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub hard: Resources,

    /// The amounts of them that are used on the cluster.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub used: Resources,
}
