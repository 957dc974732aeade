//! Rebalancers: their requests to reschedule workloads, and the keys that these concern.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::apps::WorkloadRebalancer;

use super::{Dirty, named};
use crate::{
    cache::{Deletion, Held, meta_of},
    fleet::Fleet,
    object::{Str, Time},
    observation::ObjectRef,
    plan::Key,
};

impl Fleet {
    /// A rebalancer was observed. Cost: O(workloads × log workloads).
    pub(super) fn rebalancer_seen(&mut self, object: Arc<WorkloadRebalancer>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name = named(&object.metadata).name;
        let which = ObjectRef::Rebalancer(name.clone());
        let before = self.memory.rebalancers.get(&name).map(|held| held.meta());
        let held = before.map(|held| Held::of(held, &meta));
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        let asked = self.memory.rebalancers.insert(&name, object, now);
        dirty.extend(asked.into_iter().map(Key::Binding));
        dirty.push(Key::Rebalancer(name));
    }

    /// A rebalancer was deleted; its completed requests stay done. Cost: as [`Self::rebalancer_seen`].
    pub(super) fn rebalancer_gone(&mut self, name: &Str, deletion: &Deletion, now: Time) {
        let Some(held) = self.memory.rebalancers.get(name).map(|held| held.meta()) else {
            return;
        };
        let which = ObjectRef::Rebalancer(name.clone());
        let held_as = (&*held.uid, held.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.memory.rebalancers.remove(name);
    }

    /// Whatever has a binding planned again may be the event that a rebalancer waits for. Cost: O(dirty × log workloads) while
    /// any request is open, else O(1).
    pub(super) fn dirty_rebalancers(&self, dirty: &mut Dirty) {
        if self.memory.rebalancers.is_quiet() {
            return;
        }
        let workloads = dirty.iter().filter_map(|key| match key {
            Key::Template(id) | Key::Binding(id) => Some(id),
            _ => None,
        });
        let names: BTreeSet<Str> = workloads
            .flat_map(|id| self.memory.rebalancers.watching(id).cloned())
            .collect();
        dirty.extend(names.into_iter().map(Key::Rebalancer));
    }
}
