//! `apps.kruise.io`: one ConfigMap or Secret in many namespaces.
//!
//! OpenKruise's kind. Its releases serve v1alpha1; its unreleased v1beta1 renames two fields. Both versions are served with
//! both names of either field, so that no webhook converts: [`DistributionTargets::selector`] reads the selector under either
//! name, and the namespaces that failed are reported under both. As in OpenKruise, a server accepts an object without a spec:
//! it distributes nothing, and cannot be read as the type.
//!
//! Fields of ours, or from the first proposal of the kind, are optional and have no default in the schema: an object of
//! OpenKruise is returned as it was sent, with the same meaning. Source: ResourceDistribution reference 1 and 6.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::embedded::EmbeddedObject;
use crate::policy::ClusterAffinity;
use crate::schema::{is_false, is_zero};

/// The object to distribute and its target namespaces.
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
    /// The ConfigMap or Secret, whole; its namespace is ignored. Either this or `resourceFrom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded_resource")]
    pub resource: Option<EmbeddedObject>,

    /// The existing ConfigMap or Secret that is distributed. Its annotation `entourage.dev/distribution-allowed` must allow that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_from: Option<ResourceSource>,

    /// The namespaces.
    pub targets: DistributionTargets,

    /// The treatment of an object of this name that already exists and is not managed. Left out: as `ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_policy: Option<WritePolicy>,

    /// The treatment of the copies when the distribution is deleted. Left out: as `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// A ConfigMap or Secret on the hub.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSource {
    /// ConfigMap or Secret.
    pub kind: SourceKind,

    /// Its namespace.
    pub namespace: String,

    /// Its name, which is also that of the copies.
    pub name: String,
}

/// The kinds that can be distributed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// A ConfigMap.
    #[default]
    ConfigMap,
    /// A Secret.
    Secret,
}

/// The treatment of an object of this name that already exists and is not managed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum WritePolicy {
    /// No copy is written while there is one.
    Strict,
    /// It is taken over, unless it has a controller.
    Overwrite,
    /// It is not changed, and the namespace counts as failed.
    #[default]
    Ignore,
}

/// The treatment of the copies when the distribution is deleted.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// They are deleted.
    #[default]
    Delete,
    /// They are kept, without an owner.
    Orphan,
}

/// The target namespaces: those that are listed, selected or all, without those that are excluded.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DistributionTargets {
    /// True: every namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all_namespaces: bool,

    /// Every namespace except those that are named here; the field applies even if the list is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<TargetException>>,

    /// Member clusters. If given, the targets are namespaces of these members instead of those of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterAffinity>,

    /// Namespaces that are excluded in any case.
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

    /// Namespaces that contain a workload with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "flat_selector")]
    pub workload_label_selector: Option<FlatSelector>,
}

impl DistributionTargets {
    /// Returns the selector of namespaces, under either of its names. Both at once must be equal.
    ///
    /// # Errors
    /// A sentence for the author if both are given and differ.
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

/// A namespace that is excluded from `all`.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetException {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exception: String,
}

/// A label selector, or labels alone as in the first proposal: a key other than `matchLabels` and `matchExpressions` is a
/// required label.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FlatSelector {
    /// Labels and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,

    /// Labels given beside the two.
    #[serde(flatten)]
    pub flat: BTreeMap<String, Value>,
}

impl FlatSelector {
    /// Returns the label selector.
    ///
    /// # Errors
    /// A sentence for the author if a key beside the two is not a label, or contradicts `matchLabels`.
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
    /// One entry for each namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<NamespaceEntry>,
}

impl NamespaceList {
    /// Returns the names.
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

/// The state of the copies in the namespaces.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionStatus {
    /// The number of target namespaces.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub desired: i32,

    /// The number of them with a current copy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub succeeded: i32,

    /// The number of them without one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,

    /// The generation that the status was computed from.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub observed_generation: i64,

    /// One entry for each kind of failure, True if it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<DistributionCondition>,

    /// Its state, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,

    /// The kind and name of the distributed object. They do not change once set: copies are found by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<DistributedObject>,

    /// Namespaces where an object of this name already exists and is not managed, with its owner; sorted, the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicting_namespaces: Vec<ConflictingNamespace>,

    /// One entry for each member cluster, if the targets name clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterDistribution>,
}

/// The kind and name of the copies.
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

    /// The member cluster that it is on; empty for the hub.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,

    /// Kind and name of the object's controller; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,

    /// The reason of the conflict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The state of the copies on one member cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDistribution {
    /// The member cluster.
    pub name: String,

    /// The number of target namespaces on it.
    pub desired: i32,

    /// The number of them with a current copy.
    pub succeeded: i32,

    /// The number of them without one.
    pub failed: i32,

    /// The first cause of failure, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The state of one kind of failure. Not a condition of Kubernetes: its reason is a sentence.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DistributionCondition {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub type_: String,

    /// True, False or Unknown.
    pub status: String,

    /// The time at which the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,

    /// The cause, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// The namespaces where it happened; sorted, the first hundred.
    #[serde(default, rename = "failedNamespace", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces: Vec<String>,

    /// The same namespaces, under the name of v1beta1.
    #[serde(default, rename = "failedNamespaces", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces_beta: Vec<String>,

    /// The number of namespaces where it happened.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
}

/// An object whose kind and metadata a server checks.
fn embedded_resource(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = EmbeddedObject::json_schema(generator);
    schema.insert("x-kubernetes-embedded-resource".into(), true.into());
    schema
}

/// A label selector that keeps unknown fields.
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
