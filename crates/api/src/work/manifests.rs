//! Works: the desired objects of one cluster in pull mode, for its agent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceHealth;
use crate::embedded::EmbeddedObject;

/// The desired objects of a cluster. Lies in the namespace of that cluster, `karmada-es-<cluster>`. Source: Karmada reference
/// 1.5.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "work.karmada.io",
    version = "v1alpha1",
    kind = "Work",
    doc = "Objects for one cluster, and their state there.",
    namespaced,
    status = "WorkStatus",
    shortname = "wk",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "WORKLOAD-KIND",
        type_ = "string",
        json_path = ".spec.workload.manifests[*].kind"
    ),
    printcolumn(
        name = "APPLIED",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Applied")].status"#
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkSpec {
    /// The objects.
    #[serde(default, skip_serializing_if = "WorkloadTemplate::is_empty")]
    pub workload: WorkloadTemplate,

    /// True suspends delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching: Option<bool>,

    /// True: the objects are kept on the cluster, without ownership metadata, when the Work is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// Objects for a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct WorkloadTemplate {
    /// The objects in the form for the cluster, each whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<EmbeddedObject>,
}

impl WorkloadTemplate {
    fn is_empty(&self) -> bool {
        self.manifests.is_empty()
    }
}

/// The state of the objects of a Work.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkStatus {
    /// Applied and Dispatching.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// One entry for each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_statuses: Vec<ManifestStatus>,
}

/// The state of one object.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ManifestStatus {
    /// The object.
    pub identifier: ResourceIdentifier,

    /// The part of its status that is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub status: Option<serde_json::Value>,

    /// Its health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ResourceHealth>,
}

/// Names an object of a Work.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceIdentifier {
    /// Its index in the manifests, from 0.
    #[schemars(schema_with = "crate::schema::plain_integer")]
    pub ordinal: i64,

    /// API group. Left out for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// Version.
    pub version: String,

    /// Kind.
    pub kind: String,

    /// Plural name of the kind, such as deployments.
    pub resource: String,

    /// Namespace. Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name.
    pub name: String,
}
