//! Emptying namespaces that are being deleted, telling what is left, and letting them go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Controller, Head, Queue, Seen};
use crate::{
    cluster::Inner,
    delete::{self, DeleteOptions, Propagation},
    kinds::namespaces::{KUBERNETES, finalizers},
    registry::rewrite,
    resource::{Object, Resource, Surroundings as _},
    store::Happened,
};

const NAMESPACES: &str = "namespaces";
const PODS: &str = "pods";

/// How long a namespace keeps its content after its deletion. A real cluster waits five seconds, for servers that have not
/// heard of it; here it is enough that a client finds the content as it was when it goes on at once.
const DELAY: Duration = Duration::from_millis(250);

/// The namespaces that are being deleted, and those to look at.
#[derive(Default)]
pub(super) struct Namespaces {
    /// Being deleted, and not yet to be emptied.
    fresh: BTreeMap<String, Instant>,
    /// Being emptied.
    leaving: BTreeSet<String>,
    queue: Queue<String>,
}

impl Controller for Namespaces {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection == NAMESPACES {
            let name = &seen.place.key;
            if seen.happened == Happened::Deleted {
                self.fresh.remove(name);
                self.leaving.remove(name);
                // Something may have come in while the namespace went.
                self.queue.insert(name.clone());
            } else if seen.head.is_leaving() && !self.leaving.contains(name) {
                self.fresh
                    .entry(name.clone())
                    .or_insert_with(|| Instant::now() + DELAY);
            }
        } else if self.leaving.contains(seen.place.namespace()) {
            self.queue.insert(seen.place.namespace().to_owned());
        }
    }

    fn wakes(&self) -> Option<Instant> {
        self.fresh.values().min().copied()
    }

    fn work(&mut self, cluster: &Arc<Inner>) -> bool {
        let now = Instant::now();
        while let Some((name, _)) = self.fresh.iter().find(|(_, due)| **due <= now) {
            let name = name.clone();
            self.fresh.remove(&name);
            self.leaving.insert(name.clone());
            self.queue.insert(name);
        }
        let Some(name) = self.queue.pop_first() else {
            return false;
        };
        let namespace = cluster.get(NAMESPACES, &name);
        match namespace {
            None => {
                empty(cluster, &name);
            }
            Some(namespace) if finalizers(&namespace).any(|one| one == KUBERNETES) => {
                if self.leaving.contains(&name) {
                    finish(cluster, &name);
                }
            }
            Some(_) => {}
        }
        true
    }
}

/// What is left in a namespace: objects by resource, and by finalizer.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

/// Deletes what is in the namespace, says what is left, and takes the controller's finalizer away when nothing is.
fn finish(cluster: &Arc<Inner>, name: &str) {
    let Some(resource) = cluster.kinds().find("", "v1", NAMESPACES).cloned() else {
        return;
    };
    let left = empty(cluster, name);
    let conditions = left.conditions();
    let now = cluster.now();
    rewrite(cluster, &resource, name, "status", &mut |namespace| {
        set_conditions(namespace, &conditions, &now)
    });
    if left.resources.is_empty() {
        rewrite(cluster, &resource, name, "finalize", &mut take_finalizer);
    }
}

fn take_finalizer(namespace: &mut Object) -> bool {
    let others: Vec<Value> = finalizers(namespace)
        .filter(|one| *one != KUBERNETES)
        .map(Value::from)
        .collect();
    let Some(Value::Object(spec)) = namespace.get_mut("spec") else {
        return false;
    };
    if others.is_empty() {
        spec.remove("finalizers").is_some()
    } else {
        let others = Value::Array(others);
        spec.insert("finalizers".to_owned(), others.clone()) != Some(others)
    }
}

/// Deletes all objects of a namespace, pods first. Returns what is left. O(collections + objects in the namespace).
fn empty(cluster: &Arc<Inner>, namespace: &str) -> Left {
    let kinds = cluster.kinds();
    let mut collections: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
    for resource in kinds.all() {
        if resource.namespaced && resource.verbs.contains(&"delete") {
            collections.entry(&resource.collection).or_insert(resource);
        }
    }
    let mut left = Left::default();
    if let Some(pods) = collections.remove(PODS) {
        empty_collection(cluster, pods, namespace, &mut left);
    }
    if left.resources.is_empty() {
        for resource in collections.values() {
            empty_collection(cluster, resource, namespace, &mut left);
        }
    }
    left
}

fn empty_collection(cluster: &Arc<Inner>, resource: &Resource, namespace: &str, left: &mut Left) {
    let prefix = format!("{namespace}/");
    let options = DeleteOptions {
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    let list = || cluster.store.list(&resource.collection, &prefix, None, 0).entries;
    for entry in list() {
        if let Err(status) =
            delete::object(cluster, resource, namespace, &entry.key[prefix.len()..], &options)
            && status.code != 404
        {
            tracing::warn!(collection = resource.collection, key = entry.key, %status.message, "content stays");
        }
    }
    let rest = list();
    if rest.is_empty() {
        return;
    }
    let name = format!("{}.{}", resource.plural, resource.group);
    left.resources.insert(name, rest.len());
    for entry in rest {
        for finalizer in Head::of(&entry).finalizers {
            *left.finalizers.entry(finalizer).or_default() += 1;
        }
    }
}

/// A condition: type, status, reason, message.
type Condition = (&'static str, &'static str, &'static str, String);

impl Left {
    fn conditions(&self) -> [Condition; 5] {
        let resources: Vec<String> = self
            .resources
            .iter()
            .map(|(name, count)| format!("{name} has {count} resource instances"))
            .collect();
        let finalizers: Vec<String> = self
            .finalizers
            .iter()
            .map(|(name, count)| format!("{name} in {count} resource instances"))
            .collect();
        [
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            (
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            if resources.is_empty() {
                (
                    "NamespaceContentRemaining",
                    "False",
                    "ContentRemoved",
                    "All content successfully removed".to_owned(),
                )
            } else {
                (
                    "NamespaceContentRemaining",
                    "True",
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {}", resources.join(", ")),
                )
            },
            if finalizers.is_empty() {
                (
                    "NamespaceFinalizersRemaining",
                    "False",
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished".to_owned(),
                )
            } else {
                (
                    "NamespaceFinalizersRemaining",
                    "True",
                    "SomeFinalizersRemain",
                    format!(
                        "Some content in the namespace has finalizers remaining: {}",
                        finalizers.join(", ")
                    ),
                )
            },
        ]
    }
}

/// Writes the conditions that differ; returns whether any did.
fn set_conditions(namespace: &mut Object, conditions: &[Condition], now: &str) -> bool {
    let Some(Value::Object(status)) = namespace.get_mut("status") else {
        return false;
    };
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = list else { return false };
    let mut changed = false;
    for (kind, state, reason, message) in conditions {
        let said = |value: &Value| {
            [("status", *state), ("reason", reason), ("message", message)]
                .iter()
                .all(|(name, text)| value.get(name).and_then(Value::as_str) == Some(text))
        };
        let found = list
            .iter_mut()
            .find(|value| value.get("type").and_then(Value::as_str) == Some(kind));
        let next = || {
            json!({"type": kind, "status": state, "reason": reason, "message": message,
                "lastTransitionTime": now})
        };
        match found {
            Some(value) if said(value) => continue,
            Some(value) => *value = next(),
            None => list.push(next()),
        }
        changed = true;
    }
    changed
}
