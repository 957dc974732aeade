//! Late writes: a request that a former leader sent to a member may be carried out after this process has listed it.
//!
//! Invariant: a first copy is sent only if the stored binding accounts for it, and a binding does not cease to while one may be
//! in flight. So after a start or a takeover such writes can be in flight only for copies that a binding accounts for and that
//! were not observed. The outcome of each counts as unknown: see [`crate::cache::PendingWrite`].
//!
//! A binding that another process wrote, and that is observed only seconds after the takeover, is not covered.

use super::Fleet;
use crate::{
    cache::{CopyState, ResourceState},
    object::{Gvk, ResourceId, Str, Time},
    plan::{Key, Plan},
};

impl Fleet {
    /// The copies of a kind were listed on a member for the first time: copies that were not observed may be in flight. Cost:
    /// O(objects of the kind × clusters of each).
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

    /// The same on all members whose copies were listed: after a takeover, or because bindings were listed later. On the others
    /// every copy may exist anyway. Cost: O(copies × clusters of each), once.
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

    /// Records the clusters that the plan for a binding removes: no first copy is sent there while that is written. A later
    /// plan that keeps a cluster has its copy planned again. Cost: O(its copies).
    pub(crate) fn note_leaving(&mut self, id: &ResourceId, plan: &Plan) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        for (cluster, state) in resource.copies.iter_mut() {
            let leaving = plan.leaving.contains(cluster);
            let was_leaving = std::mem::replace(&mut state.leaving, leaving);
            if was_leaving && !leaving {
                self.memory.raised.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }
}

/// True if a binding accounts for a copy on a cluster, or reports one there, and none was observed. Cost: O(clusters of the binding).
pub(super) fn is_unseen(resource: &ResourceState, cluster: &Str) -> bool {
    let is_absent = |state: &CopyState| state.live.is_none() && state.copied.is_none();
    resource.copies.get(cluster).is_some_and(is_absent)
        && resource
            .last_binding()
            .is_some_and(|binding| binding.may_have_left(cluster))
}
