//! The owners of pods: their kinds, and the children that each of them claims.

use serde_json::{Value, json};

use super::{
    Action, PODS, REVISIONS,
    parts::{is_leaving, is_over, owned_by, part, path_of},
    stateful,
};
use crate::{
    controllers::{Owner, StandIns},
    kinds::workloads::selects,
    object::{Object, tree::below},
};

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
    /// True if a cluster has its controller.
    pub(super) is_on: fn(&StandIns) -> bool,
}

impl Kind {
    /// True if it adopts objects of a collection: those that it makes pods or sets of, and its revisions.
    pub(super) fn adopts(&self, collection: &str) -> bool {
        let has_revisions = matches!(self.kind, "StatefulSet" | "DaemonSet");
        self.children == collection || has_revisions && collection == REVISIONS
    }
}

/// Every kind.
pub(super) static KINDS: [Kind; 7] = [
    kind(
        "apps/deployments",
        "Deployment",
        "apps/v1",
        "apps/replicasets",
        |on| on.deployments,
    ),
    kind("apps/replicasets", "ReplicaSet", "apps/v1", PODS, |on| {
        on.replica_sets
    }),
    kind(
        "replicationcontrollers",
        "ReplicationController",
        "v1",
        PODS,
        |on| on.replica_sets,
    ),
    kind("apps/statefulsets", "StatefulSet", "apps/v1", PODS, |on| {
        on.stateful_sets
    }),
    kind("apps/daemonsets", "DaemonSet", "apps/v1", PODS, |on| {
        on.daemon_sets
    }),
    kind("batch/cronjobs", "CronJob", "batch/v1", "", |on| on.cron_jobs),
    kind("batch/jobs", "Job", "batch/v1", PODS, |on| on.jobs),
];

const fn kind(
    collection: &'static str,
    kind: &'static str,
    version: &'static str,
    children: &'static str,
    is_on: fn(&StandIns) -> bool,
) -> Kind {
    Kind {
        collection,
        kind,
        version,
        children,
        is_on,
    }
}

/// Collection and name of a controller.
pub(super) fn place_of(controller: &Owner) -> Option<(&'static str, &str)> {
    let known = KINDS.iter().find(|known| known.kind == controller.kind)?;
    Some((known.collection, &controller.name))
}

/// The children that an owner has and selects, and the requests by which it adopts those that nobody controls and releases those
/// that it no longer selects. What is adopted counts when it is seen again.
pub(super) fn claim<'a, T>(
    kind: &Kind,
    owner: &Object,
    children: Vec<Object>,
    orphans: impl Iterator<Item = (T, &'a Object)>,
    read: impl Fn(T) -> Option<Object>,
) -> (Vec<Object>, Vec<Action>) {
    let selector = selector_of(owner);
    let selected = |child: &Object| selects(Some(&selector), below(below(child, "metadata"), "labels"));
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
        actions.push(owners_patch(kind.children, &child, &json!(others)));
    }
    let adopted = adopt(kind, kind.children, owner, orphans, read);
    actions.extend(adopted.into_iter().map(|(_, action)| action));
    (kept, actions)
}

/// The orphans of a collection that an owner selects, with the requests by which it adopts them. Only those are read.
pub(super) fn adopt<'a, T>(
    kind: &Kind,
    collection: &str,
    owner: &Object,
    orphans: impl Iterator<Item = (T, &'a Object)>,
    read: impl Fn(T) -> Option<Object>,
) -> Vec<(Object, Action)> {
    let selector = selector_of(owner);
    if selector.is_empty() || is_leaving(owner) || !kind.adopts(collection) {
        return Vec::new();
    }
    let mut adopted = Vec::new();
    let orphans = orphans.filter(|(_, labels)| selects(Some(&selector), labels));
    let orphans = orphans.filter_map(|(at, _)| read(at));
    for child in orphans.filter(|child| !is_leaving(child) && !is_over(child)) {
        if collection == PODS && kind.kind == "StatefulSet" && stateful::number_of(owner, &child).is_none() {
            continue;
        }
        let mut owners = child["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        owners.extend(
            owned_by(kind.version, kind.kind, &owner["metadata"])
                .as_array()
                .cloned()
                .unwrap_or_default(),
        );
        let action = owners_patch(collection, &child, &json!(owners));
        adopted.push((child, action));
    }
    adopted
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

fn owners_patch(collection: &str, child: &Object, owners: &Value) -> Action {
    let (version, plural) = match collection.split_once('/') {
        Some((_, plural)) => ("apis/apps/v1", plural),
        None => ("api/v1", collection),
    };
    Action::Patch {
        path: path_of(version, plural, child),
        patch: json!({"metadata": {"ownerReferences": owners,
            "resourceVersion": child["metadata"]["resourceVersion"]}}),
    }
}
