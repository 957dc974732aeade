//! Declarative rules: a kind interpreted by paths instead of a script.
//!
//! A path is a subset of JSONPath (RFC 9535): members by name (`spec.template`, `['a/b']`, `['a','b']`), elements
//! (`[0]`), all of them (`[*]`, `.*`), and those that fit (`[?@.type == 'Secret']`, `!=`, or the path alone). `$.` at
//! the front is optional. What is not there, or has another shape, is absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::declarative_status::{
    AggregatedField, AggregationRule, Comparison, ConditionCheck, HealthRule, Merge, NumberAt, PhaseCheck,
    ReflectionRule,
};

/// How objects of a kind are interpreted, in paths.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeclarativeRules {
    /// Where pod templates are. What their pods name (ConfigMaps, Secrets, ServiceAccounts, claims) is taken along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_templates: Vec<PodTemplateRule>,

    /// Paths of containers that are in no pod template, each one container or a list of them. What their environment
    /// names is taken along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub containers: Vec<String>,

    /// Which fields name other objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub dependencies: Vec<DependencyRule>,

    /// Where the number of replicas is. It is divided among clusters, and written there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NumberAt>,

    /// Paths of what belongs to the cluster: in an update the value that the copy has stays. Names of members only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub retention: Vec<String>,

    /// Which part of a copy's status is reported. All of it without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<ReflectionRule>,

    /// How the object's own status is made of what clusters report. It stays empty without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<AggregationRule>,

    /// When a copy is healthy. It is once it exists without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
}

/// Where pod templates are.
///
/// Paths beside the template begin at the object that holds the last member that `paths` names; with `$.` at the front
/// they begin at the whole object.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplateRule {
    /// Paths of the templates. Each is a pod template (metadata and spec) or a pod spec.
    #[schemars(length(min = 1, max = 32), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// Name of the component that its pods are, in objects with several. The key, where the path goes through all
    /// members of a map; otherwise the last name in the path, if this and nameFrom are not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Path of that name, beside the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub name_from: Option<String>,

    /// Where it says how many of these pods there are, beside the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NumberAt>,

    /// Path of the namespaces of the pods, beside the template. The object's own without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub namespace_from: Option<String>,

    /// Path, beside the template, of the names of claims that the workload makes itself: they are not taken along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub own_claims: Option<String>,
}

/// Fields that name other objects, which are taken along.
///
/// Paths beside the name begin at the object that holds the last member that `paths` names; with `$.` at the front they
/// begin at the whole object. An empty name is none. An object of another namespace is taken along only if that namespace
/// lets the one that names it (annotation `entourage.dev/references-from`), or that one has no namespace itself.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DependencyRule {
    /// Paths of the names.
    #[schemars(length(min = 1, max = 64), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// Group and version of what is named. Without it v1, unless kindFrom or apiVersions say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of what is named; with kindFrom, the kind where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Path of group and version, beside the name; apiVersion and apiVersions where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub api_version_from: Option<String>,

    /// Path of the kind, beside the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub kind_from: Option<String>,

    /// The kinds that kindFrom may say, each with its group and version. Others are not taken along.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub api_versions: BTreeMap<String, String>,

    /// Path of the namespace, beside the name. The object's own where it is absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub namespace_from: Option<String>,

    /// What stands before the value at the path in the object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,

    /// What stands after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suffix: String,

    /// Whether the object does without it. What is missing does not hold it back then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,

    /// Path of a flag beside the name that says so when true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub optional_from: Option<String>,

    /// The rule counts only where all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub when: Vec<When>,
}

/// Something that has to be so of a field.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct When {
    /// Path of a text, number or flag.
    #[schemars(length(max = 512))]
    pub path: String,

    /// It is one of these, written as text.
    #[serde(default, rename = "in", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub one_of: Vec<String>,

    /// It is none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub not_in: Vec<String>,

    /// What it is when absent. Without this, what is absent is in no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,

    /// Whether it is there at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}
