//! `multicluster.x-k8s.io/v1alpha1`: Services that clusters export and import.
//!
//! Source: the Multi-Cluster Services API, KEP-1645.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nothing: the name says which Service is exported.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ServiceExport",
    shortname = "svcex",
    namespaced,
    doc = "Says that the Service of this name and namespace is used from other clusters.",
    status = "ServiceExportStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ServiceExportSpec {}

/// The state of an export.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ServiceExportStatus {
    /// Conditions of the implementation in the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ServiceExportCondition>,
}

/// A condition of an export.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportCondition {
    /// Type.
    #[serde(rename = "type")]
    pub type_: String,

    /// True, False or Unknown.
    pub status: String,

    /// The time of the last change of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,

    /// The reason, in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// The reason for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The form of a Service of other clusters.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ServiceImport",
    shortname = "svcim",
    namespaced,
    doc = "Stands for a Service of other clusters.",
    status = "ServiceImportStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "TYPE", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "IP", type_ = "string", json_path = ".spec.ips"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportSpec {
    /// The ports.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ServiceImportPort>,

    /// The addresses in the cluster, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ips: Vec<String>,

    /// ClusterSetIP: it has an address of its own in each cluster. Headless: it has none.
    #[serde(rename = "type")]
    pub type_: ServiceImportType,

    /// ClientIP or None.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,

    /// Settings of the session affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
}

/// The kind of address of a Service of other clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceImportType {
    /// It has one in each cluster.
    #[default]
    ClusterSetIP,
    /// It has none.
    Headless,
}

/// A port.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportPort {
    /// The name; optional if there is one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// TCP, UDP or SCTP. TCP if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,

    /// The application protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,

    /// The number.
    pub port: i32,
}

/// Settings of the session affinity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinityConfig {
    /// Settings of ClientIP.
    #[serde(rename = "clientIP", default, skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIpConfig>,
}

/// Settings of ClientIP.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClientIpConfig {
    /// The time after which a client may reach another endpoint, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// The state of an import.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceImportStatus {
    /// The clusters that export the Service, as the implementation in the cluster reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ExportingCluster>,
}

/// A cluster that exports a Service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportingCluster {
    /// Its name.
    pub cluster: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_import_survives_unchanged() {
        let object = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ServiceImport",
            "metadata": { "name": "web" },
            "spec": {
                "type": "ClusterSetIP",
                "ports": [{ "port": 80, "protocol": "TCP", "name": "http", "appProtocol": "http" }],
                "ips": ["10.0.0.1"],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } },
            },
            "status": { "clusters": [{ "cluster": "member1" }] },
        });
        let read: ServiceImport = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), object);
    }
}
