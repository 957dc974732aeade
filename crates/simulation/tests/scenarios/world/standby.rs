//! A second process that watches the same servers and stands by. It is told what the servers tell, and nothing of what the
//! leader keeps in memory.

use std::collections::BTreeSet;

use entourage_core::{
    Engine,
    observation::{Observation, Server, Watch},
};
use serde_json::Value;

use super::World;

pub(crate) struct Standby {
    engine: Engine,
    watches: BTreeSet<Watch>,
}

impl World {
    /// Another process starts, watches everything, and stands by; unless one does already.
    pub(crate) fn stand_by(&mut self) {
        if self.standby.is_some() {
            return;
        }
        let mut engine = Engine::new(self.config());
        engine.observe(Observation::Leads(false), self.now);
        let watches = BTreeSet::new();
        self.standby = Some(Standby { engine, watches });
        self.open_watches_of_standby();
    }

    /// The leader dies wherever it is, and the process that stood by leads.
    pub(crate) fn take_over(&mut self) {
        self.leave_flights();
        let standby = self.standby.take().expect("a process that stands by");
        self.lead_with(standby);
    }

    /// The leader loses the lease wherever it is: the other process leads, and this one stands by.
    pub(crate) fn change_places(&mut self) {
        self.abandon_flights();
        let standby = self.standby.take().expect("a process that stands by");
        let config = self.config();
        let mut former = Standby {
            engine: std::mem::replace(&mut self.engine, Engine::new(config)),
            watches: std::mem::take(&mut self.watches),
        };
        former.engine.observe(Observation::Leads(false), self.now);
        self.lead_with(standby);
        self.standby = Some(former);
        self.open_watches_of_standby();
    }

    fn lead_with(&mut self, standby: Standby) {
        (self.engine, self.watches) = (standby.engine, standby.watches);
        self.demand_taken = None;
        self.queue.clear();
        self.timers.clear();
        self.refused.clear();
        self.slow_lists.clear();
        self.told.clear();
        self.crash_in = None;
        self.unaccounted.append(&mut self.ended);
        self.observe(Observation::Leads(true));
    }

    /// What the process that stands by watches.
    pub(super) fn standby_watches(&self) -> Vec<Watch> {
        let watches = self.standby.as_ref().map(|standby| &standby.watches);
        watches.into_iter().flatten().cloned().collect()
    }

    /// An object of a server changed: it was so, and is so now.
    pub(super) fn standby_sees(&mut self, server: &Server, before: &Value, after: &Value) {
        let Some(mut standby) = self.standby.take() else {
            return;
        };
        let of_server = standby.watches.iter().filter(|watch| watch.server() == *server);
        for watch in of_server.cloned().collect::<Vec<_>>() {
            let Some(seen) = self.event(&standby.engine, &watch, before, after) else {
                continue;
            };
            standby.engine.observe(seen, self.now.plus(self.standby_late));
            let revision = self.versions.last();
            standby.engine.observe(
                Observation::Reached { watch, revision },
                self.now.plus(self.standby_late),
            );
        }
        self.standby = Some(standby);
        self.open_watches_of_standby();
    }

    /// The standby is told what became of a member: it probes and watches by itself.
    pub(super) fn standby_is_told(&mut self, seen: Observation) {
        let Some(standby) = &mut self.standby else { return };
        if let Observation::Lost { watch, .. } = &seen {
            standby.watches.remove(watch);
        }
        standby.engine.observe(seen, self.now.plus(self.standby_late));
        self.open_watches_of_standby();
    }

    fn open_watches_of_standby(&mut self) {
        let Some(mut standby) = self.standby.take() else {
            return;
        };
        loop {
            for watch in standby.engine.take_ended() {
                standby.watches.remove(&watch);
            }
            let demanded = standby.engine.demand().clone();
            standby.watches.retain(|watch| demanded.contains(watch));
            let reachable = |watch: &&Watch| match watch.server() {
                Server::Hub => true,
                Server::Member(name) => self.members.get(&*name).is_some_and(|member| !member.down),
            };
            let closed = demanded
                .iter()
                .filter(|watch| !standby.watches.contains(*watch) && !self.shut.contains(*watch))
                .find(reachable);
            let Some(watch) = closed.cloned() else { break };
            standby.watches.insert(watch.clone());
            let revision = self.versions.last();
            let mut told = vec![Observation::Listing {
                watch: watch.clone(),
                revision,
            }];
            let (items, present) = self.list(&watch);
            let seen = items
                .iter()
                .map(|object| self.project_for(&standby.engine, &watch, object));
            told.extend(seen.map(Observation::Seen));
            told.push(Observation::Listed {
                watch: watch.clone(),
                present,
                revision,
            });
            if watch == Watch::Clusters {
                let probes = self.members.keys();
                told.extend(
                    probes.map(|member| Observation::Probed(member.as_str().into(), self.probed(member))),
                );
            }
            for each in told {
                standby.engine.observe(each, self.now.plus(self.standby_late));
            }
        }
        self.standby = Some(standby);
    }
}
