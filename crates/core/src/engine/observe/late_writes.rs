//! Writes that land late: what a former leader sent to a member may be carried out after this process has listed it.
//!
//! Invariant: a first copy is sent only where the stored binding accounts for it, and a binding does not cease to while one may be
//! under way. So after a start or a takeover such writes can be under way only for copies that a binding accounts for and that
//! were not seen. The outcome of each counts as not known: see [`crate::cache::PendingWrite`].
//!
//! A binding that another process wrote, and that is seen only seconds after the takeover, is not taken in.

use super::Fleet;
use crate::{
    cache::{CopyState, ResourceState},
    object::{Gvk, ResourceId, Str, Time},
    plan::{Key, Plan},
};

impl Fleet {
    /// The copies of a kind were listed on a member for the first time: what was not seen may have been sent there.
    /// Cost: O(objects of the kind × clusters of each).
    pub(super) fn expect_late_writes_of(&mut self, (cluster, gvk): (&Str, &Gvk), now: Time) {
        if !self.leading {
            return;
        }
        for (id, resource) in self.cache.resources.range_mut(super::lists::first(gvk)..) {
            if id.gvk != *gvk {
                break;
            }
            if is_unseen(resource, cluster)
                && let Some(state) = resource.copies.get_mut(cluster)
            {
                state.note_pending();
                state.note_unlisted(now);
            }
        }
    }

    /// The same on all members, where copies were listed: after a takeover, or because bindings were listed later. Where they
    /// were not yet, each may be there anyway. Cost: O(copies × clusters of each), once.
    pub(super) fn expect_late_writes(&mut self) {
        if !self.leading {
            return;
        }
        let expected: Vec<(ResourceId, Str)> = self
            .cache
            .resources
            .iter()
            .flat_map(|(id, resource)| {
                let clusters = resource.copies.keys();
                let unseen = clusters.filter(|cluster| is_unseen(resource, cluster));
                unseen.map(|cluster| (id.clone(), cluster.clone()))
            })
            .filter(|(id, cluster)| self.cache.watches.is_listed(&self.copies(cluster, &id.gvk)))
            .collect();
        for (id, cluster) in expected {
            self.copy_state(&id, &cluster).note_pending();
        }
    }

    /// Takes in which places the plan for a binding gives up: no first copy is sent there while that is written. A plan that does not
    /// give up a place any more has it planned again. Cost: O(its copies).
    pub(crate) fn note_leaving(&mut self, id: &ResourceId, plan: &Plan) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        for (cluster, state) in &mut resource.copies {
            let leaving = plan.leaving.contains(cluster);
            let was_leaving = std::mem::replace(&mut state.leaving, leaving);
            if was_leaving && !leaving {
                self.memory.raised.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }
}

/// Whether a binding accounts for a copy on a cluster, or reports one there, and none was seen. Cost: O(clusters of the binding).
pub(super) fn is_unseen(resource: &ResourceState, cluster: &Str) -> bool {
    let is_absent = |state: &CopyState| state.live.is_none() && state.copied.is_none();
    resource.copies.get(cluster).is_some_and(is_absent)
        && resource
            .last_binding()
            .is_some_and(|binding| binding.may_have_left(cluster))
}
