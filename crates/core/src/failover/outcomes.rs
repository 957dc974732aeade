//! The clusters of a binding by an outcome of the scheduler: those that stay, those that its placement does not select, and those where its
//! application failed.

use std::collections::BTreeSet;

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};

use super::Cause;
use crate::{
    object::{Str, Time},
    scheduler::Outcome,
    stored_binding::is_as_asked,
};

/// The clusters of a binding by an outcome: if no cluster fits, the present ones, except those that its placement does not
/// select.
pub(crate) fn clusters_of(outcome: &Outcome, present: &[TargetCluster]) -> Vec<TargetCluster> {
    match outcome {
        Outcome::Placed { clusters, .. } => clusters.clone(),
        Outcome::Failed { .. } => {
            let stay = present
                .iter()
                .filter(|target| !is_unselected(outcome, &target.name));
            stay.cloned().collect()
        }
    }
}

/// True if no cluster fits, and the placement does not select this one.
pub(super) fn is_unselected(outcome: &Outcome, cluster: &str) -> bool {
    match outcome {
        Outcome::Placed { .. } => false,
        Outcome::Failed { unselected, .. } => unselected.iter().any(|name| **name == *cluster),
    }
}

/// The clusters that a binding left because its placement no longer selects them: those that are stored, and those that it
/// leaves now. None once a cluster fits.
pub(super) fn unselected(held: &ResourceBinding, outcome: &Outcome) -> Vec<Str> {
    if matches!(outcome, Outcome::Placed { .. }) {
        return Vec::new();
    }
    let annotations = held.metadata.annotations.as_ref();
    let stored = annotations.and_then(|all| all.get(annotation::UNSELECTED_CLUSTERS));
    let stored = stored.map_or("", String::as_str).split(',');
    let stored = stored.filter(|name| !name.is_empty()).map(Str::from);
    let present = held.spec.clusters.iter().map(|target| target.name.as_str());
    let now = present.filter(|name| is_unselected(outcome, name));
    let all: BTreeSet<Str> = stored.chain(now.map(Str::from)).collect();
    all.into_iter().collect()
}

/// The clusters where the application failed in the current version of its template, as stored. After a rescheduling trigger or
/// with another placement there are none.
pub(super) fn failed(held: &ResourceBinding, placement: &Placement, now: Time) -> BTreeSet<Str> {
    if !is_as_asked(held, placement, now) {
        return BTreeSet::new();
    }
    let annotations = held.metadata.annotations.as_ref();
    let failed = annotations.and_then(|all| all.get(annotation::FAILED_CLUSTERS));
    let names = failed.map_or("", String::as_str).split(',');
    names.filter(|name| !name.is_empty()).map(Str::from).collect()
}

/// The current clusters for the scheduler: without those to be evicted from, and with recovered ones instead of their
/// replacements.
pub(super) fn staying(
    clusters: &[TargetCluster],
    due: &[(&TargetCluster, Cause)],
    back: &[&GracefulEvictionTask],
) -> Vec<TargetCluster> {
    let leaves = |target: &TargetCluster| due.iter().any(|(each, _)| each.name == target.name);
    let is_replacement = |target: &TargetCluster| {
        let is_in_place_of = |task: &&GracefulEvictionTask| {
            let before = &task.clusters_before_failover;
            !before.is_empty() && !before.contains(&target.name)
        };
        back.iter().any(is_in_place_of)
    };
    let mut all: Vec<TargetCluster> = clusters
        .iter()
        .filter(|target| !leaves(target) && !is_replacement(target))
        .cloned()
        .collect();
    all.extend(back.iter().map(|task| TargetCluster {
        name: task.from_cluster.clone(),
        replicas: task.replicas.unwrap_or_default(),
        components: Vec::new(),
    }));
    all.sort();
    all
}
