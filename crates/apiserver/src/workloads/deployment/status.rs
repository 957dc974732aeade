//! The status of a Deployment: its counts, and whether it is available and makes progress.

use std::time::Duration;

use serde_json::{Value, json};

use super::Rollout;
use crate::workloads::{
    parts::{Counts, condition, condition_of, int, part, text},
    replicas::FAILURE,
};

impl Rollout<'_> {
    pub(super) fn status(&self, created: Option<&str>, paused: bool) -> (Counts, Option<Duration>) {
        let old = part(self.deployment, "status");
        let updated = |field| self.current.map_or(0, |at| self.observed(at, field));
        let available = self.sum("availableReplicas");
        let total: i64 = self.sizes().iter().sum();
        let mut status = Counts::default();
        for (field, value) in [
            ("replicas", self.sum("replicas")),
            ("updatedReplicas", updated("replicas")),
            ("readyReplicas", self.sum("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (total - available).max(0)),
        ] {
            status.count(field, value);
        }
        let enough = available >= self.replicas - self.unavailable;
        let [holds, reason, verb] = if enough {
            ["True", "MinimumReplicasAvailable", "has"]
        } else {
            ["False", "MinimumReplicasUnavailable", "does not have"]
        };
        let message = &format!("Deployment {verb} minimum availability.");
        let now = &self.around.now;
        let mut conditions = vec![condition(old, ["Available", holds, reason, message], now)];
        let (progressing, again) = self.progress(created, paused, &status);
        conditions.extend(progressing);
        let sets = self.current.into_iter().chain(self.older());
        let mut failures = sets.map(|at| condition_of(part(self.sets[at], "status"), FAILURE));
        conditions.extend(failures.find(|one| !one.is_null()).cloned());
        for one in &mut conditions {
            if one["lastUpdateTime"].is_null() {
                let since = one["lastTransitionTime"].clone();
                one["lastUpdateTime"] = if one["type"] == FAILURE { since } else { json!(now) };
            }
        }
        let is_own = |one: &&Value| ["Available", "Progressing", FAILURE].contains(&text(&one["type"]));
        let all = old["conditions"].as_array().into_iter().flatten();
        conditions.extend(all.filter(|one| !is_own(one)).cloned());
        status.set("conditions", conditions);
        (status, again)
    }

    /// The condition `Progressing`, and the time until its deadline.
    fn progress(
        &self,
        created: Option<&str>,
        paused: bool,
        status: &Counts,
    ) -> (Option<Value>, Option<Duration>) {
        let old = part(self.deployment, "status");
        let before = condition_of(old, "Progressing");
        let deadline = self.spec["progressDeadlineSeconds"].as_i64();
        let Some(deadline) = deadline.filter(|seconds| *seconds < i64::from(i32::MAX)) else {
            return (None, None);
        };
        let now = &self.around.now;
        let (name, reason) = (self.name(), text(&before["reason"]));
        let stated = |holds: &str, reason: &str, message: &str| {
            Some(condition(old, ["Progressing", holds, reason, message], now))
        };
        let kept = || (!before.is_null()).then(|| before.clone());
        if paused && reason != "ProgressDeadlineExceeded" {
            return (
                stated("Unknown", "DeploymentPaused", "Deployment is paused"),
                None,
            );
        }
        if !paused && reason == "DeploymentPaused" {
            return (
                stated("Unknown", "DeploymentResumed", "Deployment is resumed"),
                None,
            );
        }
        if created.is_some() {
            let message = format!("Created new replica set {name:?}");
            return (stated("True", "NewReplicaSetCreated", &message), None);
        }
        let count = |status: &Value, field: &str| int(&status[field], 0);
        let fresh = Value::Object(status.0.clone());
        let all_updated = count(&fresh, "replicas") == count(&fresh, "updatedReplicas");
        if reason == "NewReplicaSetAvailable" && all_updated {
            return (kept(), None);
        }
        if self.is_complete() {
            let message = format!("ReplicaSet {name:?} has successfully progressed.");
            return (stated("True", "NewReplicaSetAvailable", &message), None);
        }
        let grows = |field: &str| count(&fresh, field) > count(old, field);
        let older = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
        if grows("updatedReplicas")
            || grows("readyReplicas")
            || grows("availableReplicas")
            || older(&fresh) < older(old)
        {
            let message = format!("ReplicaSet {name:?} is progressing.");
            let mut next = stated("True", "ReplicaSetUpdated", &message);
            if let Some(next) = &mut next {
                next["lastUpdateTime"] = json!(now);
            }
            let left = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
            return (next, Some(left));
        }
        if before.is_null() {
            let message = format!("Found new replica set {name:?}");
            return (stated("True", "FoundNewReplicaSet", &message), None);
        }
        if reason == "NewReplicaSetAvailable" || reason == "ProgressDeadlineExceeded" {
            return (kept(), None);
        }
        let left = self.around.until(&before["lastUpdateTime"], deadline);
        if left.is_zero() {
            let message = format!("ReplicaSet {name:?} has timed out progressing.");
            return (stated("False", "ProgressDeadlineExceeded", &message), None);
        }
        (kept(), Some(left))
    }
}
