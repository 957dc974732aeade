//! `work.karmada.io`: bindings, which hold the target clusters and the state of a template, and Works, which deliver the result
//! to clusters in pull mode.
//!
//! Of a binding `v1alpha2` is stored and used; `v1alpha1` is served because Karmada's CRD lists it ([`legacy`]). Source:
//! Karmada reference 1.2 (RB spec, RB status) and 2.5 (attached bindings).

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

pub use crate::schema::Resources;
pub use manifests::{ManifestStatus, ResourceIdentifier, Work, WorkSpec, WorkStatus, WorkloadTemplate};
pub use requirements::{
    Component, ComponentReplicaRequirements, NodeClaim, ReplicaRequirements, TargetComponent,
};
pub use status::{AggregatedStatusItem, CopyRecord, NotAppliedReason, ResourceBindingStatus, ResourceHealth};

/// The target clusters of one template. An attached binding exists only for referrers: it has `requiredBy` and no placement. An
/// independent binding is made for a policy and has a placement. A binding can be both.
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

    /// True: the dependencies of the template are propagated to the same clusters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub propagate_deps: bool,

    /// The requirements of one replica of the template. Left out for a template without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,

    /// The number of replicas of the template.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,

    /// The components of a template with several pod templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,

    /// The clusters that the template is scheduled to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,

    /// The policy's placement. Left out on an attached binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,

    /// The clusters that the binding is being evicted from, and the manner of the eviction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,

    /// The bindings whose templates refer to this one, and their clusters. For readers only: the field is computed from the
    /// referrers and never read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<BindingSnapshot>,

    /// The scheduler of the binding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,

    /// The treatment of the binding when a cluster or the application in it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,

    /// The treatment of an object of that name that already exists on a cluster and is not managed.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,

    /// The time at which a user requested rescheduling. Takes effect while it is later than status.lastScheduledTime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_triggered_at: Option<Time>,

    /// Suspends scheduling or delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,

    /// True: the copies on the clusters are kept, without ownership metadata, when a user deletes the object that needed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,

    /// The priority with which the scheduler takes the binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,

    /// The affinity groups that the template's labels name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
}

/// The target clusters of one cluster-scoped template.
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

    /// The resourceVersion that the binding was last made from. It changes only together with the content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// A target cluster and its share of the replicas.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct TargetCluster {
    /// Name of the cluster.
    pub name: String,

    /// The number of replicas of the cluster. 0 or left out for a template without replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,

    /// The number of replicas of each component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<TargetComponent>,
}

impl TargetCluster {
    /// The entry of a cluster. Cost: O(log targets) if it is there and they are sorted by name, as this control plane stores them;
    /// else O(targets).
    #[must_use]
    pub fn find<'a>(all: &'a [Self], cluster: &str) -> Option<&'a Self> {
        find(all, |target| &target.name, cluster)
    }

    /// The number of times that the demand of the workload counts on the cluster: once for each replica, or once for a set of components, which has no
    /// replicas.
    #[must_use]
    pub fn units(&self) -> i32 {
        match self.replicas {
            0 if !self.components.is_empty() => 1,
            replicas => replicas,
        }
    }
}

/// A binding whose template refers to this binding's template, and its scheduling result.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingSnapshot {
    /// Namespace of the referrer's binding. Left out for a cluster-scoped one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// Name of the referrer's binding.
    pub name: String,

    /// The clusters that it is scheduled to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
}

/// An eviction from a cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GracefulEvictionTask {
    /// Name of the cluster.
    pub from_cluster: String,

    /// The treatment of the copy there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_mode: Option<PurgeMode>,

    /// The number of replicas that the cluster had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// The reason of the eviction, in one word.
    #[schemars(length(min = 1, max = 32), regex(pattern = crate::schema::REASON))]
    pub reason: String,

    /// The reason of the eviction, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,

    /// The component that requested the eviction.
    pub producer: String,

    /// The number of seconds that the copy may stay while the new ones are not healthy. Left out: the default of the control
    /// plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,

    /// True keeps the copy until a user sets this to false; false deletes it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_deletion: Option<bool>,

    /// The labels that the new copy gets from the old one's status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preserved_label_state: BTreeMap<String, String>,

    /// The time at which the task was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,

    /// The target clusters before this one failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters_before_failover: Vec<String>,
}

/// Suspends scheduling or delivery.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Suspension {
    /// The suspension of the policy.
    #[serde(flatten)]
    pub dispatch: policy::Suspension,

    /// True suspends scheduling. A policy never sets or clears this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<bool>,
}

/// The priority with which the scheduler takes a binding.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePriority {
    /// Bindings with a higher priority are scheduled first.
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

/// An object that a template refers to: by name, or all objects that a selector matches. The annotation
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

fn find<'a, T>(all: &'a [T], name_of: impl Fn(&T) -> &String, name: &str) -> Option<&'a T> {
    let found = all.binary_search_by(|each| name_of(each).as_str().cmp(name));
    let in_order = found.ok().map(|at| &all[at]);
    in_order.or_else(|| all.iter().find(|each| name_of(each) == name))
}

#[cfg(test)]
mod tests;
