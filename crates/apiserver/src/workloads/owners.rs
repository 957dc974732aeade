//! The owners of pods: their kinds, and the children that each of them claims.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Action,
    parts::{is_leaving, is_over, owned_by, part, path_of, suffix, text},
    stateful,
};
use crate::{controllers::Owner, kinds::workloads::selects, object::Object};

#[cfg(test)]
mod tests;

/// Pods that a workload gets or loses at a time, at most: what happens to them brings it up again.
pub(super) const MOST: usize = 500;

/// A kind of owners: its collection, its kind, its group version, and the collection and path of the children that it adopts.
pub(super) struct Kind {
    pub(super) collection: &'static str,
    kind: &'static str,
    version: &'static str,
    pub(super) children: &'static str,
}

const PODS: &str = "pods";

/// Every kind.
pub(super) static KINDS: [Kind; 7] = [
    kind("apps/deployments", "Deployment", "apps/v1", "apps/replicasets"),
    kind("apps/replicasets", "ReplicaSet", "apps/v1", PODS),
    kind("replicationcontrollers", "ReplicationController", "v1", PODS),
    kind("apps/statefulsets", "StatefulSet", "apps/v1", PODS),
    kind("apps/daemonsets", "DaemonSet", "apps/v1", PODS),
    kind("batch/cronjobs", "CronJob", "batch/v1", ""),
    kind("batch/jobs", "Job", "batch/v1", PODS),
];

const fn kind(
    collection: &'static str,
    kind: &'static str,
    version: &'static str,
    children: &'static str,
) -> Kind {
    Kind {
        collection,
        kind,
        version,
        children,
    }
}

/// Collection and name of a controller.
pub(super) fn place_of(controller: &Owner) -> Option<(&'static str, &str)> {
    let known = KINDS.iter().find(|known| known.kind == controller.kind)?;
    Some((known.collection, &controller.name))
}

/// The children that an owner has and selects, and the requests by which it adopts those that nobody controls and releases those
/// that it no longer selects. What is adopted counts when it is seen again.
pub(super) fn claim(
    collection: &str,
    owner: &Object,
    children: Vec<Object>,
    orphans: impl Iterator<Item = Object>,
) -> (Vec<Object>, Vec<Action>) {
    let Some(kind) = KINDS.iter().find(|known| known.collection == collection) else {
        return (children, Vec::new());
    };
    let selector = selector_of(owner);
    let selected = |child: &Object| {
        let labels = child["metadata"]["labels"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        selects(Some(&selector), &labels)
    };
    if selector.is_empty() || is_leaving(owner) {
        return (children, Vec::new());
    }
    let (kept, lost): (Vec<Object>, Vec<Object>) = children
        .into_iter()
        .partition(|child| selected(child) || is_leaving(child));
    let uid = &owner["metadata"]["uid"];
    let mut actions = Vec::new();
    for child in lost {
        let owners = child["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        let others: Vec<&Value> = owners.filter(|one| one["uid"] != *uid).collect();
        actions.push(owners_patch(kind, &child, json!(others)));
    }
    for child in orphans.filter(|child| selected(child) && !is_leaving(child) && !is_over(child)) {
        if kind.kind == "StatefulSet" && stateful::number_of(owner, &child).is_none() {
            continue;
        }
        let owners = child["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut owners: Vec<Value> = owners;
        owners.extend(
            owned_by(kind.version, kind.kind, &owner["metadata"])
                .as_array()
                .cloned()
                .unwrap_or_default(),
        );
        actions.push(owners_patch(kind, &child, json!(owners)));
    }
    (kept, actions)
}

/// The selector of an owner; that of a ReplicationController is a map.
fn selector_of(owner: &Object) -> Object {
    let selector = part(owner, "spec")["selector"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    if selector.values().all(Value::is_string) && !selector.is_empty() {
        let wrapped = json!({"matchLabels": selector});
        return wrapped.as_object().cloned().unwrap_or_default();
    }
    selector
}

fn owners_patch(kind: &Kind, child: &Object, owners: Value) -> Action {
    let (version, plural) = match kind.children {
        PODS => ("api/v1", PODS),
        _ => ("apis/apps/v1", "replicasets"),
    };
    Action::Patch {
        path: path_of(version, plural, child),
        patch: json!({"metadata": {"ownerReferences": owners,
            "resourceVersion": child["metadata"]["resourceVersion"]}}),
    }
}

/// Names for further Pods of an owner: those of the first numbers that no Pod has. O(Pods + names).
pub(super) fn free_names<'a>(
    owner: &'a Object,
    pods: &'a [Object],
) -> impl Iterator<Item = String> + use<'a> {
    let names = pods.iter().map(|pod| text(&pod["metadata"]["name"]));
    let taken: BTreeSet<&str> = names.collect();
    let name = |number| format!("{}-{}", text(&owner["metadata"]["name"]), suffix(owner, number));
    (0..).map(name).filter(move |name| !taken.contains(name.as_str()))
}
