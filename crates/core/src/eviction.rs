//! An eviction that is under way: when the old copy may be deleted, and what a first copy waits for because of it.
//!
//! What is evicted from where is decided by [`crate::failover`] and written down in the binding; this is what follows from that
//! for copies and for what is told of them.

pub(crate) mod data;
pub(crate) mod task;
pub mod tolerance;

use entourage_api::{
    policy::PurgeMode,
    work::{GracefulEvictionTask, ResourceBindingSpec, TargetCluster},
};

use crate::{
    index::{Binding, Index},
    object::{Id, Str},
};

/// Who makes tasks because of a taint. Source: Karmada reference 4.2.
pub(crate) const TAINT_MANAGER: &str = "TaintManager";

/// Whether a first copy waits for the deletion of another one: a task that purges directly, whose copy may still be there.
/// What the binding is scheduled to waits; what something else needs there does not. Answers with the cluster of the task.
/// Cost: O(tasks + clusters).
pub(crate) fn awaits_purge(index: &Index, id: &Id, binding: &Binding, cluster: &str) -> Option<Str> {
    let spec = &binding.object.spec;
    if is_required(spec, cluster) {
        return None;
    }
    let mut purged = purged(index, id, spec, (&spec.clusters, &spec.graceful_eviction_tasks));
    purged.next().map(|task| task.from_cluster.as_str().into())
}

/// The tasks whose copies are purged directly and may still be there: others must not be made, or grow, before they are gone.
/// What something else needs there is not purged. `clusters`: where the workload is scheduled to. Cost: O(tasks × (clusters + what requires it)).
pub(crate) fn purged<'a, 'tasks>(
    index: &'a Index,
    id: &'a Id,
    spec: &'a ResourceBindingSpec,
    (clusters, tasks): (&'a [TargetCluster], &'tasks [GracefulEvictionTask]),
) -> impl Iterator<Item = &'tasks GracefulEvictionTask> {
    tasks.iter().filter(|task| {
        let from = &task.from_cluster;
        task.purge_mode == Some(PurgeMode::Directly)
            && task.suppress_deletion != Some(true)
            && !clusters.iter().any(|target| target.name == *from)
            && !is_required(spec, from)
            && index.may_stand(id, &from.as_str().into())
    })
}

/// Whether something else needs the copy on a cluster. Cost: O(what requires it).
pub(crate) fn is_required(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    let mut required = spec.required_by.iter().flat_map(|each| &each.clusters);
    required.any(|target| target.name == cluster)
}
