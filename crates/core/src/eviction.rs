//! An eviction that is under way: when the old copy may be deleted, and what a first copy waits for because of it.
//!
//! What is evicted from where is decided by [`crate::failover`] and written down in the binding; this is what follows from that
//! for copies and for what is told of them.

pub(crate) mod data;
pub(crate) mod task;
pub mod tolerance;

use entourage_api::work::GracefulEvictionTask;

use crate::{
    index::{Binding, CopyState, Index},
    object::{ResourceId, Str},
    stored_binding::purge,
};

/// Who makes tasks because of a taint. Source: Karmada reference 4.2.
pub(crate) const TAINT_MANAGER: &str = "TaintManager";

/// Whether a copy that is not there waits for the deletion of another one: a task that purges directly, whose copy may still be
/// there. What the binding is scheduled to since the eviction waits; what it was on before, or something else needs there, does not.
/// Answers with the cluster of the task. Cost: O(tasks × (clusters + what requires the object)).
pub(crate) fn awaits_purge(
    index: &Index,
    id: &ResourceId,
    binding: &Binding,
    (cluster, state): (&str, &CopyState),
) -> Option<Str> {
    let spec = &binding.object.spec;
    if purge::is_required(spec, cluster) {
        return None;
    }
    // A record may have outlived its copy, so the task has the first word on where the workload was.
    let was_there = |task: &GracefulEvictionTask| match &task.clusters_before_failover[..] {
        [] => state.record.is_some(),
        before => before.iter().any(|name| *name == *cluster),
    };
    purge::purged(spec)
        .filter(|task| !was_there(task))
        .map(|task| Str::from(task.from_cluster.as_str()))
        .find(|from| index.may_stand(id, from))
}
