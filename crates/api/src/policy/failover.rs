//! The failover of a policy: what happens when a cluster, or the application in it, fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done when something fails. Source: Karmada reference 1.2.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FailoverBehavior {
    /// When the application in a cluster fails. Without it the application is never moved for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFailoverBehavior>,

    /// When a cluster fails. Without it the defaults of the control plane hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFailoverBehavior>,
}

/// What is done when the application in a cluster fails.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationFailoverBehavior {
    /// When the application counts as failed.
    pub decision_conditions: DecisionConditions,

    /// What happens to the copy in the cluster that is left.
    #[serde(default)]
    pub purge_mode: PurgeMode,

    /// How many seconds a copy that is purged Gracefully may stay while the new one is not healthy.
    /// 600 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,

    /// What of the old copy's status the new copy gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// When an application counts as failed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DecisionConditions {
    /// For how many seconds it may be unhealthy.
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

/// What is done when a cluster fails.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFailoverBehavior {
    /// What happens to the copy in the cluster that is left.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::cluster_purge_mode")]
    pub purge_mode: PurgeMode,

    /// What of the old copy's status the new copy gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// What happens to the copy in a cluster that is left.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PurgeMode {
    /// It is removed first; the new copy waits for that.
    Directly,
    /// It is removed when the new copy is healthy or the grace period is over.
    #[default]
    Gracefully,
    /// It stays until a user confirms its removal.
    Never,
}

/// What of a copy's status is handed to its successor.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct StatePreservation {
    /// What is read and which label it becomes.
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

    /// Where the value is found in the status, as a JSONPath such as {.revision}.
    pub json_path: String,
}

fn default_toleration_seconds() -> i32 {
    300
}
