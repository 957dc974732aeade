//! An eviction that is under way: when the old copy may be deleted, and what a first copy waits for because of it.
//!
//! What is evicted from where is decided by [`crate::failover`] and written down in the binding; this is what follows from that
//! for copies and for what is told of them.

pub(crate) mod data;
pub(crate) mod task;
pub mod tolerance;

use crate::{
    index::{Binding, Index},
    object::{Id, Str},
    stored_binding::purge,
};

/// Who makes tasks because of a taint. Source: Karmada reference 4.2.
pub(crate) const TAINT_MANAGER: &str = "TaintManager";

/// Whether a first copy waits for the deletion of another one: a task that purges directly, whose copy may still be there.
/// What the binding is scheduled to waits; what something else needs there does not. Answers with the cluster of the task.
/// Cost: O(tasks × (clusters + what requires the object)).
pub(crate) fn awaits_purge(index: &Index, id: &Id, binding: &Binding, cluster: &str) -> Option<Str> {
    let spec = &binding.object.spec;
    if purge::is_required(spec, cluster) {
        return None;
    }
    purge::purged(spec)
        .map(|task| Str::from(task.from_cluster.as_str()))
        .find(|from| index.may_stand(id, from))
}
