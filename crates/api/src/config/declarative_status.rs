//! The declarative rules about replicas and status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number and what it is when absent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NumberAt {
    /// Path of the number. It may be empty with a default: a constant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub path: String,

    /// What it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<i64>,
}

/// Which part of a copy's status is reported.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReflectionRule {
    /// Paths within the status, names of members only. All of it without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub paths: Vec<String>,

    /// Whether the generation of the copy, and that of the object that it was made from, are reported too, as
    /// `generation` and `resourceTemplateGeneration`. An aggregated observedGeneration needs them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generations: bool,
}

/// How the object's own status is made.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AggregationRule {
    /// Fields of the status. Others stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub fields: Vec<AggregatedField>,

    /// Whether `observedGeneration` becomes the object's generation once every cluster has its content and has
    /// observed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_generation: bool,
}

/// A field of a status and how it is made of those of all clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedField {
    /// Path within the status, names of members only.
    #[schemars(length(max = 512))]
    pub path: String,

    /// How.
    pub merge: Merge,

    /// In Conditions: the types that are bad when True. All others are bad when False.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub bad_when_true: Vec<String>,
}

/// How one value is made of many.
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

/// When a copy is healthy: when all of these hold. Unknown while it has no status.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HealthRule {
    /// Whether `status.observedGeneration` has to be `metadata.generation`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_generation: bool,

    /// What conditions in `status.conditions` have to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<ConditionCheck>,

    /// What texts have to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub phases: Vec<PhaseCheck>,

    /// What numbers have to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub comparisons: Vec<Comparison>,
}

/// What a condition has to say.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConditionCheck {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,

    /// Its status when healthy. True without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,

    /// Whether a copy without the condition is healthy, too. It is unknown without this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_absent: bool,
}

/// What a text has to say.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PhaseCheck {
    /// Its path.
    #[schemars(length(max = 512))]
    pub path: String,

    /// What it says when healthy. With no list, everything that is not unhealthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub healthy: Vec<String>,

    /// What it says when unhealthy. With no list, everything that is not healthy. With both, all else is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub unhealthy: Vec<String>,

    /// What it is when absent. It is unknown without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// That a number is at least another.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// This number.
    pub number: NumberAt,

    /// The other one.
    pub at_least: NumberAt,
}
