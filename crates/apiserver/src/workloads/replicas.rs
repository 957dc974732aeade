//! The pods of a ReplicaSet or a ReplicationController, and its status. Source: the replicaset controller of
//! kube-controller-manager.

use std::{cmp::Reverse, time::Duration};

use serde_json::Value;

use super::{
    Action,
    owners::MOST,
    parts::{
        Around, Counts, available, condition, condition_of, count, create, int, is_leaving, is_over,
        is_ready, part, phase_of, pod, prefix, ready, remove, text,
    },
};
use crate::object::Object;

/// Group version in paths, group version and kind of the two kinds.
pub(super) const SETS: [&str; 4] = ["apis/apps/v1", "apps/v1", "ReplicaSet", "replicasets"];
pub(super) const CONTROLLERS: [&str; 4] = ["api/v1", "v1", "ReplicationController", "replicationcontrollers"];

/// The condition that pods are refused.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// A ReplicaSet has as many Pods as its replicas.
pub(super) fn replica_set(
    set: &Object,
    [path, version, kind, plural]: [&str; 4],
    pods: &[Object],
    around: &Around,
) -> (Vec<Action>, Option<Duration>) {
    let spec = part(set, "spec");
    let wanted = usize::try_from(int(&spec["replicas"], 1)).unwrap_or(0);
    let mut live: Vec<&Object> = pods
        .iter()
        .filter(|pod| !is_leaving(pod) && !is_over(pod))
        .collect();
    let mut actions = Vec::new();
    if !is_leaving(set) {
        let missing = wanted.saturating_sub(live.len()).min(MOST);
        if missing > 0 {
            let (owner, name) = ((version, kind), prefix(set));
            let made = pod(set, owner, &name, &spec["template"], &[], &around.node);
            let made = create("api/v1", "pods", set, made);
            actions.extend(std::iter::repeat_n(made, missing));
        }
        if live.len() > wanted {
            live.sort_by_key(|pod| Reverse(expendable(pod)));
            actions.extend(
                live.iter()
                    .take((live.len() - wanted).min(MOST))
                    .map(|pod| remove(pod)),
            );
        }
    }
    let (available, again) = available(&live, int(&spec["minReadySeconds"], 0), around);
    let labels = spec["template"]["metadata"]["labels"].as_object();
    let labelled = live.iter().filter(|pod| {
        let own = &pod["metadata"]["labels"];
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| own[key] == *value))
    });
    let mut status = Counts::default();
    status.count("replicas", count(live.len()));
    status.count("fullyLabeledReplicas", count(labelled.count()));
    status.count("readyReplicas", ready(&live));
    status.count("availableReplicas", available);
    status.set("conditions", conditions(set, live.len() < wanted, around));
    actions.extend(status.patch(path, plural, set));
    (actions, again)
}

/// The conditions of a set; one says that it `lacks` pods that are refused. The first error stays: each names another pod.
fn conditions(set: &Object, lacks: bool, around: &Around) -> Option<Vec<Value>> {
    let old = part(set, "status");
    let all = old["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<Value> = all.filter(|one| one["type"] != FAILURE).cloned().collect();
    if let Some(error) = around.refusal.as_ref().filter(|_| lacks) {
        let before = condition_of(old, FAILURE);
        conditions.push(if before["status"] == "True" {
            before.clone()
        } else {
            condition(old, [FAILURE, "True", "FailedCreate", error], &around.now)
        });
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// The higher, the earlier a pod goes: those without a node, those that do not run, those that are not ready, the cheap ones,
/// those that are ready only since lately, the young ones.
pub(super) fn expendable(pod: &Object) -> (bool, u8, bool, Reverse<i64>, String, String) {
    let phase = match phase_of(pod) {
        "Running" => 0,
        "Pending" => 2,
        _ => 1,
    };
    let cost = text(&pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"]);
    let since = &condition_of(part(pod, "status"), "Ready")["lastTransitionTime"];
    let word = |value: &Value| text(value).to_owned();
    (
        text(&part(pod, "spec")["nodeName"]).is_empty(),
        phase,
        !is_ready(pod),
        Reverse(cost.parse().unwrap_or(0)),
        word(since),
        word(&pod["metadata"]["creationTimestamp"]),
    )
}
