//! The children of a workload, and its status: pure functions of the workload and its children.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Action,
    parts::{
        Counts, condition, count, hash_of, is_leaving, is_over, is_ready, owned_by, path_of, phase_of, pod,
        ready, remove, suffix, text,
    },
};
use crate::{controllers::Owner, object::Object};

#[cfg(test)]
mod tests;

/// The node that Pods run on; there is no Node object.
pub(super) const NODE: &str = "stand-in";

/// The label that distinguishes the Pods of one template from those of another.
const HASH: &str = "pod-template-hash";

/// Pods that a workload gets or loses at a time, at most: what happens to them brings it up again.
const MOST: usize = 500;

/// The annotation that numbers the templates of a Deployment, on it and on its ReplicaSets: what `kubectl rollout history`
/// and `undo` go by.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Collection and name of a controller.
pub(super) fn place_of(controller: &Owner) -> Option<(&'static str, &str)> {
    let collection = match controller.kind.as_str() {
        "Deployment" => "apps/deployments",
        "ReplicaSet" => "apps/replicasets",
        "StatefulSet" => "apps/statefulsets",
        "DaemonSet" => "apps/daemonsets",
        "CronJob" => "batch/cronjobs",
        "Job" => "batch/jobs",
        _ => return None,
    };
    Some((collection, &controller.name))
}

/// A Deployment has one ReplicaSet of its template with all replicas; those of older templates are scaled to none.
pub(super) fn deployment(deployment: &Object, sets: &[Object], now: &str) -> Vec<Action> {
    if is_leaving(deployment) {
        return Vec::new();
    }
    let (meta, spec) = (&deployment["metadata"], &deployment["spec"]);
    let hash = hash_of(&spec["template"]);
    let name = format!("{}-{hash}", text(&meta["name"]));
    let replicas = spec["replicas"].as_i64().unwrap_or(1);
    let mut actions = Vec::new();
    let current = sets.iter().find(|set| set["metadata"]["name"] == name.as_str());
    let older = sets.iter().filter(|set| set["metadata"]["name"] != name.as_str());
    let before = older.map(|set| revision_of(&set["metadata"])).max().unwrap_or(0);
    // A template that is back is the newest again.
    let revision = current
        .map(|set| revision_of(&set["metadata"]))
        .filter(|revision| *revision > before)
        .unwrap_or(before + 1);
    let numbered = json!({REVISION: revision.to_string()});
    if revision_of(meta) != revision {
        actions.push(Action::Patch {
            path: path_of("apis/apps/v1", "deployments", deployment),
            patch: json!({"metadata": {"annotations": numbered}}),
        });
    }
    if let Some(set) = current.filter(|set| revision_of(&set["metadata"]) != revision) {
        actions.push(Action::Patch {
            path: path_of("apis/apps/v1", "replicasets", set),
            patch: json!({"metadata": {"annotations": numbered}}),
        });
    }
    if current.is_none() {
        let mut template = spec["template"].clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = spec["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let labels = template["metadata"]["labels"].clone();
        actions.push(Action::Create {
            path: format!(
                "/apis/apps/v1/namespaces/{}/replicasets",
                text(&meta["namespace"])
            ),
            object: json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": name, "labels": labels, "annotations": numbered,
                    "ownerReferences": owned_by("apps/v1", "Deployment", meta)},
                "spec": {"replicas": replicas, "selector": selector, "template": template},
            }),
        });
    }
    for set in sets {
        let wanted = if set["metadata"]["name"] == name.as_str() {
            replicas
        } else {
            0
        };
        if set["spec"]["replicas"] != wanted {
            actions.push(Action::Patch {
                path: path_of("apis/apps/v1", "replicasets", set),
                patch: json!({"spec": {"replicas": wanted}}),
            });
        }
    }
    let sum = |of: &[&Object], field: &str| -> i64 {
        of.iter()
            .map(|set| {
                set.get("status")
                    .map_or(0, |status| status[field].as_i64().unwrap_or(0))
            })
            .sum()
    };
    let all: Vec<&Object> = sets.iter().collect();
    let updated: Vec<&Object> = current.into_iter().collect();
    let available = sum(&all, "availableReplicas");
    let unavailable = (replicas - available).max(0);
    let complete = sum(&updated, "availableReplicas") >= replicas;
    let mut status = Counts::default();
    status.count("replicas", sum(&all, "replicas"));
    status.count("updatedReplicas", sum(&updated, "replicas"));
    status.count("readyReplicas", sum(&all, "readyReplicas"));
    status.count("availableReplicas", available);
    status.count("unavailableReplicas", unavailable);
    let old = deployment.get("status").cloned().unwrap_or_default();
    let conditions = vec![
        condition(
            &old,
            "Available",
            unavailable == 0,
            ["MinimumReplicasAvailable", "MinimumReplicasUnavailable"],
            [
                "Deployment has minimum availability.",
                "Deployment does not have minimum availability.",
            ],
            now,
        ),
        condition(
            &old,
            "Progressing",
            true,
            ["NewReplicaSetAvailable", ""],
            [
                &format!(
                    "ReplicaSet \"{name}\" {}",
                    if complete {
                        "has successfully progressed."
                    } else {
                        "is progressing."
                    }
                ),
                "",
            ],
            now,
        ),
    ];
    status.0.insert("conditions".to_owned(), Value::Array(conditions));
    actions.extend(status.patch("apis/apps/v1", "deployments", deployment));
    actions
}

/// The number of a template; 0 without one.
fn revision_of(meta: &Value) -> i64 {
    text(&meta["annotations"][REVISION]).parse().unwrap_or(0)
}

/// A ReplicaSet has as many Pods as its replicas.
pub(super) fn replica_set(set: &Object, pods: &[Object]) -> Vec<Action> {
    let spec = &set["spec"];
    let wanted = usize::try_from(spec["replicas"].as_i64().unwrap_or(1)).unwrap_or(0);
    let live: Vec<&Object> = pods
        .iter()
        .filter(|pod| !is_leaving(pod) && !is_over(pod))
        .collect();
    let mut actions = Vec::new();
    if !is_leaving(set) {
        for name in free_names(set, pods).take(wanted.saturating_sub(live.len()).min(MOST)) {
            actions.push(pod(
                set,
                "apps/v1",
                "ReplicaSet",
                &name,
                &spec["template"],
                Map::new(),
            ));
        }
        for pod in live.iter().skip(wanted).take(MOST) {
            actions.push(remove(pod));
        }
    }
    let mut status = Counts::default();
    status.count("replicas", count(live.len()));
    status.count("fullyLabeledReplicas", count(live.len()));
    status.count("readyReplicas", ready(&live));
    status.count("availableReplicas", ready(&live));
    actions.extend(status.patch("apis/apps/v1", "replicasets", set));
    actions
}

/// Names for further Pods of an owner: those of the first numbers that no Pod has. O(Pods + names).
fn free_names<'a>(owner: &'a Object, pods: &'a [Object]) -> impl Iterator<Item = String> + use<'a> {
    let taken = by_name(pods);
    let name = |number| format!("{}-{}", text(&owner["metadata"]["name"]), suffix(owner, number));
    (0..)
        .map(name)
        .filter(move |name| !taken.contains_key(name.as_str()))
}

fn by_name(pods: &[Object]) -> BTreeMap<&str, &Object> {
    pods.iter()
        .map(|pod| (text(&pod["metadata"]["name"]), pod))
        .collect()
}

/// A StatefulSet has Pods by number, one after the other.
pub(super) fn stateful_set(set: &Object, pods: &[Object]) -> Vec<Action> {
    let (meta, spec) = (&set["metadata"], &set["spec"]);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let hash = hash_of(&spec["template"]);
    let revision = format!("{}-{hash}", text(&meta["name"]));
    const REVISION_HASH: &str = "controller-revision-hash";
    let mut actions = Vec::new();
    let live: Vec<&Object> = pods.iter().filter(|pod| !is_leaving(pod)).collect();
    let mut updated = 0;
    if !is_leaving(set) {
        let parallel = spec["podManagementPolicy"] == "Parallel";
        let named = by_name(pods);
        for number in 0..wanted {
            let name = format!("{}-{number}", text(&meta["name"]));
            match named.get(name.as_str()).copied() {
                None if actions.len() >= MOST => break,
                None => {
                    let more = [
                        (REVISION_HASH.to_owned(), json!(revision)),
                        ("statefulset.kubernetes.io/pod-name".to_owned(), json!(name)),
                        (
                            "apps.kubernetes.io/pod-index".to_owned(),
                            json!(number.to_string()),
                        ),
                    ];
                    actions.push(pod(
                        set,
                        "apps/v1",
                        "StatefulSet",
                        &name,
                        &spec["template"],
                        more.into_iter().collect(),
                    ));
                    if !parallel {
                        break;
                    }
                }
                Some(pod) if pod["metadata"]["labels"][REVISION_HASH] != revision.as_str() => {
                    if !is_leaving(pod) {
                        actions.push(remove(pod));
                    }
                    break;
                }
                Some(pod) => {
                    updated += 1;
                    if !is_ready(pod) && !parallel {
                        break;
                    }
                }
            }
        }
        for pod in &live {
            let number = text(&pod["metadata"]["name"])
                .rsplit('-')
                .next()
                .and_then(|number| number.parse::<i64>().ok());
            if number.is_some_and(|number| number >= wanted) && actions.len() < MOST {
                actions.push(remove(pod));
            }
        }
    }
    let mut status = Counts::default();
    status.count("replicas", count(live.len()));
    status.count("readyReplicas", ready(&live));
    status.count("availableReplicas", ready(&live));
    status.count("currentReplicas", updated);
    status.count("updatedReplicas", updated);
    status.0.insert("currentRevision".to_owned(), json!(revision));
    status.0.insert("updateRevision".to_owned(), json!(revision));
    actions.extend(status.patch("apis/apps/v1", "statefulsets", set));
    actions
}

/// A DaemonSet has one Pod: there is one node.
pub(super) fn daemon_set(set: &Object, pods: &[Object]) -> Vec<Action> {
    let hash = hash_of(&set["spec"]["template"]);
    let name = format!("{}-{hash}", text(&set["metadata"]["name"]));
    let live: Vec<&Object> = pods.iter().filter(|pod| !is_leaving(pod)).collect();
    let mut actions = Vec::new();
    if !is_leaving(set) {
        for old in live.iter().filter(|pod| pod["metadata"]["name"] != name.as_str()) {
            actions.push(remove(old));
        }
        if !pods.iter().any(|pod| pod["metadata"]["name"] == name.as_str()) {
            let labels = [("controller-revision-hash".to_owned(), json!(hash))];
            actions.push(pod(
                set,
                "apps/v1",
                "DaemonSet",
                &name,
                &set["spec"]["template"],
                labels.into_iter().collect(),
            ));
        }
    }
    let updated = live
        .iter()
        .filter(|pod| pod["metadata"]["name"] == name.as_str())
        .count();
    let mut status = Map::new();
    for (field, value) in [
        ("currentNumberScheduled", count(live.len().min(1))),
        ("desiredNumberScheduled", 1),
        ("numberMisscheduled", 0),
        ("numberReady", ready(&live)),
        ("numberAvailable", ready(&live)),
        ("updatedNumberScheduled", count(updated)),
    ] {
        status.insert(field.to_owned(), value.into());
    }
    status.insert(
        "numberUnavailable".to_owned(),
        match ready(&live) {
            0 => json!(1),
            _ => Value::Null,
        },
    );
    actions.extend(Counts(status).patch("apis/apps/v1", "daemonsets", set));
    actions
}

/// A Job has Pods until enough of them succeeded.
pub(super) fn job(job: &Object, pods: &[Object], now: &str) -> Vec<Action> {
    let (meta, spec) = (&job["metadata"], &job["spec"]);
    let old = job.get("status").cloned().unwrap_or_default();
    let finished = old["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|each| matches!(text(&each["type"]), "Complete" | "Failed") && each["status"] == "True")
    });
    if finished || is_leaving(job) {
        return Vec::new();
    }
    if spec["suspend"] == true {
        let mut status = Counts::default();
        status.count("active", 0);
        status.count("ready", 0);
        let live = pods.iter().filter(|pod| !is_over(pod) && !is_leaving(pod));
        let mut actions: Vec<Action> = live.map(remove).collect();
        actions.extend(status.patch("apis/batch/v1", "jobs", job));
        return actions;
    }
    let number = |phase: &str| count(pods.iter().filter(|pod| phase_of(pod) == phase).count());
    let (succeeded, failed) = (number("Succeeded"), number("Failed"));
    let live: Vec<&Object> = pods
        .iter()
        .filter(|pod| !is_over(pod) && !is_leaving(pod))
        .collect();
    let completions = spec["completions"].as_i64().unwrap_or(1);
    let over_limit = failed > spec["backoffLimit"].as_i64().unwrap_or(6);
    let done = succeeded >= completions;
    let mut actions = Vec::new();
    if !done && !over_limit {
        let wanted = spec["parallelism"]
            .as_i64()
            .unwrap_or(1)
            .min(completions - succeeded)
            - count(live.len());
        let wanted = usize::try_from(wanted).unwrap_or(0).min(MOST);
        for name in free_names(job, pods).take(wanted) {
            let labels = [("job-name".to_owned(), meta["name"].clone())];
            actions.push(pod(
                job,
                "batch/v1",
                "Job",
                &name,
                &spec["template"],
                labels.into_iter().collect(),
            ));
        }
    }
    let mut status = Counts::default();
    status.count("active", if done || over_limit { 0 } else { count(live.len()) });
    status.count("succeeded", succeeded);
    status.count("failed", failed);
    status.count("ready", ready(&live));
    status.0.insert(
        "startTime".to_owned(),
        old.get("startTime").cloned().unwrap_or_else(|| json!(now)),
    );
    if done || over_limit {
        let kinds: &[&str] = if done {
            &["SuccessCriteriaMet", "Complete"]
        } else {
            &["FailureTarget", "Failed"]
        };
        let conditions: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now,
                "reason": if done { "CompletionsReached" } else { "BackoffLimitExceeded" },
                "message": if done { "Reached expected number of succeeded pods" } else { "Job has reached the specified backoff limit" }}))
            .collect();
        status.0.insert("conditions".to_owned(), Value::Array(conditions));
        if done {
            status.0.insert("completionTime".to_owned(), json!(now));
        }
    }
    actions.extend(status.patch("apis/batch/v1", "jobs", job));
    actions
}
