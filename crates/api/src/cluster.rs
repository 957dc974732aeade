//! `cluster.karmada.io/v1alpha1`: the member clusters.
//!
//! Karmada serves this kind from an aggregated API server; here it is a CRD with the same fields.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{is_false, is_zero};
use crate::work::Resources;

/// The address and credentials of a member cluster, and its declared properties.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "cluster.karmada.io",
    version = "v1alpha1",
    kind = "Cluster",
    doc = "A member cluster: its API server, its properties, and its state.",
    status = "ClusterStatus",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "VERSION", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "MODE", type_ = "string", json_path = ".spec.syncMode"),
    printcolumn(
        name = "READY",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ZONES", type_ = "string", json_path = ".spec.zones", priority = 1),
    printcolumn(name = "REGION", type_ = "string", json_path = ".spec.region", priority = 1),
    printcolumn(
        name = "PROVIDER",
        type_ = "string",
        json_path = ".spec.provider",
        priority = 1
    ),
    printcolumn(
        name = "API-ENDPOINT",
        type_ = "string",
        json_path = ".spec.apiEndpoint",
        priority = 1
    ),
    printcolumn(
        name = "PROXY-URL",
        type_ = "string",
        json_path = ".spec.proxyURL",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The identity of the cluster: the uid of its kube-system namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,

    /// Push: the control plane writes to the cluster. Pull: an agent in the cluster fetches its Works.
    pub sync_mode: SyncMode,

    /// Address of the cluster's API server, such as https://10.0.0.1:6443.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_endpoint: String,

    /// The Secret with the credentials for the cluster: token, and caBundle to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSecretReference>,

    /// The Secret with the credentials of an identity that may impersonate users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<LocalSecretReference>,

    /// True: any certificate of the cluster's API server is accepted. Not for production.
    #[serde(
        default,
        rename = "insecureSkipTLSVerification",
        skip_serializing_if = "is_false"
    )]
    pub insecure_skip_tls_verification: bool,

    /// Proxy through which the cluster is reached.
    #[serde(default, rename = "proxyURL", skip_serializing_if = "String::is_empty")]
    pub proxy_url: String,

    /// Headers that are sent to the proxy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,

    /// The provider that runs the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,

    /// The region that the cluster is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,

    /// Deprecated: the zone that the cluster is in; use zones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,

    /// The zones that the cluster spans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,

    /// Taints: bindings that do not tolerate them are not scheduled to the cluster, or are evicted from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,

    /// Classes of nodes by size, used to estimate how many replicas fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_models: Vec<ResourceModel>,
}

/// The component that writes copies to a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// The control plane writes to the cluster.
    #[default]
    Push,
    /// An agent in the cluster fetches its Works.
    Pull,
}

/// Names a Secret on the hub.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalSecretReference {
    /// Namespace of the Secret.
    pub namespace: String,

    /// Name of the Secret.
    pub name: String,
}

/// A class of nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ResourceModel {
    /// Number of the class; higher ones have larger nodes.
    pub grade: i32,

    /// The sizes of nodes that belong to the class.
    pub ranges: Vec<ResourceModelRange>,
}

/// The amounts of one resource that belong to a class of nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ResourceModelRange {
    /// Name of the resource.
    pub name: String,

    /// The smallest amount that belongs to the class.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub min: Quantity,

    /// The smallest amount above the class.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub max: Quantity,
}

/// The observed state of a member cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The version that the cluster's API server reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,

    /// The APIs that the cluster serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_enablements: Vec<ApiEnablement>,

    /// Ready and CompleteAPIEnablements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The number of nodes of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_summary: Option<NodeSummary>,

    /// The capacity of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_summary: Option<ResourceSummary>,

    /// The actions under way to repair the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedy_actions: Vec<String>,
}

/// The kinds of one group and version that a cluster serves.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ApiEnablement {
    /// Group and version.
    pub group_version: String,

    /// The kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ApiResource>,
}

/// A kind that a cluster serves.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiResource {
    /// The plural in lower case.
    pub name: String,

    /// The kind.
    pub kind: String,
}

/// The number of nodes of a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// All nodes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_num: i32,

    /// The nodes that are ready.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ready_num: i32,
}

/// The capacity of a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// The resources that the nodes offer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub allocatable: Resources,

    /// The resources that pending pods request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub allocating: Resources,

    /// The resources that pods on nodes request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub allocated: Resources,

    /// The number of nodes of each class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocatable_modelings: Vec<AllocatableModeling>,
}

/// The number of nodes of a class in a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatableModeling {
    /// Number of the class.
    pub grade: i32,

    /// The number of nodes.
    pub count: i32,
}

#[cfg(test)]
mod tests;
