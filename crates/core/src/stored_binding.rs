//! What a binding says, as stored: questions about it that need nothing else.

pub(crate) mod purge;

use std::collections::BTreeMap;

use entourage_api::{
    keys::annotation,
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec},
};
use serde_json::Value;

use crate::{
    object::{Str, Time},
    problem::is_label_key,
    scope,
};

/// So much the clocks of machines differ at most, in milliseconds: an hour. What lies further ahead is a mistake.
const CLOCKS_DIFFER: i64 = 3_600_000;

/// The `schedulerName` of bindings that are ours to schedule.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What policies say of failovers by annotations: their bindings say the same.
pub(crate) const WISHES: [&str; 2] = [annotation::FAIL_BACK, annotation::WAIT_FOR_DATA];

/// What is remembered.
pub(crate) const RECORDS: [&str; 5] = [
    annotation::FAILED_CLUSTERS,
    annotation::HOME_CLUSTERS,
    annotation::PRESERVED_LABELS,
    annotation::AWAITS_DATA,
    annotation::SHARES_BEFORE_PURGE,
];

/// The longest value of a label.
const LONGEST: usize = 63;

/// Labels that a replacement gets, by key.
pub(crate) type Labels = BTreeMap<Str, Str>;

/// Whether choosing clusters is ours to do: no other scheduler does it, and it is not suspended.
pub(crate) fn is_scheduled_by_us(spec: &ResourceBindingSpec) -> bool {
    let suspended = spec.suspension.as_ref().and_then(|each| each.scheduling);
    suspended != Some(true) && ["", DEFAULT_SCHEDULER].contains(&spec.scheduler_name.as_str())
}

/// Whether a user asked, after clusters were last chosen, for them to be chosen afresh (Karmada reference 1.3).
///
/// The answer to a question from the future bears the question's own time, see [`crate::status`]. While that lies ahead
/// any other question is a new one: a wrong clock may not disable rescheduling until its time comes.
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

/// Whether a binding's own suspension holds a cluster back. Cost: O(clusters named).
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

/// The eviction task from a cluster. Cost: O(tasks).
pub(crate) fn eviction_from<'a>(
    spec: &'a ResourceBindingSpec,
    cluster: &str,
) -> Option<&'a GracefulEvictionTask> {
    let mut tasks = spec.graceful_eviction_tasks.iter();
    tasks.find(|task| task.from_cluster == cluster)
}

/// Whether a binding remembers anything that it would not find out again.
pub(crate) fn remembers_failovers(binding: &ResourceBinding) -> bool {
    let annotations = binding.metadata.annotations.as_ref();
    annotations.is_some_and(|all| RECORDS.iter().any(|key| all.contains_key(*key)))
}

/// The labels that the copy on a cluster gets beside those of its template. Cost: O(1) where none were ever handed on.
pub(crate) fn preserved_labels_on(binding: &ResourceBinding, cluster: &str) -> Labels {
    preserved_labels(binding).remove(cluster).unwrap_or_default()
}

/// The labels that replacements get, by cluster, as stored.
pub(crate) fn preserved_labels(binding: &ResourceBinding) -> BTreeMap<Str, Labels> {
    let annotations = binding.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::PRESERVED_LABELS));
    let mut all: BTreeMap<Str, Labels> = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    // Whoever may write bindings writes no label that a server refuses, for ever.
    for labels in all.values_mut() {
        labels.retain(|key, value| is_label_key(key) && is_label_value(value));
    }
    all
}

/// Whether a text can be the value of a label.
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
