//! When a stored result was scheduled, and what of it runs by the stored status: what a process that did not schedule it can know.

use entourage_api::work::{AggregatedStatusItem, ResourceBinding, ResourceHealth, TargetCluster};

use super::{CLOCKS_DIFFER, is_scheduled_by_us};
use crate::{object::Time, scope};

/// The time when the clusters of a binding were last scheduled, or a later one: now while the scheduler has not reported of the stored
/// spec and is to, else the time that it reported, or that of the creation. A time ahead of the clock is now, unless it is a mistake.
/// `None` if nothing is known.
pub(crate) fn scheduled_at(held: &ResourceBinding, now: Time) -> Option<Time> {
    let status = held.status.as_ref();
    let seen = status.map(|status| status.scheduler_observed_generation);
    if held.metadata.generation.is_some() && seen != held.metadata.generation && is_reported(held) {
        return Some(now);
    }
    let reported = status.and_then(|status| status.last_scheduled_time.as_ref());
    let created = held.metadata.creation_timestamp.as_ref();
    let known = reported.into_iter().chain(created).map(Time::from_k8s);
    let likely = known.filter(|time| *time <= now.plus(CLOCKS_DIFFER));
    likely.max().map(|time| time.min(now))
}

/// True if the status follows the spec: not while scheduling is suspended, nor where the policy is gone.
fn is_reported(held: &ResourceBinding) -> bool {
    let annotations = held.metadata.annotations.as_ref();
    let claim = scope::claim_in(|key| annotations?.get(key).map(String::as_str));
    is_scheduled_by_us(&held.spec) && claim.is_some()
}

/// The clusters with their ready replicas, or with the set of components that is healthy, no more than are scheduled: the reports of
/// members contain their pods. A set without a status is not known to run: kinds without a health rule are healthy once applied. Cost:
/// O(clusters × log).
pub(crate) fn running(held: &ResourceBinding) -> Vec<TargetCluster> {
    let items = held.status.as_ref().map(|status| &status.aggregated_status);
    let items = items.map_or(&[][..], Vec::as_slice);
    let runs = |target: &TargetCluster| {
        let item = AggregatedStatusItem::find(items, &target.name)?;
        if target.replicas == 0 {
            let is_healthy = item.applied && item.health == Some(ResourceHealth::Healthy);
            let is_whole = is_healthy && item.status.is_some();
            return is_whole.then(|| target.clone());
        }
        Some(TargetCluster {
            replicas: ready(item).min(target.replicas),
            ..target.clone()
        })
    };
    held.spec.clusters.iter().filter_map(runs).collect()
}

/// The number of pods that are ready by a reported status.
fn ready(item: &AggregatedStatusItem) -> i32 {
    let number = |field: &str| item.status.as_ref()?[field].as_i64();
    // Jobs have the shorter name.
    let ready = number("readyReplicas").or_else(|| number("ready")).unwrap_or(0);
    i32::try_from(ready.max(0)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::annotation;
    use serde_json::{Value, json};

    use super::*;

    fn binding(spec: &Value, status: &Value) -> ResourceBinding {
        let mut spec = spec.clone();
        spec["resource"] =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
        let mut object = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {
                "name": "web-deployment", "namespace": "shop", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {
                    annotation::PROPAGATION_POLICY_NAMESPACE: "shop", annotation::PROPAGATION_POLICY_NAME: "web",
                },
            },
            "spec": spec,
        });
        if !status.is_null() {
            object["status"] = status.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    /// Seconds after the creation.
    fn after(seconds: i64) -> Time {
        let created = binding(&json!({}), &Value::Null).metadata.creation_timestamp;
        Time::from_k8s(&created.unwrap()).plus(seconds * 1_000)
    }

    #[test]
    fn what_the_scheduler_has_not_reported_of_counts_as_scheduled_now() {
        let now = after(600);
        for (status, want) in [
            (Value::Null, now),
            (json!({}), now),
            (
                json!({"schedulerObservedGeneration": 2, "lastScheduledTime": "2026-01-01T00:05:00Z"}),
                now,
            ),
            (
                json!({"schedulerObservedGeneration": 3, "lastScheduledTime": "2026-01-01T00:05:00Z"}),
                after(300),
            ),
            (json!({"schedulerObservedGeneration": 3}), after(0)),
            // By a clock that is ahead, and by mistake.
            (
                json!({"schedulerObservedGeneration": 3, "lastScheduledTime": "2026-01-01T00:15:00Z"}),
                now,
            ),
            (
                json!({"schedulerObservedGeneration": 3, "lastScheduledTime": "2027-01-01T00:00:00Z"}),
                after(0),
            ),
        ] {
            assert_eq!(
                scheduled_at(&binding(&json!({}), &status), now),
                Some(want),
                "{status}"
            );
        }
    }

    #[test]
    fn a_status_that_no_longer_follows_the_spec_says_when_it_was_scheduled() {
        let status = json!({"schedulerObservedGeneration": 2, "lastScheduledTime": "2026-01-01T00:05:00Z"});
        let suspended = binding(&json!({"suspension": {"scheduling": true}}), &status);
        let mut orphaned = binding(&json!({}), &status);
        orphaned.metadata.annotations = None;
        for held in [suspended, orphaned] {
            assert_eq!(scheduled_at(&held, after(600)), Some(after(300)));
        }
    }

    #[test]
    fn what_is_ready_or_healthy_runs() {
        let spec = json!({"clusters": [
            {"name": "a", "replicas": 4}, {"name": "b", "replicas": 2}, {"name": "c", "replicas": 3}, {"name": "d", "replicas": 5},
            {"name": "e", "components": [{"name": "head", "replicas": 1}]},
            {"name": "f", "components": [{"name": "head", "replicas": 1}]},
            {"name": "g", "components": [{"name": "head", "replicas": 1}]},
        ]});
        let status = json!({"schedulerObservedGeneration": 3, "aggregatedStatus": [
            {"clusterName": "a", "applied": true, "status": {"readyReplicas": 3}},
            {"clusterName": "b", "applied": true, "status": {"readyReplicas": 9}},
            {"clusterName": "c", "applied": true},
            {"clusterName": "e", "applied": true, "health": "Healthy", "status": {"state": "ready"}},
            {"clusterName": "f", "applied": true, "health": "Unhealthy", "status": {"state": "failed"}},
            {"clusterName": "g", "applied": true, "health": "Healthy"},
        ]});
        let running: Vec<(String, i32)> = running(&binding(&spec, &status))
            .into_iter()
            .map(|target| (target.name.clone(), target.units()))
            .collect();
        let want = [("a", 3), ("b", 2), ("c", 0), ("e", 1)];
        assert_eq!(running, want.map(|(name, units)| (name.to_owned(), units)));
    }
}
