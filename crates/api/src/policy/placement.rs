//! Placement: the clusters of a template, and the division of its replicas.
//!
//! The fields are declared in the order in which Karmada writes them: the placement is also stored as JSON
//! text, in the annotation `policy.karmada.io/applied-placement`, where the order shows.

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where templates go. Empty: to every cluster. Source: Karmada reference 1.2.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The clusters that are allowed. Excludes clusterAffinities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,

    /// Groups of clusters, tried in this order until one fits. Excludes clusterAffinity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub cluster_affinities: Vec<ClusterAffinityTerm>,

    /// Taints of clusters that are put up with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub cluster_tolerations: Vec<Toleration>,

    /// Over how many groups of clusters the choice is spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub spread_constraints: Vec<SpreadConstraint>,

    /// How replicas are divided among the scheduled clusters. Without it each cluster gets all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaSchedulingStrategy>,

    /// Which workloads share a cluster or avoid each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

impl Placement {
    /// How replicas are divided: Duplicated without `replicaScheduling`, Divided where it names no type.
    /// Source: Karmada reference 1.2.
    pub fn replica_scheduling_type(&self) -> ReplicaSchedulingType {
        match &self.replica_scheduling {
            None => ReplicaSchedulingType::Duplicated,
            Some(strategy) => strategy.replica_scheduling_type,
        }
    }

    /// Whether nothing is asked for, so that every cluster is allowed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Selects clusters; all parts that are given must hold.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// By the labels of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,

    /// By the provider, region and zones of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,

    /// By name. Empty allows every name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,

    /// Names of clusters that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// A named group of clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinityTerm {
    /// Name of the group, unique in the policy.
    #[schemars(length(min = 1, max = 32))]
    pub affinity_name: String,

    /// The clusters of the group.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,

    /// Further groups that take, in this order, what the clusters of the group cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub overflow_affinities: Vec<OverflowAffinity>,
}

/// A named group of clusters that takes what others cannot.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OverflowAffinity {
    /// Name of the group, unique among the further groups and not that of the group which they help out.
    #[schemars(length(min = 1, max = 32))]
    pub affinity_name: String,

    /// The clusters of the group.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
}

/// Selects clusters by their fields; all requirements must hold.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FieldSelector {
    /// The requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<FieldRequirement>,
}

/// What a field of a Cluster must be.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field: provider, region or zone.
    pub key: String,

    /// How it relates to the values: In or NotIn.
    pub operator: String,

    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::atomic_strings")]
    pub values: Vec<String>,
}

/// Over how many groups of clusters the choice is spread. Give spreadByField or spreadByLabel, not both.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The field of the Cluster that makes the groups. Left out together with spreadByLabel: cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_by_field: Option<SpreadField>,

    /// The label of the Cluster that makes the groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_label: String,

    /// The most groups to use. Left out or 0: no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "crate::schema::plain_integer")]
    pub max_groups: i64,

    /// The fewest groups to use. Left out or 0: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "crate::schema::plain_integer")]
    pub min_groups: i64,
}

/// The fields of a Cluster that make groups.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum SpreadField {
    /// Each cluster is a group of its own.
    Cluster,
    /// The region of the cluster.
    Region,
    /// The zone of the cluster.
    Zone,
    /// The provider of the cluster.
    Provider,
}

/// How replicas are divided.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSchedulingStrategy {
    /// Whether each cluster gets all replicas or a part of them.
    #[serde(default)]
    pub replica_scheduling_type: ReplicaSchedulingType,

    /// How the parts are found. Left out with Divided: Weighted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_division_preference: Option<DivisionPreference>,

    /// The weights of Weighted. Left out: every cluster weighs the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<ClusterPreferences>,
}

/// Whether each cluster gets all replicas. The default is that of a `replicaScheduling` which names no type;
/// see [`Placement::replica_scheduling_type`] for one that is absent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaSchedulingType {
    /// Each cluster gets all replicas.
    Duplicated,
    /// The replicas are divided among the clusters.
    #[default]
    Divided,
}

/// How replicas are divided among clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivisionPreference {
    /// Among as few clusters as can take them.
    Aggregated,
    /// By weight.
    Weighted,
}

/// The weights of clusters. dynamicWeight, when given, wins.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreferences {
    /// Fixed weights. A cluster has the largest weight of those that select it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_weight_list: Vec<StaticClusterWeight>,

    /// What weights are computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_weight: Option<DynamicWeight>,
}

/// A weight and the clusters that have it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StaticClusterWeight {
    /// The clusters.
    pub target_cluster: ClusterAffinity,

    /// Their weight.
    #[schemars(range(min = 1))]
    pub weight: i64,
}

/// What weights are computed from.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicWeight {
    /// How many replicas a cluster can take.
    AvailableReplicas,
}

/// Which workloads share a cluster or avoid each other.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAffinity {
    /// Workloads with the same value of a label share clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<WorkloadAffinityTerm>,

    /// Workloads with the same value of a label avoid each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<WorkloadAffinityTerm>,
}

/// Groups workloads by the value of a label.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAffinityTerm {
    /// Key of the label on the template.
    #[schemars(length(max = 317))]
    pub group_by_label_key: String,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}
