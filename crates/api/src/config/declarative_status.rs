//! The declarative rules about replicas and status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number and its value if absent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NumberAt {
    /// Path of the number. It may be empty with a default: a constant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub path: String,

    /// The value if the field is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<i64>,
}

/// The part of a copy's status that is reported.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReflectionRule {
    /// Paths within the status, names of members only. Without any, the whole status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// True: the generation of the copy, and that of the template that it was made from, are reported too, as `generation` and
    /// `resourceTemplateGeneration`. An aggregated observedGeneration needs them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generations: bool,
}

/// The rules that compute the object's own status.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AggregationRule {
    /// Fields of the status. Other fields are not changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub fields: Vec<AggregatedField>,

    /// True: `observedGeneration` is set to the object's generation once every cluster has applied and observed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_generation: bool,
}

/// A field of the status and the rule that merges it from those of all clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedField {
    /// Path within the status, names of members only.
    #[schemars(length(max = 512))]
    pub path: String,

    /// The rule.
    pub merge: Merge,

    /// In Conditions: the types that are bad when True. All others are bad when False.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub bad_when_true: Vec<String>,
}

/// A rule that merges the values of many clusters into one.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// The sum of numbers.
    #[default]
    Sum,
    /// The largest number.
    Max,
    /// The smallest number.
    Min,
    /// The latest time. It never goes back.
    Latest,
    /// The value of the first cluster, by name, that has one.
    First,
    /// The value that all clusters have; none when they differ.
    Same,
    /// The elements of all lists, each once.
    Concat,
    /// Conditions by type: the worst status, and each cluster's message after its name.
    Conditions,
}

/// The rules for the health of a copy: it is healthy if all of them hold, and unknown while it has no status.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HealthRule {
    /// True: `status.observedGeneration` must equal `metadata.generation`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_generation: bool,

    /// Requirements on conditions in `status.conditions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<ConditionCheck>,

    /// Requirements on strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub phases: Vec<PhaseCheck>,

    /// Requirements on numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub comparisons: Vec<Comparison>,
}

/// A requirement on a condition.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConditionCheck {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,

    /// Its status if the copy is healthy. Left out: True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,

    /// True: a copy without the condition is healthy, too. Otherwise its health is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_absent: bool,
}

/// A requirement on a string.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PhaseCheck {
    /// Its path.
    #[schemars(length(max = 512))]
    pub path: String,

    /// The values of a healthy copy. With no list, every value that is not in unhealthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub healthy: Vec<String>,

    /// The values of an unhealthy copy. With no list, every value that is not in healthy. With both, other values mean unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub unhealthy: Vec<String>,

    /// The value if the field is absent. Left out: the health is then unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The requirement that a number is at least another.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The number.
    pub number: NumberAt,

    /// Its lower limit.
    pub at_least: NumberAt,
}
