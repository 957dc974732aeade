//! The rate of evictions: a limit per second in the fleet, in a region and from a member.
//!
//! A binding that is to be evicted from a cluster, and has a replacement, gets the next free slot of all its budgets, in the
//! order in which the bindings are planned, and keeps it until it is evicted or need not be any more. One that fails back is
//! evicted from its replacement in the same way. A slot that is no longer needed before its time is freed. Without budgets no
//! slots are stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound::Excluded,
};

use crate::object::{ResourceId, Str, Time};

/// The pause between two evictions, in milliseconds, where there is a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// In the whole fleet.
    pub fleet: Option<i64>,
    /// From the members of a region. Members without a region share no budget.
    pub region: Option<i64>,
    /// From one member.
    pub member: Option<i64>,
}

impl Budget {
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The maximum number of slots checked for a gap before one at the end of a queue is taken.
const STEPS: usize = 64;

/// The slots taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evictions {
    queues: BTreeMap<Scope, Queue>,
    slots: BTreeMap<ResourceId, BTreeMap<Str, Slot>>,
}

/// The scope of a budget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Fleet,
    Region(Str),
    Member(Str),
}

#[derive(Clone, Debug)]
struct Slot {
    at: Time,
    scopes: Vec<Scope>,
}

/// The slots of one budget.
#[derive(Clone, Debug)]
struct Queue {
    taken: BTreeSet<Time>,
    /// The time before which no slot is free.
    free_from: Time,
}

impl Queue {
    /// The next time that keeps the pause to the slots near `at`; `None` if none is near. Cost: O(log slots).
    fn after_conflict(&self, at: Time, pause: i64) -> Option<Time> {
        let near = (Excluded(at.plus(-pause)), Excluded(at.plus(pause)));
        let last = self.taken.range(near).next_back();
        last.map(|taken| taken.plus(pause))
    }

    /// Drops slots that are over, and moves `free_from` past slots that are taken.
    fn advance(&mut self, pause: i64, now: Time) {
        let over = now.plus(-pause);
        while self.taken.first().is_some_and(|taken| *taken <= over) {
            self.taken.pop_first();
        }
        self.free_from = self.free_from.max(now);
        for _ in 0..STEPS {
            match self.after_conflict(self.free_from, pause) {
                Some(later) => self.free_from = later,
                None => break,
            }
        }
    }

    /// The time from which no slot is taken.
    fn end(&self, pause: i64) -> Option<Time> {
        self.taken.last().map(|taken| taken.plus(pause))
    }
}

impl Evictions {
    /// The time from which a binding may be evicted from a cluster; `None` if it has no slot. Cost: O(log evictions).
    pub(crate) fn slot(&self, id: &ResourceId, cluster: &str) -> Option<Time> {
        Some(self.slots.get(id)?.get(cluster)?.at)
    }

    /// Takes slots for the clusters that a binding is to be evicted from, each with its region, and frees its other ones.
    /// Returns true if any was taken. Cost: O(clusters × log evictions).
    pub(crate) fn reserve(
        &mut self,
        budget: &Budget,
        id: &ResourceId,
        due: &BTreeMap<Str, Option<Str>>,
        now: Time,
    ) -> bool {
        let mut slots = self.slots.remove(id).unwrap_or_default();
        slots.retain(|cluster, slot| {
            let stays = due.contains_key(cluster);
            if !stays {
                self.give_back(slot, now);
            }
            stays
        });
        let mut is_new = false;
        for (cluster, region) in due {
            if !slots.contains_key(cluster) {
                let slot = self.next_slot(budget, (cluster, region.as_ref()), now);
                slots.insert(cluster.clone(), slot);
                is_new = true;
            }
        }
        if !slots.is_empty() {
            self.slots.insert(id.clone(), slots);
        }
        is_new
    }

    fn next_slot(&mut self, budget: &Budget, (cluster, region): (&Str, Option<&Str>), now: Time) -> Slot {
        let region = budget.region.zip(region);
        let member = budget.member.map(|pause| (pause, Scope::Member(cluster.clone())));
        let scopes: Vec<(i64, Scope)> = [
            budget.fleet.map(|pause| (pause, Scope::Fleet)),
            region.map(|(pause, region)| (pause, Scope::Region(region.clone()))),
            member,
        ]
        .into_iter()
        .flatten()
        .filter(|(pause, _)| *pause > 0)
        .collect();
        let mut at = now;
        for (pause, scope) in &scopes {
            let queue = self.queues.entry(scope.clone()).or_insert_with(|| Queue {
                taken: BTreeSet::new(),
                free_from: now,
            });
            queue.advance(*pause, now);
            at = at.max(queue.free_from);
        }
        let queues = |next: &dyn Fn(&Queue, i64) -> Option<Time>| {
            let queues = scopes
                .iter()
                .filter_map(|(pause, scope)| next(self.queues.get(scope)?, *pause));
            queues.max()
        };
        let mut steps = 0;
        while let Some(later) = queues(&|queue, pause| queue.after_conflict(at, pause)) {
            steps += 1;
            at = if steps < STEPS {
                later
            } else {
                queues(&Queue::end).unwrap_or(later)
            };
        }
        for (_, scope) in &scopes {
            if let Some(queue) = self.queues.get_mut(scope) {
                queue.taken.insert(at);
            }
        }
        let scopes = scopes.into_iter().map(|(_, scope)| scope).collect();
        Slot { at, scopes }
    }

    /// Frees a slot; one that was used, or could have been, still delays the others for its pause.
    fn give_back(&mut self, slot: &Slot, now: Time) {
        if slot.at <= now {
            return;
        }
        for scope in &slot.scopes {
            if let Some(queue) = self.queues.get_mut(scope) {
                queue.taken.remove(&slot.at);
                queue.free_from = queue.free_from.min(slot.at);
            }
        }
    }

    /// Drops the queue of a member that is gone; bindings that were to be evicted from it free their other slots when they are
    /// planned. Cost: O(log budgets).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        self.queues.remove(&Scope::Member(cluster.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn id(number: usize) -> ResourceId {
        ResourceId::new(
            Gvk::new("apps/v1", "Deployment"),
            "default",
            &format!("web-{number}"),
        )
    }

    fn due(cluster: &str, region: &str) -> BTreeMap<Str, Option<Str>> {
        [(cluster.into(), (!region.is_empty()).then(|| region.into()))].into()
    }

    fn slot(evictions: &mut Evictions, budget: &Budget, number: usize, cluster: &str, now: i64) -> i64 {
        evictions.reserve(budget, &id(number), &due(cluster, "west"), Time(now));
        evictions.slot(&id(number), cluster).expect("slot").0
    }

    #[test]
    fn slots_keep_the_pause_of_each_budget_that_concerns_them() {
        let budget = Budget {
            fleet: Some(10),
            region: None,
            member: Some(100),
        };
        let mut evictions = Evictions::default();
        let mut next = |number, cluster| slot(&mut evictions, &budget, number, cluster, 1_000);
        assert_eq!([next(1, "a"), next(2, "a"), next(3, "a")], [1_000, 1_100, 1_200]);
        assert_eq!([next(4, "b"), next(5, "b")], [1_010, 1_110]);
        assert_eq!(next(6, "c"), 1_020);
        assert_eq!(next(4, "b"), 1_010, "who has a slot keeps it");
    }

    #[test]
    fn the_members_of_a_region_share_its_budget() {
        let budget = Budget {
            region: Some(1_000),
            ..Budget::default()
        };
        let mut evictions = Evictions::default();
        for (number, (cluster, region, expected)) in [
            ("a", "west", 0),
            ("b", "west", 1_000),
            ("c", "east", 0),
            ("a", "west", 2_000),
            ("d", "", 0),
            ("d", "", 0),
        ]
        .into_iter()
        .enumerate()
        {
            evictions.reserve(&budget, &id(number), &due(cluster, region), Time(0));
            assert_eq!(
                evictions.slot(&id(number), cluster),
                Some(Time(expected)),
                "{number}"
            );
        }
    }

    #[test]
    fn a_slot_that_is_not_needed_any_more_is_free_again() {
        let budget = Budget {
            fleet: Some(1_000),
            ..Budget::default()
        };
        let mut evictions = Evictions::default();
        for number in 0..100 {
            slot(&mut evictions, &budget, number, "a", 0);
        }
        for number in 0..100 {
            evictions.reserve(&budget, &id(number), &BTreeMap::new(), Time(5_500));
        }
        assert!(evictions.slots.is_empty());
        assert_eq!(
            slot(&mut evictions, &budget, 100, "b", 5_500),
            6_000,
            "a pause after the last one that was due"
        );
        assert_eq!(slot(&mut evictions, &budget, 101, "b", 5_500), 7_000);
    }

    /// The search is limited: with many gaps too small for a budget, a slot at the end of its queue is taken.
    #[test]
    fn a_queue_without_a_fitting_gap_is_gone_to_the_end_of() {
        let one = Budget {
            fleet: Some(10),
            ..Budget::default()
        };
        let mut evictions = Evictions::default();
        for number in 0..1_000 {
            slot(&mut evictions, &one, number, "a", 0);
        }
        evictions.reserve(&one, &id(1), &BTreeMap::new(), Time(0));
        let two = Budget {
            fleet: Some(11),
            ..Budget::default()
        };
        assert_eq!(slot(&mut evictions, &two, 1_001, "a", 0), 9_990 + 11);
    }

    #[test]
    fn a_slot_between_others_is_given_to_who_comes_next() {
        let budget = Budget {
            fleet: Some(1_000),
            ..Budget::default()
        };
        let mut evictions = Evictions::default();
        for number in 0..5 {
            slot(&mut evictions, &budget, number, "a", 0);
        }
        evictions.reserve(&budget, &id(2), &BTreeMap::new(), Time(100));
        assert_eq!(slot(&mut evictions, &budget, 7, "a", 100), 2_000);
        assert_eq!(slot(&mut evictions, &budget, 8, "a", 100), 5_000);
    }
}
