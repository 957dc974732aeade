//! Kinds that are interpreted by webhooks: the form that Karmada's proposal of the webhooks had before they were renamed.
//! Configurations written for it are served as they are.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hook::WebhookClientConfig;

/// The operations of a webhook, and `*` for all of them.
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

/// Interpreter webhooks. The fields lie beside the metadata, not in a spec.
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
    /// The webhooks.
    #[schemars(length(max = 64))]
    pub webhooks: Vec<ExploringWebhook>,
}

/// A webhook and the operations that it is called for.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ExploringWebhook {
    /// Its full name, such as nodes.hooks.example.com; unique here.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The address of the webhook.
    pub client_config: WebhookClientConfig,

    /// The operations that it is called for. One rule that matches is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rules: Vec<ExploringRule>,

    /// The treatment of a failed call. Fail: the operation is retried until it succeeds. Ignore: the webhook is skipped.
    #[serde(default)]
    pub failure_policy: FailurePolicy,

    /// The number of seconds that a call may take, 1 to 30.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: i32,

    /// The versions of the messages that the webhook supports, most preferred first. v1alpha1 must be one of them.
    #[schemars(length(max = 16))]
    pub explore_review_versions: Vec<String>,
}

/// The treatment of a failed call of a webhook.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The operation waits until a call succeeds.
    #[default]
    Fail,
    /// The webhook is skipped.
    Ignore,
}

/// Operations on resources. A `*` stands for all.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ExploringRule {
    /// The operations.
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

    /// The scope of the resources: Cluster, Namespaced or `*`. Left out: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RuleScope>,
}

/// The scope of the resources that a rule applies to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// Cluster-scoped resources.
    Cluster,
    /// Namespaced resources.
    Namespaced,
    /// Both.
    #[serde(rename = "*")]
    All,
}

fn default_timeout() -> i32 {
    10
}
