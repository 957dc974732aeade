//! Interpretation of a kind without a script: rules made of paths.
//!
//! A path is a subset of JSONPath (RFC 9535): members by name (`spec.template`, `['a/b']`, `['a','b']`), elements (`[0]`), all
//! members or elements (`[*]`, `.*`), and those that match a filter (`[?@.type == 'Secret']`, `!=`, or the path alone). `$.` at
//! the front is optional. A field that does not exist, or has another type, counts as absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::declarative_status::{
    AggregatedField, AggregationRule, Comparison, ConditionCheck, HealthRule, Merge, NumberAt, PhaseCheck,
    ReflectionRule,
};

/// The rules that interpret the objects of a kind.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeclarativeRules {
    /// The pod templates. The objects that their pods refer to (ConfigMaps, Secrets, ServiceAccounts, claims) are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_templates: Vec<PodTemplateRule>,

    /// Paths of containers outside pod templates, each one container or a list of them. The objects that their environment
    /// refers to are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub containers: Vec<String>,

    /// The fields that refer to other objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub dependencies: Vec<DependencyRule>,

    /// The number of replicas. It is divided among clusters and written to this field of each copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NumberAt>,

    /// Paths of the fields that the cluster owns: an update keeps the value of the copy. Names of members only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub retention: Vec<String>,

    /// The part of a copy's status that is reported. Left out: the whole status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<ReflectionRule>,

    /// The rules that merge the status of the clusters into the object's own status. Left out: it stays empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<AggregationRule>,

    /// The rules for the health of a copy. Left out: a copy is healthy once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
}

/// A rule for pod templates.
///
/// Paths relative to the template begin at the object that holds the last member that `paths` names; with `$.` at the front
/// they begin at the root of the object.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplateRule {
    /// Paths of the templates. Each is a pod template (metadata and spec) or a pod spec.
    #[schemars(length(min = 1, max = 32), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// Name of the component that the pods belong to, in objects with several components. Left out together with nameFrom: the
    /// key, if the path goes through all members of a map, otherwise the last name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Path of that name, relative to the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub name_from: Option<String>,

    /// The number of these pods, relative to the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NumberAt>,

    /// Path of the namespace of the pods, relative to the template. Left out: the namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub namespace_from: Option<String>,

    /// Path, relative to the template, of the names of claims that the workload creates itself: they are not dependencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub own_claims: Option<String>,
}

/// Fields that refer to other objects, the dependencies.
///
/// Paths relative to the name begin at the object that holds the last member that `paths` names; with `$.` at the front they
/// begin at the root of the object. An empty name refers to nothing. An object of another namespace is a dependency only if
/// that namespace allows the referrer (annotation `entourage.dev/references-from`), or if the referrer has no namespace itself.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DependencyRule {
    /// Paths of the names.
    #[schemars(length(min = 1, max = 64), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// Group and version of the dependency. Left out: v1, unless kindFrom or apiVersions give another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the dependency; with kindFrom, the kind if that field is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Path of group and version, relative to the name; apiVersion and apiVersions apply if the field is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub api_version_from: Option<String>,

    /// Path of the kind, relative to the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub kind_from: Option<String>,

    /// The kinds that kindFrom may name, each with its group and version. Other kinds are not dependencies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub api_versions: BTreeMap<String, String>,

    /// Path of the namespace, relative to the name. The namespace of the object if it is absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub namespace_from: Option<String>,

    /// The text before the value at the path in the object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,

    /// The text after the value at the path in the object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suffix: String,

    /// True if the object works without the dependency. A missing dependency then does not delay it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,

    /// Path of a boolean field, relative to the name, that makes the dependency optional when true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub optional_from: Option<String>,

    /// The rule applies only where all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub when: Vec<When>,
}

/// A requirement on a field.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct When {
    /// Path of a string, number or boolean.
    #[schemars(length(max = 512))]
    pub path: String,

    /// The value is one of these, written as text.
    #[serde(default, rename = "in", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub one_of: Vec<String>,

    /// The value is none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub not_in: Vec<String>,

    /// The value if the field is absent. Left out: an absent field is in no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,

    /// True: the field must exist. False: it must not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}
