//! Customizations: kinds that are interpreted by Lua scripts or rules.

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

    /// Replace: the dependencies of this customization replace those of the lower layers (the pods of a Deployment, say). Add:
    /// they are added to them. With several customizations of a kind, each must be Add for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeDependencies>,

    /// The scripts. An operation without a script is left to the other interpreters of the kind.
    pub customizations: CustomizationRules,

    /// Rules that need no script. A script for the same operation takes precedence.
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

/// The treatment of dependencies that lower layers find.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeDependencies {
    /// They are replaced by those of the customization, as in Karmada.
    #[default]
    Replace,
    /// They are kept, and those of the customization are added.
    Add,
}

/// A script for each operation.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationRules {
    /// `Retain(desiredObj, observedObj)` returns the object to write, with the fields that are kept from the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Script>,

    /// `GetReplicas(desiredObj)` returns the number of replicas and the requirements of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<Script>,

    /// `GetComponents(desiredObj)` returns the components of an object with several pod templates: name, replicas and the
    /// requirements of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<Script>,

    /// `ReviseReplica(desiredObj, desiredReplica)` returns the object with another number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<Script>,

    /// `ReflectStatus(observedObj)` returns the part of the copy's status that is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<Script>,

    /// `AggregateStatus(desiredObj, statusItems)` returns the object with the status of all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<Script>,

    /// `InterpretHealth(observedObj)` returns true if the copy is healthy.
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
