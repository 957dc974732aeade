//! The treatment of failing clusters and applications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The treatment of failing clusters and applications. Source: Karmada reference 1.2.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FailoverBehavior {
    /// The treatment of an application that fails in a cluster. Left out: it is not evicted for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFailoverBehavior>,

    /// The treatment of a failing cluster. Left out: the defaults of the control plane apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFailoverBehavior>,
}

/// The treatment of an application that fails in a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationFailoverBehavior {
    /// The conditions under which the application counts as failed.
    pub decision_conditions: DecisionConditions,

    /// The treatment of the copy in the cluster that the workload is evicted from.
    #[serde(default)]
    pub purge_mode: PurgeMode,

    /// The number of seconds that a copy that is purged Gracefully may stay while the new one is not healthy. Left out: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,

    /// The parts of the old copy's status that the new copy gets as labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// The conditions under which an application counts as failed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DecisionConditions {
    /// The number of seconds that it may be unhealthy.
    #[serde(default = "default_toleration_seconds")]
    pub toleration_seconds: i32,
}

impl Default for DecisionConditions {
    fn default() -> Self {
        Self {
            toleration_seconds: default_toleration_seconds(),
        }
    }
}

/// The treatment of a failing cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFailoverBehavior {
    /// The treatment of the copy in the cluster that the workload is evicted from.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::cluster_purge_mode")]
    pub purge_mode: PurgeMode,

    /// The parts of the old copy's status that the new copy gets as labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// The treatment of the copy in a cluster that the workload is evicted from.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PurgeMode {
    /// It is deleted first; the new copy waits for that.
    Directly,
    /// It is deleted when the new copy is healthy or the grace period is over.
    #[default]
    Gracefully,
    /// It is kept until a user confirms its deletion.
    Never,
}

/// The parts of a copy's status that its successor gets as labels.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct StatePreservation {
    /// The values that are read and the labels that they become.
    #[schemars(length(max = 64))]
    pub rules: Vec<StatePreservationRule>,
}

/// One value of the status that becomes a label of the new copy.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StatePreservationRule {
    /// Key of the label.
    #[schemars(length(max = 317))]
    pub alias_label_name: String,

    /// The value in the status, as a JSONPath such as {.revision}.
    pub json_path: String,
}

fn default_toleration_seconds() -> i32 {
    300
}
