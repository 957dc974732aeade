//! `policy.karmada.io/v1alpha1`: the templates to propagate and their target clusters.
//!
//! Source: Karmada reference 1.2 (PropagationSpec fields) and 6.2 (what admission refuses).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::is_false;
use crate::scope::{ClusterCounterpart, ClusterScoped};

mod failover;
mod overrides;
mod placement;
mod quota;
mod taint;

pub use failover::{
    ApplicationFailoverBehavior, ClusterFailoverBehavior, DecisionConditions, FailoverBehavior, PurgeMode,
    StatePreservation, StatePreservationRule,
};
pub use overrides::{
    ClusterOverridePolicy, CommandArgsOverrider, FieldOverrider, ImageComponent, ImageOverrider,
    ImagePredicate, LabelAnnotationOverrider, ListOperator, OverridePolicy, OverrideSpec, OverriderOperator,
    Overriders, PatchOperation, PlaintextOverrider, RuleWithCluster,
};
pub use placement::{
    ClusterAffinity, ClusterAffinityTerm, ClusterPreferences, DivisionPreference, DynamicWeight,
    FieldRequirement, FieldSelector, OverflowAffinity, Placement, ReplicaSchedulingStrategy,
    ReplicaSchedulingType, SpreadConstraint, SpreadField, StaticClusterWeight, WorkloadAffinity,
    WorkloadAffinityTerm,
};
pub use quota::{
    ClusterQuotaStatus, FederatedResourceQuota, FederatedResourceQuotaSpec, FederatedResourceQuotaStatus,
    StaticClusterAssignment,
};
pub use taint::{ClusterTaintPolicy, ClusterTaintSpec, MatchCondition, PolicyTaint};

/// The scheduler of a policy's bindings unless the policy names another one.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The templates that a policy selects and their propagation. A ClusterPropagationPolicy has the same fields.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "policy.karmada.io",
    version = "v1alpha1",
    kind = "PropagationPolicy",
    doc = "Selects templates of its own namespace and the clusters that they are propagated to.",
    namespaced,
    status = "PropagationStatus",
    shortname = "pp",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "CONFLICT-RESOLUTION",
        type_ = "string",
        json_path = ".spec.conflictResolution"
    ),
    printcolumn(name = "PRIORITY", type_ = "string", json_path = ".spec.priority"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PropagationSpec {
    /// The templates to propagate; one that matches any of these is selected.
    #[schemars(length(min = 1))]
    pub resource_selectors: Vec<ResourceSelector>,

    /// Deprecated and without effect; use propagateDeps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub association: bool,

    /// True: all dependencies of a selected workload (ConfigMaps, Secrets, ServiceAccounts, claims) are propagated to the same
    /// clusters, for as long as the workload is scheduled there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub propagate_deps: bool,

    /// The target clusters of the selected templates. Left out: every cluster.
    #[serde(default, skip_serializing_if = "Placement::is_empty")]
    pub placement: Placement,

    /// Decides between policies that select the same template: the highest wins. Between equal ones the
    /// more exact selector wins, then the smaller name.
    #[serde(default)]
    pub priority: i32,

    /// Always: the policy takes over templates that policies of lower priority have claimed.
    #[serde(default)]
    pub preemption: Preemption,

    /// Names of OverridePolicies that must exist before any template is propagated: of the same namespace, or in a
    /// ClusterPropagationPolicy names of ClusterOverridePolicies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependent_overrides: Vec<String>,

    /// The scheduler of the bindings. It cannot be changed later.
    #[serde(default = "default_scheduler")]
    pub scheduler_name: String,

    /// The treatment of bindings when a cluster or the application in it fails. Left out: a failing application is not evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,

    /// The treatment of an object of that name that already exists on a cluster and is not managed: Abort leaves it unchanged,
    /// Overwrite takes it over.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,

    /// The time at which a change of the policy takes effect. Lazy waits for the next change of each template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_preference: Option<ActivationPreference>,

    /// Suspends delivery, to all clusters or to some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,

    /// True: the copies on the clusters are kept, without ownership metadata, when a user deletes the template, the workload or
    /// the reference that needed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,

    /// The priority with which the scheduler takes the bindings of this policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
}

/// Selects templates of any namespace, and cluster-scoped ones, and defines their target clusters.
pub type ClusterPropagationPolicy = ClusterScoped<PropagationPolicy>;

impl ClusterCounterpart for PropagationPolicy {
    const KIND: &'static str = "ClusterPropagationPolicy";
    const PLURAL: &'static str = "clusterpropagationpolicies";
    const CRD_NAME: &'static str = "clusterpropagationpolicies.policy.karmada.io";
    const SHORT_NAMES: &'static [&'static str] = &["cpp"];
    const DOC: &'static str = "Selects templates of any namespace, and cluster-scoped ones, and the clusters that they are propagated to.";
}

impl Default for PropagationSpec {
    fn default() -> Self {
        Self {
            resource_selectors: Vec::new(),
            association: false,
            propagate_deps: false,
            placement: Placement::default(),
            priority: 0,
            preemption: Preemption::default(),
            dependent_overrides: Vec::new(),
            scheduler_name: default_scheduler(),
            failover: None,
            conflict_resolution: ConflictResolution::default(),
            activation_preference: None,
            suspension: None,
            preserve_resources_on_deletion: None,
            schedule_priority: None,
        }
    }
}

/// The result of a policy. An addition of Entourage: Karmada's policies have no status.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PropagationStatus {
    /// Matched: True if the policy propagates any template, otherwise False with the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Selects templates by group, version and kind, and by name or labels.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// Group and version of the templates, such as apps/v1.
    pub api_version: String,

    /// Kind of the templates.
    pub kind: String,

    /// Namespace of the templates. In a namespaced policy it is the policy's own and may be left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name of the template. With a name, labelSelector is ignored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// Labels of the templates. Without name and labelSelector all templates of the kind are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// The treatment of an object that already exists on a cluster and is not managed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictResolution {
    /// Leave it unchanged and report a conflict.
    #[default]
    Abort,
    /// Take it over.
    Overwrite,
}

/// Permission to take over templates from other policies.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// Take over from policies of lower priority.
    Always,
    /// Never take over.
    #[default]
    Never,
}

/// The time at which a change of a policy takes effect.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationPreference {
    /// With the next change of each template.
    Lazy,
}

/// Suspends delivery. Give one of the two.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// True suspends delivery to every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,

    /// Suspends delivery to some clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
}

/// The clusters to which delivery is suspended.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SuspendClusters {
    /// Names of the clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// The source of a binding's scheduling priority.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SchedulePriority {
    /// The kind of object that priorityClassName names.
    pub priority_class_source: PriorityClassSource,

    /// Name of that object.
    pub priority_class_name: String,
}

/// The kinds of object that a scheduling priority can be read from.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityClassSource {
    /// A PriorityClass of scheduling.k8s.io on the hub.
    KubePriorityClass,
}

fn default_scheduler() -> String {
    DEFAULT_SCHEDULER.into()
}

#[cfg(test)]
mod tests;
