//! A kind that is interpreted by Lua scripts.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declarative::DeclarativeRules;

/// A kind and the scripts that interpret it.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "config.karmada.io",
    version = "v1alpha1",
    kind = "ResourceInterpreterCustomization",
    doc = "Defines by Lua scripts how objects of one kind are interpreted.",
    shortname = "ric",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "TARGET-API-VERSION",
        type_ = "string",
        json_path = ".spec.target.apiVersion"
    ),
    printcolumn(name = "TARGET-KIND", type_ = "string", json_path = ".spec.target.kind"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct CustomizationSpec {
    /// The kind.
    pub target: CustomizationTarget,

    /// Whether the dependencies that it finds replace those that the layers below know (the pods of a Deployment, say), or
    /// are added to them. Of several customizations of a kind all must say Add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeDependencies>,

    /// The scripts. An operation without one is left to the others that know the kind.
    pub customizations: CustomizationRules,

    /// Rules that need no script. An operation that has a script is the script's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declarative: Option<DeclarativeRules>,
}

/// Names a kind.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationTarget {
    /// Group and version.
    pub api_version: String,

    /// Kind.
    pub kind: String,
}

/// What becomes of dependencies that are known without a customization.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeDependencies {
    /// They are left to the customization, as in Karmada.
    #[default]
    Replace,
    /// They are taken along, too.
    Add,
}

/// A script for each operation.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationRules {
    /// `Retain(desiredObj, observedObj)` returns the object to write: what of the copy on the cluster is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Script>,

    /// `GetReplicas(desiredObj)` returns the number of replicas and what one of them needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<Script>,

    /// `GetComponents(desiredObj)` returns the parts of an object with several pod templates: name, replicas
    /// and what one replica needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<Script>,

    /// `ReviseReplica(desiredObj, desiredReplica)` returns the object with another number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<Script>,

    /// `ReflectStatus(observedObj)` returns the part of the copy's status that is worth reporting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<Script>,

    /// `AggregateStatus(desiredObj, statusItems)` returns the object with the status of all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<Script>,

    /// `InterpretHealth(observedObj)` returns whether the copy is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<Script>,

    /// `GetDependencies(desiredObj)` returns a list of the objects that it refers to: apiVersion, kind,
    /// namespace, and name or labelSelector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<Script>,
}

/// A script.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// Lua source text that defines the function.
    pub lua_script: String,
}
