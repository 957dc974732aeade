//! An eviction in progress: when the old copy may be deleted, and what a first copy waits for because of it.
//!
//! The evictions are decided by [`crate::failover`] and stored in the binding; this module derives the plans of copies and the
//! messages from that.

pub(crate) mod data;
pub(crate) mod task;
pub mod tolerance;

use entourage_api::work::GracefulEvictionTask;

use crate::{
    cache::{Binding, CopyState},
    fleet::Fleet,
    object::{ResourceId, Str},
    stored_binding::purge,
};

/// The producer of tasks that are caused by a taint. Source: Karmada reference 4.2.
pub(crate) const TAINT_MANAGER: &str = "TaintManager";

/// Returns the cluster of a task with direct purge whose copy may still exist, if a copy that does not exist yet waits for its
/// deletion. A cluster that the binding was scheduled to since the eviction waits; one that it was on before, or where another
/// object requires the copy, does not. Cost: O(tasks × (clusters + what requires the object)).
pub(crate) fn awaits_purge(
    fleet: &Fleet,
    id: &ResourceId,
    binding: &Binding,
    (cluster, state): (&str, &CopyState),
) -> Option<Str> {
    let spec = &binding.object.spec;
    if purge::is_required(spec, cluster) {
        return None;
    }
    // A record may outlive its copy, so the task decides first where the workload was.
    let was_there = |task: &GracefulEvictionTask| match &task.clusters_before_failover[..] {
        [] => state.record.is_some(),
        before => before.iter().any(|name| *name == *cluster),
    };
    purge::purged(spec)
        .filter(|task| !was_there(task))
        .map(|task| Str::from(task.from_cluster.as_str()))
        .find(|from| fleet.may_stand(id, from))
}
