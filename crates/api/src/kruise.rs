//! `apps.kruise.io`: one ConfigMap or Secret in many namespaces.
//!
//! OpenKruise's kind. Its releases serve v1alpha1; its unreleased v1beta1 renames two fields. Both versions are served with
//! both names of either field, so that no webhook converts: [`DistributionTargets::selector`] reads the selector under
//! either name, and the namespaces that failed are told under both. As there, a server takes an object without a spec: it
//! distributes nothing, and cannot be read as the type.
//!
//! What is ours, or from the first proposal of the kind, is optional and has no default in the schema: an object of
//! OpenKruise comes back as it was sent, and means what it means there. Source: ResourceDistribution reference 1 and 6.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::embedded::EmbeddedObject;
use crate::policy::ClusterAffinity;
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
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionSpec {
    /// The ConfigMap or Secret, whole; its namespace does not count. Either this or `resourceFrom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded_resource")]
    pub resource: Option<EmbeddedObject>,

    /// The ConfigMap or Secret that is distributed. Its namespace must consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_from: Option<ResourceSource>,

    /// The namespaces.
    pub targets: DistributionTargets,

    /// What happens where an object of this name already exists and is not managed. Absent is as `ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_policy: Option<WritePolicy>,

    /// What becomes of the copies when the distribution is deleted. Absent is as `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// A ConfigMap or Secret that stands somewhere.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSource {
    /// ConfigMap or Secret.
    pub kind: SourceKind,

    /// Its namespace.
    pub namespace: String,

    /// Its name, which is that of the copies, too.
    pub name: String,
}

/// What can be distributed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// A ConfigMap.
    #[default]
    ConfigMap,
    /// A Secret.
    Secret,
}

/// What happens where an object of this name already exists and is not managed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum WritePolicy {
    /// Nothing is written anywhere while there is one.
    Strict,
    /// It is taken over, unless it has a controller.
    Overwrite,
    /// It stays, and the namespace counts as failed.
    #[default]
    Ignore,
}

/// What becomes of the copies when the distribution is deleted.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// They are deleted.
    #[default]
    Delete,
    /// They stay, without an owner.
    Orphan,
}

/// Namespaces: those that are listed, selected or all, without those that are excluded.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DistributionTargets {
    /// Every namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all_namespaces: bool,

    /// Every namespace but those that are named here; being there is what counts, also without an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<TargetException>>,

    /// Member clusters. When given, the namespaces meant are those of these members instead of those of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterAffinity>,

    /// Namespaces that are left out in any case.
    #[serde(default, skip_serializing_if = "NamespaceList::is_empty")]
    pub excluded_namespaces: NamespaceList,

    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "NamespaceList::is_empty")]
    pub included_namespaces: NamespaceList,

    /// Namespaces by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "flat_selector")]
    pub namespace_label_selector: Option<FlatSelector>,

    /// Another name for `namespaceLabelSelector`, that of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "flat_selector")]
    pub namespace_selector: Option<FlatSelector>,

    /// Namespaces by name, in the form of the first proposal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceEntry>,

    /// Namespaces in which a workload with such labels lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "flat_selector")]
    pub workload_label_selector: Option<FlatSelector>,
}

impl DistributionTargets {
    /// The selector of namespaces, under whichever of its names it was given. Both at once must be equal.
    ///
    /// # Errors
    /// A sentence for the author when both are given and differ.
    pub fn selector(&self) -> Result<Option<&FlatSelector>, String> {
        match (&self.namespace_label_selector, &self.namespace_selector) {
            (Some(one), Some(other)) if one != other => Err(
                "targets.namespaceLabelSelector and targets.namespaceSelector are two names of one field and differ: give one"
                    .to_owned(),
            ),
            (one, other) => Ok(one.as_ref().or(other.as_ref())),
        }
    }
}

/// A namespace that is left out of `all`.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetException {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exception: String,
}

/// A label selector, or labels alone as in the first proposal: what is neither `matchLabels` nor `matchExpressions` is a
/// label that must be there.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FlatSelector {
    /// Labels and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,

    /// Labels that stand beside the two.
    #[serde(flatten)]
    pub flat: BTreeMap<String, Value>,
}

impl FlatSelector {
    /// As a label selector.
    ///
    /// # Errors
    /// A sentence for the author: what stands beside the two is no label, or contradicts `matchLabels`.
    pub fn to_selector(&self) -> Result<LabelSelector, String> {
        let mut labels = self.match_labels.clone();
        for (key, value) in &self.flat {
            let Value::String(value) = value else {
                return Err(format!(
                    "{key:?} is neither matchLabels nor matchExpressions, and its value is not a string, as a \
                     label's is"
                ));
            };
            if labels
                .insert(key.clone(), value.clone())
                .is_some_and(|other| other != *value)
            {
                return Err(format!("label {key:?} is given twice with different values"));
            }
        }
        Ok(LabelSelector {
            match_labels: Some(labels).filter(|all| !all.is_empty()),
            match_expressions: Some(self.match_expressions.clone()).filter(|all| !all.is_empty()),
        })
    }
}

/// Namespaces by name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceList {
    /// One entry a namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<NamespaceEntry>,
}

impl NamespaceList {
    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|each| each.name.as_str())
    }

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

    /// Its state, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,

    /// What is distributed. It stays what it was first: by it the copies are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<DistributedObject>,

    /// Namespaces where an object of this name already exists and is not managed, with its owner; sorted, the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicting_namespaces: Vec<ConflictingNamespace>,

    /// One entry a member cluster, when the targets name clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterDistribution>,
}

/// What copies are called.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DistributedObject {
    /// ConfigMap or Secret.
    pub kind: String,

    /// The name.
    pub name: String,
}

/// A namespace where an object of this name already exists and is not managed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct ConflictingNamespace {
    /// Its name.
    pub name: String,

    /// The member cluster that it is on; none for the hub.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,

    /// Kind and name of the object's controller; none if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,

    /// Why it counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How the copies on one member cluster fare.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDistribution {
    /// The member cluster.
    pub name: String,

    /// How many namespaces are meant there.
    pub desired: i32,

    /// How many of them hold the resource.
    pub succeeded: i32,

    /// How many do not.
    pub failed: i32,

    /// Why not, in words; the first reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
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

    /// The namespaces where it happened; sorted, the first hundred.
    #[serde(default, rename = "failedNamespace", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces: Vec<String>,

    /// The same, under the name of v1beta1.
    #[serde(default, rename = "failedNamespaces", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces_beta: Vec<String>,

    /// In how many namespaces it happened.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
}

/// An object whose kind and metadata a server checks.
fn embedded_resource(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = EmbeddedObject::json_schema(generator);
    schema.insert("x-kubernetes-embedded-resource".into(), true.into());
    schema
}

/// A label selector that keeps what it does not know.
fn flat_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = crate::schema::label_selector(generator);
    schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
    schema
}

fn is_zero_long(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests;
