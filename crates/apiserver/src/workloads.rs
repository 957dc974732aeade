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

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt as _;

use crate::{
    admission::Context,
    cluster::{self, Cluster},
    controllers::Head,
    object::Object,
    resource::stored,
    store::{Entry, Happened, Reader, Store},
};

mod cron;
mod owners;
mod parts;
mod stages;

pub use stages::Stages;

/// The collections that are looked at, workloads before what they own.
const WATCHED: [&str; 8] = [
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "batch/cronjobs",
    "batch/jobs",
    "pods",
    "persistentvolumeclaims",
];

/// A request about one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// POST to a collection.
    Create {
        /// Path of the collection.
        path: String,
        /// The object.
        object: Value,
    },
    /// A merge patch.
    Patch {
        /// Path of the object or of its status.
        path: String,
        /// The patch.
        patch: Value,
    },
    /// DELETE, with these options.
    Delete {
        /// Path of the object.
        path: String,
        /// DeleteOptions.
        options: Value,
    },
}

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
    /// True if CronJobs get Jobs.
    cron_jobs: bool,
    /// The position in the events, by collection.
    seen: [Option<Reader>; WATCHED.len()],
    /// The objects that the object of a uid controls.
    children: BTreeMap<String, BTreeSet<At>>,
    /// The uid of the controller of each object that has one.
    owners: BTreeMap<At, String>,
    /// The objects that are processed again, and the times.
    later: BTreeSet<(Instant, At)>,
    /// The same by object: each has one time.
    again: BTreeMap<At, Instant>,
    /// The number of consecutive refusals about an object.
    refused: BTreeMap<At, u32>,
}

/// Starts the stand-in as a task of the current Tokio runtime. It ends with the cluster.
pub fn start(cluster: &Cluster, stages: Stages) {
    let (weak, service) = (std::sync::Arc::downgrade(cluster.inner()), cluster.weak_service());
    let mut ticks = cluster.inner().store.ticks();
    let cron_jobs = cluster.inner().options.stand_ins.cron_jobs;
    tokio::spawn(async move {
        let mut state = State {
            cron_jobs,
            ..State::default()
        };
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
                let mut refused = false;
                for action in actions {
                    // A create that is refused once is refused a hundred times.
                    if refused && matches!(action, Action::Create { .. }) {
                        continue;
                    }
                    let Some(service) = service() else { return };
                    refused |= carry_out(service, action).await == Outcome::Refused;
                }
                let pause = state.pause(&at, refused);
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
                    for entry in page.entries {
                        self.mark(number, &entry, false, dirty);
                    }
                }
            }
        }
    }

    fn mark(&mut self, number: usize, entry: &Entry, gone: bool, dirty: &mut Dirty) {
        let at = (number, entry.key.clone());
        let head = Head::of(entry);
        let controller = head.controller();
        let owner = controller.map(|owner| owner.uid.as_str()).filter(|_| !gone);
        self.set_owner(&at, owner);
        if gone {
            self.refused.remove(&at);
        }
        dirty.insert(at);
        if let Some((collection, name)) = controller.and_then(owners::place_of)
            && let Some(number) = WATCHED.iter().position(|watched| *watched == collection)
        {
            let namespace = entry.key.split('/').next().unwrap_or_default();
            dirty.insert((number, format!("{namespace}/{name}")));
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
    fn decide(&self, cluster: &dyn Context, at: &At, stages: &Stages) -> (Vec<Action>, Option<Duration>) {
        let (collection, key) = (WATCHED[at.0], &at.1);
        let (store, now) = (cluster.store(), cluster.now());
        let Some(entry) = store.get(collection, key) else {
            return (Vec::new(), None);
        };
        let object = stored::decode_without_books(&entry.object);
        let namespace = key.split('/').next().unwrap_or_default();
        let children = |collection: &str| -> Vec<Object> {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let children = self.children.get(uid).into_iter().flatten();
            let entries = children
                .filter(|(number, key)| {
                    WATCHED[*number] == collection && key.split('/').next() == Some(namespace)
                })
                .filter_map(|(_, key)| store.get(collection, key));
            entries
                .map(|entry| stored::decode_without_books(&entry.object))
                .collect()
        };
        match collection {
            "apps/deployments" => (
                owners::deployment(&object, &children("apps/replicasets"), &now),
                None,
            ),
            "apps/replicasets" => (owners::replica_set(&object, &children("pods")), None),
            "apps/statefulsets" => (owners::stateful_set(&object, &children("pods")), None),
            "apps/daemonsets" => (owners::daemon_set(&object, &children("pods")), None),
            "batch/cronjobs" if self.cron_jobs => {
                cron::cron_job(&object, &children("batch/jobs"), cluster.timestamp())
            }
            "batch/cronjobs" => (Vec::new(), None),
            "batch/jobs" => (owners::job(&object, &children("pods"), &now), None),
            _ => stages.next(collection, &object, &now, cluster.timestamp()),
        }
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
    fn pause(&mut self, at: &At, refused: bool) -> Option<Duration> {
        if !refused {
            self.refused.remove(at);
            return None;
        }
        let times = self.refused.entry(at.clone()).or_default();
        let (first, longest) = PAUSES;
        let pause = first.saturating_mul(2_u32.saturating_pow(*times)).min(longest);
        *times += 1;
        Some(pause)
    }
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// For a reason that may pass without an event.
    Refused,
}

async fn carry_out(service: cluster::Service, action: Action) -> Outcome {
    let (method, path, content_type, body) = match action {
        Action::Create { path, object } => ("POST", path, "application/json", object),
        Action::Patch { path, patch } => ("PATCH", path, "application/merge-patch+json", patch),
        Action::Delete { path, options } => ("DELETE", path, "application/json", options),
    };
    let request = Request::builder()
        .method(method)
        .uri(&path)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::USER_AGENT, "kube-controller-manager/stand-in")
        .body(Full::new(Bytes::from(body.to_string())));
    let Ok(request) = request else {
        return Outcome::Done;
    };
    let Ok(response) = service.oneshot(request).await;
    let status = response.status();
    // Another writer was faster: its event is on its way.
    if status.is_success() || matches!(status.as_u16(), 404 | 409) {
        return Outcome::Done;
    }
    let body = response.into_body().collect().await;
    let reported = body.map(|body| body.to_bytes()).unwrap_or_default();
    let message = serde_json::from_slice::<Value>(&reported).unwrap_or_default()["message"].clone();
    tracing::warn!(method, path, status = status.as_u16(), %message, "the workload stand-in was refused");
    Outcome::Refused
}
