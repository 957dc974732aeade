//! A second process that watches the same servers and stands by. It is reported what the servers tell, and nothing of what the
//! leader keeps in memory.

use entourage_core::{
    object::{ResourceId, Time},
    observation::{Observation, Server, Watch},
};
use entourage_simulation::{
    notifications::{self, observe},
    process::Process,
};
use serde_json::Value;

use super::World;

impl World {
    /// Another process starts, watches everything, and stands by; unless one does already.
    pub(crate) fn stand_by(&mut self) {
        if self.standby.is_none() {
            let process = Process::new(self.process.engine.config.clone());
            self.follow(process);
        }
    }

    /// A process stands by from now on.
    fn follow(&mut self, mut process: Process) {
        process.observe(Observation::Leads(false), self.now);
        self.standby = Some(process);
        self.open_watches_of_standby();
    }

    /// The leader dies wherever it is, and the process that stood by leads.
    pub(crate) fn take_over(&mut self) {
        self.leave_flights();
        self.process = self.follower();
        self.lead();
    }

    /// The leader loses the lease wherever it is: the other process leads, and this one stands by.
    pub(crate) fn change_places(&mut self) {
        self.abandon_flights();
        let next = self.follower();
        let former = std::mem::replace(&mut self.process, next);
        self.lead();
        self.follow(former);
    }

    fn follower(&mut self) -> Process {
        self.standby.take().expect("a process that stands by")
    }

    fn lead(&mut self) {
        self.process.queue.clear();
        self.process.timers.clear();
        self.forget();
        observe(self, Observation::Leads(true));
    }

    /// The time at which the standby process observes an event of now.
    fn later(&self) -> Time {
        self.now.plus(self.standby_late)
    }

    /// An object of a server changed: it was so before.
    pub(super) fn standby_sees(&mut self, server: &Server, id: &ResourceId, before: Option<&Value>) {
        let Some(mut standby) = self.standby.take() else {
            return;
        };
        let revision = self.versions.last();
        for (watch, seen) in notifications::events(self, &standby, server, id, before) {
            standby.observe(seen, self.later());
            standby.observe(Observation::Reached { watch, revision }, self.later());
        }
        self.standby = Some(standby);
        self.open_watches_of_standby();
    }

    /// The standby loses its connection to a member: it probes and watches by itself.
    pub(super) fn standby_loses(&mut self, member: &str) {
        let Some(mut standby) = self.standby.take() else {
            return;
        };
        let of_member = |watch: &&Watch| watch.server() == Server::Member(member.into());
        for watch in standby.open.iter().filter(of_member).cloned().collect::<Vec<_>>() {
            standby.open.remove(&watch);
            let why = "down".into();
            standby.observe(Observation::Lost { watch, why }, self.later());
        }
        standby.observe(
            Observation::Probed(member.into(), self.probed(member)),
            self.later(),
        );
        self.standby = Some(standby);
        self.open_watches_of_standby();
    }

    fn open_watches_of_standby(&mut self) {
        let Some(mut standby) = self.standby.take() else {
            return;
        };
        loop {
            standby.close();
            let answers = |watch: &&Watch| {
                let is_up = match watch.server() {
                    Server::Hub => true,
                    Server::Member(name) => self.is_up(&name),
                };
                is_up && !self.shut.contains(*watch)
            };
            let Some(watch) = standby.closed().find(answers).cloned() else {
                break;
            };
            standby.open.insert(watch.clone());
            let (objects, listed) = notifications::list(self, &standby, &watch);
            for seen in objects.into_iter().chain([listed]) {
                standby.observe(seen, self.later());
            }
            if watch == Watch::Clusters {
                for member in self.members.keys() {
                    standby.observe(
                        Observation::Probed(member.clone(), self.probed(member)),
                        self.later(),
                    );
                }
            }
        }
        self.standby = Some(standby);
    }
}
