//! `apps.kruise.io/v1alpha1`: one ConfigMap or Secret in many namespaces.
//!
//! OpenKruise's kind, as its releases serve it. Its unreleased version v1beta1 renames two fields, which
//! takes a conversion webhook: it is not served. As there, a server takes an object without a spec: it distributes nothing, and cannot
//! be read as the type. Source: ResourceDistribution reference 1.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::embedded::EmbeddedObject;
use crate::schema::{is_false, is_zero};

/// What is put into which namespaces.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ResourceDistribution",
    doc = "Puts one ConfigMap or Secret into many namespaces and keeps it there.",
    status = "ResourceDistributionStatus",
    shortname = "distributor",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "TOTAL", type_ = "integer", json_path = ".status.desired"),
    printcolumn(name = "SUCCEED", type_ = "integer", json_path = ".status.succeeded"),
    printcolumn(name = "FAILED", type_ = "integer", json_path = ".status.failed")
)]
pub struct ResourceDistributionSpec {
    /// The ConfigMap or Secret, whole; its namespace does not count.
    #[schemars(schema_with = "embedded_resource")]
    pub resource: EmbeddedObject,

    /// The namespaces.
    pub targets: DistributionTargets,
}

/// Namespaces: those that are listed, selected or all, without those that are excluded.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DistributionTargets {
    /// Every namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all_namespaces: bool,

    /// Namespaces that are left out in any case.
    #[serde(default, skip_serializing_if = "NamespaceList::is_empty")]
    pub excluded_namespaces: NamespaceList,

    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "NamespaceList::is_empty")]
    pub included_namespaces: NamespaceList,

    /// Namespaces by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub namespace_label_selector: Option<LabelSelector>,
}

/// Namespaces by name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceList {
    /// One entry a namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<NamespaceEntry>,
}

impl NamespaceList {
    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A namespace.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespaceEntry {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// How the copies in the namespaces fare.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionStatus {
    /// How many namespaces are meant.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub desired: i32,

    /// How many of them hold the resource.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub succeeded: i32,

    /// How many do not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,

    /// The generation that the status is about.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub observed_generation: i64,

    /// One entry a kind of failure, True where it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<DistributionCondition>,
}

/// Whether one kind of failure happened, and where. Not a condition of Kubernetes: its reason is a text.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DistributionCondition {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub type_: String,

    /// True, False or Unknown.
    pub status: String,

    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,

    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// The namespaces where it happened.
    #[serde(default, rename = "failedNamespace", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces: Vec<String>,
}

/// An object whose kind and metadata a server checks.
fn embedded_resource(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = EmbeddedObject::json_schema(generator);
    schema.insert("x-kubernetes-embedded-resource".into(), true.into());
    schema
}

fn is_zero_long(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests;
