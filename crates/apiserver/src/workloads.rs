//! A stand-in for the workload controllers, the scheduler and the kubelets of a cluster: workloads get Pods, and Pods
//! become Ready, or fail if an annotation requests it.
//!
//! For members only: a hub runs no workloads. The life cycle of a Pod is data ([`Stages`]); the Pods of a workload are
//! determined by pure functions (module `owners`). One task per cluster reads the store's events and sends ordinary requests.
//! Cost of an event: the children of one workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::{
    admission::Context,
    cluster::Cluster,
    controllers::{Head, StandIns},
    object::{Object, tree::below},
    resource::stored,
    store::{Entry, Happened, Reader, Store},
};

mod action;
mod binding;
mod cron;
mod daemon;
mod deployment;
mod indexes;
mod jobs;
mod node;
mod owners;
mod parts;
mod policies;
mod replicas;
mod revisions;
mod stages;
mod stateful;
mod zones;

use action::{Action, address, carry_out};
use node::{NODE, NODES, Node};
use parts::{Around, is_leaving, part};
pub use stages::Stages;

/// The collections that are looked at, the node first, workloads before what they own.
const WATCHED: [&str; 11] = [
    NODES,
    "apps/deployments",
    "apps/replicasets",
    "replicationcontrollers",
    "apps/statefulsets",
    DAEMONS,
    "batch/cronjobs",
    "batch/jobs",
    REVISIONS,
    PODS,
    CLAIMS,
];

const DAEMONS: &str = "apps/daemonsets";
const REVISIONS: &str = "apps/controllerrevisions";
const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";

/// The place of an object: number of its collection and key in it.
type At = (usize, String);

/// The objects that are to be processed.
type Dirty = BTreeSet<At>;

/// The first pause before what was refused is tried again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// The longest time until an object is processed again: a machine that slept has another time than its timers.
const LOOK: Duration = Duration::from_secs(3600);

/// The state of the task.
#[derive(Default)]
struct State {
    /// The parts of a whole cluster that this one has.
    stand_ins: StandIns,
    /// True if claims that are being deleted are released elsewhere.
    storage_protection: bool,
    /// The node that pods run on.
    node: Node,
    /// The position in the events, by collection.
    seen: [Option<Reader>; WATCHED.len()],
    /// The objects that the object of a uid controls.
    children: BTreeMap<String, BTreeSet<At>>,
    /// The uid of the controller of each object that has one.
    owners: BTreeMap<At, String>,
    /// The objects without a controller that a workload may adopt, and their labels.
    orphans: BTreeMap<At, Object>,
    /// Those of them whose owners have not looked at their labels yet.
    adopters: BTreeSet<At>,
    /// The pods that wait for the node or for a claim.
    unscheduled: BTreeSet<At>,
    /// True if the node changed and the DaemonSets have not been looked at yet.
    node_changed: bool,
    /// The objects that are processed again, and the times.
    later: BTreeSet<(Instant, At)>,
    /// The same by object: each has one time.
    again: BTreeMap<At, Instant>,
    /// The number of consecutive refusals about an object, and the last error.
    refused: BTreeMap<At, (u32, String)>,
}

/// Starts the stand-in as a task of the current Tokio runtime. It ends with the cluster.
pub fn start(cluster: &Cluster, stages: Stages) {
    let (weak, service) = (std::sync::Arc::downgrade(cluster.inner()), cluster.weak_service());
    let mut ticks = cluster.inner().store.ticks();
    let options = &cluster.inner().options;
    let mut state = State {
        stand_ins: options.stand_ins,
        storage_protection: options.storage_protection,
        ..State::default()
    };
    tokio::spawn(async move {
        loop {
            let mut dirty = Dirty::new();
            {
                let Some(inner) = weak.upgrade() else { return };
                ticks.borrow_and_update();
                state.observe(&inner.store, &mut dirty);
            }
            let now = Instant::now();
            while state.later.first().is_some_and(|(time, _)| *time <= now) {
                dirty.extend(state.later.pop_first().map(|(_, at)| at));
            }
            for at in dirty {
                let Some(inner) = weak.upgrade() else { return };
                let (actions, again) = state.decide(&*inner, &at, &stages);
                drop(inner);
                let mut refusal = None;
                for action in actions {
                    // A create that is refused once is refused a hundred times, and there is no event of it.
                    if refusal.is_some() && matches!(action, Action::Create { .. }) {
                        continue;
                    }
                    let Some(service) = service() else { return };
                    refusal = carry_out(service, action).await.or(refusal);
                }
                let pause = state.pause(&at, refusal);
                state.postpone(at, again.into_iter().chain(pause).min());
            }
            let next = state.later.first().map(|(at, ..)| *at);
            tokio::select! {
                changed = ticks.changed() => if changed.is_err() { return },
                () = async {
                    match next {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    });
}

impl State {
    /// Adds the objects that changed, and those whose children did, to `dirty`.
    fn observe(&mut self, store: &Store, dirty: &mut Dirty) {
        for (number, collection) in WATCHED.iter().enumerate() {
            let read = |seen: &Reader| {
                let (events, reached) = store.events(collection, "", seen.at(), usize::MAX).ok()?;
                seen.reached(reached);
                Some(events)
            };
            match self.seen[number].as_ref().and_then(read) {
                Some(events) => {
                    for event in events {
                        let gone = event.happened == Happened::Deleted;
                        self.mark(number, &event.entry, gone, dirty);
                    }
                }
                // The first look, or more happened than the store remembers.
                _ => {
                    let page = store.list(collection, "", None, 0);
                    self.seen[number] = Some(store.reader(collection, page.revision));
                    let known: Vec<At> = self.owners.keys().filter(|at| at.0 == number).cloned().collect();
                    for at in known {
                        self.set_owner(&at, None);
                    }
                    self.orphans.retain(|at, _| at.0 != number);
                    self.unscheduled.retain(|at| at.0 != number);
                    for entry in page.entries {
                        self.mark(number, &entry, false, dirty);
                    }
                }
            }
        }
        self.mark_others(store, dirty);
    }

    fn mark(&mut self, number: usize, entry: &Entry, gone: bool, dirty: &mut Dirty) {
        let at = (number, entry.key.clone());
        if WATCHED[number] == NODES {
            return self.see_node(entry, gone, dirty);
        }
        let head = Head::of(entry);
        let namespace = namespace_of(&entry.key);
        let controller = head.controller();
        let owner = controller.map(|owner| owner.uid.as_str()).filter(|_| !gone);
        self.set_owner(&at, owner);
        if gone {
            self.refused.remove(&at);
            self.unscheduled.remove(&at);
            // Its pods wait to be released.
            dirty.extend(self.children.get(&head.uid).into_iter().flatten().cloned());
        }
        if WATCHED[number] == CLAIMS {
            // They are pods.
            let from = self.unscheduled.first().map_or(0, |at| at.0);
            let waiting = self.unscheduled.range((from, format!("{namespace}/"))..);
            dirty.extend(
                waiting
                    .take_while(|(_, key)| key.split('/').next() == Some(namespace))
                    .cloned(),
            );
        }
        if let Some((collection, name)) = controller.and_then(owners::place_of)
            && let Some(number) = number_of(collection)
        {
            dirty.insert((number, format!("{namespace}/{name}")));
        }
        let adoptable = owners::KINDS.iter().any(|kind| kind.adopts(WATCHED[number]));
        if gone || controller.is_some() || !adoptable {
            self.orphans.remove(&at);
        } else {
            let object = stored::decode_without_books(&entry.object);
            let labels = below(below(&object, "metadata"), "labels").clone();
            if self.orphans.get(&at) != Some(&labels) {
                self.orphans.insert(at.clone(), labels);
                self.adopters.insert(at.clone());
            }
        }
        dirty.insert(at);
    }

    /// Another state of the node: pods that wait may run on it, and DaemonSets may have to leave it.
    fn see_node(&mut self, entry: &Entry, gone: bool, dirty: &mut Dirty) {
        if entry.key != NODE {
            return;
        }
        let node = if gone {
            Node::default()
        } else {
            Node::of(&stored::decode_without_books(&entry.object))
        };
        if node != self.node {
            self.node = node;
            self.node_changed = true;
            dirty.extend(self.unscheduled.iter().cloned());
        }
    }

    /// Marks what changes of others concern: the owners that may adopt new orphans, and the DaemonSets when the node changed.
    fn mark_others(&mut self, store: &Store, dirty: &mut Dirty) {
        let mut mark = |collection: &str, prefix: &str| {
            let Some(number) = number_of(collection) else {
                return;
            };
            let page = store.list(collection, prefix, None, 0);
            dirty.extend(page.entries.iter().map(|entry| (number, entry.key.clone())));
        };
        if std::mem::take(&mut self.node_changed) {
            mark(DAEMONS, "");
        }
        let orphans = std::mem::take(&mut self.adopters);
        let places = orphans.iter().map(|(number, key)| (*number, namespace_of(key)));
        for (number, namespace) in places.collect::<BTreeSet<_>>() {
            for kind in owners::KINDS.iter().filter(|kind| kind.adopts(WATCHED[number])) {
                mark(kind.collection, &format!("{namespace}/"));
            }
        }
    }

    fn set_owner(&mut self, at: &At, owner: Option<&str>) {
        if self.owners.get(at).map(String::as_str) == owner {
            return;
        }
        if let Some(former) = self.owners.remove(at)
            && let Some(children) = self.children.get_mut(&former)
        {
            children.remove(at);
            if children.is_empty() {
                self.children.remove(&former);
            }
        }
        if let Some(owner) = owner {
            self.owners.insert(at.clone(), owner.to_owned());
            self.children
                .entry(owner.to_owned())
                .or_default()
                .insert(at.clone());
        }
    }

    /// The requests about one object, and the time until it is processed again.
    fn decide(&mut self, cluster: &dyn Context, at: &At, stages: &Stages) -> (Vec<Action>, Option<Duration>) {
        let (collection, key) = (WATCHED[at.0], &at.1);
        let store = cluster.store();
        let Some(object) = read(store, collection, key) else {
            return (Vec::new(), None);
        };
        let namespace = namespace_of(key);
        let around = Around {
            now: cluster.now(),
            time: cluster.timestamp(),
            node: self.node.clone(),
            refusal: self.refused.get(at).map(|(_, error)| error.clone()),
        };
        let kind = owners::KINDS.iter().find(|kind| kind.collection == collection);
        match collection {
            PODS => self.pod(store, at, &object, stages, &around),
            CLAIMS if self.stand_ins.volumes && (self.storage_protection || !is_leaving(&object)) => {
                (Vec::new(), None)
            }
            CLAIMS => stages.next(collection, &object, &around.now, around.time),
            _ => match kind.filter(|kind| (kind.is_on)(&self.stand_ins)) {
                Some(kind) => self.workload(store, (kind, namespace), &object, &around),
                None => (Vec::new(), None),
            },
        }
    }

    fn workload(
        &self,
        store: &Store,
        (kind, namespace): (&owners::Kind, &str),
        object: &Object,
        around: &Around,
    ) -> (Vec<Action>, Option<Duration>) {
        let read_at = |at: &At| read(store, WATCHED[at.0], &at.1);
        let in_namespace = |at: &&At| namespace_of(&at.1) == namespace;
        let children = |collection: &str| -> Vec<Object> {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let children = self.children.get(uid).into_iter().flatten();
            let of_kind = children
                .filter(|at| WATCHED[at.0] == collection)
                .filter(in_namespace);
            of_kind.filter_map(read_at).collect()
        };
        let orphans = |collection: &str| {
            let number = number_of(collection).unwrap_or(WATCHED.len());
            self.orphans
                .range((number, format!("{namespace}/"))..)
                .take_while(move |(at, _)| at.0 == number && in_namespace(at))
        };
        let of_kind = orphans(kind.children);
        let (owned, mut actions) = owners::claim(kind, object, children(kind.children), of_kind, read_at);
        let mut revisions = children(REVISIONS);
        for (revision, action) in owners::adopt(kind, REVISIONS, object, orphans(REVISIONS), read_at) {
            revisions.push(revision);
            actions.push(action);
        }
        let claims = |name: &str| read(store, CLAIMS, &format!("{namespace}/{name}"));
        let (more, again) = match kind.collection {
            "apps/deployments" => deployment::deployment(object, &owned, around),
            "apps/replicasets" => replicas::replica_set(object, replicas::SETS, &owned, around),
            "replicationcontrollers" => replicas::replica_set(object, replicas::CONTROLLERS, &owned, around),
            "apps/statefulsets" => stateful::stateful_set(object, &owned, &revisions, &claims, around),
            DAEMONS => daemon::daemon_set(object, &owned, &revisions, around),
            "batch/cronjobs" => cron::cron_job(object, &children("batch/jobs"), around.time),
            "batch/jobs" => jobs::job(object, &owned, around),
            _ => (Vec::new(), None),
        };
        actions.extend(more);
        (actions, again)
    }

    /// A pod is released from a Job that is gone, is given to the node, or goes on with its life.
    fn pod(
        &mut self,
        store: &Store,
        at: &At,
        pod: &Object,
        stages: &Stages,
        around: &Around,
    ) -> (Vec<Action>, Option<Duration>) {
        let namespace = namespace_of(&at.1);
        let mut actions = Vec::new();
        let job = self.owners.get(at);
        let is_of = |job: &String| {
            let owners = pod["metadata"]["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten();
            let name = owners
                .filter(|one| one["uid"] == job.as_str())
                .filter_map(|one| one["name"].as_str())
                .next();
            let entry = store.get("batch/jobs", &format!("{namespace}/{}", name.unwrap_or_default()));
            entry.is_some_and(|entry| Head::of(&entry).uid == *job)
        };
        if !job.is_some_and(is_of) {
            actions.extend(jobs::release(pod));
        }
        let waits = parts::text(&part(pod, "spec")["nodeName"]).is_empty() && !is_leaving(pod);
        if waits {
            let claim = |name: &str| read(store, CLAIMS, &format!("{namespace}/{name}"));
            let (more, refused) = binding::wait(pod, &claim, self.stand_ins.volumes, around);
            actions.extend(more);
            if refused {
                self.unscheduled.insert(at.clone());
                return (actions, None);
            }
        }
        self.unscheduled.remove(at);
        let (mut more, again) = stages.next(PODS, pod, &around.now, around.time);
        if self.stand_ins.endpoints {
            more.iter_mut().for_each(|action| address(pod, action));
        }
        actions.extend(more);
        (actions, again)
    }

    /// Has an object processed again after some time, and not before unless it changes.
    fn postpone(&mut self, at: At, after: Option<Duration>) {
        if let Some(before) = self.again.remove(&at) {
            self.later.remove(&(before, at.clone()));
        }
        if let Some(after) = after {
            let time = Instant::now() + after.min(LOOK);
            self.again.insert(at.clone(), time);
            self.later.insert((time, at));
        }
    }

    /// The time before an object is processed again after a refusal.
    fn pause(&mut self, at: &At, refusal: Option<String>) -> Option<Duration> {
        let Some(refusal) = refusal else {
            self.refused.remove(at);
            return None;
        };
        let (times, error) = self.refused.entry(at.clone()).or_default();
        *error = refusal;
        let (first, longest) = PAUSES;
        let pause = first.saturating_mul(2_u32.saturating_pow(*times)).min(longest);
        *times += 1;
        Some(pause)
    }
}

/// The number of a collection that is watched.
fn number_of(collection: &str) -> Option<usize> {
    WATCHED.iter().position(|watched| *watched == collection)
}

fn namespace_of(key: &str) -> &str {
    key.split('/').next().unwrap_or_default()
}

/// An object as it is now.
fn read(store: &Store, collection: &str, key: &str) -> Option<Object> {
    let entry = store.get(collection, key)?;
    Some(stored::decode_without_books(&entry.object))
}
