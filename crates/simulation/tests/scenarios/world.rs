//! A small world in memory: a hub and members, and a shell that carries out plans one at a time on them. Servers and executor
//! are those of `entourage-simulation`; the world adds what disturbs them (`disturbed`): it can crash after any change, lose all
//! memory, and start again from lists.

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
    sync::Arc,
};

use entourage_api::names;
use entourage_core::{
    Engine,
    cluster::identity,
    config::Config,
    delivery::RenderSpec,
    interpreter::Interpretation,
    namespaces,
    object::{NamespacedName, ResourceId, Time},
    observation::{ObjectRef, Observation, Probe, Server, Subject, Watch},
    plan::{Change, Key, Plan},
};
use entourage_simulation::{environment::Environment, executor, objects::Versions, watches};
pub(crate) use invariants::named;
use serde_json::{Value, json};

/// (kind, namespace, name) → object. A kind that two groups have carries the second one's name: `Widget.other.com`.
pub(crate) type Objects = BTreeMap<(String, String, String), Value>;

/// See [`World::backup`].
pub(crate) struct Backup {
    hub: Objects,
    members: BTreeMap<String, Objects>,
    version: u64,
}

#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Objects,
    pub(crate) down: bool,
    /// The uid of its namespace kube-system; empty for one made of its name.
    pub(crate) id: String,
}

pub(crate) struct World {
    pub(crate) hub: Objects,
    pub(crate) members: BTreeMap<String, Cluster>,
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) events: Vec<String>,
    /// Every write, in order: "hub POST ResourceBinding default/x".
    pub(crate) writes: Vec<String>,
    /// The world crashes when this many more changes were made.
    pub(crate) crash_in: Option<usize>,
    /// The bindings that ended in a crash before they were made again, each with a member where a copy stood then: nobody
    /// accounts for that one any more, so it may be left alone (the limit of I6 in `docs/architecture.md`).
    pub(crate) unaccounted: BTreeSet<(String, String)>,
    /// The bindings that ended while copies stood, with the members, and were not made again yet.
    ended: BTreeSet<(String, String)>,
    /// Namespaces that the hub deleted: nothing can be made in them.
    pub(crate) deleted_namespaces: BTreeSet<String>,
    /// How many copies were looked at to be written.
    pub(crate) deliveries: usize,
    /// A process that stands by.
    standby: Option<standby::Standby>,
    /// How late the process that stands by observes everything, in milliseconds.
    pub(crate) standby_late: i64,
    versions: Versions,
    pub(crate) queue: BTreeSet<Key>,
    /// Under chaos, plans are carried out while others are made.
    pub(crate) overlaps: bool,
    flights: Vec<flight::Flight>,
    /// First copies that processes sent which are gone, and when they are there at the latest.
    sent: Vec<(Time, Change)>,
    /// The lanes in flight, and the keys that wait for them.
    serialization_keys: BTreeSet<Key>,
    parked: BTreeSet<Key>,
    /// While a plan lands: the uids of what stood on its member when it was made.
    stood: BTreeSet<String>,
    /// A plan lands that was made earlier.
    lands: bool,
    timers: BTreeMap<Key, Time>,
    watches: BTreeSet<Watch>,
    lists: BTreeMap<Watch, Observation>,
    pub(crate) gate: bool,
    terminating: bool,
    /// Disorder: keys are worked in random order, and old events are told again.
    pub(crate) chaos: Option<Random>,
    told: Vec<Observation>,
    /// Under chaos, how often the members' own controllers number a rollout: an annotation, and so a new generation.
    pub(crate) rollouts: usize,
    /// Events of templates of this kind, or of policies, are late: they wait in `late`.
    slow: Option<&'static str>,
    late: VecDeque<Observation>,
    /// Watches that the hub does not respond now.
    pub(crate) shut: BTreeSet<Watch>,
    /// What the webhooks of members refuse to have written.
    pub(crate) refuses: Option<fn(&Value) -> bool>,
    /// Members refuse to have anything removed.
    pub(crate) refuses_removal: bool,
    /// So many removals are not carried out, and not answered either.
    pub(crate) unanswered_removals: usize,
    /// It does so as if the object had changed, as a webhook may.
    pub(crate) refuses_as_changed: bool,
    /// What a look into a namespace finds beside what it sees: a kind that cannot be listed.
    pub(crate) unlisted: Option<namespaces::content::Contents>,
    /// What comes onto a member right after the next look into a namespace.
    pub(crate) comes_after_a_look: Option<((String, String, String), Value)>,
    /// So often a namespace is changed by somebody right before it is ended.
    pub(crate) changed_before_it_ends: usize,
    /// How often it refused to remove a copy of a distribution.
    pub(crate) asked_to_remove: usize,
    /// Watches that a server refuses to our account.
    pub(crate) forbidden: BTreeSet<Watch>,
    refused: BTreeSet<Watch>,
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
    /// What is demanded, as it was when it was last looked at: when it had changed this often.
    demanded: BTreeSet<Watch>,
    demand_taken: Option<u64>,
    /// The gate of distributions.
    distribute: bool,
    /// The capacity of members is collected.
    measures: bool,
    /// The hooks of the world.
    pub(crate) hooked: hooked::Hooked,
    /// The uids of distributions that are gone, whose copies are not collected yet.
    garbage: Vec<Value>,
    truth: truth::Truth,
}

/// A seeded source of disorder (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

const HUB_ID: &str = "hub-id";

fn config() -> Config {
    Config {
        scripts: Some(Arc::new(scripted::Scripted)),
        ..Config::new(HUB_ID)
    }
}

impl World {
    pub(crate) fn new(members: &[&str]) -> Self {
        let mut world = Self {
            hub: Objects::new(),
            members: BTreeMap::new(),
            engine: Engine::new(config()),
            now: Time(1_700_000_000_000),
            events: Vec::new(),
            writes: Vec::new(),
            crash_in: None,
            unaccounted: BTreeSet::new(),
            ended: BTreeSet::new(),
            deleted_namespaces: BTreeSet::new(),
            deliveries: 0,
            standby: None,
            standby_late: 0,
            versions: Versions::default(),
            queue: BTreeSet::new(),
            overlaps: false,
            flights: Vec::new(),
            sent: Vec::new(),
            serialization_keys: BTreeSet::new(),
            parked: BTreeSet::new(),
            stood: BTreeSet::new(),
            lands: false,
            timers: BTreeMap::new(),
            watches: BTreeSet::new(),
            lists: BTreeMap::new(),
            gate: true,
            terminating: false,
            chaos: None,
            told: Vec::new(),
            rollouts: 0,
            slow: None,
            late: VecDeque::new(),
            shut: BTreeSet::new(),
            refuses: None,
            refuses_removal: false,
            unanswered_removals: 0,
            refuses_as_changed: false,
            unlisted: None,
            comes_after_a_look: None,
            changed_before_it_ends: 0,
            asked_to_remove: 0,
            forbidden: BTreeSet::new(),
            refused: BTreeSet::new(),
            unclaimable: None,
            mute: false,
            breaks: None,
            slow_lists: BTreeMap::new(),
            outages: 0,
            demanded: BTreeSet::new(),
            demand_taken: None,
            distribute: false,
            measures: false,
            hooked: hooked::Hooked::default(),
            garbage: Vec::new(),
            truth: truth::Truth::default(),
        };
        world.versions.go_back(100);
        for member in members {
            world.members.insert((*member).into(), Cluster::default());
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
        world.distribute = true;
        world.restart();
        world
    }

    /// One where the capacity of members is collected.
    pub(crate) fn measuring(members: &[&str]) -> Self {
        let mut world = Self::new(members);
        world.measures = true;
        world.restart();
        world
    }

    /// Creates or updates an object on the hub as a user would.
    pub(crate) fn apply(&mut self, object: Value) {
        let key = key_of(&object);
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!("USER applies {key:?} {object}");
        }
        let mut object = object;
        if let Some(held) = self.hub.get(&key).cloned() {
            let mut merged = held.clone();
            for field in ["spec", "data", "imagePullSecrets"] {
                if let Some(value) = object.get(field) {
                    merged[field] = value.clone();
                }
            }
            object = self.put(&held, merged);
        } else {
            self.stamp(&mut object);
        }
        if key.0 == "Namespace" {
            self.deleted_namespaces.remove(&key.2);
        }
        self.hub.insert(key.clone(), object);
        self.hub_changed(&key);
    }

    /// Replaces an object of the hub, metadata too, as a user would.
    pub(crate) fn replace(&mut self, object: Value) {
        let key = key_of(&object);
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!("USER changes {key:?} {object}");
        }
        let held = self.hub[&key].clone();
        let next = self.put(&held, object);
        self.hub.insert(key.clone(), next);
        self.hub_changed(&key);
    }

    /// Deletes an object on the hub as a user would.
    pub(crate) fn delete(&mut self, kind: &str, name: &str) {
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!("USER deletes {kind} {name}");
        }
        let namespace = if is_cluster_scoped(kind) { "" } else { "default" };
        self.delete_key(&(kind.into(), namespace.into(), name.into()));
    }

    /// Second lists, taken right after the first ones and so long before what is known now, end only now.
    pub(crate) fn end_old_lists(&mut self) {
        for listed in self.lists.clone().into_values() {
            self.observe(listed);
        }
    }

    /// Deletes an object on the hub in the foreground: it stays until its dependents are gone.
    pub(crate) fn delete_in_foreground(&mut self, kind: &str, name: &str) {
        let key = (kind.to_owned(), "default".to_owned(), name.to_owned());
        let held = self.hub[&key].clone();
        let mut next = held.clone();
        next["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        let next = self.put(&held, next);
        self.hub.insert(key.clone(), next);
        self.delete_key(&key);
        executor::collect(self, &held["metadata"]["uid"]);
    }

    /// Deletes an object on the hub with `--cascade=orphan`, while the garbage collector does not know of its dependents.
    pub(crate) fn delete_orphaning_unnoticed(
        &mut self,
        kind: &str,
        name: &str,
        between: impl FnOnce(&mut Self),
    ) {
        let key = (kind.to_owned(), "default".to_owned(), name.to_owned());
        let held = self.hub[&key].clone();
        let mut next = held.clone();
        next["metadata"]["finalizers"] = json!(["orphan"]);
        let next = self.put(&held, next);
        self.hub.insert(key.clone(), next);
        self.delete_key(&key);
        between(self);
        self.versions.advance();
        let last = self.hub.remove(&key).expect("template");
        self.changed(&Server::Hub, &last, &Value::Null);
    }

    /// Deletes an object on the hub with `--cascade=orphan`: the garbage collector takes it off the owners of its dependents,
    /// and lets it go.
    pub(crate) fn delete_orphaning(&mut self, kind: &str, name: &str) {
        let key = (kind.to_owned(), "default".to_owned(), name.to_owned());
        let held = self.hub[&key].clone();
        let mut next = held.clone();
        next["metadata"]["finalizers"] = json!(["orphan"]);
        let next = self.put(&held, next);
        self.hub.insert(key.clone(), next);
        self.delete_key(&key);
        let uid = &held["metadata"]["uid"];
        let keys: Vec<_> = self.hub.keys().cloned().collect();
        for dependent in keys {
            let live = self.hub[&dependent].clone();
            let mut freed = live.clone();
            let Some(owners) = freed["metadata"]["ownerReferences"].as_array_mut() else {
                continue;
            };
            let before = owners.len();
            owners.retain(|owner| owner["uid"] != *uid);
            let is_changed = owners.len() != before;
            if is_changed {
                let next = self.put(&live, freed);
                self.hub.insert(dependent.clone(), next);
                self.hub_changed(&dependent);
            }
        }
        self.versions.advance();
        self.end(&key);
    }

    /// Deletes everything of the namespace in an unlucky order: bindings first, and nothing can be made any more.
    pub(crate) fn delete_namespace(&mut self) {
        let bindings: Vec<_> = self
            .hub
            .keys()
            .filter(|key| key.0 == "ResourceBinding")
            .cloned()
            .collect();
        self.terminating = true;
        for key in bindings {
            self.delete_key(&key);
        }
        assert!(self.settle_for(1_000));
        let rest: Vec<_> = self
            .hub
            .keys()
            .filter(|key| key.1 == "default")
            .cloned()
            .collect();
        for key in rest {
            self.delete_key(&key);
        }
    }

    /// Changes or deletes an object on a member by hand.
    pub(crate) fn meddle(
        &mut self,
        member: &str,
        kind: &str,
        name: &str,
        change: impl FnOnce(Value) -> Option<Value>,
    ) {
        self.meddle_at(member, &key_named(kind, name), change);
    }

    /// As [`Self::meddle`], in any namespace.
    pub(crate) fn meddle_at(
        &mut self,
        member: &str,
        key: &(String, String, String),
        change: impl FnOnce(Value) -> Option<Value>,
    ) {
        let held = self
            .members
            .get(member)
            .expect("member")
            .objects
            .get(key)
            .cloned()
            .unwrap_or(Value::Null);
        let changed = change(held.clone());
        match changed {
            Some(mut object) => {
                object = if held.is_null() {
                    self.stamp(&mut object);
                    object
                } else {
                    self.put(&held, object)
                };
                self.members
                    .get_mut(member)
                    .expect("member")
                    .objects
                    .insert(key.clone(), object);
            }
            None => {
                self.members.get_mut(member).expect("member").objects.remove(key);
            }
        }
        self.member_changed(member, key, &held);
    }

    pub(crate) fn at(&self, member: &str, key: &(String, String, String)) -> Option<&Value> {
        self.members.get(member)?.objects.get(key)
    }

    pub(crate) fn on(&self, member: &str, kind: &str, name: &str) -> Option<&Value> {
        self.members.get(member)?.objects.get(&key_named(kind, name))
    }

    /// Deletes an object on the hub as a user would, in any namespace.
    pub(crate) fn delete_at(&mut self, key: &(String, String, String)) {
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!("USER deletes {key:?}");
        }
        self.delete_key(key);
    }

    /// Which members hold an object.
    pub(crate) fn holders(&self, kind: &str, name: &str) -> Vec<&str> {
        self.members
            .keys()
            .map(String::as_str)
            .filter(|member| self.on(member, kind, name).is_some())
            .collect()
    }

    pub(crate) fn hub_object(&self, kind: &str, name: &str) -> Option<&Value> {
        self.hub.get(&key_named(kind, name))
    }

    pub(crate) fn set_down(&mut self, member: &str, down: bool) {
        self.members.get_mut(member).expect("member").down = down;
        let watches: Vec<Watch> = self
            .watches
            .iter()
            .filter(|watch| watch.server() == Server::Member(member.into()))
            .cloned()
            .collect();
        for watch in watches {
            self.watches.remove(&watch);
            // With another connection too, as the shell does: they list again in their own time.
            if down || self.chaos.is_some() {
                self.observe(Observation::Lost {
                    watch,
                    why: "down".into(),
                });
            }
        }
        self.probe(member);
        let of_member = |watch: &Watch| watch.server() == Server::Member(member.into());
        for watch in self.standby_watches().into_iter().filter(of_member) {
            let why = "down".into();
            self.standby_is_told(Observation::Lost { watch, why });
        }
        let probe = self.probed(member);
        self.standby_is_told(Observation::Probed(member.into(), probe));
    }

    /// Every server as it is now.
    pub(crate) fn backup(&self) -> Backup {
        let members = self.members.iter();
        Backup {
            hub: self.hub.clone(),
            members: members
                .map(|(name, member)| (name.clone(), member.objects.clone()))
                .collect(),
            version: self.versions.last(),
        }
    }

    /// Every server is as it was, and counts its versions on from there; all watches list again.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.hub.clone_from(&backup.hub);
        for (name, objects) in &backup.members {
            self.members
                .get_mut(name)
                .expect("member")
                .objects
                .clone_from(objects);
        }
        self.versions.go_back(backup.version);
        self.watches.clear();
    }

    /// The hub alone is as it was; all watches list again.
    pub(crate) fn restore_hub(&mut self, backup: &Backup) {
        self.hub.clone_from(&backup.hub);
        self.versions.go_back(backup.version);
        self.watches.clear();
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

    /// What each process is started with.
    fn config(&self) -> Config {
        Config {
            propagate_deps: self.gate,
            distribute: self.distribute,
            model_resources: self.measures,
            ..self.engine.config.clone()
        }
    }

    /// Loses all memory and starts again.
    pub(crate) fn restart(&mut self) {
        self.leave_flights();
        self.engine = Engine::new(self.config());
        self.hooked.uses = Default::default();
        self.demand_taken = None;
        self.queue.clear();
        self.timers.clear();
        self.watches.clear();
        self.refused.clear();
        self.slow_lists.clear();
        self.told.clear();
        self.late.clear();
        self.slow = None;
        self.crash_in = None;
        self.unaccounted.append(&mut self.ended);
    }

    /// Works until nothing is left to do, letting time pass for timers up to `patience` milliseconds.
    /// Answers false when it crashed on the way.
    pub(crate) fn settle_for(&mut self, patience: i64) -> bool {
        let until = self.now.plus(patience);
        for _ in 0..20_000 {
            self.open_watches();
            self.tell_old_news();
            self.number_a_rollout();
            self.cut_a_watch();
            self.collect_garbage(false);
            self.carry_out_some_late(self.now);
            match self.land_one(false) {
                Some(false) => return false,
                Some(true) => continue,
                None => {}
            }
            if let Some(key) = self.next_key() {
                if !self.work(&key) {
                    return false;
                }
                continue;
            }
            match self.land_one(true) {
                Some(false) => return false,
                Some(true) => continue,
                None => {}
            }
            if self.collect_garbage(true) {
                continue;
            }
            let next = self.timers.iter().map(|(key, time)| (*time, key.clone())).min();
            let list = self.slow_lists.values().min().copied();
            match (next, list) {
                (next, Some(time)) if time <= until && next.as_ref().is_none_or(|next| time <= next.0) => {
                    self.carry_out_some_late(time);
                    self.now = self.now.max(time);
                }
                (Some((time, key)), _) if time <= until => {
                    self.carry_out_some_late(time);
                    self.timers.remove(&key);
                    self.now = self.now.max(time);
                    self.queue.insert(key);
                }
                _ if !self.sent.is_empty() => self.carry_out_some_late(until),
                _ => {
                    self.assert_told_truly();
                    return true;
                }
            }
        }
        let plans: Vec<String> = self
            .queue
            .iter()
            .map(|key| format!("{key:?}: {:?}", self.engine.preview(key, self.now)))
            .collect();
        panic!(
            "it never settles; queued: {plans:#?}; timers: {:?} at {:?}",
            self.timers, self.now
        );
    }

    /// As [`Self::settle_for`], with patience for every timer that matters.
    pub(crate) fn settle(&mut self) -> bool {
        self.settle_for(20_000)
    }

    // --- the shell

    /// A list-and-watch fails from now on, as long as it is `shut`.
    pub(crate) fn lose(&mut self, watch: Watch) {
        self.shut.insert(watch.clone());
        self.watches.remove(&watch);
        let why = "cannot be listed".into();
        self.observe(Observation::Lost { watch, why });
    }

    /// The server ceases to serve this version of a kind: it serves the other one, or none.
    pub(crate) fn unserve(&mut self, watch: Watch, other: Option<&str>) {
        self.shut.insert(watch.clone());
        self.watches.remove(&watch);
        let why = "not served".into();
        let other = other.map(Into::into);
        self.observe(Observation::Unserved { watch, other, why });
    }

    /// Tells, once, of each watch that it is refused.
    fn refuse_watches(&mut self) {
        self.refused.retain(|watch| self.forbidden.contains(watch));
        let forbidden = |watch: &&Watch| self.forbidden.contains(*watch) && !self.refused.contains(*watch);
        let demanded: Vec<Watch> = self.demanded.iter().filter(forbidden).cloned().collect();
        for watch in demanded {
            self.watches.remove(&watch);
            self.refused.insert(watch.clone());
            let why = "forbidden".into();
            self.observe(Observation::Refused { watch, why });
        }
    }

    /// Lists what is demanded: at once and in order, or under chaos one watch after another, each in its own time, while
    /// keys are planned.
    fn open_watches(&mut self) {
        loop {
            self.close_watches();
            self.refuse_watches();
            let closed = self.demanded.iter().filter(|watch| self.can_open(watch));
            let closed: Vec<Watch> = closed.cloned().collect();
            let watch = match &mut self.chaos {
                None => closed.into_iter().next(),
                Some(random) => {
                    self.slow_lists.retain(|watch, _| closed.contains(watch));
                    for watch in closed {
                        let after = [0, 3, 30, 300, 3_000][random.below(5)];
                        let at = self.now.plus(after);
                        self.slow_lists.entry(watch).or_insert(at);
                    }
                    let due = self.slow_lists.iter().filter(|(_, at)| **at <= self.now);
                    due.min_by_key(|(_, at)| **at).map(|(watch, _)| watch.clone())
                }
            };
            let Some(watch) = watch else { return };
            self.slow_lists.remove(&watch);
            if crate::setting("WORLD_TRACE").is_some() {
                eprintln!("OPENS {watch:?}");
            }
            self.watches.insert(watch.clone());
            self.observe(Observation::Listing {
                watch: watch.clone(),
                revision: self.versions.last(),
            });
            let (items, present) = self.list(&watch);
            for object in &items {
                self.observe(Observation::Seen(self.project(&watch, object)));
            }
            let listed = Observation::Listed {
                watch: watch.clone(),
                present,
                revision: self.versions.last(),
            };
            self.lists.insert(watch.clone(), listed.clone());
            self.observe(listed);
            if watch == Watch::Clusters {
                for member in self.members.keys().cloned().collect::<Vec<_>>() {
                    self.probe(&member);
                }
            }
        }
    }

    /// Ends what is not demanded any more, as the shell does: when it is asked for again, it lists again.
    fn close_watches(&mut self) {
        let changes = self.engine.demand_changes();
        if self.demand_taken == Some(changes) {
            return;
        }
        self.demand_taken = Some(changes);
        self.demanded.clone_from(self.engine.demand());
        let mut ended = self.engine.take_ended();
        ended.extend(self.watches.difference(&self.demanded).cloned());
        for watch in ended {
            self.watches.remove(&watch);
            // What it told is not told again: the shell drops the last words of a watch that was ended.
            self.told.retain(|told| !is_told_by(&watch, told));
        }
    }

    /// Works one key, or lets the time of the next timer come. Answers whether there was any.
    fn step(&mut self) -> bool {
        self.open_watches();
        if let Some(key) = self.next_key() {
            return self.work(&key);
        }
        let next = self.timers.iter().map(|(key, time)| (*time, key.clone())).min();
        let Some((time, key)) = next else { return false };
        self.timers.remove(&key);
        self.now = self.now.max(time);
        self.queue.insert(key)
    }

    fn next_key(&mut self) -> Option<Key> {
        let Some(random) = &mut self.chaos else {
            return self.queue.pop_first();
        };
        let at = random.below(self.queue.len());
        let key = self.queue.iter().nth(at)?.clone();
        self.queue.remove(&key);
        Some(key)
    }

    /// Under chaos, now and then an event that was told before is told again, out of order.
    fn tell_old_news(&mut self) {
        let Some(random) = &mut self.chaos else { return };
        if self.told.is_empty() || random.below(4) != 0 {
            return;
        }
        let at = random.below(self.told.len());
        let old = self.told[at].clone();
        self.observe(old);
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
        let copies: Vec<(String, (String, String, String))> = self
            .members
            .iter()
            .flat_map(|(name, member)| member.objects.keys().map(|key| (name.clone(), key.clone())))
            .filter(|(_, key)| key.0 == "Deployment")
            .collect();
        if copies.is_empty() {
            return;
        }
        let (member, key) = copies[random.below(copies.len())].clone();
        self.rollouts -= 1;
        let version = self.versions.advance().to_string();
        let objects = &mut self.members.get_mut(&member).expect("member").objects;
        let copy = objects.get_mut(&key).expect("copy");
        let before = copy.clone();
        let meta = &mut copy["metadata"];
        meta["annotations"]["deployment.kubernetes.io/revision"] = json!(version);
        meta["generation"] = json!(meta["generation"].as_i64().unwrap_or(0) + 1);
        meta["resourceVersion"] = json!(version);
        self.member_changed(&member, &key, &before);
    }

    /// From now on, the events of templates of a kind, or of policies, come late: one with each [`Self::tell_late`], none after a restart.
    pub(crate) fn hold_back(&mut self, kind: &'static str) {
        self.slow = Some(kind);
    }

    /// Tells the first of the events that are late.
    pub(crate) fn tell_late(&mut self) {
        let event = self.late.pop_front().expect("an event that is late");
        self.observe(event);
    }

    /// Tells all events that are late; none will be from now on.
    pub(crate) fn tell_all_late(&mut self) {
        self.slow = None;
        while !self.late.is_empty() {
            self.tell_late();
        }
    }

    fn tell(&mut self, observation: Observation) {
        let kind = match &observation {
            Observation::Seen(Subject::Template(id, _)) => Some(&*id.gvk.kind),
            Observation::Gone {
                which: ObjectRef::Template(id),
                ..
            } => Some(&*id.gvk.kind),
            Observation::Seen(Subject::Policy(_)) => Some("PropagationPolicy"),
            Observation::Seen(Subject::Binding(_)) => Some("ResourceBinding"),
            _ => None,
        };
        if kind.is_some() && kind == self.slow {
            self.late.push_back(observation);
            return;
        }
        if self.chaos.is_some() {
            self.told.push(observation.clone());
        }
        self.observe(observation);
    }

    /// Under chaos, now and then a watch of the hub fails, and lists again some time later.
    fn cut_a_watch(&mut self) {
        let Some(random) = self.chaos.as_mut().filter(|_| self.outages > 0) else {
            return;
        };
        if random.below(50) != 0 {
            return;
        }
        let of_hub = self.watches.iter().filter(|watch| watch.server() == Server::Hub);
        let of_hub: Vec<Watch> = of_hub.cloned().collect();
        if of_hub.is_empty() {
            return;
        }
        let watch = of_hub[random.below(of_hub.len())].clone();
        self.outages -= 1;
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!("LOSES {watch:?}");
        }
        self.watches.remove(&watch);
        let why = "the watch broke".into();
        self.observe(Observation::Lost { watch, why });
    }

    fn can_open(&self, watch: &Watch) -> bool {
        let reachable = match watch.server() {
            Server::Hub => true,
            Server::Member(name) => {
                self.members.get(&*name).is_some_and(|member| !member.down) && !self.is_another(&name)
            }
        };
        let is_kept = self.shut.contains(watch) || self.forbidden.contains(watch);
        reachable && !self.watches.contains(watch) && !is_kept
    }

    /// Another physical cluster answers, or this one does as another one, and the connection is made anew.
    pub(crate) fn become_another(&mut self, member: &str, id: &str) {
        self.set_down(member, true);
        self.members.get_mut(member).expect("member").id = id.into();
        self.set_down(member, false);
    }

    /// Which physical cluster answers.
    fn id_of(&self, member: &str) -> String {
        match self.members[member].id.as_str() {
            "" => format!("id-{member}"),
            id => id.to_owned(),
        }
    }

    /// Whether another cluster answers than the one that the Cluster stands for: the shell does not use the connection.
    fn is_another(&self, member: &str) -> bool {
        let cluster = self.hub.get(&key_named("Cluster", member));
        let stored = cluster.and_then(|cluster| cluster["spec"]["id"].as_str());
        identity::check(member, stored.unwrap_or_default(), &self.id_of(member)).is_err()
    }

    fn probe(&mut self, member: &str) {
        if !self.members[member].down {
            let id = self.id_of(member);
            self.observe(Observation::Identified(member.into(), id.as_str().into()));
        }
        let probe = self.probed(member);
        self.observe(Observation::Probed(member.into(), probe));
    }

    /// What a probe finds.
    fn probed(&self, member: &str) -> Probe {
        let healthy = !self.members[member].down && !self.is_another(member);
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

    /// Something is told that may be old.
    pub(crate) fn tell_again(&mut self, observation: Observation) {
        self.observe(observation);
    }

    fn observe(&mut self, observation: Observation) {
        let dirty = self.engine.observe(observation, self.now);
        let uses: Vec<_> = dirty.iter().filter_map(|key| self.engine.used(key)).collect();
        self.queue.extend(dirty);
        for each in uses {
            if let Some(id) = self.hooked.uses.take(each)
                && let Some(object) = self.hub.get(&id_key(&id)).cloned()
            {
                let watch = Watch::Templates(id.gvk.clone());
                if self.watches.contains(&watch) {
                    let seen = self.project(&watch, &object);
                    self.tell(Observation::Seen(seen));
                }
            }
        }
    }

    fn work(&mut self, key: &Key) -> bool {
        if self.serialization_keys.contains(&key.serialization_key()) {
            self.parked.insert(key.clone());
            return true;
        }
        let plan = self.plan(key);
        self.takes_off(key, &plan) || self.act(key, plan)
    }

    /// Makes the plan for a key, as the shell does right before it is carried out.
    fn plan(&mut self, key: &Key) -> Plan {
        let plan = self.engine.plan(key, self.now);
        if crate::setting("WORLD_TRACE").is_some() {
            eprintln!(
                "{} {key:?} {:?} {:?}",
                self.now.0 % 10_000_000,
                plan.why,
                plan.changes
                    .iter()
                    .map(|c| format!("{c:?}").chars().take(90).collect::<String>())
                    .collect::<Vec<_>>()
            );
        }
        self.queue.extend(self.engine.take_raised());
        if let Some(time) = plan.again_at {
            assert!(time > self.now, "{key:?} asks again in the past");
            self.timers.insert(key.clone(), time);
        }
        for change in &plan.changes {
            if let Change::Deliver { id, cluster, .. } = change {
                self.observe(Observation::Started(cluster.clone(), id.clone()));
            }
        }
        plan
    }

    /// Carries out a plan; false when the process crashed meanwhile.
    fn act(&mut self, key: &Key, plan: Plan) -> bool {
        for change in plan.changes {
            let wrote = self.writes.len();
            let outcome = self.carry_out(change);
            self.now = self.now.plus(1);
            if self.writes.len() > wrote
                && let Some(left) = &mut self.crash_in
            {
                *left -= 1;
                if *left == 0 {
                    return false;
                }
            }
            for observation in outcome.seen {
                self.observe(observation);
            }
            if outcome.failed {
                self.queue.insert(key.clone());
                break;
            }
        }
        true
    }

    // --- the API servers

    /// The object that a POST makes of it.
    fn stamp(&mut self, object: &mut Value) {
        if object["metadata"]["namespace"].is_null()
            && !is_cluster_scoped(object["kind"].as_str().unwrap_or_default())
        {
            object["metadata"]["namespace"] = json!("default");
        }
        let id = ResourceId::of(object).expect("kind and name");
        *object = self.versions.created(&id, object.take(), self.now);
    }

    /// The object that a PUT over another one makes of it.
    fn put(&mut self, held: &Value, next: Value) -> Value {
        let id = ResourceId::of(held).expect("kind and name");
        self.versions.replaced(&id, held, next)
    }

    fn delete_key(&mut self, key: &(String, String, String)) {
        if let Some(id) = self.hub.get(key).and_then(ResourceId::of) {
            executor::delete(self, &id);
        }
    }

    /// An object of the hub is gone.
    fn end(&mut self, key: &(String, String, String)) {
        let Some(held) = self.hub.remove(key) else { return };
        if key.0 == "Namespace" {
            self.deleted_namespaces.insert(key.2.clone());
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
            let marked: Vec<&str> = self.holders(kind, name).into_iter().filter(is_marked).collect();
            let ended = marked
                .into_iter()
                .map(|member| (key.2.clone(), member.to_owned()));
            self.ended.extend(ended.collect::<Vec<_>>());
        }
        self.changed(&Server::Hub, &held, &Value::Null);
    }

    fn hub_changed(&mut self, key: &(String, String, String)) {
        self.note_template(key);
        let object = self.hub[key].clone();
        if truth::is_binding(&object) {
            self.assert_is_true(&object);
        }
        self.changed(&Server::Hub, &Value::Null, &object);
    }

    /// What is taught of what a watch reads, with what hooks say of an object.
    fn heard_by(&self, engine: &Engine, watch: &Watch, object: &Value) -> Interpretation {
        self.hooked.heard(&engine.interpretation_of(watch), watch, object)
    }

    /// Hooks are asked again about everything that they are about.
    pub(crate) fn hear_again(&mut self) {
        for watch in self.watches.clone() {
            if !self.engine.interpretation_of(&watch).is_hooked() {
                continue;
            }
            for object in &self.list(&watch).0 {
                let seen = self.project(&watch, object);
                self.tell(Observation::Seen(seen));
            }
        }
    }

    /// An object as a watch serves it: metadata alone where the shell asks for that.
    fn project(&self, watch: &Watch, object: &Value) -> Subject {
        self.project_for(&self.engine, watch, object)
    }

    /// As [`Self::project`], for a process.
    fn project_for(&self, engine: &Engine, watch: &Watch, object: &Value) -> Subject {
        let interpretation = self.heard_by(engine, watch, object);
        watches::project(engine, watch, &interpretation, object).expect("readable")
    }

    /// Each open watch says how far it has come.
    pub(crate) fn bookmark(&mut self) {
        for watch in self.watches.clone() {
            self.has_come(&watch);
        }
    }

    /// A watch has told everything up to now.
    fn has_come(&mut self, watch: &Watch) {
        self.observe(Observation::Reached {
            watch: watch.clone(),
            revision: self.versions.last(),
        });
    }

    fn member_changed(&mut self, member: &str, key: &(String, String, String), before: &Value) {
        let after = self.at(member, key).cloned().unwrap_or(Value::Null);
        if after.is_null() {
            self.versions.advance();
        }
        self.changed(&Server::Member(member.into()), before, &after);
    }

    /// Every process hears of a change of an object; none is null.
    fn changed(&mut self, server: &Server, before: &Value, after: &Value) {
        for watch in self.watches.clone() {
            if watch.server() == *server
                && self.watches.contains(&watch)
                && let Some(event) = self.event(&self.engine, &watch, before, after)
            {
                self.tell(event);
                self.has_come(&watch);
            }
        }
        self.standby_sees(server, before, after);
    }

    /// What a watch of a process says of a change.
    fn event(&self, engine: &Engine, watch: &Watch, before: &Value, after: &Value) -> Option<Observation> {
        let id = ResourceId::of(after).or_else(|| ResourceId::of(before))?;
        let change = [before, after].map(|object| Some(object).filter(|object| !object.is_null()));
        watches::event(watch, (HUB_ID, &id), change, self.versions.last(), |object| {
            Some(self.project_for(engine, watch, object))
        })
    }

    /// What a watch lists now.
    fn list(&self, watch: &Watch) -> (Vec<Value>, BTreeSet<ObjectRef>) {
        let (items, present) = watches::list(watch, HUB_ID, self.objects(&watch.server()));
        (items.into_iter().cloned().collect(), present)
    }
}

/// Whether it is of a watch of distributed objects that this was told.
fn is_told_by(watch: &Watch, told: &Observation) -> bool {
    let (Watch::Distributed(cluster, gvk, name), Observation::Seen(Subject::Distributed(of, id, _))) =
        (watch, told)
    else {
        return false;
    };
    of == cluster && id.gvk == *gvk && id.name == *name
}

fn is_cluster_scoped(kind: &str) -> bool {
    [
        "Cluster",
        "ClusterOverridePolicy",
        "ClusterPropagationPolicy",
        "ClusterResourceBinding",
        "ClusterRole",
        "ClusterTaintPolicy",
        "CustomResourceDefinition",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "ResourceDistribution",
        "SidecarSet",
        "WorkloadRebalancer",
    ]
    .contains(&kind)
}

fn key_named(kind: &str, name: &str) -> (String, String, String) {
    let namespace = if is_cluster_scoped(kind) { "" } else { "default" };
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

pub(crate) fn key_of(object: &Value) -> (String, String, String) {
    let meta = &object["metadata"];
    let kind = object["kind"].as_str().expect("kind");
    let namespace = if is_cluster_scoped(kind) {
        ""
    } else {
        meta["namespace"].as_str().unwrap_or("default")
    };
    (
        kind_key(object["apiVersion"].as_str().unwrap_or_default(), kind),
        namespace.to_owned(),
        meta["name"].as_str().expect("name").to_owned(),
    )
}

fn id_key(id: &ResourceId) -> (String, String, String) {
    (
        kind_key(&id.gvk.api_version(), &id.gvk.kind),
        id.namespace.to_string(),
        id.name.to_string(),
    )
}

/// A kind as keys name it: with the group where another group has the same kind.
fn kind_key(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((group @ "other.com", _)) => format!("{kind}.{group}"),
        _ => kind.to_owned(),
    }
}

/// Recipes that know whose the copy of a template must be: its binding has one of two names.
fn owners(id: &ResourceId) -> [RenderSpec; 2] {
    let named = |name: &str| RenderSpec {
        hub: HUB_ID.into(),
        binding: NamespacedName::new(&id.namespace, name),
        permanent_id: "".into(),
        interpretation: Default::default(),
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
