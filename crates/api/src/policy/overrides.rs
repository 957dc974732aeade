//! Changes of the copies on some clusters.
//!
//! The fields are declared in the order in which Karmada writes them: the rules that were applied to a copy are recorded as
//! JSON text in its annotations, where the order is visible. Source: Karmada reference, appendix C.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ClusterAffinity, ResourceSelector};
use crate::scope::{ClusterCounterpart, ClusterScoped};

/// The changes of a policy and the copies that they apply to. A ClusterOverridePolicy has the same fields.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "policy.karmada.io",
    version = "v1alpha1",
    kind = "OverridePolicy",
    doc = "Changes the copies of objects of its own namespace on some clusters.",
    namespaced,
    shortname = "op",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSpec {
    /// The objects whose copies are changed; one that matches any of these is selected. Left out: every object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_selectors: Vec<ResourceSelector>,

    /// The changes and their clusters. The rules are applied in this order, each to the result of the previous one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub override_rules: Vec<RuleWithCluster>,

    /// Deprecated: use overrideRules. The clusters on which overriders are applied. Left out: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,

    /// Deprecated: use overrideRules. The changes.
    #[serde(default, skip_serializing_if = "Overriders::is_empty")]
    pub overriders: Overriders,
}

/// Changes the copies of objects of any namespace, and of cluster-scoped ones, on some clusters.
pub type ClusterOverridePolicy = ClusterScoped<OverridePolicy>;

impl ClusterCounterpart for OverridePolicy {
    const KIND: &'static str = "ClusterOverridePolicy";
    const PLURAL: &'static str = "clusteroverridepolicies";
    const CRD_NAME: &'static str = "clusteroverridepolicies.policy.karmada.io";
    const SHORT_NAMES: &'static [&'static str] = &["cop"];
    const DOC: &'static str = "Changes the copies of objects of any namespace, and of cluster-scoped ones, on some \
                               clusters.";
}

/// Changes and the clusters that they apply to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RuleWithCluster {
    /// The clusters. Left out: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,

    /// The changes.
    pub overriders: Overriders,
}

/// Changes of an object, by their kinds. They are made in this order: images, commands, arguments, labels,
/// annotations, fields that hold JSON or YAML, plaintext.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Overriders {
    /// Changes of any field, by its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plaintext: Vec<PlaintextOverrider>,

    /// Changes of container images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_overrider: Vec<ImageOverrider>,

    /// Changes of the commands of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_overrider: Vec<CommandArgsOverrider>,

    /// Changes of the arguments of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args_overrider: Vec<CommandArgsOverrider>,

    /// Changes of the object's labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,

    /// Changes of the object's annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,

    /// Changes of JSON or YAML documents that strings of the object hold, such as those of a ConfigMap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_overrider: Vec<FieldOverrider>,
}

impl Overriders {
    /// True if there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The operator of an overrider.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OverriderOperator {
    /// Adds the value.
    Add,
    /// Removes the existing value.
    Remove,
    /// Replaces the existing value.
    Replace,
}

/// The operator of an overrider of a list.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ListOperator {
    /// Appends the values.
    Add,
    /// Removes the values.
    Remove,
}

/// Changes one field.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PlaintextOverrider {
    /// The field, as a JSON pointer such as /spec/replicas.
    pub path: String,

    /// The operator: add creates or inserts, replace and remove need an existing value.
    pub operator: OverriderOperator,

    /// The value of add and replace.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::anything")]
    pub value: Value,
}

/// Changes a part of container images.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ImageOverrider {
    /// Names the one field that holds the image. Left out: the images of all containers and init containers
    /// of a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ImagePredicate>,

    /// The part of the image, which reads as `[registry/]repository[:tag][@digest]`.
    pub component: ImageComponent,

    /// The operator: add appends the value to the part.
    pub operator: OverriderOperator,

    /// The value of add and replace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Names a field that holds an image.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ImagePredicate {
    /// The field, as a JSON pointer such as /spec/containers/0/image.
    pub path: String,
}

/// A part of an image.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageComponent {
    /// The server, with its port, such as registry.example:5000.
    Registry,
    /// The part between the registry and the tag, such as library/nginx.
    Repository,
    /// The tag or the digest, such as v1.19.1 or sha256:dbcc….
    Tag,
}

/// Changes the command or the arguments of one container.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandArgsOverrider {
    /// Name of the container.
    pub container_name: String,

    /// The operator.
    pub operator: ListOperator,

    /// The values that are appended or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
}

/// Changes labels or annotations.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct LabelAnnotationOverrider {
    /// The operator: add sets, replace sets only existing keys, remove removes existing keys.
    pub operator: OverriderOperator,

    /// The keys, with their values for add and replace.
    pub value: BTreeMap<String, String>,
}

/// Changes a document that a string of the object holds. Give json or yaml.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FieldOverrider {
    /// The field that holds the document, as a JSON pointer such as /data/config.yaml.
    pub field_path: String,

    /// Changes of a JSON document. Not together with yaml.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<PatchOperation>,

    /// Changes of a YAML document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yaml: Vec<PatchOperation>,
}

/// Changes one field of a document.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PatchOperation {
    /// The field of the document, as a JSON pointer.
    pub sub_path: String,

    /// The operator: add creates or inserts, replace and remove need an existing value.
    pub operator: OverriderOperator,

    /// The value of add and replace.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::anything")]
    pub value: Value,
}

#[cfg(test)]
mod tests;
