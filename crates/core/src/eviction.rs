//! An eviction that is under way: when the old copy may be deleted, and what a first copy waits for because of it.
//!
//! What is evicted from where is decided by [`crate::failover`] and written down in the binding; this is what follows from that
//! for copies and for what is told of them.

pub(crate) mod data;
pub(crate) mod task;
pub mod tolerance;

use entourage_api::policy::PurgeMode;

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
    let mut required = spec.required_by.iter().flat_map(|each| &each.clusters);
    if required.any(|target| target.name == cluster) {
        return None;
    }
    spec.graceful_eviction_tasks
        .iter()
        .filter(|task| task.purge_mode == Some(PurgeMode::Directly) && task.suppress_deletion != Some(true))
        .map(|task| Str::from(task.from_cluster.as_str()))
        .find(|from| index.may_stand(id, from) && !spec.clusters.iter().any(|target| target.name == **from))
}
