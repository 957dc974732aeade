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
mod servers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use crate::{
    environment::Environment,
    objects::{Objects, Versions, kept},
    watches,
};
pub use distributing::named_namespaces;
use entourage_core::{
    Engine,
    config::Config,
    inspection,
    object::{ResourceId, Str, Time},
    observation::{Observation, Server, Subject, Watch, misread},
    plan::Key,
};
pub use outcome::{Fate, Note, Outcome, Place, Report};

/// The duration of the simulation in virtual milliseconds: longer than any delay that changes copies (the wait for dependencies,
/// the grace period of a deletion, a member's failure threshold).
const PATIENCE: i64 = 180_000;

/// The maximum number of plans for each given object; a bound for a system that would never settle.
const PLANS_PER_OBJECT: usize = 2_000;

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
    engine: Engine,
    hub: Objects,
    /// The objects of the hub as given, before any was applied or planned.
    hub_before: Objects,
    members: BTreeMap<Str, Model>,
    versions: Versions,
    now: Time,
    until: Time,
    queue: BTreeSet<Key>,
    timers: BTreeMap<Key, Time>,
    open: BTreeSet<Watch>,
    answered: BTreeSet<Question>,
    /// Templates of the hub that cannot be read, with the reason: whether they exist is unknown, and no decision is made that
    /// depends on it.
    unreadable: BTreeMap<ResourceId, String>,
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

/// A member in the model.
#[derive(Default)]
struct Model {
    objects: Objects,
    before: Objects,
    /// The reason why it could not be read; its copies are assumed to be as the hub recorded them.
    unreadable: Option<String>,
    probed: bool,
}

impl Simulation {
    /// Starts a simulation of a hub with these settings; `config.hub` is its id.
    #[must_use]
    pub fn new(config: Config, now: Time) -> Self {
        Self {
            engine: Engine::new(config),
            hub: Objects::default(),
            hub_before: Objects::default(),
            members: BTreeMap::new(),
            versions: Versions::default(),
            now,
            until: now.plus(PATIENCE),
            queue: BTreeSet::new(),
            timers: BTreeMap::new(),
            open: BTreeSet::new(),
            answered: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            pending: VecDeque::new(),
            applied: Objects::default(),
            refused: BTreeMap::new(),
            whys: BTreeMap::new(),
            plans: 0,
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
            self.take_in(&id, before);
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
            let object = self.versions.created(&id, object, self.now);
            self.take_in(&id, object);
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
        let mut asked: BTreeSet<Question> = BTreeSet::new();
        let mut blocked: BTreeSet<Key> = BTreeSet::new();
        loop {
            let unread: Vec<Question> = self
                .engine
                .demand()
                .iter()
                .filter(|watch| !self.open.contains(watch))
                .map(|watch| Question::List(watch.clone()))
                .collect();
            if !unread.is_empty() {
                self.queue.append(&mut blocked);
                return Progress::Asks(unread);
            }
            if let Some((id, after)) = self.pending.pop_front() {
                self.put_applied(&id, after);
            } else if let Some(key) = self.next() {
                if self.plans > self.most_plans() {
                    return Progress::Unsettled;
                }
                let questions = self.work(&key);
                if !questions.is_empty() {
                    asked.extend(questions);
                    blocked.insert(key);
                }
            } else if !asked.is_empty() {
                self.queue.append(&mut blocked);
                return Progress::Asks(asked.into_iter().collect());
            } else if !self.pass_time() {
                return Progress::Settled;
            }
        }
    }

    /// The next key to plan: clusters first, so that replicas are not divided only among those that are ready already.
    fn next(&mut self) -> Option<Key> {
        let first = Key::Cluster(Str::from(""));
        let cluster = self.queue.range(first..).next().cloned();
        match cluster.filter(|key| matches!(key, Key::Cluster(_))) {
            Some(key) => self.queue.take(&key),
            None => self.queue.pop_first(),
        }
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
                        self.take_in(&id, object);
                    }
                }
                Answer::Unreadable(why) => drop(self.unreadable.insert(id, why)),
            },
            Question::Copy(cluster, id) => {
                if let Answer::Objects(objects) = answer
                    && let Some(object) = objects.into_iter().next()
                {
                    self.take_in_on(&cluster, &id, object);
                }
            }
        }
        self.answered.insert(question);
    }

    /// The engine: the observed objects, and the decisions.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The objects given to apply: those applied, and those that the hub would refuse.
    pub fn given(&self) -> impl Iterator<Item = &ResourceId> {
        let applied = self.applied.iter().map(|(id, _)| id);
        applied.chain(self.refused.keys())
    }

    /// The current objects of the hub in the model. Do not print them: they may be Secrets.
    pub fn hub(&self) -> impl Iterator<Item = (&ResourceId, &Value)> {
        self.hub.iter()
    }

    /// The result.
    #[must_use]
    pub fn report(&self) -> Report {
        outcome::report(self)
    }

    fn most_plans(&self) -> usize {
        let objects = self.hub.iter().count() * (1 + self.members.len());
        PLANS_PER_OBJECT.saturating_mul(10 + objects)
    }

    /// Adds an object of the hub from before the simulation.
    fn take_in(&mut self, id: &ResourceId, object: Value) {
        if self.hub_before.contains(id) {
            return;
        }
        let object = kept(object);
        self.versions.saw(&object);
        self.hub_before.insert(id.clone(), object.clone());
        self.hub.insert(id.clone(), object);
    }

    /// Adds an object of a member from before the simulation.
    fn take_in_on(&mut self, cluster: &Str, id: &ResourceId, object: Value) {
        let object = kept(object);
        self.versions.saw(&object);
        let member = self.members.entry(cluster.clone()).or_default();
        if member.before.contains(id) {
            return;
        }
        member.before.insert(id.clone(), object.clone());
        member.objects.insert(id.clone(), object);
    }

    /// Adds the answer to a watch's list: the watch is open from now on.
    fn listed(&mut self, watch: Watch, answer: Answer) {
        let server = watch.server();
        match (answer, &server) {
            (Answer::Objects(objects), Server::Hub) => {
                for object in objects {
                    if let Some(id) = servers::identity_in(&watch, &object) {
                        self.take_in(&id, object);
                    }
                }
            }
            (Answer::Objects(objects), Server::Member(cluster)) => {
                for object in objects {
                    if let Some(id) = servers::identity_in(&watch, &object) {
                        self.take_in_on(cluster, &id, object);
                    }
                }
            }
            (Answer::Unreadable(why), Server::Member(cluster)) => {
                self.assume(cluster, &watch, &why);
                let is_unknown = matches!(watch, Watch::MemberNamespaces(_) | Watch::Distributed(..));
                if !inspection::answers(&self.engine, cluster) || is_unknown {
                    self.open.insert(watch.clone());
                    return self.observe(Observation::Lost { watch, why });
                }
            }
            (Answer::Unreadable(why), Server::Hub) => {
                self.open.insert(watch.clone());
                return self.observe(Observation::Lost { watch, why });
            }
        }
        self.open_watch(watch, &server);
    }

    fn open_watch(&mut self, watch: Watch, server: &Server) {
        self.open.insert(watch.clone());
        let hub_id = self.engine.config.hub.clone();
        if let Server::Member(cluster) = server {
            self.members.entry(cluster.clone()).or_default();
        }
        let (items, present) = match watch {
            Watch::Hooks(_) => Default::default(),
            _ => watches::list(&watch, &hub_id, self.objects(server)),
        };
        let seen: Vec<Subject> = items
            .iter()
            .filter_map(|object| self.project(&watch, object))
            .collect();
        for subject in seen {
            self.observe(Observation::Seen(subject));
        }
        let revision = self.versions.last();
        self.observe(Observation::Listed {
            watch,
            present,
            revision,
        });
        self.probe_members();
    }

    /// Applies an object, once the existing objects are known.
    fn put_applied(&mut self, id: &ResourceId, after: Value) {
        let after = kept(after);
        let stored = match self.hub.get(id).cloned() {
            Some(held) => self.versions.replaced(id, &held, after.clone()),
            None => self.versions.created(id, after.clone(), self.now),
        };
        self.applied.insert(id.clone(), after);
        self.hub.insert(id.clone(), stored);
        self.hub_changed(id);
        self.probe_members();
    }

    /// Advances time to the next timer; false if there is none before the end.
    fn pass_time(&mut self) -> bool {
        let next = self.timers.iter().map(|(key, time)| (*time, key.clone())).min();
        let Some((time, key)) = next.filter(|(time, _)| *time <= self.until) else {
            return false;
        };
        self.timers.remove(&key);
        self.now = self.now.max(time);
        self.queue.insert(key);
        true
    }

    fn observe(&mut self, seen: Observation) {
        let dirty = self.engine.observe(seen, self.now);
        self.queue.extend(dirty);
        // The interpretation of a kind changed: its objects are read again.
        for watch in self.engine.take_ended() {
            if self.open.remove(&watch) && self.engine.demand().contains(&watch) {
                let server = watch.server();
                self.open_watch(watch, &server);
            }
        }
    }
}

#[cfg(test)]
mod tests;
