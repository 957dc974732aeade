//! How fast bindings are evicted: at most so many a second in the fleet, in a region and from a member.
//!
//! A binding that is to leave a cluster, and has a replacement, gets the next free slot of all budgets that concern it, in the
//! order in which the bindings are planned, and keeps it until it has left or need not leave any more. One that goes back to
//! its home leaves what took its place in the same way. Without budgets nothing is kept.

use std::collections::BTreeMap;

use crate::object::{Id, Str, Time};

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
    pub(crate) fn is_unlimited(&self) -> bool {
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

impl Evictions {
    /// When a binding may leave a cluster; `None` at once. Cost: O(log evictions).
    pub(crate) fn slot(&self, id: &Id, cluster: &str) -> Option<Time> {
        self.slots.get(id)?.get(cluster).copied()
    }

    /// Takes slots for the clusters that a binding is to leave, each with its region, and gives back those of others. Cost:
    /// O(clusters × log evictions).
    pub(crate) fn reserve(&mut self, budget: &Budget, id: &Id, due: &BTreeMap<Str, Option<Str>>, now: Time) {
        if due.is_empty() {
            self.slots.remove(id);
            return;
        }
        for (cluster, region) in due {
            if self.slot(id, cluster).is_none() {
                let slot = self.next_slot(budget, (cluster, region.as_ref()), now);
                let slots = self.slots.entry(id.clone()).or_default();
                slots.insert(cluster.clone(), slot);
            }
        }
        if let Some(slots) = self.slots.get_mut(id) {
            slots.retain(|cluster, _| due.contains_key(cluster));
        }
    }

    fn next_slot(&mut self, budget: &Budget, (cluster, region): (&Str, Option<&Str>), now: Time) -> Time {
        let scopes: Vec<((Scope, Str), i64)> = [
            budget.fleet.map(|pause| ((Scope::Fleet, "".into()), pause)),
            budget
                .region
                .zip(region)
                .map(|(pause, region)| ((Scope::Region, region.clone()), pause)),
            budget
                .member
                .map(|pause| ((Scope::Member, cluster.clone()), pause)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let free = scopes.iter().filter_map(|(scope, _)| self.next.get(scope));
        let slot = free.copied().max().unwrap_or(now).max(now);
        for (scope, pause) in scopes {
            self.next.insert(scope, slot.plus(pause));
        }
        slot
    }

    /// A member is gone. Cost: O(evictions).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        self.next.remove(&(Scope::Member, cluster.clone()));
        for slots in self.slots.values_mut() {
            slots.remove(cluster);
        }
        self.slots.retain(|_, slots| !slots.is_empty());
    }
}
