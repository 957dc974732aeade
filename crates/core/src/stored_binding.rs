//! The fields of a stored binding: queries that need nothing else.

pub(crate) mod purge;
pub(crate) mod recent;
pub(crate) mod sets;

use std::collections::BTreeMap;

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, TargetCluster},
};
use serde_json::Value;

use crate::{
    object::{Str, StrMap, Time},
    problem::is_label_key,
    scope,
};

/// The maximum clock difference between machines, in milliseconds: an hour. A time further ahead is a mistake.
const CLOCKS_DIFFER: i64 = 3_600_000;

/// The `schedulerName` of bindings that this control plane schedules.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The annotations of policies about failover: their bindings have the same.
pub(crate) const FAILOVER_SETTINGS: [&str; 2] = [annotation::FAIL_BACK, annotation::WAIT_FOR_DATA];

/// The annotations with records.
pub(crate) const RECORDS: [&str; 6] = [
    annotation::FAILED_CLUSTERS,
    annotation::UNSELECTED_CLUSTERS,
    annotation::HOME_CLUSTERS,
    annotation::PRESERVED_LABELS,
    annotation::AWAITS_DATA,
    annotation::SHARES_BEFORE_PURGE,
];

/// The longest value of a label.
const LONGEST: usize = 63;

/// Labels that a replacement gets, by key.
pub(crate) type Labels = BTreeMap<Str, Str>;

/// True if this control plane schedules the binding: no other scheduler does, and scheduling is not suspended.
pub(crate) fn is_scheduled_by_us(spec: &ResourceBindingSpec) -> bool {
    let suspended = spec.suspension.as_ref().and_then(|each| each.scheduling);
    suspended != Some(true) && is_of_our_scheduler(spec)
}

/// True if this control plane schedules the binding, or would if its scheduling was not suspended.
pub(crate) fn is_of_our_scheduler(spec: &ResourceBindingSpec) -> bool {
    ["", DEFAULT_SCHEDULER].contains(&spec.scheduler_name.as_str())
}

/// True if a user triggered rescheduling after the clusters were last scheduled (Karmada reference 1.3).
///
/// A trigger in the future is recorded with its own time, see [`crate::status`]. While that lies ahead any other trigger is a
/// new one: a wrong clock must not disable rescheduling until its time comes.
pub(crate) fn is_reschedule_asked(held: &ResourceBinding, now: Time) -> bool {
    let chosen = held
        .status
        .as_ref()
        .and_then(|status| status.last_scheduled_time.as_ref());
    let (Some(asked), Some(chosen)) = (&held.spec.reschedule_triggered_at, chosen) else {
        return false;
    };
    let (asked, chosen) = (asked.0.as_second(), chosen.0.as_second());
    if chosen > now.plus(CLOCKS_DIFFER).to_k8s().0.as_second() {
        asked != chosen
    } else {
        asked > chosen
    }
}

/// True if the stored clusters were scheduled by this placement, and no rescheduling was triggered since.
pub(crate) fn is_as_asked(held: &ResourceBinding, placement: &Placement, now: Time) -> bool {
    let annotations = held.metadata.annotations.as_ref();
    let applied = annotations.and_then(|all| all.get(annotation::APPLIED_PLACEMENT));
    let asked = serde_json::to_string(placement).ok();
    asked.as_ref() == applied && !is_reschedule_asked(held, now)
}

/// True if a binding's own suspension holds back a cluster. Cost: O(clusters named).
#[must_use]
pub(crate) fn is_held_back_from(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    let Some(suspension) = &spec.suspension else {
        return false;
    };
    let named = suspension.dispatch.dispatching_on_clusters.iter();
    suspension.dispatch.dispatching == Some(true)
        || named
            .flat_map(|clusters| &clusters.cluster_names)
            .any(|name| name == cluster)
}

/// True if two lists name the same clusters, whatever replicas they have there. Cost: O(clusters).
pub(crate) fn are_same_clusters(one: &[TargetCluster], other: &[TargetCluster]) -> bool {
    let names = one.iter().map(|target| &target.name);
    names.eq(other.iter().map(|target| &target.name))
}

/// The eviction task for a cluster, or `None`. Cost: O(tasks).
pub(crate) fn eviction_from<'a>(
    spec: &'a ResourceBindingSpec,
    cluster: &str,
) -> Option<&'a GracefulEvictionTask> {
    let mut tasks = spec.graceful_eviction_tasks.iter();
    tasks.find(|task| task.from_cluster == cluster)
}

/// True if a binding has records that have no other source.
pub(crate) fn remembers_failovers(binding: &ResourceBinding) -> bool {
    let annotations = binding.metadata.annotations.as_ref();
    annotations.is_some_and(|all| RECORDS.iter().any(|key| all.contains_key(*key)))
}

/// The preserved labels of the copy on a cluster, in addition to those of its template. Cost: O(1) if there are none.
pub(crate) fn preserved_labels_on(binding: &ResourceBinding, cluster: &str) -> StrMap {
    let labels = preserved_labels(binding).remove(cluster);
    labels.into_iter().flatten().collect()
}

/// The stored preserved labels of replacements, by cluster.
pub(crate) fn preserved_labels(binding: &ResourceBinding) -> BTreeMap<Str, Labels> {
    let annotations = binding.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::PRESERVED_LABELS));
    let mut all: BTreeMap<Str, Labels> = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    // A user who may write bindings must not be able to set a label that a server refuses forever.
    for labels in all.values_mut() {
        labels.retain(|key, value| is_label_key(key) && is_label_value(value));
    }
    all
}

/// True if a text is a valid label value.
pub(crate) fn is_label_value(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= LONGEST
        && ends(text.chars().next())
        && ends(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// The object to send; a binding without a namespace is a ClusterResourceBinding.
pub(crate) fn to_value(binding: &ResourceBinding) -> Value {
    let mut value = serde_json::to_value(binding).unwrap_or_default();
    let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
    value["kind"] = scope::binding(namespace).kind.into();
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_is_answered_once_whatever_the_clocks_say() {
        let now = Time(1_795_219_200_000); // 2026-11-21T00:00:00Z
        let cases = [
            (
                Some("2026-11-21T00:00:05Z"),
                Some("2026-11-21T00:00:00Z"),
                true,
                "asked after the choice",
            ),
            (
                Some("2026-11-21T00:00:00Z"),
                Some("2026-11-21T00:00:05Z"),
                false,
                "answered",
            ),
            (
                Some("2026-11-20T00:00:00Z"),
                Some("2026-11-21T00:30:00Z"),
                false,
                "answered by a clock ahead",
            ),
            (
                Some("2099-01-01T00:00:00Z"),
                Some("2026-11-21T00:00:00Z"),
                true,
                "asked by a wrong clock",
            ),
            (
                Some("2099-01-01T00:00:00Z"),
                Some("2099-01-01T00:00:00Z"),
                false,
                "and answered",
            ),
            (
                Some("2026-11-21T00:00:00Z"),
                Some("2099-01-01T00:00:00Z"),
                true,
                "asked again by a right one",
            ),
            (None, Some("2099-01-01T00:00:00Z"), false, "nobody asks"),
            (
                Some("2026-11-21T00:00:00Z"),
                None,
                false,
                "nothing was chosen yet: that is a fresh choice",
            ),
        ];
        for (asked, chosen, wanted, why) in cases {
            let held: ResourceBinding = serde_json::from_value(json!({
                "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "x"},
                "spec": {
                    "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"},
                    "rescheduleTriggeredAt": asked,
                },
                "status": {"lastScheduledTime": chosen},
            }))
            .unwrap();
            assert_eq!(is_reschedule_asked(&held, now), wanted, "{why}");
        }
    }
}
