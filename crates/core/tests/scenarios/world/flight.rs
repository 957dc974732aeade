//! Plans that are being carried out while others are made, as in the shell: two keys of one lane never are.

use std::collections::BTreeSet;

use entourage_core::{
    observation::{Delivered, Observation},
    plan::{Change, Key, Plan},
};

use super::{World, id_key};

/// A plan between its making and its carrying out.
pub(crate) struct Flight {
    pub(crate) key: Key,
    plan: Plan,
    /// The uids of what stood on its member when it was made.
    stood: BTreeSet<String>,
}

impl Flight {
    /// Whether it removes a copy.
    pub(crate) fn removes(&self) -> bool {
        let is_removal = |change: &Change| matches!(change, Change::Remove { .. });
        self.plan.changes.iter().any(is_removal)
    }
}

/// So many plans are in flight under chaos.
const MOST: usize = 4;

impl World {
    /// Makes the plan for a key, which is carried out when it lands.
    pub(crate) fn begin(&mut self, key: &Key) -> Flight {
        let plan = self.plan(key);
        self.fly(key, plan)
    }

    /// Works until the plan for a copy removes it, and has that one in flight.
    pub(crate) fn settle_until_removal(&mut self, key: &Key) -> Flight {
        for _ in 0..10_000 {
            let removes = |change: &Change| matches!(change, Change::Remove { .. });
            let plan = entourage_core::plan(&self.index, key, self.now);
            if plan.changes.iter().any(removes) {
                return self.begin(key);
            }
            assert!(self.step(), "{key:?} is never removed: {:?}", plan.why);
        }
        panic!("it never settles");
    }

    fn fly(&mut self, key: &Key, plan: Plan) -> Flight {
        let mut stood = BTreeSet::new();
        for change in &plan.changes {
            if let Change::Deliver { cluster, id, .. } = change {
                self.assert_not_suspended(cluster, id);
            }
            let Change::Remove { cluster, id, .. } = change else {
                continue;
            };
            let member = &self.members[&**cluster];
            if !member.down && member.objects.contains_key(&id_key(id)) {
                self.assert_unneeded(cluster, id, &BTreeSet::new());
            }
            let objects = member.objects.values();
            let uid = |object: &serde_json::Value| object["metadata"]["uid"].as_str().map(str::to_owned);
            stood.extend(objects.filter_map(uid));
        }
        self.lanes.insert(key.lane());
        Flight {
            key: key.clone(),
            plan,
            stood,
        }
    }

    /// Carries out a plan; false when the process crashed meanwhile.
    pub(crate) fn land(&mut self, flight: Flight) -> bool {
        self.lanes.remove(&flight.key.lane());
        let (waiting, parked) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|key| key.lane() == flight.key.lane());
        self.parked = parked;
        self.queue.extend::<BTreeSet<Key>>(waiting);
        (self.stood, self.lands) = (flight.stood, true);
        let goes_on = self.act(&flight.key, flight.plan);
        self.stood.clear();
        self.lands = false;
        goes_on
    }

    /// Under chaos, some plans are carried out later than they are made. Answers whether this one is.
    pub(super) fn takes_off(&mut self, key: &Key, plan: &Plan) -> bool {
        let may = self.overlaps && !plan.changes.is_empty() && self.flights.len() < MOST;
        let Some(random) = self.chaos.as_mut().filter(|_| may) else {
            return false;
        };
        if random.below(3) != 0 {
            return false;
        }
        let flight = self.fly(key, plan.clone());
        self.flights.push(flight);
        true
    }

    /// Under chaos, carries out one of the plans that are in flight: now and then, or because nothing else is left to do.
    pub(super) fn land_one(&mut self, must: bool) -> Option<bool> {
        let random = self.chaos.as_mut().filter(|_| !self.flights.is_empty())?;
        if !must && random.below(4) != 0 {
            return None;
        }
        let at = random.below(self.flights.len());
        let flight = self.flights.swap_remove(at);
        Some(self.land(flight))
    }

    /// The process ends, or leads no more: nothing that is in flight is sent.
    pub(super) fn abandon_flights(&mut self) {
        for flight in std::mem::take(&mut self.flights) {
            for change in flight.plan.changes {
                if let Change::Deliver { id, cluster, .. } = change {
                    self.observe(Observation::Delivered(cluster, id, Delivered::Abandoned));
                }
            }
        }
        self.lanes.clear();
        self.parked.clear();
    }
}
