//! Bindings whose clusters somebody else chooses: another scheduler, or nobody while scheduling is suspended. Their eviction tasks
//! are tended, and that they should leave a cluster is told.

use entourage_api::{
    policy::{FailoverBehavior, Placement},
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, TargetCluster},
};

use super::{Cause, Leave, blocked, leave};
use crate::{
    eviction::task::{self, Progress},
    index::{Index, ResourceState},
    object::{ResourceId, Time},
};

/// The eviction tasks of a binding whose clusters somebody else chooses: they are dated, and dropped when they are over.
/// Cost: O(tasks × clusters).
pub(crate) fn tended(
    index: &Index,
    id: &ResourceId,
    resource: &ResourceState,
    held: &ResourceBinding,
    placement: &Placement,
    now: Time,
) -> Vec<GracefulEvictionTask> {
    let tasks = held.spec.graceful_eviction_tasks.iter();
    let open =
        tasks.filter(|task| task::progress(index, id, resource, held, task, placement) != Progress::Over);
    open.map(|task| task::dated(task, now)).collect()
}

/// When a binding is to leave a cluster that it may stay on until then. Cost: O(its clusters × taints).
pub(crate) fn leaves_at(
    index: &Index,
    resource: &ResourceState,
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    spec: &ResourceBindingSpec,
    now: Time,
) -> Option<Time> {
    let all = spec.clusters.iter();
    let all = all.filter_map(
        |target| match leave(index, resource, target, (placement, failover), now) {
            Leave::At(time) => Some(time),
            _ => None,
        },
    );
    all.min()
}

/// Why a binding stays where it is to be evicted from although its clusters are not ours to choose; empty where it may stay.
/// Cost: O(its clusters × taints).
pub(crate) fn held_back(
    index: &Index,
    resource: &ResourceState,
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    spec: &ResourceBindingSpec,
    now: Time,
) -> String {
    let due = spec.clusters.iter().filter_map(|target| {
        match leave(index, resource, target, (placement, failover), now) {
            Leave::Now(cause) => Some((target, cause)),
            _ => None,
        }
    });
    let due: Vec<(&TargetCluster, Cause)> = due.collect();
    let suspended = spec.suspension.as_ref().and_then(|each| each.scheduling) == Some(true);
    let why = if suspended {
        "because its scheduling is suspended".to_owned()
    } else {
        format!(
            "because the scheduler {} chooses its clusters",
            spec.scheduler_name
        )
    };
    blocked(&due, &why)
}
