//! Bindings that this control plane does not schedule: another scheduler does, or scheduling is suspended. Their eviction tasks
//! are maintained, and a required eviction is reported.

use entourage_api::{
    policy::{FailoverBehavior, Placement},
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, TargetCluster},
};

use super::{Cause, Leave, blocked, leave};
use crate::{
    cache::ResourceState,
    eviction::task::{self, Progress},
    fleet::Fleet,
    object::{ResourceId, Time},
};

/// The eviction tasks of a binding that another scheduler schedules: they are dated, and dropped when they are over. Cost:
/// O(tasks × clusters).
pub(crate) fn tended(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    held: &ResourceBinding,
    placement: &Placement,
    now: Time,
) -> Vec<GracefulEvictionTask> {
    let tasks = held.spec.graceful_eviction_tasks.iter();
    let open =
        tasks.filter(|task| task::progress(fleet, id, resource, held, task, placement) != Progress::Over);
    open.map(|task| task::dated(task, now)).collect()
}

/// The time at which a binding is to be evicted from a cluster whose taint it tolerates until then. Cost: O(its clusters ×
/// taints).
pub(crate) fn leaves_at(
    fleet: &Fleet,
    resource: &ResourceState,
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    spec: &ResourceBindingSpec,
    now: Time,
) -> Option<Time> {
    let all = spec.clusters.iter();
    let all =
        all.filter_map(
            |target| match leave(fleet, resource, &target.name, (placement, failover), now) {
                Leave::At(time) => Some(time),
                _ => None,
            },
        );
    all.min()
}

/// The reason why a binding is not evicted although it should be, because this control plane does not schedule it; empty if no
/// eviction is due. Cost: O(its clusters × taints).
pub(crate) fn held_back(
    fleet: &Fleet,
    resource: &ResourceState,
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    spec: &ResourceBindingSpec,
    now: Time,
) -> String {
    let due = spec.clusters.iter().filter_map(|target| {
        match leave(fleet, resource, &target.name, (placement, failover), now) {
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
