//! Kinds that are interpreted by webhooks.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hook::WebhookClientConfig;

/// The operations of a webhook, and `*` for all of them. Source: Karmada reference 3.4.
pub const OPERATIONS: &[&str] = &[
    "*",
    "InterpretReplica",
    "InterpretComponent",
    "ReviseReplica",
    "InterpretStatus",
    "Prune",
    "Retain",
    "AggregateStatus",
    "InterpretHealth",
    "InterpretDependency",
];

/// Interpreter webhooks. The fields lie beside the metadata, not in a spec.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "config.karmada.io",
    version = "v1alpha1",
    kind = "ResourceInterpreterWebhookConfiguration",
    doc = "Registers webhooks that interpret objects of some kinds.",
    category = "karmada-io",
    no_spec,
    derive = "PartialEq",
    derive = "Default"
)]
pub struct InterpreterWebhooks {
    /// The webhooks.
    #[schemars(length(max = 64))]
    pub webhooks: Vec<InterpreterWebhook>,
}

/// A webhook and the operations that it is called for.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct InterpreterWebhook {
    /// Its full name, such as nodes.hooks.example.com; unique here.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The address of the webhook.
    pub client_config: WebhookClientConfig,

    /// The operations that it is called for. One rule that matches is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rules: Vec<InterpreterRule>,

    /// The number of seconds that a call may take, 1 to 30. Left out: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,

    /// The versions of the messages that the webhook supports, most preferred first. v1alpha1 must be one of them.
    #[schemars(length(max = 16))]
    pub interpreter_context_versions: Vec<String>,
}

/// Operations on kinds. A `*` stands for all.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InterpreterRule {
    /// The operations.
    #[schemars(length(max = 16))]
    pub operations: Vec<String>,

    /// API groups of the kinds; the core group is the empty text.
    pub api_groups: Vec<String>,

    /// Versions of the kinds.
    pub api_versions: Vec<String>,

    /// The kinds.
    pub kinds: Vec<String>,
}
