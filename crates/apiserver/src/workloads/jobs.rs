//! The pods of a Job, and its status. Source: the job controller of kube-controller-manager.
//!
//! A pod that ended is counted once, whoever deletes it: its uid is written into the status while it has its finalizer, and added
//! to the numbers when it has lost it.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{
    Action,
    indexes::{self, Indexes},
    parts::{
        Around, Counts, condition_of, count, int, is_leaving, is_over, part, path_of, phase_of, ready,
        remove, remove_of, sooner, text,
    },
    policies::{self, Ending},
};
use crate::object::{Object, finalizers};

const BATCH: &str = "apis/batch/v1";

mod pods;

/// The finalizer of pods that are not counted yet.
pub(super) const TRACKED: &str = "batch.kubernetes.io/job-tracking";

/// Label and annotation: the index of a pod.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Annotation: the number of pods of the index that failed before.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// Annotation: the number of them that a failure policy ignores, which is no part of the other.
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A Job during one decision.
struct Run<'a> {
    job: &'a Object,
    spec: &'a Value,
    old: &'a Value,
    pods: &'a [Object],
    indexed: bool,
    completions: Option<i64>,
    around: &'a Around,
    succeeded: i64,
    failed: i64,
    /// The uids of pods that ended and still have their finalizer: those that succeeded and those that failed.
    uncounted: [Vec<Value>; 2],
    completed: Indexes,
    failed_indexes: Indexes,
    /// The message with which a failure policy ends the Job.
    fails: Option<String>,
}

/// A Job has Pods until enough of them succeeded, too many failed, or its time is over.
pub(super) fn job(job: &Object, pods: &[Object], around: &Around) -> (Vec<Action>, Option<Duration>) {
    let spec = part(job, "spec");
    let manager = text(&spec["managedBy"]);
    let is_ours = matches!(manager, "" | "kubernetes.io/job-controller");
    let old = part(job, "status");
    if let Some(finished) = ["Complete", "Failed"]
        .map(|kind| condition_of(old, kind))
        .into_iter()
        .find(|one| one["status"] == "True")
    {
        let pods = pods.iter().filter(|_| is_ours);
        let mut actions: Vec<Action> = pods.filter_map(release).collect();
        let ttl = spec["ttlSecondsAfterFinished"]
            .as_i64()
            .filter(|_| !is_leaving(job));
        let left = ttl.map(|seconds| around.until(&finished["lastTransitionTime"], seconds));
        if left == Some(Duration::ZERO) {
            actions.push(remove_of(BATCH, "jobs", job));
            return (actions, None);
        }
        return (actions, left);
    }
    if !is_ours {
        return (Vec::new(), None);
    }
    let mut run = Run::of(job, pods, around);
    let mut actions = run.account();
    let again = run.decide(&mut actions);
    (actions, again)
}

/// Takes the finalizer from a pod.
pub(super) fn release(pod: &Object) -> Option<Action> {
    finalizers(pod).any(|name| name == TRACKED).then(|| {
        let others: Vec<&str> = finalizers(pod).filter(|name| *name != TRACKED).collect();
        Action::Patch {
            path: path_of("api/v1", "pods", pod),
            patch: json!({"metadata": {"finalizers": others, "resourceVersion": pod["metadata"]["resourceVersion"]}}),
        }
    })
}

/// Deletes a pod that does not count as one that failed.
fn drop_uncounted(pod: &Object) -> impl Iterator<Item = Action> + use<> {
    release(pod).into_iter().chain([remove(pod)])
}

impl<'a> Run<'a> {
    fn of(job: &'a Object, pods: &'a [Object], around: &'a Around) -> Self {
        let (spec, old) = (part(job, "spec"), part(job, "status"));
        let uncounted = &old["uncountedTerminatedPods"];
        let list = |key: &str| uncounted[key].as_array().cloned().unwrap_or_default();
        let completions = spec["completions"].as_i64();
        let indexes = |key: &str| {
            let mut noted = indexes::parse(text(&old[key]));
            // Those of a Job that was larger do not count.
            noted.split_off(&completions.unwrap_or(0));
            noted
        };
        Self {
            job,
            spec,
            old,
            pods,
            indexed: spec["completionMode"] == "Indexed",
            completions,
            around,
            succeeded: int(&old["succeeded"], 0),
            failed: int(&old["failed"], 0),
            uncounted: [list("succeeded"), list("failed")],
            completed: indexes("completedIndexes"),
            failed_indexes: indexes("failedIndexes"),
            fails: None,
        }
    }

    /// Counts the pods that ended.
    fn account(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let tracked: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| is_tracked(pod))
            .map(uid_of)
            .collect();
        let [mut succeeded, mut failed] = std::mem::take(&mut self.uncounted);
        let noted = self.completed.clone();
        let (before, counted) = (
            (succeeded.len(), failed.len()),
            [succeeded.clone(), failed.clone()],
        );
        succeeded.retain(|uid| tracked.contains(text(uid)));
        failed.retain(|uid| tracked.contains(text(uid)));
        self.succeeded += count(before.0 - succeeded.len());
        self.failed += count(before.1 - failed.len());
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            let uid = json!(uid_of(pod));
            let completions = self.completions.filter(|_| self.indexed).unwrap_or(0);
            let index = index_of(pod).filter(|index| *index < completions);
            match Self::end_of(pod) {
                Some(true) if self.indexed => {
                    let was = index.is_none_or(|index| noted.contains(&index));
                    self.completed.extend(index);
                    if was {
                        actions.extend(release(pod));
                    }
                }
                Some(true) if counted[0].contains(&uid) => actions.extend(release(pod)),
                Some(true) => succeeded.push(uid),
                Some(false) if counted[1].contains(&uid) => actions.extend(release(pod)),
                Some(false) => {
                    let ending = policies::ending(&self.spec["podFailurePolicy"], pod);
                    if let Ending::Job(message) = &ending {
                        self.fails = Some(message.clone());
                    }
                    if ending == Ending::Ignored {
                        actions.extend(release(pod));
                        continue;
                    }
                    failed.push(uid);
                    let limit = self.spec["backoffLimitPerIndex"].as_i64();
                    if let (Some(index), Some(limit)) = (index, limit)
                        && (ending == Ending::Index || failures_of(pod, FAILURES) >= limit)
                    {
                        self.failed_indexes.insert(index);
                    }
                }
                None => {}
            }
        }
        self.uncounted = [succeeded, failed];
        if self.indexed {
            self.succeeded = count(self.completed.len());
        }
        actions
    }

    /// `Some(true)` for a pod that succeeded, `Some(false)` for one that failed.
    fn end_of(pod: &Object) -> Option<bool> {
        match phase_of(pod) {
            "Succeeded" => Some(true),
            "Failed" => Some(false),
            // There is no kubelet that would end it later.
            _ => is_leaving(pod).then_some(false),
        }
    }

    /// The next step: pods, or the end.
    fn decide(&self, actions: &mut Vec<Action>) -> Option<Duration> {
        let live: Vec<&Object> = self
            .pods
            .iter()
            .filter(|pod| !is_over(pod) && !is_leaving(pod))
            .collect();
        let terminating = self
            .pods
            .iter()
            .filter(|pod| is_leaving(pod) && !is_over(pod))
            .count();
        let suspended = self.spec["suspend"] == true;
        let now = &self.around.now;
        let mut conditions = self.old["conditions"].as_array().cloned().unwrap_or_default();
        let was_suspended = condition_of(self.old, "Suspended")["status"] == "True";
        let mut start = self.old["startTime"].clone();
        if !suspended && (start.is_null() || was_suspended) {
            start = json!(now);
        }
        let (end, mut again) = self.end(&start, live.len());
        let mut active = live.len();
        match &end {
            Some(end) => {
                set(&mut conditions, end.target(), now);
                actions.extend(live.iter().map(|pod| remove(pod)));
                // What is not in the numbers yet would never be.
                let gone = live.is_empty() && terminating == 0 && self.uncounted.iter().all(Vec::is_empty);
                if gone {
                    set(&mut conditions, end.result(), now);
                }
                active = 0;
            }
            None if is_leaving(self.job) => {}
            None if suspended => {
                set(
                    &mut conditions,
                    ["Suspended", "True", "JobSuspended", "Job suspended"],
                    now,
                );
                actions.extend(live.iter().flat_map(|pod| drop_uncounted(pod)));
                start = Value::Null;
                active = 0;
            }
            None => {
                if was_suspended {
                    set(
                        &mut conditions,
                        ["Suspended", "False", "JobResumed", "Job resumed"],
                        now,
                    );
                }
                again = sooner(again, self.pods_of(&live, terminating, actions));
            }
        }
        let mut status = Counts::default();
        status.count("active", count(active));
        self.write(&mut status, conditions, start, terminating, &live, end.as_ref());
        actions.extend(status.patch(BATCH, "jobs", self.job));
        again
    }

    fn write(
        &self,
        status: &mut Counts,
        conditions: Vec<Value>,
        start: Value,
        terminating: usize,
        live: &[&Object],
        end: Option<&End>,
    ) {
        // The numbers are those of pods that lost their finalizer; the others are in the list.
        status.count("succeeded", self.succeeded);
        status.count("failed", self.failed);
        let is_ended = conditions
            .iter()
            .any(|one| matches!(text(&one["type"]), "Complete" | "Failed") && one["status"] == "True");
        status.set("ready", if is_ended { 0 } else { ready(live) });
        status.set("terminating", terminating);
        let list = |uids: &Vec<Value>| if uids.is_empty() { Value::Null } else { json!(uids) };
        status.set(
            "uncountedTerminatedPods",
            json!({"succeeded": list(&self.uncounted[0]), "failed": list(&self.uncounted[1])}),
        );
        status.set("startTime", start);
        if self.indexed {
            let completed = Some(indexes::written(&self.completed));
            status.set("completedIndexes", completed.filter(|text| !text.is_empty()));
            if self.spec["backoffLimitPerIndex"].is_i64() {
                status.set("failedIndexes", indexes::written(&self.failed_indexes));
            }
        }
        if is_ended && end.is_some_and(|end| end.complete) {
            status.set("completionTime", self.around.now.as_str());
        }
        if !conditions.is_empty() {
            status.set("conditions", conditions);
        }
    }

    /// The end of the Job, if it has come, and the time until its deadline.
    fn end(&self, start: &Value, active: usize) -> (Option<End>, Option<Duration>) {
        let end = |complete, reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            let end = End {
                complete,
                reason,
                message,
            };
            (Some(end), None)
        };
        for (kind, complete) in [("FailureTarget", false), ("SuccessCriteriaMet", true)] {
            let before = condition_of(self.old, kind);
            if before["status"] == "True" {
                return end(complete, text(&before["reason"]), text(&before["message"]));
            }
        }
        if self.spec["suspend"] == true || is_leaving(self.job) {
            return (None, None);
        }
        if let Some(message) = &self.fails {
            return end(false, "PodFailurePolicy", message);
        }
        let failed = self.failed + count(self.uncounted[1].len());
        if failed > int(&self.spec["backoffLimit"], 6) {
            return end(
                false,
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            );
        }
        let deadline = self.spec["activeDeadlineSeconds"].as_i64();
        let left = deadline.map(|seconds| self.around.until(start, seconds));
        if left == Some(Duration::ZERO) {
            return end(
                false,
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            );
        }
        let lost = count(self.failed_indexes.len());
        if self.spec["maxFailedIndexes"]
            .as_i64()
            .is_some_and(|most| lost > most)
        {
            let why = "Job has exceeded the specified maximal number of failed indexes";
            return end(false, "MaxFailedIndexesExceeded", why);
        }
        if self.indexed
            && let Some(rule) = policies::success(&self.spec["successPolicy"], &self.completed)
        {
            return end(true, "SuccessPolicy", &format!("Matched rules at index {rule}"));
        }
        let succeeded = self.succeeded_so_far();
        let done = match self.completions {
            None => succeeded > 0 && active == 0,
            Some(completions) if lost > 0 && active == 0 && succeeded + lost >= completions => {
                return end(false, "FailedIndexes", "Job has failed indexes");
            }
            Some(completions) => succeeded >= completions,
        };
        if done {
            return end(
                true,
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            );
        }
        (None, left)
    }

    /// Those that are not in the number yet are counted as well.
    fn succeeded_so_far(&self) -> i64 {
        self.succeeded + count(self.uncounted[0].len())
    }
}

/// The end of a Job.
struct End {
    complete: bool,
    reason: String,
    message: String,
}

impl End {
    /// The condition that comes first, while pods are still there.
    fn target(&self) -> [&str; 4] {
        let kind = if self.complete {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        [kind, "True", &self.reason, &self.message]
    }

    fn result(&self) -> [&str; 4] {
        let kind = if self.complete { "Complete" } else { "Failed" };
        [kind, "True", &self.reason, &self.message]
    }
}

/// Sets a condition, unless it says so already.
fn set(conditions: &mut Vec<Value>, [kind, status, reason, message]: [&str; 4], now: &str) {
    let at = conditions.iter().position(|one| one["type"] == kind);
    if at.is_some_and(|at| conditions[at]["status"] == status && conditions[at]["reason"] == reason) {
        return;
    }
    let next = json!({"type": kind, "status": status, "reason": reason, "message": message, "lastProbeTime": now,
        "lastTransitionTime": now});
    match at {
        Some(at) => conditions[at] = next,
        None => conditions.push(next),
    }
}

fn is_tracked(pod: &Object) -> bool {
    finalizers(pod).any(|name| name == TRACKED)
}

fn uid_of(pod: &Object) -> &str {
    text(&pod["metadata"]["uid"])
}

fn index_of(pod: &Object) -> Option<i64> {
    text(&pod["metadata"]["annotations"][INDEX]).parse().ok()
}

fn failures_of(pod: &Object, annotation: &str) -> i64 {
    text(&pod["metadata"]["annotations"][annotation])
        .parse()
        .unwrap_or(0)
}
