//! A stand-in for the workload controllers, the scheduler and the kubelets of a cluster: workloads get Pods, and Pods
//! become Ready, or fail when they are asked to.
//!
//! For members only: a hub runs no workloads. What a Pod goes through is data ([`Stages`]); which Pods a workload has is
//! decided by pure functions (module `owners`). One task per cluster reads the store's events and sends ordinary requests.
//! Cost of an event: the children of one workload.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt as _;

use crate::{
    cluster::{self, Cluster, Inner},
    resource::Object,
    store::Revision,
};

mod owners;
mod parts;
mod stages;

pub use stages::Stages;

/// The collections that are looked at, workloads before what they own.
const WATCHED: [&str; 7] = [
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "batch/jobs",
    "pods",
    "persistentvolumeclaims",
];

/// What is to be done about one object.
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

/// Keys that are to be looked at: collection and key in it.
type Dirty = BTreeSet<(usize, String)>;

/// Starts the stand-in as a task of the current Tokio runtime. It ends with the cluster.
pub fn start(cluster: &Cluster, stages: Stages) {
    let (weak, service) = (std::sync::Arc::downgrade(cluster.inner()), cluster.weak_service());
    let mut ticks = cluster.inner().store.ticks();
    tokio::spawn(async move {
        let mut seen = [None; WATCHED.len()];
        let mut later: BTreeSet<(Instant, usize, String)> = BTreeSet::new();
        loop {
            let mut dirty = Dirty::new();
            {
                let Some(inner) = weak.upgrade() else { return };
                ticks.borrow_and_update();
                observe(&inner, &mut seen, &mut dirty);
            }
            let now = Instant::now();
            while let Some((at, ..)) = later.first()
                && *at <= now
            {
                if let Some((_, collection, key)) = later.pop_first() {
                    dirty.insert((collection, key));
                }
            }
            for (collection, key) in dirty {
                let Some(inner) = weak.upgrade() else { return };
                let (actions, again) = decide(&inner, collection, &key, &stages);
                drop(inner);
                if let Some(after) = again {
                    later.insert((Instant::now() + after, collection, key));
                }
                for action in actions {
                    let Some(service) = service() else { return };
                    carry_out(service, action).await;
                }
            }
            let next = later.first().map(|(at, ..)| *at);
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

/// What changed since the last look, and whose children changed.
fn observe(inner: &Inner, seen: &mut [Option<Revision>], dirty: &mut Dirty) {
    for (number, collection) in WATCHED.iter().enumerate() {
        let events = seen[number].map(|revision| inner.store.events(collection, "", revision, usize::MAX));
        match events {
            Some(Ok((events, reached))) => {
                seen[number] = Some(reached);
                for event in events {
                    mark(number, &event.entry.key, &event.entry.object, dirty);
                }
            }
            // The first look, or more happened than the store remembers.
            _ => {
                let page = inner.store.list(collection, "", None, 0);
                seen[number] = Some(page.revision);
                for entry in page.entries {
                    mark(number, &entry.key, &entry.object, dirty);
                }
            }
        }
    }
}

fn mark(number: usize, key: &str, bytes: &Bytes, dirty: &mut Dirty) {
    dirty.insert((number, key.to_owned()));
    let object = cluster::decode(bytes);
    if let Some((collection, name)) = owners::controller_of(&object)
        && let Some(number) = WATCHED.iter().position(|watched| *watched == collection)
    {
        let namespace = key.split('/').next().unwrap_or_default();
        dirty.insert((number, format!("{namespace}/{name}")));
    }
}

/// What is to be done about one object, and when to look at it again.
fn decide(inner: &Inner, number: usize, key: &str, stages: &Stages) -> (Vec<Action>, Option<Duration>) {
    let collection = WATCHED[number];
    let Some(entry) = inner.store.get(collection, key) else {
        return (Vec::new(), None);
    };
    let object = cluster::decode(&entry.object);
    let namespace = key.split('/').next().unwrap_or_default();
    let children = |collection: &str| -> Vec<Object> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let page = inner.store.list(collection, &format!("{namespace}/"), None, 0);
        let objects = page.entries.iter().map(|entry| cluster::decode(&entry.object));
        objects
            .filter(|child| owners::is_controlled_by(child, uid))
            .collect()
    };
    let now = crate::resource::Surroundings::now(inner);
    match collection {
        "apps/deployments" => (
            owners::deployment(&object, &children("apps/replicasets"), &now),
            None,
        ),
        "apps/replicasets" => (owners::replica_set(&object, &children("pods")), None),
        "apps/statefulsets" => (owners::stateful_set(&object, &children("pods")), None),
        "apps/daemonsets" => (owners::daemon_set(&object, &children("pods")), None),
        "batch/jobs" => (owners::job(&object, &children("pods"), &now), None),
        _ => stages.next(collection, &object, &now, jiff::Timestamp::now()),
    }
}

async fn carry_out(service: cluster::Service, action: Action) {
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
    let Ok(request) = request else { return };
    let Ok(response) = service.oneshot(request).await;
    let status = response.status();
    // Somebody else was faster: the event about that is on its way.
    if !status.is_success() && !matches!(status.as_u16(), 404 | 409) {
        let body = response.into_body().collect().await;
        let told = body.map(|body| body.to_bytes()).unwrap_or_default();
        let message = serde_json::from_slice::<Value>(&told).unwrap_or_default()["message"].clone();
        tracing::warn!(method, path, status = status.as_u16(), %message, "the workload stand-in was refused");
    }
}
