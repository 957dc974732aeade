//! ResourceExploringWebhookConfiguration: the form that Karmada's proposal of interpreter webhooks had before they were
//! renamed. Configurations written for it are served as they are.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hook::WebhookClientConfig;

/// What a hook can be asked, and `*` for everything.
pub const OPERATIONS: &[&str] = &[
    "*",
    "ExploreReplica",
    "ExploreStatus",
    "ExplorePacking",
    "ExploreReplicaRevising",
    "ExploreRetaining",
    "ExploreStatusAggregating",
    "ExploreHealthy",
    "ExploreDependencies",
];

/// Hooks. The fields stand beside the metadata, not in a spec.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "config.karmada.io",
    version = "v1alpha1",
    kind = "ResourceExploringWebhookConfiguration",
    doc = "Registers webhooks that explore objects of some kinds.",
    category = "karmada-io",
    no_spec,
    derive = "PartialEq",
    derive = "Default"
)]
pub struct ExploringWebhooks {
    /// The hooks.
    #[schemars(length(max = 64))]
    pub webhooks: Vec<ExploringWebhook>,
}

/// A hook and what it is asked.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ExploringWebhook {
    /// Its full name, such as nodes.hooks.example.com; unique here.
    #[schemars(length(max = 253))]
    pub name: String,

    /// How it is reached.
    pub client_config: WebhookClientConfig,

    /// What it is asked. One rule that fits is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rules: Vec<ExploringRule>,

    /// What happens when it fails. Fail: the operation is retried until it succeeds. Ignore: as if there were no
    /// hook.
    #[serde(default)]
    pub failure_policy: FailurePolicy,

    /// How many seconds it has for an answer, 1 to 30.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: i32,

    /// The versions of the messages that it understands, the one it likes best first. v1alpha1 must be one
    /// of them.
    #[schemars(length(max = 16))]
    pub explore_review_versions: Vec<String>,
}

/// What holds when a hook fails to answer.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Nothing goes on until it answers.
    #[default]
    Fail,
    /// As if there were no hook.
    Ignore,
}

/// Operations on resources. A `*` stands for all.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ExploringRule {
    /// What the hook is asked.
    #[schemars(length(max = 16))]
    pub operations: Vec<String>,

    /// API groups of the resources; the core group is the empty text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,

    /// Versions of the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,

    /// The resources by their plural names, such as deployments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,

    /// Which of them: Cluster, Namespaced or `*`. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RuleScope>,
}

/// Which resources a rule is about.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// Those of the cluster as a whole.
    Cluster,
    /// Those in namespaces.
    Namespaced,
    /// All.
    #[serde(rename = "*")]
    All,
}

fn default_timeout() -> i32 {
    10
}
