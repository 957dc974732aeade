//! The target clusters of templates and the division of their replicas.
//!
//! The fields are declared in the order in which Karmada writes them: the placement is also stored as JSON text, in the
//! annotation `policy.karmada.io/applied-placement`, where the order is visible.

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target clusters of templates. Empty: every cluster. Source: Karmada reference 1.2.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The allowed clusters. Mutually exclusive with clusterAffinities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,

    /// Groups of clusters, tried in this order until one fits. Mutually exclusive with clusterAffinity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub cluster_affinities: Vec<ClusterAffinityTerm>,

    /// Taints of clusters that are tolerated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub cluster_tolerations: Vec<Toleration>,

    /// The number of groups of clusters that the scheduling result is spread over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub spread_constraints: Vec<SpreadConstraint>,

    /// The division of replicas among the target clusters. Left out: each cluster gets all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaSchedulingStrategy>,

    /// The workloads that share a cluster or avoid each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

impl Placement {
    /// Returns the type of division: Duplicated without `replicaScheduling`, Divided if it names no type. Source: Karmada
    /// reference 1.2.
    pub fn replica_scheduling_type(&self) -> ReplicaSchedulingType {
        match &self.replica_scheduling {
            None => ReplicaSchedulingType::Duplicated,
            Some(strategy) => strategy.replica_scheduling_type,
        }
    }

    /// True if nothing is required, so that every cluster is allowed.
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

    /// Names of clusters that are excluded.
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

    /// Further groups that take, in this order, the replicas that do not fit into the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub overflow_affinities: Vec<OverflowAffinity>,
}

/// A named group of clusters that takes the replicas that do not fit into others.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OverflowAffinity {
    /// Name of the group, unique among the further groups and different from that of the main group.
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

/// A requirement on a field of a Cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field: provider, region or zone.
    pub key: String,

    /// The relation to the values: In or NotIn.
    pub operator: String,

    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::atomic_strings")]
    pub values: Vec<String>,
}

/// The number of groups of clusters that the scheduling result is spread over. Give spreadByField or spreadByLabel, not both.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The field of the Cluster that makes the groups. Left out together with spreadByLabel: cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_by_field: Option<SpreadField>,

    /// The label of the Cluster that makes the groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_label: String,

    /// The largest number of groups. Left out or 0: no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "crate::schema::plain_integer")]
    pub max_groups: i64,

    /// The smallest number of groups. Left out or 0: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "crate::schema::plain_integer")]
    pub min_groups: i64,
}

/// The fields of a Cluster that define groups.
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

/// The division of replicas.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSchedulingStrategy {
    /// Duplicated: each cluster gets all replicas. Divided: each gets a part of them.
    #[serde(default)]
    pub replica_scheduling_type: ReplicaSchedulingType,

    /// The rule for the parts. Left out with Divided: Weighted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_division_preference: Option<DivisionPreference>,

    /// The weights of Weighted. Left out: every cluster weighs the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<ClusterPreferences>,
}

/// The type of division. The default is that of a `replicaScheduling` which names no type; see
/// [`Placement::replica_scheduling_type`] for one that is absent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaSchedulingType {
    /// Each cluster gets all replicas.
    Duplicated,
    /// The replicas are divided among the clusters.
    #[default]
    Divided,
}

/// The rule that divides replicas among clusters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivisionPreference {
    /// Among as few clusters as can take them.
    Aggregated,
    /// By weight.
    Weighted,
}

/// The weights of clusters. dynamicWeight, if given, takes precedence.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreferences {
    /// Fixed weights. A cluster has the largest weight of those that select it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_weight_list: Vec<StaticClusterWeight>,

    /// The source of computed weights.
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

/// The source of computed weights.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicWeight {
    /// The number of replicas that a cluster can take.
    AvailableReplicas,
}

/// The workloads that share a cluster or avoid each other.
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
