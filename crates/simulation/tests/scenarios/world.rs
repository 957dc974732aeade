//! A small world in memory: a hub and members, and a shell that carries out plans one at a time on them. Servers and executor
//! are those of `entourage-simulation`; the world adds what disturbs them (`disturbed`): it can crash after any change, lose all
//! memory, and start again from lists.

mod counts;
pub(crate) mod disorder;
mod disturbed;
pub(crate) mod flight;
pub(crate) mod hooked;
mod invariants;
mod outline;
mod scripted;
mod standby;
mod truth;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::{Deref, DerefMut},
    sync::Arc,
};

use entourage_api::names;
use entourage_core::{
    cluster::identity,
    config::Config,
    delivery::RenderSpec,
    distribution::render::DistributionRenderSpec,
    namespaces,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::{Observation, Probe, Server, Subject, Watch},
    plan::{Change, Key},
};
use entourage_simulation::{
    environment::Environment,
    notifications::{self, observe},
    process::Process,
    run,
    servers::Servers,
    writes,
};
pub(crate) use invariants::named;
use serde_json::{Value, json};

/// The world's servers are its own fields: `world.hub`, `world.members`, `world.now`.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) servers: Servers,
    pub(crate) process: Process,
    /// The members that do not answer.
    pub(crate) down: BTreeSet<Str>,
    /// The uids of the members' namespaces kube-system, if they are not made of the names.
    pub(crate) ids: BTreeMap<Str, String>,
    pub(crate) events: Vec<String>,
    /// Every write, in order: "hub POST ResourceBinding default/x".
    pub(crate) writes: Vec<String>,
    /// The process crashes after the change that makes the last of so many writes.
    pub(crate) crash_in: Option<usize>,
    /// The bindings that ended in a crash before they were made again, each with a member where a copy stood then: nobody
    /// accounts for that one any more, so it may be left alone (the limit of I6 in `docs/architecture.md`).
    pub(crate) unaccounted: BTreeSet<(String, String)>,
    /// The bindings that ended while copies stood, with the members, and were not made again yet.
    ended: BTreeSet<(String, String)>,
    /// Namespaces that the hub deleted: nothing can be made in them.
    pub(crate) deleted_namespaces: BTreeSet<String>,
    /// The number of copies that were planned to be written.
    pub(crate) deliveries: usize,
    /// A process that stands by.
    standby: Option<Process>,
    /// The delay with which the standby process observes everything, in milliseconds.
    pub(crate) standby_late: i64,
    /// Under chaos, plans are carried out while others are made.
    pub(crate) overlaps: bool,
    flights: Vec<flight::Flight>,
    /// First copies that processes sent which are gone, and when they are there at the latest.
    sent: Vec<(Time, Change)>,
    /// The lanes in flight, and the keys that wait for them.
    serialization_keys: BTreeSet<Key>,
    parked: BTreeSet<Key>,
    /// The turns since it began to settle.
    turns: usize,
    /// While a plan lands: the uids of what stood on its member when it was made.
    stood: BTreeSet<String>,
    /// A plan lands that was made earlier.
    lands: bool,
    lists: BTreeMap<Watch, Observation>,
    terminating: bool,
    /// Disorder: keys are worked in random order, and old events are reported again.
    pub(crate) chaos: Option<Random>,
    reported: Vec<Observation>,
    /// Under chaos, how often the members' own controllers number a rollout: an annotation, and so a new generation.
    pub(crate) rollouts: usize,
    /// Events of templates of this kind, or of policies, are late: they wait in `late`.
    slow: Option<&'static str>,
    late: VecDeque<Observation>,
    /// Watches that the hub does not respond now.
    pub(crate) shut: BTreeSet<Watch>,
    /// True for the objects that the webhooks of members refuse.
    pub(crate) refuses: Option<fn(&Value) -> bool>,
    /// Members refuse to have anything removed.
    pub(crate) refuses_removal: bool,
    /// So many removals end in an error of the member.
    pub(crate) failing_removals: usize,
    /// So many removals are not carried out, and not answered either.
    pub(crate) unanswered_removals: usize,
    /// It does so as if the object had changed, as a webhook may.
    pub(crate) refuses_as_changed: bool,
    /// A kind that a look into a namespace cannot list, beside the objects that it sees.
    pub(crate) unlisted: Option<namespaces::content::Contents>,
    /// An object that is created on a member right after the next look into a namespace.
    pub(crate) comes_after_a_look: Option<(ResourceId, Value)>,
    /// So often a namespace is changed by somebody right before it is ended.
    pub(crate) changed_before_it_ends: usize,
    /// Checks each deletion of a copy of a distribution, before it is carried out.
    pub(crate) withdrawal_check: Option<fn(&Self, &Server, &DistributionRenderSpec)>,
    /// The number of refusals to remove a copy of a distribution.
    pub(crate) asked_to_remove: usize,
    /// Watches that a server refuses to our account.
    pub(crate) forbidden: BTreeSet<Watch>,
    refused: BTreeSet<Watch>,
    /// The hub lets our account get no Lease.
    pub(crate) forbids_lease: bool,
    /// The hub has no response to the GET of a Lease.
    pub(crate) mute_lease: bool,
    /// The number of GETs of a Lease.
    pub(crate) asked_for_lease: usize,
    /// The kind of which the hub lets our account claim no template.
    pub(crate) unclaimable: Option<&'static str>,
    /// Members carry out no write and do not answer it either; their watches go on.
    pub(crate) mute: bool,
    /// Members answer each write with this error of their own.
    pub(crate) breaks: Option<String>,
    /// Under chaos, when a watch that is demanded and not open will list.
    slow_lists: BTreeMap<Watch, Time>,
    /// Under chaos, how many more outages of single watches there will be.
    pub(crate) outages: usize,
    /// The hooks of the world.
    pub(crate) hooked: hooked::Hooked,
    /// The estimators of its members.
    pub(crate) estimators: Estimators,
    /// The uids of distributions that are gone, whose copies are not collected yet.
    garbage: Vec<Value>,
    truth: truth::Truth,
}

/// The estimators of members.
#[derive(Default)]
pub(crate) struct Estimators {
    /// The answers by member; the estimator of any other one fails.
    pub(crate) answers: BTreeMap<Str, i64>,
    /// Those that cannot be asked, if they have no answer.
    pub(crate) overloaded: BTreeSet<Str>,
    /// Those that hang: no answer comes to a question to one of them.
    pub(crate) hanging: BTreeSet<Str>,
    /// True if questions are lost.
    pub(crate) loses: bool,
    /// The members of each question.
    pub(crate) asked: Vec<String>,
    /// The CPU that each question is about.
    pub(crate) requests: Vec<String>,
}

/// A source of disorder: choices that are given, and then those of a seed (splitmix64).
pub(crate) struct Random {
    given: VecDeque<u8>,
    seed: u64,
}

impl Random {
    /// The choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let given = VecDeque::new();
        Self { given, seed }
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if let Some(choice) = self.choice(bound) {
            return choice % bound.max(1);
        }
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    /// The next given choice: one byte, or two if one cannot reach every number below `bound`.
    fn choice(&mut self, bound: usize) -> Option<usize> {
        let low = usize::from(self.given.pop_front()?);
        let high = if bound > 256 { self.given.pop_front() } else { None };
        Some(low + 256 * usize::from(high.unwrap_or_default()))
    }
}

impl From<&[u8]> for Random {
    fn from(choices: &[u8]) -> Self {
        let given = choices.iter().copied().collect();
        Self { given, seed: 0 }
    }
}

const HUB_ID: &str = "hub-id";

impl Deref for World {
    type Target = Servers;

    fn deref(&self) -> &Servers {
        &self.servers
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }
}

impl World {
    pub(crate) fn new(members: &[&str]) -> Self {
        let config = Config {
            scripts: Some(Arc::new(scripted::Scripted)),
            ..Config::new(HUB_ID)
        };
        let mut world = Self {
            process: Process::new(config),
            ..Self::default()
        };
        world.now = Time(1_700_000_000_000);
        world.versions.go_back(100);
        for member in members {
            world.members.insert((*member).into(), Default::default());
            world.apply(json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member},
                "spec": {"id": format!("id-{member}"), "syncMode": "Push", "apiEndpoint": "https://x"},
            }));
        }
        world
    }

    /// One where distributions are carried out.
    pub(crate) fn distributing(members: &[&str]) -> Self {
        let mut world = Self::new(members);
        world.process.engine.config_mut().distribute = true;
        world.restart();
        world
    }

    /// One where the capacity of members is collected.
    pub(crate) fn measuring(members: &[&str]) -> Self {
        let mut world = Self::new(members);
        world.process.engine.config_mut().model_resources = true;
        world.restart();
        world
    }

    /// One where members share Services.
    pub(crate) fn sharing(members: &[&str]) -> Self {
        let mut world = Self::new(members);
        world.process.engine.config_mut().share_services = true;
        world.restart();
        world
    }

    /// Creates or updates an object on the hub as a user would.
    pub(crate) fn apply(&mut self, object: Value) {
        let id = id_of(&object);
        trace(|| format!("USER applies {id} {object}"));
        let Some(mut merged) = self.hub.get(&id).cloned() else {
            if id.gvk.is_namespace() {
                self.deleted_namespaces.remove(&*id.name);
            }
            writes::create(self, &Server::Hub, &id, object);
            return;
        };
        for field in ["spec", "data", "imagePullSecrets"] {
            if let Some(value) = object.get(field) {
                merged[field] = value.clone();
            }
        }
        writes::replace(self, &Server::Hub, &id, merged);
    }

    /// Replaces an object of the hub, metadata too, as a user would.
    pub(crate) fn replace(&mut self, object: Value) {
        let id = id_of(&object);
        assert!(self.hub.contains_key(&id), "{id} does not exist");
        trace(|| format!("USER changes {id} {object}"));
        writes::replace(self, &Server::Hub, &id, object);
    }

    /// Deletes an object on the hub as a user would.
    pub(crate) fn delete(&mut self, kind: &str, name: &str) {
        self.delete_at(&id_named(kind, name));
    }

    /// As [`Self::delete`], in any namespace.
    pub(crate) fn delete_at(&mut self, id: &ResourceId) {
        trace(|| format!("USER deletes {id}"));
        writes::delete(self, &Server::Hub, id);
    }

    /// Second lists, taken right after the first ones and so long before what is known now, end only now.
    pub(crate) fn end_old_lists(&mut self) {
        for listed in self.lists.clone().into_values() {
            observe(self, listed);
        }
    }

    /// Deletes an object on the hub with a finalizer of Kubernetes; returns it as it was.
    fn delete_with(&mut self, finalizer: &str, id: &ResourceId) -> Value {
        let held = self.hub[id].clone();
        let mut next = held.clone();
        next["metadata"]["finalizers"] = json!([finalizer]);
        writes::replace(self, &Server::Hub, id, next);
        writes::delete(self, &Server::Hub, id);
        held
    }

    /// Deletes an object on the hub in the foreground: it stays until its dependents are gone.
    pub(crate) fn delete_in_foreground(&mut self, kind: &str, name: &str) {
        let held = self.delete_with("foregroundDeletion", &id_named(kind, name));
        writes::collect(self, &held["metadata"]["uid"]);
    }

    /// Deletes an object on the hub with `--cascade=orphan`, while the garbage collector does not know of its dependents.
    pub(crate) fn delete_orphaning_unnoticed(
        &mut self,
        kind: &str,
        name: &str,
        between: impl FnOnce(&mut Self),
    ) {
        let id = id_named(kind, name);
        self.delete_with("orphan", &id);
        between(self);
        writes::store(self, &Server::Hub, &id, None);
    }

    /// Deletes an object on the hub with `--cascade=orphan`: the garbage collector takes it off the owners of its dependents,
    /// and lets it go.
    pub(crate) fn delete_orphaning(&mut self, kind: &str, name: &str) {
        let id = id_named(kind, name);
        let held = self.delete_with("orphan", &id);
        for (dependent, mut freed) in (*self.hub).clone() {
            if let Some(owners) = freed["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| owner["uid"] != held["metadata"]["uid"]);
                writes::replace(self, &Server::Hub, &dependent, freed);
            }
        }
        writes::store(self, &Server::Hub, &id, None);
    }

    /// Deletes everything of the namespace in an unlucky order: bindings first, and nothing can be made any more.
    pub(crate) fn delete_namespace(&mut self) {
        let bindings = self.hub_ids(|id| &*id.gvk.kind == "ResourceBinding");
        self.terminating = true;
        for id in bindings {
            writes::delete(self, &Server::Hub, &id);
        }
        assert!(self.settle_for(1_000));
        for id in self.hub_ids(|id| &*id.namespace == "default") {
            writes::delete(self, &Server::Hub, &id);
        }
    }

    /// The ids of objects of the hub.
    pub(crate) fn hub_ids(&self, is_it: impl Fn(&ResourceId) -> bool) -> Vec<ResourceId> {
        self.hub.keys().filter(|id| is_it(id)).cloned().collect()
    }

    /// Changes or deletes an object on a member by hand.
    pub(crate) fn meddle(
        &mut self,
        member: &str,
        kind: &str,
        name: &str,
        change: impl FnOnce(Value) -> Option<Value>,
    ) {
        self.meddle_at(member, &id_named(kind, name), change);
    }

    /// As [`Self::meddle`], in any namespace.
    pub(crate) fn meddle_at(
        &mut self,
        member: &str,
        id: &ResourceId,
        change: impl FnOnce(Value) -> Option<Value>,
    ) {
        self.assert_exists(member);
        let server = Server::Member(member.into());
        let held = self.at(member, id).cloned();
        let is_held = held.is_some();
        match change(held.unwrap_or_default()) {
            Some(object) if is_held => drop(writes::replace(self, &server, id, object)),
            Some(object) => {
                assert!(object["kind"].is_string(), "{id} does not exist on {member}");
                writes::create(self, &server, id, object);
            }
            None => {
                assert!(is_held, "{id} does not exist on {member}");
                writes::store(self, &server, id, None);
            }
        }
    }

    pub(crate) fn at(&self, member: &str, id: &ResourceId) -> Option<&Value> {
        self.members.get(member)?.get(id)
    }

    pub(crate) fn on(&self, member: &str, kind: &str, name: &str) -> Option<&Value> {
        self.at(member, &id_named(kind, name))
    }

    /// The members that hold an object.
    pub(crate) fn holders(&self, kind: &str, name: &str) -> Vec<&str> {
        let members = self.members.keys().map(|member| &**member);
        members
            .filter(|member| self.on(member, kind, name).is_some())
            .collect()
    }

    pub(crate) fn hub_object(&self, kind: &str, name: &str) -> Option<&Value> {
        self.hub.get(&id_named(kind, name))
    }

    pub(crate) fn set_down(&mut self, member: &str, down: bool) {
        self.assert_exists(member);
        if down {
            self.down.insert(member.into());
        } else {
            self.down.remove(member);
        }
        let of_member = |watch: &&Watch| watch.server() == Server::Member(member.into());
        let watches: Vec<Watch> = self.process.open.iter().filter(of_member).cloned().collect();
        for watch in watches {
            self.process.open.remove(&watch);
            // With another connection too, as the shell does: they list again in their own time.
            if down || self.chaos.is_some() {
                let why = "down".into();
                observe(self, Observation::Lost { watch, why });
            }
        }
        self.probe(member);
        self.standby_loses(member);
    }

    /// Every server as it is now.
    pub(crate) fn backup(&self) -> Servers {
        self.servers.clone()
    }

    /// Every server is as it was, and counts its versions on from there; all watches list again.
    pub(crate) fn restore(&mut self, backup: &Servers) {
        self.members.clone_from(&backup.members);
        self.restore_hub(backup);
    }

    /// The hub alone is as it was; all watches list again.
    pub(crate) fn restore_hub(&mut self, backup: &Servers) {
        self.hub.clone_from(&backup.hub);
        self.versions.go_back(backup.versions.last());
        self.process.open.clear();
    }

    /// A person looks at what is paused, and releases it.
    pub(crate) fn release_removals(&mut self) {
        let clusters = self.hub.values().filter(|each| each["kind"] == "Cluster");
        for mut cluster in clusters.cloned().collect::<Vec<_>>() {
            let all = cluster["status"]["conditions"].as_array().into_iter().flatten();
            let mut paused = all.filter(|each| each["type"] == "RemovalsPaused" && each["status"] == "True");
            if let Some(since) = paused.next().map(|each| each["lastTransitionTime"].clone()) {
                cluster["metadata"]["annotations"]["entourage.dev/resume-removals"] = since;
                self.replace(cluster);
            }
        }
    }

    /// Loses all memory and starts again.
    pub(crate) fn restart(&mut self) {
        self.leave_flights();
        self.process = Process::new(self.process.engine.config.clone());
        self.hooked.uses = Default::default();
        self.forget();
        self.late.clear();
        self.slow = None;
    }

    /// Forgets the state of a process that has ended.
    fn forget(&mut self) {
        self.refused.clear();
        self.slow_lists.clear();
        self.reported.clear();
        self.crash_in = None;
        self.unaccounted.append(&mut self.ended);
    }

    /// Works until nothing is left to do, letting time pass for timers up to `patience` milliseconds.
    /// Answers false when it crashed on the way.
    pub(crate) fn settle_for(&mut self, patience: i64) -> bool {
        self.turns = 0;
        let until = self.now.plus(patience);
        let is_settled = run::run(self, until).is_continue();
        if is_settled {
            self.assert_reported_truly();
            self.assert_problems_are_counted();
        }
        is_settled
    }

    /// As [`Self::settle_for`], with patience for every timer that matters.
    pub(crate) fn settle(&mut self) -> bool {
        self.settle_for(20_000)
    }

    /// The place of a write among those from this one on.
    pub(crate) fn wrote_at(&self, from: usize, what: &str) -> usize {
        let writes = &self.writes[from..];
        let found = writes.iter().position(|each| each == what);
        found.unwrap_or_else(|| panic!("{what}: {writes:#?}"))
    }

    // --- the shell

    /// A list-and-watch fails from now on, as long as it is `shut`.
    pub(crate) fn lose(&mut self, watch: Watch) {
        self.shut.insert(watch.clone());
        self.process.open.remove(&watch);
        let why = "cannot be listed".into();
        observe(self, Observation::Lost { watch, why });
    }

    /// The server ceases to serve this version of a kind: it serves the other one, or none.
    pub(crate) fn unserve(&mut self, watch: Watch, other: Option<&str>) {
        self.shut.insert(watch.clone());
        self.process.open.remove(&watch);
        let why = "not served".into();
        let other = other.map(Into::into);
        observe(self, Observation::Unserved { watch, other, why });
    }

    /// Tells, once, of each watch that it is refused.
    fn refuse_watches(&mut self) {
        self.refused.retain(|watch| self.forbidden.contains(watch));
        let forbidden = |watch: &&Watch| self.forbidden.contains(*watch) && !self.refused.contains(*watch);
        let demanded: Vec<Watch> = self.process.demanded.iter().filter(forbidden).cloned().collect();
        for watch in demanded {
            self.process.open.remove(&watch);
            self.refused.insert(watch.clone());
            let why = "forbidden".into();
            observe(self, Observation::Refused { watch, why });
        }
    }

    /// Works one key, or lets the time of the next timer come. Answers whether there was any.
    fn step(&mut self) -> bool {
        run::open_watches(self);
        match run::Run::next_key(self) {
            Some(key) => run::work(self, &key).is_continue(),
            None => run::pass_time(self, Time(i64::MAX)),
        }
    }

    /// Under chaos, now and then an event that was reported before is reported again, out of order.
    fn tell_old_news(&mut self) {
        let Some(random) = &mut self.chaos else { return };
        if self.reported.is_empty() || random.below(4) != 0 {
            return;
        }
        let at = random.below(self.reported.len());
        let old = self.reported[at].clone();
        trace(|| format!("OLD {old:?}"));
        observe(self, old);
    }

    /// As the Deployment controller of a member does some time after a write: with its own annotation a Deployment has a
    /// generation that nobody asked for.
    fn number_a_rollout(&mut self) {
        let Some(random) = self.chaos.as_mut().filter(|_| self.rollouts > 0) else {
            return;
        };
        if random.below(6) != 0 {
            return;
        }
        let members = self.servers.members.iter();
        let copies = members.flat_map(|(name, objects)| objects.keys().map(move |id| (name, id)));
        let copies: Vec<_> = copies.filter(|(_, id)| &*id.gvk.kind == "Deployment").collect();
        if copies.is_empty() {
            return;
        }
        let (member, id) = copies[random.below(copies.len())];
        let (server, id) = (Server::Member(member.clone()), id.clone());
        self.rollouts -= 1;
        let version = self.versions.advance().to_string();
        let mut copy = self.object(&server, &id).expect("copy").clone();
        let meta = &mut copy["metadata"];
        meta["annotations"]["deployment.kubernetes.io/revision"] = json!(version);
        meta["generation"] = json!(meta["generation"].as_i64().unwrap_or(0) + 1);
        meta["resourceVersion"] = json!(version);
        writes::store(self, &server, &id, Some(copy));
    }

    /// From now on, the events of templates of a kind, of policies, bindings, Leases, Clusters, namespaces or distributions, come
    /// late: one with each [`Self::tell_late`], none after a restart.
    pub(crate) fn hold_back(&mut self, kind: &'static str) {
        self.slow = Some(kind);
    }

    /// Tells the first of the events that are late.
    pub(crate) fn tell_late(&mut self) {
        let event = self.late.pop_front().expect("an event that is late");
        observe(self, event);
    }

    /// Tells all events that are late; none will be from now on.
    pub(crate) fn tell_all_late(&mut self) {
        self.slow = None;
        while !self.late.is_empty() {
            self.tell_late();
        }
    }

    /// Under chaos, now and then a watch of the hub fails, and lists again some time later.
    fn cut_a_watch(&mut self) {
        let Some(random) = self.chaos.as_mut().filter(|_| self.outages > 0) else {
            return;
        };
        if random.below(50) != 0 {
            return;
        }
        let of_hub = self
            .process
            .open
            .iter()
            .filter(|watch| watch.server() == Server::Hub);
        let of_hub: Vec<Watch> = of_hub.cloned().collect();
        if of_hub.is_empty() {
            return;
        }
        let watch = of_hub[random.below(of_hub.len())].clone();
        self.outages -= 1;
        trace(|| format!("LOSES {watch:?}"));
        self.process.open.remove(&watch);
        let why = "the watch broke".into();
        observe(self, Observation::Lost { watch, why });
    }

    /// True if a server opens a watch.
    fn can_open(&self, watch: &Watch) -> bool {
        let reachable = match watch.server() {
            Server::Hub => true,
            Server::Member(name) => self.is_up(&name) && !self.is_another(&name),
        };
        reachable && !self.shut.contains(watch) && !self.forbidden.contains(watch)
    }

    pub(super) fn assert_exists(&self, member: &str) {
        assert!(self.members.contains_key(member), "there is no member {member}");
    }

    fn is_up(&self, member: &str) -> bool {
        self.members.contains_key(member) && !self.down.contains(member)
    }

    /// Another physical cluster answers, or this one does as another one, and the connection is made anew.
    pub(crate) fn become_another(&mut self, member: &str, id: &str) {
        self.set_down(member, true);
        self.ids.insert(member.into(), id.into());
        self.set_down(member, false);
    }

    /// The id of the physical cluster that responds.
    fn id_of(&self, member: &str) -> String {
        let id = self.ids.get(member).filter(|id| !id.is_empty());
        id.cloned().unwrap_or_else(|| format!("id-{member}"))
    }

    /// True if another cluster responds than the one that the Cluster stands for: the shell does not use the connection.
    fn is_another(&self, member: &str) -> bool {
        let cluster = self.hub.get(&id_named("Cluster", member));
        let stored = cluster.and_then(|cluster| cluster["spec"]["id"].as_str());
        identity::check(member, stored.unwrap_or_default(), &self.id_of(member)).is_err()
    }

    fn probe(&mut self, member: &str) {
        if !self.down.contains(member) {
            let id = self.id_of(member);
            observe(self, Observation::Identified(member.into(), id.as_str().into()));
        }
        let probe = self.probed(member);
        observe(self, Observation::Probed(member.into(), probe));
    }

    /// The result of a probe.
    fn probed(&self, member: &str) -> Probe {
        let healthy = !self.down.contains(member) && !self.is_another(member);
        Probe {
            healthy,
            reason: if healthy {
                "ClusterReady"
            } else {
                "ClusterNotReachable"
            }
            .into(),
            message: String::new(),
            kubernetes_version: healthy.then(|| "v1.36.0".into()),
            api_enablements: None,
        }
    }

    /// Something is reported that may be old.
    pub(crate) fn tell_again(&mut self, observation: Observation) {
        observe(self, observation);
    }

    /// An object of the hub is gone.
    fn note_end(&mut self, id: &ResourceId, held: &Value) {
        if id.gvk.is_namespace() {
            self.deleted_namespaces.insert(id.name.to_string());
        }
        // One whose template is gone ends for good: nothing may stand then.
        let resource = &held["spec"]["resource"];
        if let (Some(kind), Some(name)) = (resource["kind"].as_str(), resource["name"].as_str())
            && self.hub_object(kind, name).is_some()
        {
            let is_marked = |member: &&str| {
                let copy = self.on(member, kind, name);
                copy.is_some_and(|copy| !copy["metadata"]["labels"]["entourage.dev/hub"].is_null())
            };
            let marked = self.holders(kind, name).into_iter().filter(is_marked);
            let ended: Vec<_> = marked
                .map(|member| (id.name.to_string(), member.to_owned()))
                .collect();
            self.ended.extend(ended);
        }
    }

    /// Hooks are asked again about everything that they are about.
    pub(crate) fn hear_again(&mut self) {
        for watch in self.process.open.clone() {
            if !self.process.engine.interpretation_of(&watch).is_hooked() {
                continue;
            }
            let (reported, _) = notifications::list(self, &self.process, &watch);
            for seen in reported {
                if matches!(seen, Observation::Seen(_)) && self.observes_now(&seen) {
                    observe(self, seen);
                }
            }
        }
    }

    /// Each open watch says how far it has come.
    pub(crate) fn bookmark(&mut self) {
        for watch in self.process.open.clone() {
            notifications::reached(self, &watch);
        }
    }
}

/// The settings of a run: `CHAOS_SEED`, `CHAOS_FROM`, `CHAOS_RUNS`, and `WORLD_TRACE`, `WORLD_DIFF` to see what happens.
#[expect(
    clippy::disallowed_methods,
    reason = "a test run is set through the environment"
)]
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Writes what happens, if that is asked for.
fn trace(line: impl FnOnce() -> String) {
    if setting("WORLD_TRACE").is_some() {
        eprintln!("{}", line());
    }
}

/// True if this was observed by a watch of distributed objects.
fn is_reported_by(watch: &Watch, reported: &Observation) -> bool {
    let (Watch::Distributed(cluster, gvk, name), Observation::Seen(Subject::Distributed(of, id, _))) =
        (watch, reported)
    else {
        return false;
    };
    of == cluster && id.gvk == *gvk && id.name == *name
}

/// The kinds of the scenarios: those that are in a namespace, and those that are not.
const KINDS: &[(&str, &str, &str)] = &[
    (
        "v1",
        "ConfigMap PersistentVolumeClaim Pod ResourceQuota Secret Service ServiceAccount",
        "Namespace Node PersistentVolume",
    ),
    ("apps/v1", "Deployment StatefulSet", ""),
    ("coordination.k8s.io/v1", "Lease", ""),
    ("batch/v1", "CronJob Job", ""),
    ("autoscaling/v2", "HorizontalPodAutoscaler", ""),
    ("discovery.k8s.io/v1", "EndpointSlice", ""),
    ("networking.k8s.io/v1", "NetworkPolicy", ""),
    (
        "multicluster.x-k8s.io/v1alpha1",
        "ServiceExport ServiceImport",
        "",
    ),
    ("rbac.authorization.k8s.io/v1", "", "ClusterRole"),
    ("scheduling.k8s.io/v1", "", "PriorityClass"),
    ("apiextensions.k8s.io/v1", "", "CustomResourceDefinition"),
    ("cluster.karmada.io/v1alpha1", "", "Cluster"),
    (
        "policy.karmada.io/v1alpha1",
        "FederatedResourceQuota OverridePolicy PropagationPolicy",
        "ClusterOverridePolicy ClusterPropagationPolicy ClusterTaintPolicy",
    ),
    ("work.karmada.io/v1alpha1", "Work", ""),
    (
        "work.karmada.io/v1alpha2",
        "ResourceBinding",
        "ClusterResourceBinding",
    ),
    ("apps.karmada.io/v1alpha1", "", "WorkloadRebalancer"),
    (
        "config.karmada.io/v1alpha1",
        "",
        "ResourceExploringWebhookConfiguration ResourceInterpreterCustomization ResourceInterpreterWebhookConfiguration",
    ),
    (
        "apps.kruise.io/v1alpha1",
        "CloneSet",
        "ResourceDistribution SidecarSet",
    ),
    ("source.toolkit.fluxcd.io/v1", "HelmRepository", ""),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease", ""),
    ("ray.io/v1", "RayCluster", ""),
    ("example.com/v1", "Shop Widget", ""),
];

/// The id of an object. A kind that two groups have carries the second one's name: `Widget.other.com`.
pub(crate) fn id(kind: &str, namespace: &str, name: &str) -> ResourceId {
    let (kind, is_other) = match kind.strip_suffix(".other.com") {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    let is_it = |kinds: &str| kinds.split(' ').any(|each| each == kind);
    let mut of_kind = KINDS.iter().filter(|(_, one, other)| is_it(one) || is_it(other));
    let (api_version, ..) = of_kind.next().expect(kind);
    let gvk = Gvk::new(if is_other { "other.com/v1" } else { api_version }, kind);
    ResourceId::new(gvk, namespace, name)
}

/// The id of an object in the namespace `default`, unless its kind is in none.
fn id_named(kind: &str, name: &str) -> ResourceId {
    id(kind, if is_cluster_scoped(kind) { "" } else { "default" }, name)
}

/// The id of an object that a user gives: in the namespace `default`, if it names none.
pub(crate) fn id_of(object: &Value) -> ResourceId {
    let mut id = ResourceId::of(object).expect("kind and name");
    if is_cluster_scoped(&id.gvk.kind) {
        id.namespace = "".into();
    } else if id.namespace.is_empty() {
        id.namespace = "default".into();
    }
    id
}

fn is_cluster_scoped(kind: &str) -> bool {
    let mut all = KINDS
        .iter()
        .flat_map(|(_, _, cluster_scoped)| cluster_scoped.split(' '));
    all.any(|each| each == kind)
}

/// The kind of an object for output, as [`id`] takes it.
pub(crate) fn kind_of(id: &ResourceId) -> String {
    match &*id.gvk.group {
        group @ "other.com" => format!("{}.{group}", id.gvk.kind),
        _ => id.gvk.kind.to_string(),
    }
}

/// The id of the template of a binding.
fn id_in(resource: &Value) -> ResourceId {
    let text = |field: &str| resource[field].as_str().unwrap_or_default();
    ResourceId::new(
        Gvk::new(text("apiVersion"), text("kind")),
        text("namespace"),
        text("name"),
    )
}

/// Recipes that know whose the copy of a template must be: its binding has one of two names.
fn owners(id: &ResourceId) -> [RenderSpec; 2] {
    let named = |name: &str| RenderSpec {
        hub: HUB_ID.into(),
        binding: NamespacedName::new(&id.namespace, name),
        permanent_id: "".into(),
        interpretation: Default::default(),
        at_least: None,
        raise: None,
        keeps_replicas: false,
        completions: None,
        replicas: None,
        preserved: Default::default(),
        overwrite: false,
        overrides: Default::default(),
        written_uid: None,
    };
    [
        named(&names::binding_name(&id.gvk.kind, &id.name)),
        named(&names::binding_name_of_group(
            &id.gvk.group,
            &id.gvk.kind,
            &id.name,
        )),
    ]
}
