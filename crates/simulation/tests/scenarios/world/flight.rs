//! Plans that are being carried out while others are made, as in the shell: two keys of one lane never are.

use std::{collections::BTreeSet, ops::ControlFlow};

use entourage_core::{
    observation::{Delivered, Observation},
    plan::{Change, Key, Plan},
};

use entourage_simulation::{executor, notifications::observe, run};

use super::{World, disturbed::Crashed, trace};

/// A plan between its making and its carrying out.
pub(crate) struct Flight {
    pub(crate) key: Key,
    plan: Plan,
    /// The uids of what stood on its member when it was made.
    stood: BTreeSet<String>,
}

impl Flight {
    /// True if it removes a copy.
    pub(crate) fn removes(&self) -> bool {
        let is_removal = |change: &Change| matches!(change, Change::Remove { .. });
        self.plan.changes.iter().any(is_removal)
    }
}

/// A member carries out what was sent to it within this time, in milliseconds.
const LATEST: i64 = 1_500;

/// So many plans are in flight under chaos.
const MOST: usize = 4;

impl World {
    /// Makes the plan for a key, which is carried out when it lands.
    pub(crate) fn begin(&mut self, key: &Key) -> Flight {
        let plan = self.process.plan(key, self.servers.now);
        self.check_plan(key, &plan);
        self.fly(key, plan)
    }

    /// Asserts that a plan that is to be made again names a time in the future; prints it if `WORLD_TRACE` is set.
    pub(super) fn check_plan(&self, key: &Key, plan: &Plan) {
        assert!(
            plan.again_at.is_none_or(|time| time > self.now),
            "{key:?} asks again in the past"
        );
        trace(|| {
            let change = |change: &Change| format!("{change:?}").chars().take(90).collect::<String>();
            let changes: Vec<String> = plan.changes.iter().map(change).collect();
            format!("{} {key:?} {:?} {changes:?}", self.now.0 % 10_000_000, plan.why)
        });
    }

    /// Works until the plan for a copy removes it, and has that one in flight.
    pub(crate) fn settle_until_removal(&mut self, key: &Key) -> Flight {
        self.settle_until(key, |change| matches!(change, Change::Remove { .. }))
    }

    /// Works until the plan for a copy delivers it, and has that one in flight.
    pub(crate) fn settle_until_delivery(&mut self, key: &Key) -> Flight {
        self.settle_until(key, |change| matches!(change, Change::Deliver { .. }))
    }

    /// Works until such a change is planned for a key, and has that plan in flight.
    pub(crate) fn settle_until(&mut self, key: &Key, is_it: fn(&Change) -> bool) -> Flight {
        self.work_until(key, is_it);
        self.begin(key)
    }

    /// Works until such a change is planned for a key.
    pub(crate) fn work_until(&mut self, key: &Key, is_it: fn(&Change) -> bool) {
        for _ in 0..10_000 {
            let plan = self.planned(key);
            if plan.changes.iter().any(is_it) {
                return;
            }
            assert!(self.step(), "it never comes for {key:?}: {:?}", plan.why);
        }
        panic!("it never settles");
    }

    /// A member carries out what a process sent to it that does not live to hear of it.
    pub(crate) fn carry_out_late(&mut self, flight: Flight) {
        for change in flight.plan.changes {
            self.deliver_late(change);
        }
    }

    fn deliver_late(&mut self, change: Change) {
        if matches!(change, Change::Deliver { .. }) {
            self.lands = true;
            executor::carry_out(self, change);
            self.lands = false;
        }
    }

    /// Carries out what processes sent that are gone: at the latest when its time is over, else now and then.
    pub(super) fn carry_out_some_late(&mut self) {
        for (latest, change) in std::mem::take(&mut self.sent) {
            let random = self.chaos.as_mut();
            if latest <= self.servers.now || random.is_some_and(|random| random.below(8) == 0) {
                self.deliver_late(change);
            } else {
                self.sent.push((latest, change));
            }
        }
    }

    /// The present plan of a key.
    pub(crate) fn planned(&self, key: &Key) -> Plan {
        self.process.engine.preview(key, self.now)
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
            let objects = &self.members[cluster];
            if !self.down.contains(cluster) && objects.contains_key(id) {
                self.assert_unneeded(cluster, id, &BTreeSet::new());
            }
            let objects = objects.values();
            let uid = |object: &serde_json::Value| object["metadata"]["uid"].as_str().map(str::to_owned);
            stood.extend(objects.filter_map(uid));
        }
        self.process.start(&plan, self.servers.now);
        self.serialization_keys.insert(key.serialization_key());
        Flight {
            key: key.clone(),
            plan,
            stood,
        }
    }

    /// Carries out a plan; false when the process crashed meanwhile.
    pub(crate) fn land(&mut self, flight: Flight) -> bool {
        self.landed(flight).is_continue()
    }

    /// The delivery of a plan failed before anything was written, for a reason that was found in the template as it was when it was
    /// read: it may have changed, or be gone, since.
    pub(crate) fn land_failed(&mut self, mut flight: Flight, outcome: &Delivered) {
        for change in std::mem::take(&mut flight.plan.changes) {
            let Change::Deliver { id, cluster, .. } = change else {
                panic!("only deliveries fail so: {change:?}");
            };
            observe(self, Observation::Delivered(cluster, id, outcome.clone()));
        }
        assert!(self.land(flight));
    }

    fn landed(&mut self, flight: Flight) -> ControlFlow<Crashed> {
        self.serialization_keys.remove(&flight.key.serialization_key());
        let (waiting, parked) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|key| key.serialization_key() == flight.key.serialization_key());
        self.parked = parked;
        self.process.queue.extend::<BTreeSet<Key>>(waiting);
        (self.stood, self.lands) = (flight.stood, true);
        let goes_on = run::act(self, &flight.key, flight.plan);
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
    /// Answers whether it did.
    pub(super) fn land_one(&mut self, must: bool) -> ControlFlow<Crashed, bool> {
        let Some(random) = self.chaos.as_mut().filter(|_| !self.flights.is_empty()) else {
            return ControlFlow::Continue(false);
        };
        if !must && random.below(4) != 0 {
            return ControlFlow::Continue(false);
        }
        let at = random.below(self.flights.len());
        let flight = self.flights.swap_remove(at);
        self.landed(flight)?;
        ControlFlow::Continue(true)
    }

    /// The process dies: of the first copies that it was about to send some were sent, and land later.
    pub(super) fn leave_flights(&mut self) {
        for flight in &self.flights {
            for change in &flight.plan.changes {
                let is_first = matches!(change, Change::Deliver { live: None, .. });
                let random = self.chaos.as_mut().filter(|_| is_first);
                if random.is_some_and(|random| random.below(2) == 0) {
                    self.sent.push((self.servers.now.plus(LATEST), change.clone()));
                }
            }
        }
        self.abandon_flights();
    }

    /// The process ends, or leads no more: nothing that is in flight is sent.
    pub(super) fn abandon_flights(&mut self) {
        for flight in std::mem::take(&mut self.flights) {
            for change in flight.plan.changes {
                if let Change::Deliver { id, cluster, .. } = change {
                    observe(self, Observation::Delivered(cluster, id, Delivered::Abandoned));
                }
            }
        }
        self.serialization_keys.clear();
        self.parked.clear();
    }
}
