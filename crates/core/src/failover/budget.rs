//! How fast bindings are evicted: at most so many a second in the fleet, in a region and from a member.
//!
//! A binding that is to leave a cluster, and has a replacement, gets the next free slot of all budgets that concern it, in the
//! order in which the bindings are planned, and keeps it until it has left or need not leave any more. One that goes back to
//! its home leaves what took its place in the same way. Without budgets nothing is kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    index::Index,
    object::{Id, Str, Time},
    plan::Key,
};

/// The pause between two evictions, in milliseconds, where there is a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// In the whole fleet.
    pub fleet: Option<i64>,
    /// From the members of a region. Members without a region have none in common.
    pub region: Option<i64>,
    /// From one member.
    pub member: Option<i64>,
}

impl Budget {
    fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// Which slots are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evictions {
    /// The next free slot of each budget: of the fleet (an empty name), of regions, of members.
    next: BTreeMap<(Scope, Str), Time>,
    slots: BTreeMap<Id, BTreeMap<Str, Time>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Fleet,
    Region,
    Member,
}

impl Index {
    /// When a binding may leave a cluster; `None` at once. Cost: O(log evictions).
    pub(crate) fn eviction_slot(&self, id: &Id, cluster: &str) -> Option<Time> {
        self.evictions.slots.get(id)?.get(cluster).copied()
    }

    /// Before a binding is planned: takes slots for the clusters that it is to leave. Cost: O(1) without budgets, else that of
    /// [`super::to_leave`].
    pub(crate) fn reserve_evictions(&mut self, key: &Key, now: Time) {
        let Key::Binding(id) = key else { return };
        if self.config.eviction_budget.is_unlimited() {
            return;
        }
        let due = super::to_leave(self, id, now);
        if due.is_empty() {
            self.evictions.slots.remove(id);
            return;
        }
        for cluster in &due {
            if self.eviction_slot(id, cluster).is_none() {
                let slot = self.next_slot(cluster, now);
                let slots = self.evictions.slots.entry(id.clone()).or_default();
                slots.insert(cluster.clone(), slot);
            }
        }
        if let Some(slots) = self.evictions.slots.get_mut(id) {
            slots.retain(|cluster, _| due.contains(cluster));
        }
    }

    fn next_slot(&mut self, cluster: &Str, now: Time) -> Time {
        let budget = self.config.eviction_budget;
        let region = self.members.get(cluster).map(|member| &member.object.spec.region);
        let region: Option<Str> = region
            .filter(|region| !region.is_empty())
            .map(|region| region.as_str().into());
        let scopes: Vec<((Scope, Str), i64)> = [
            budget.fleet.map(|pause| ((Scope::Fleet, "".into()), pause)),
            budget
                .region
                .zip(region)
                .map(|(pause, region)| ((Scope::Region, region), pause)),
            budget
                .member
                .map(|pause| ((Scope::Member, cluster.clone()), pause)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let free = scopes
            .iter()
            .filter_map(|(scope, _)| self.evictions.next.get(scope));
        let slot = free.copied().max().unwrap_or(now).max(now);
        for (scope, pause) in scopes {
            self.evictions.next.insert(scope, slot.plus(pause));
        }
        slot
    }

    /// A member is gone. Cost: O(evictions).
    pub(crate) fn forget_evictions(&mut self, cluster: &Str) {
        self.evictions.next.remove(&(Scope::Member, cluster.clone()));
        for slots in self.evictions.slots.values_mut() {
            slots.remove(cluster);
        }
        self.evictions.slots.retain(|_, slots| !slots.is_empty());
    }
}

/// The names of some clusters.
pub(crate) type Clusters = BTreeSet<Str>;
