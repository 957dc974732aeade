//! `work.karmada.io`: bindings, which hold the scheduling result of a template and its status, and Works, which bring copies
//! to clusters in pull mode.
//!
//! Of a binding `v1alpha2` is stored and used; `v1alpha1` is served because Karmada's CRD lists it ([`legacy`]).
//! Source: Karmada reference 1.2 (RB spec, RB status) and 2.5 (attached bindings).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{self, ConflictResolution, FailoverBehavior, Placement, PurgeMode};
use crate::schema::{is_false, is_zero};
use crate::scope::{ClusterCounterpart, ClusterScoped};

pub mod legacy;
mod manifests;
mod requirements;
mod status;

pub use manifests::{ManifestStatus, ResourceIdentifier, Work, WorkSpec, WorkStatus, WorkloadTemplate};
pub use requirements::{
    Component, ComponentReplicaRequirements, NodeClaim, ReplicaRequirements, Resources, TargetComponent,
};
pub use status::{AggregatedStatusItem, CopyRecord, ResourceBindingStatus, ResourceHealth};

/// Where one template goes. A binding that only referrers ask for ("attached") has `requiredBy` and no
/// placement; one that a policy asks for ("independent") has a placement; a binding can be both.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "work.karmada.io",
    version = "v1alpha2",
    kind = "ResourceBinding",
    doc = "The scheduling result of one namespaced template, and its state on each cluster.",
    namespaced,
    status = "ResourceBindingStatus",
    shortname = "rb",
    category = "karmada-io",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "SCHEDULED",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Scheduled")].status"#
    ),
    printcolumn(
        name = "FULLYAPPLIED",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="FullyApplied")].status"#
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingSpec {
    /// The template.
    pub resource: ObjectReference,

    /// Whether the dependencies of the template are propagated to the same clusters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub propagate_deps: bool,

    /// The requirements of one replica of the template. Left out for a template without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,

    /// How many replicas the template asks for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,

    /// The parts of a template with several pod templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,

    /// The clusters that it is scheduled to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,

    /// The policy's placement. Left out on a binding that only referrers ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,

    /// The clusters that are being left, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,

    /// The bindings whose templates refer to this one, and their clusters. A view for readers: it is
    /// computed from the referrers and never read back as truth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<BindingSnapshot>,

    /// The scheduler that chooses the clusters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,

    /// What happens when a cluster or the application in it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,

    /// What happens when a cluster already holds an object of that name which is not managed.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,

    /// When a user asked for rescheduling. Takes effect while it is later than
    /// status.lastScheduledTime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_triggered_at: Option<Time>,

    /// Holds scheduling or delivery back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,

    /// Whether the copies on the clusters stay, without ownership metadata, when a user ends what needed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,

    /// How early the scheduler takes the binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,

    /// The affinity groups that the template's labels put it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
}

/// Where one cluster-scoped template goes.
pub type ClusterResourceBinding = ClusterScoped<ResourceBinding>;

impl ClusterCounterpart for ResourceBinding {
    const KIND: &'static str = "ClusterResourceBinding";
    const PLURAL: &'static str = "clusterresourcebindings";
    const CRD_NAME: &'static str = "clusterresourcebindings.work.karmada.io";
    const SHORT_NAMES: &'static [&'static str] = &["crb"];
    const DOC: &'static str =
        "The scheduling result of one cluster-scoped template, and its state on each cluster.";
}

/// Names a template and the state of it that the binding was made from.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Group and version.
    pub api_version: String,

    /// Kind.
    pub kind: String,

    /// Namespace. Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name.
    pub name: String,

    /// The object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,

    /// The resourceVersion that the binding was last made from. It changes only together with content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// A cluster and what it gets.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct TargetCluster {
    /// Name of the cluster.
    pub name: String,

    /// How many replicas it gets. 0 or left out for a template without replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,

    /// How many replicas of each component it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<TargetComponent>,
}

/// A binding whose template refers to this binding's template, and where that one is placed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingSnapshot {
    /// Namespace of the referrer's binding. Left out for a cluster-scoped one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name of the referrer's binding.
    pub name: String,

    /// The clusters that it was scheduled to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
}

/// A cluster that is being left.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GracefulEvictionTask {
    /// Name of the cluster.
    pub from_cluster: String,

    /// What happens to the copy there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_mode: Option<PurgeMode>,

    /// How many replicas it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Why it is left, in one word.
    #[schemars(length(min = 1, max = 32), regex(pattern = crate::schema::REASON))]
    pub reason: String,

    /// Why it is left, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,

    /// Who decided it.
    pub producer: String,

    /// How many seconds the copy may stay while the new ones are not healthy. Left out: the default of the
    /// control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,

    /// True keeps the copy until a user sets this to false; false has it removed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_deletion: Option<bool>,

    /// The labels that the new copy gets from the old one's status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preserved_label_state: BTreeMap<String, String>,

    /// When the task was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,

    /// The clusters before the one in question failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters_before_failover: Vec<String>,
}

/// Holds scheduling or delivery back.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Suspension {
    /// What the policy holds back.
    #[serde(flatten)]
    pub dispatch: policy::Suspension,

    /// True holds scheduling back. A policy never sets or clears this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<bool>,
}

/// How early the scheduler takes a binding.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePriority {
    /// The higher, the earlier.
    #[serde(default)]
    pub priority: i32,
}

/// The affinity groups of a binding, as the template's labels name them.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAffinityGroups {
    /// The group whose members share clusters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub affinity_group: String,

    /// The group whose members avoid each other.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anti_affinity_group: String,
}

/// An object that a template refers to: by name, or all that a selector matches. The annotation
/// [`crate::keys::annotation::DEPENDENCIES`] holds a JSON array of these.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// Group and version.
    pub api_version: String,

    /// Kind.
    pub kind: String,

    /// Namespace. Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name. Left out with a selector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// Labels of the objects that are referred to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

#[cfg(test)]
mod tests;
