//! The simulation: the effect of applying these objects, computed by the planners that would cause it.
//!
//! An [`Engine`] observes the objects of the hub and the members, every dirty key is planned, and each change is executed on a
//! model of the API servers in memory, until nothing is left to do. Time is virtual. Missing facts are requested
//! ([`Progress::Asks`]): the caller reads them from real servers, or answers that there are none. Nothing is written to real
//! servers.
//!
//! - [`overlay`](crate::overlay::overlay): an apply without a server.
//! - [`report`](Simulation::report): the result; Secrets' values never leave this module.

mod act;
mod distributing;
mod members;
mod notes;
pub(crate) mod outcome;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::ControlFlow,
};

use serde_json::Value;

use crate::{
    notifications,
    objects::{Objects, kept},
    process::Process,
    run,
    servers::Servers,
    writes,
};
pub use distributing::named_namespaces;
use entourage_core::{
    Engine,
    config::Config,
    inspection,
    kinds::CLUSTER_API,
    object::{ResourceId, Str, Time},
    observation::{Observation, Server, Watch, kind_read_by, misread},
    plan::Key,
    rendered::wipe,
};
pub use outcome::{Fate, Note, Outcome, Place, Report};

/// The duration of the simulation in virtual milliseconds: longer than any delay that changes copies (the wait for dependencies,
/// the grace period of a deletion, a member's failure threshold).
const PATIENCE: i64 = 180_000;

/// A fact of a real server that the simulation needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// All objects that a watch covers, whole.
    List(Watch),
    /// One object of the hub that no list covers.
    Template(ResourceId),
    /// The object on a member with the id of a copy that would be created.
    Copy(Str, ResourceId),
}

/// The response of a real server.
pub enum Answer {
    /// The objects; none or one for a question about one object.
    Objects(Vec<Value>),
    /// The reason why it cannot be read, for a user.
    Unreadable(String),
}

/// The state of the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It continues when these are answered; sorted.
    Asks(Vec<Question>),
    /// Nothing is left to do.
    Settled,
    /// It was given up: an object keeps being changed.
    Unsettled,
}

/// A running simulation.
pub struct Simulation {
    servers: Servers,
    /// The objects of the servers as given, before any was applied or planned; empty for a run that changes nothing: use
    /// [`Self::before`].
    before: Servers,
    process: Process,
    until: Time,
    /// True if plans are made and not carried out, apart from reads.
    only_observes: bool,
    answered: BTreeSet<Question>,
    /// The questions of the keys that wait for an answer.
    asked: BTreeSet<Question>,
    /// The keys that wait for an answer.
    blocked: BTreeSet<Key>,
    /// Templates of the hub that cannot be read, with the reason: whether they exist is unknown, and no decision is made that
    /// depends on it.
    unreadable: BTreeMap<ResourceId, String>,
    /// Members that cannot be read, with the reason: their copies are assumed to be as the hub recorded them.
    unread: BTreeMap<Str, String>,
    probed: BTreeSet<Str>,
    /// Objects to apply when every requested fact is known.
    pending: VecDeque<(ResourceId, Value)>,
    /// The applied objects.
    applied: Objects,
    /// The objects that the hub would refuse, with the reason.
    refused: BTreeMap<ResourceId, String>,
    /// The reasons why copies were deleted or released.
    whys: BTreeMap<(Str, ResourceId), String>,
    plans: usize,
}

impl Simulation {
    /// Starts a simulation of a hub with these settings; `config.hub` is its id.
    #[must_use]
    pub fn new(mut config: Config, now: Time) -> Self {
        // Nobody renews a Lease in virtual time: an agent stays as present as it is.
        config.cluster_monitor_grace = 2 * PATIENCE;
        config.cluster_startup_grace = 2 * PATIENCE;
        Self {
            servers: Servers {
                now,
                ..Servers::default()
            },
            before: Servers::default(),
            process: Process::new(config),
            until: now.plus(PATIENCE),
            only_observes: false,
            answered: BTreeSet::new(),
            asked: BTreeSet::new(),
            blocked: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            unread: BTreeMap::new(),
            probed: BTreeSet::new(),
            pending: VecDeque::new(),
            applied: Objects::default(),
            refused: BTreeMap::new(),
            whys: BTreeMap::new(),
            plans: 0,
        }
    }

    /// Starts a run that reads the servers and changes nothing, not even its model of them: the engine ends in the state in which the
    /// controllers are now.
    #[must_use]
    pub fn observing(config: Config, now: Time) -> Self {
        Self {
            until: now,
            only_observes: true,
            ..Self::new(config, now)
        }
    }

    /// Applies an object. `before` is the object on the hub now, `after` the one it would become, from a dry run or from
    /// [`overlay`](crate::overlay::overlay). An object without a name is ignored; one that cannot be read as its kind counts as
    /// refused.
    pub fn apply(&mut self, before: Option<Value>, after: Value) {
        let Some(id) = ResourceId::of(&after) else {
            return;
        };
        if let Some(why) = misread::why(&id, &after) {
            self.refused.insert(id, why);
            return;
        }
        if let Some(before) = before {
            self.take_in(&Server::Hub, &id, before);
        }
        self.pending.push_back((id, after));
    }

    /// Adds an existing object of the hub. One that cannot be read as its kind counts as refused.
    pub fn know(&mut self, object: Value) {
        if let Some(id) = ResourceId::of(&object) {
            if let Some(why) = misread::why(&id, &object) {
                self.refused.insert(id, why);
                return;
            }
            let object = self.servers.versions.created(&id, object, self.servers.now);
            self.take_in(&Server::Hub, &id, object);
        }
    }

    /// Records that the hub would refuse an object; `why` never quotes a Secret.
    pub fn refuse(&mut self, object: &Value, why: String) {
        if let Some(id) = ResourceId::of(object) {
            self.refused.insert(id, why);
        }
    }

    /// Continues until a fact is requested, or nothing is left to do.
    ///
    /// Cost: O(plans), each as named at its planner.
    pub fn run(&mut self) -> Progress {
        let until = self.until;
        let progress = match run::run(self, until) {
            ControlFlow::Break(progress) => progress,
            ControlFlow::Continue(()) => Progress::Settled,
        };
        self.asked.clear();
        self.process.queue.append(&mut self.blocked);
        progress
    }

    /// Runs to the end without any server: only the given objects exist.
    pub fn run_alone(&mut self) -> Progress {
        loop {
            match self.run() {
                Progress::Asks(questions) => {
                    for question in questions {
                        self.answer(question, Answer::Objects(Vec::new()));
                    }
                }
                done => return done,
            }
        }
    }

    /// Adds an answer.
    pub fn answer(&mut self, question: Question, answer: Answer) {
        match question.clone() {
            Question::List(watch) => self.listed(watch, answer),
            Question::Template(id) => match answer {
                Answer::Objects(objects) => {
                    if let Some(object) = objects.into_iter().next() {
                        self.take_in(&Server::Hub, &id, object);
                    }
                }
                Answer::Unreadable(why) => drop(self.unreadable.insert(id, why)),
            },
            Question::Copy(cluster, id) => {
                if let Answer::Objects(objects) = answer
                    && let Some(object) = objects.into_iter().next()
                {
                    self.take_in(&Server::Member(cluster), &id, object);
                }
            }
        }
        self.answered.insert(question);
    }

    /// The engine: the observed objects, and the decisions.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.process.engine
    }

    /// The objects given to apply: those applied, and those that the hub would refuse.
    pub fn given(&self) -> impl Iterator<Item = &ResourceId> {
        self.applied.keys().chain(self.refused.keys())
    }

    /// The time in the model.
    #[must_use]
    pub fn now(&self) -> Time {
        self.servers.now
    }

    /// The current objects of the hub in the model. Do not print them: they may be Secrets.
    pub fn hub(&self) -> impl Iterator<Item = (&ResourceId, &Value)> {
        self.servers.hub.iter()
    }

    /// The result.
    #[must_use]
    pub fn report(&self) -> Report {
        outcome::report(self)
    }

    /// The objects of the servers as given.
    fn before(&self) -> &Servers {
        if self.only_observes {
            &self.servers
        } else {
            &self.before
        }
    }

    /// Adds an object of a server from before the simulation.
    fn take_in(&mut self, server: &Server, id: &ResourceId, object: Value) {
        let object = kept(object);
        self.servers.versions.saw(&object);
        if let Server::Member(cluster) = server {
            for servers in [&mut self.servers, &mut self.before] {
                servers.members.entry(cluster.clone()).or_default();
            }
        }
        if self.before().object(server, id).is_some() {
            return;
        }
        if !self.only_observes {
            self.before.store(server, id, Some(object.clone()));
        }
        self.servers.store(server, id, Some(object));
    }

    /// Adds the answer to a watch's list: the watch is open from now on.
    fn listed(&mut self, watch: Watch, answer: Answer) {
        let server = watch.server();
        if let Server::Member(cluster) = &server {
            self.servers.members.entry(cluster.clone()).or_default();
        }
        match (answer, &server) {
            (Answer::Objects(objects), _) => {
                for object in objects {
                    if let Some(id) = identity_in(&watch, &object) {
                        self.take_in(&server, &id, object);
                    }
                }
            }
            (Answer::Unreadable(why), Server::Member(cluster)) => {
                self.assume(cluster, &watch, &why);
                let is_unknown = matches!(watch, Watch::MemberNamespaces(_) | Watch::Distributed(..));
                if !inspection::answers(self.engine(), cluster) || is_unknown {
                    return self.lose(watch, why);
                }
            }
            (Answer::Unreadable(why), Server::Hub) => return self.lose(watch, why),
        }
        notifications::open(self, &watch);
    }

    fn lose(&mut self, watch: Watch, why: String) {
        self.process.open.insert(watch.clone());
        notifications::observe(self, Observation::Lost { watch, why });
    }

    /// Applies an object, once the existing objects are known.
    fn put_applied(&mut self, id: &ResourceId, after: Value) {
        let after = kept(after);
        if self.servers.hub.contains_key(id) {
            writes::replace(self, &Server::Hub, id, after.clone());
        } else {
            writes::create(self, &Server::Hub, id, after.clone());
        }
        if let Some(mut held) = self.applied.insert(id.clone(), after) {
            wipe(&mut held);
        }
        self.probe_members();
    }
}

/// True if an object is a ResourceBinding or a ClusterResourceBinding.
fn is_binding(id: &ResourceId) -> bool {
    &*id.gvk.group == "work.karmada.io"
        && matches!(&*id.gvk.kind, "ResourceBinding" | "ClusterResourceBinding")
}

/// True if an object is a Cluster.
fn is_cluster(id: &ResourceId) -> bool {
    id.gvk.api_version() == CLUSTER_API && &*id.gvk.kind == "Cluster"
}

/// The id of a listed object; the items of a list may omit their kind.
fn identity_in(watch: &Watch, object: &Value) -> Option<ResourceId> {
    let meta = &object["metadata"];
    let name = meta["name"].as_str().filter(|name| !name.is_empty())?;
    let namespace = meta["namespace"].as_str().unwrap_or_default();
    Some(ResourceId::new(kind_read_by(watch), namespace, name))
}

#[cfg(test)]
mod tests;
