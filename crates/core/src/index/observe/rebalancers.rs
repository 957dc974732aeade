//! Rebalancers: who asks for which workload to be placed afresh, and what that concerns.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::apps::WorkloadRebalancer;

use super::{Deletion, Dirty, named};
use crate::{
    index::{Index, is_old, meta_of},
    object::{Str, Time},
    observation::ObjectRef,
    plan::Key,
};

impl Index {
    /// Cost: O(workloads × log workloads).
    pub(super) fn rebalancer_seen(&mut self, object: Arc<WorkloadRebalancer>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name = named(&object.metadata).name;
        let which = ObjectRef::Rebalancer(name.clone());
        let before = self.rebalancers.get(&name).map(|held| held.meta());
        let min_resource_version = self.revisions.of(&which, before.map(|held| held.revision()));
        let is_echo = min_resource_version > 0 && before.is_some_and(|held| held.is_same_version(&meta));
        if is_echo || is_old(&meta.resource_version, min_resource_version) {
            return;
        }
        self.revisions.seen(&which);
        let asked = self.rebalancers.insert(&name, object, now);
        dirty.extend(asked.into_iter().map(Key::Binding));
        dirty.push(Key::Rebalancer(name));
    }

    /// What it asked for and was done stays done. Cost: as [`Self::rebalancer_seen`].
    pub(super) fn rebalancer_gone(&mut self, name: &Str, deletion: &Deletion, now: Time) {
        let Some(held) = self.rebalancers.get(name).map(|held| held.meta()) else {
            return;
        };
        let which = ObjectRef::Rebalancer(name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held.revision()));
        if deletion.is_not_of(&held.uid, min_resource_version) {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        self.rebalancers.remove(name);
    }

    /// Whatever has a binding planned again may be what a rebalancer waits for. Cost: O(dirty × log workloads) while anybody
    /// asks for anything, else O(1).
    pub(super) fn dirty_rebalancers(&self, dirty: &mut Dirty) {
        if self.rebalancers.is_quiet() {
            return;
        }
        let workloads = dirty.iter().filter_map(|key| match key {
            Key::Template(id) | Key::Binding(id) => Some(id),
            _ => None,
        });
        let names: BTreeSet<Str> = workloads
            .flat_map(|id| self.rebalancers.watching(id).cloned())
            .collect();
        dirty.extend(names.into_iter().map(Key::Rebalancer));
    }
}
