//! The state of a template on its clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IntoDeserializer as _, value},
};

use crate::schema::is_false;

/// The state of a binding's template. Source: Karmada reference 1.2; `copy` of an entry is ours.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingStatus {
    /// The generation of the binding that the scheduler last processed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scheduler_observed_generation: i64,

    /// The group of placement.clusterAffinities that is in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_observing_affinity_name: String,

    /// The time at which it was last scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Time>,

    /// The conditions of the binding, such as Scheduled, FullyApplied and DependenciesReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// One entry for each cluster that has a copy or may have one, sorted by cluster. An entry is kept until the copy is proven
    /// absent, so the list is also the record of the existing copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<AggregatedStatusItem>,
}

/// The state of the template on one cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Name of the cluster.
    pub cluster_name: String,

    /// The part of the copy's status that is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub status: Option<serde_json::Value>,

    /// True if the copy is applied on the cluster.
    #[serde(default, skip_serializing_if = "is_false")]
    pub applied: bool,

    /// The reason why it is not applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,

    /// The health of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ResourceHealth>,

    /// The copy as it was last written. An addition of Entourage; other readers may ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyRecord>,

    /// The time since which the copy has not been healthy. An addition of Entourage; other readers may ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_since: Option<Time>,

    /// The reason why it is not applied, one word for programs: Pending, Suspended, Conflict, Override, InterpretError,
    /// Contended, Unknown, Refused or NotAllowed. An addition of Entourage; other readers may ignore it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_reason"
    )]
    #[schemars(with = "Option<String>")]
    pub applied_reason: Option<NotAppliedReason>,
}

impl AggregatedStatusItem {
    /// The entry of a cluster. Cost: as [`super::TargetCluster::find`].
    #[must_use]
    pub fn find<'a>(all: &'a [Self], cluster: &str) -> Option<&'a Self> {
        super::find(all, |item| &item.cluster_name, cluster)
    }
}

/// The reason why a copy is not applied. Never read from `appliedMessage`, which is for people.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAppliedReason {
    /// Delivery is in progress, without a problem.
    Pending,
    /// A user suspended delivery.
    Suspended,
    /// An object exists on the cluster that is not managed by this hub.
    Conflict,
    /// A rule of an override policy cannot be applied.
    Override,
    /// The interpretation of the kind failed.
    InterpretError,
    /// Another writer on the cluster keeps changing the copy back.
    Contended,
    /// The cluster does not respond, is not used, or its objects cannot be listed.
    Unknown,
    /// The cluster refused the copy, or an error of the cluster prevented its update.
    Refused,
    /// It is a Secret, and the allow-list of its namespace, or its own, does not list the cluster.
    NotAllowed,
}

/// Reads a reason; one that a later version added counts as none.
fn known_reason<'de, D: Deserializer<'de>>(stored: D) -> Result<Option<NotAppliedReason>, D::Error> {
    let text = Option::<String>::deserialize(stored)?;
    let known = |text: String| {
        let text: value::StringDeserializer<value::Error> = text.into_deserializer();
        NotAppliedReason::deserialize(text).ok()
    };
    Ok(text.and_then(known))
}

/// The copy on a cluster as it was last written. While the cluster still has the same uid and version, and the template is
/// still at the same source version, there is nothing to write, after a restart too. Source: architecture 2.5. It holds no
/// digest of a Secret.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CopyRecord {
    /// The copy's uid: a copy with another uid is not the one that was written.
    pub uid: String,

    /// The copy's resourceVersion after the write, for a kind without generation and status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,

    /// The copy's generation after the write; for a kind that has a status and no generation, a number that changes with
    /// its spec alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// The version of the template that the copy was last written from: its uid with its generation (or its
    /// resourceVersion where the kind has none) and a hash of its labels and annotations.
    pub source: String,

    /// The share of replicas of the last write, if the member decides them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<i32>,

    /// The generation of the binding from which the share was raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<i64>,

    /// The share that raised them, until the member decides otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised_to: Option<i32>,
}

/// The health of a copy.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceHealth {
    /// The copy works.
    Healthy,
    /// The copy does not work.
    Unhealthy,
    /// The health cannot be determined.
    Unknown,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_of_a_later_version_counts_as_none() {
        let read = |reason: &str| {
            let item = json!({"clusterName": "m1", "appliedReason": reason});
            AggregatedStatusItem::deserialize(item).unwrap().applied_reason
        };
        assert_eq!(read("Conflict"), Some(NotAppliedReason::Conflict));
        assert_eq!(read("Later"), None);
    }
}
