//! `work.karmada.io/v1alpha1`: the first version of a ResourceBinding. It is served for clients that still request it;
//! Entourage neither reads nor writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Resources;
use crate::schema::{is_false, is_zero};
use crate::scope::ClusterCounterpart;

/// The target clusters of one template, in the first version of the API.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "work.karmada.io",
    version = "v1alpha1",
    kind = "ResourceBinding",
    doc = "The scheduling result of one namespaced template. Superseded by v1alpha2.",
    namespaced,
    status = "ResourceBindingStatus",
    shortname = "rb",
    category = "karmada-io",
    storage = false,
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingSpec {
    /// The template.
    pub resource: ObjectReference,

    /// The clusters that the template is scheduled to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
}

impl ClusterCounterpart for ResourceBinding {
    const KIND: &'static str = super::ResourceBinding::KIND;
    const PLURAL: &'static str = super::ResourceBinding::PLURAL;
    const CRD_NAME: &'static str = super::ResourceBinding::CRD_NAME;
    const SHORT_NAMES: &'static [&'static str] = super::ResourceBinding::SHORT_NAMES;
    const DOC: &'static str = "The scheduling result of one cluster-scoped template. Superseded by v1alpha2.";
}

/// Names a template.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Group and version.
    pub api_version: String,

    /// Kind.
    pub kind: String,

    /// Namespace. Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name.
    pub name: String,

    /// The resourceVersion that the binding was made from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,

    /// The resources that one replica requests.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub resource_per_replicas: Resources,

    /// The number of replicas of the template.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
}

/// A target cluster and its number of replicas.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetCluster {
    /// Name of the cluster.
    pub name: String,

    /// The number of replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
}

/// The state of a binding's template.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingStatus {
    /// The conditions of the binding as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// One entry for each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<AggregatedStatusItem>,
}

/// The state of the template on one cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Name of the cluster.
    pub cluster_name: String,

    /// The part of the copy's status that is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub status: Option<serde_json::Value>,

    /// True if the copy is applied on the cluster.
    #[serde(default, skip_serializing_if = "is_false")]
    pub applied: bool,

    /// The reason why it is not applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
}
