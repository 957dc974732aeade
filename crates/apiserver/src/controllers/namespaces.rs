//! The namespace controller: it empties namespaces that are being deleted, reports what is left, and removes its finalizer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Context, Controller, Head, Queue, Seen};
use crate::{
    delete::{self, DeleteOptions, Propagation},
    kinds::core::namespace::{KUBERNETES, finalizers},
    object::{Object, field},
    registry::rewrite,
    resource::Resource,
    store::{Happened, Revision},
};

const NAMESPACES: &str = "namespaces";
const PODS: &str = "pods";

/// The time for which a namespace keeps its content after its deletion. A real cluster waits five seconds, for servers that have
/// not observed it; here it is enough that a client finds the content as it was when it goes on at once.
const DELAY: Duration = Duration::from_millis(250);

/// The time in which changes in a namespace that is being emptied are gathered before it is processed again.
const GATHER: Duration = Duration::from_millis(50);

/// The namespaces that are being deleted, and those to look at.
#[derive(Default)]
pub(super) struct Namespaces {
    /// Being deleted: by name, with the uid, as another namespace of the name may follow.
    leaving: BTreeMap<String, String>,
    /// The times at which those are processed.
    due: BTreeMap<String, Instant>,
    /// The namespaces that are deleted, with the revision of the deletion: an object may have been created meanwhile.
    gone: Queue<(String, Revision)>,
}

impl Namespaces {
    fn look(&mut self, name: &str, after: Duration) {
        let due = || Instant::now() + after;
        self.due.entry(name.to_owned()).or_insert_with(due);
    }

    fn forget(&mut self, name: &str) {
        self.leaving.remove(name);
        self.due.remove(name);
    }
}

impl Controller for Namespaces {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection == NAMESPACES {
            let name = &seen.place.key;
            let uid = &seen.head.uid;
            if seen.happened == Happened::Deleted {
                if self.leaving.get(name) == Some(uid) {
                    self.forget(name);
                }
                self.gone.insert((name.clone(), seen.revision));
            } else if seen.head.is_leaving() && self.leaving.get(name) != Some(uid) {
                self.forget(name);
                self.leaving.insert(name.clone(), uid.clone());
                self.look(name, DELAY);
            }
        } else if self.leaving.contains_key(seen.place.namespace()) {
            self.look(seen.place.namespace(), GATHER);
        }
    }

    fn wakes(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        if let Some((name, revision)) = self.gone.pop_first() {
            // Newer objects belong to another namespace of the same name.
            empty(cluster, &name, Some(revision));
            return true;
        }
        let now = Instant::now();
        let Some(name) = self
            .due
            .iter()
            .find(|(_, due)| **due <= now)
            .map(|(name, _)| name.clone())
        else {
            return false;
        };
        self.due.remove(&name);
        let (Some(uid), Some(namespace)) = (self.leaving.get(&name), cluster.get(NAMESPACES, &name)) else {
            return true;
        };
        let is_meant = field(&namespace, "uid") == uid && !field(&namespace, "deletionTimestamp").is_empty();
        if is_meant && finalizers(&namespace).any(|one| one == KUBERNETES) {
            finish(cluster, &name, uid);
        }
        true
    }
}

/// The remaining content of a namespace: objects by resource, and by finalizer.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

/// Deletes the content of the namespace, reports what is left, and removes the controller's finalizer when nothing is.
fn finish(cluster: &dyn Context, name: &str, uid: &str) {
    let Some(resource) = cluster.kinds().find("", "v1", NAMESPACES).cloned() else {
        return;
    };
    let left = empty(cluster, name, None);
    let conditions = left.conditions();
    let now = cluster.now();
    rewrite(cluster, &resource, name, "status", &mut |namespace| {
        field(namespace, "uid") == uid && set_conditions(namespace, &conditions, &now)
    });
    if left.resources.is_empty() {
        rewrite(cluster, &resource, name, "finalize", &mut |namespace| {
            field(namespace, "uid") == uid && take_finalizer(namespace)
        });
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

/// Deletes all objects of a namespace, pods first, or only those that were made before a revision. Returns what is left.
/// O(collections + objects in the namespace).
fn empty(cluster: &dyn Context, namespace: &str, before: Option<Revision>) -> Left {
    let kinds = cluster.kinds();
    let mut collections: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
    for resource in kinds.all() {
        if resource.namespaced && resource.verbs.contains(&"delete") {
            collections.entry(&resource.collection).or_insert(resource);
        }
    }
    let mut left = Left::default();
    if let Some(pods) = collections.remove(PODS) {
        empty_collection(cluster, pods, namespace, before, &mut left);
    }
    if left.resources.is_empty() {
        for resource in collections.values() {
            empty_collection(cluster, resource, namespace, before, &mut left);
        }
    }
    left
}

fn empty_collection(
    cluster: &dyn Context,
    resource: &Resource,
    namespace: &str,
    before: Option<Revision>,
    left: &mut Left,
) {
    let prefix = format!("{namespace}/");
    let list = || {
        let mut entries = cluster
            .store()
            .list(&resource.collection, &prefix, None, 0)
            .entries;
        entries.retain(|entry| before.is_none_or(|before| entry.created < before));
        entries
    };
    for entry in list() {
        let head = Head::of(&entry);
        // Asking once more changes nothing.
        if head.is_leaving() {
            continue;
        }
        let options = DeleteOptions {
            uid: Some(head.uid),
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        if let Err(status) =
            delete::object(cluster, resource, namespace, &entry.key[prefix.len()..], &options)
            && !matches!(status.code, 404 | 409)
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

/// Writes the conditions that differ; returns true if any did.
fn set_conditions(namespace: &mut Object, conditions: &[Condition], now: &str) -> bool {
    let Some(Value::Object(status)) = namespace.get_mut("status") else {
        return false;
    };
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = list else { return false };
    let mut changed = false;
    for (kind, state, reason, message) in conditions {
        let reported = |value: &Value| {
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
            Some(value) if reported(value) => continue,
            Some(value) => *value = next(),
            None => list.push(next()),
        }
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::Place,
        resource::stored::encode,
        server::{Server, tests_support::bare},
        store::{Entry, Expect},
    };

    fn put(cluster: &Server, collection: &str, key: &str, object: Value) -> Arc<Entry> {
        let Value::Object(object) = object else {
            panic!("an object")
        };
        let expect = match cluster.store.get(collection, key) {
            Some(entry) => Expect::At(entry.revision),
            None => Expect::Absent,
        };
        cluster
            .store
            .put(collection, key, expect, |revision| encode(object, revision))
            .expect("written")
    }

    fn seen(entry: &Entry, happened: Happened) -> Seen {
        Seen {
            place: Place {
                collection: NAMESPACES.to_owned(),
                key: entry.key.clone(),
            },
            happened,
            head: Head::of(entry),
            revision: entry.revision,
        }
    }

    fn map(cluster: &Server, name: &str) {
        let map = json!({"metadata": {"namespace": "a", "name": name, "uid": name}});
        put(cluster, "configmaps", &format!("a/{name}"), map);
    }

    fn maps(cluster: &Server) -> Vec<String> {
        let entries = cluster.store.list("configmaps", "a/", None, 0).entries;
        entries.iter().map(|entry| entry.key.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_follows_another_of_its_name_keeps_what_is_in_it() {
        let cluster = bare();
        let mut namespaces = Namespaces::default();
        let old = json!({"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"finalizers": ["kubernetes"]}, "status": {}});
        let leaving = put(&cluster, NAMESPACES, "a", old);
        namespaces.see(&seen(&leaving, Happened::Modified));
        map(&cluster, "early");
        // Deleted and created again before the first change was observed.
        let gone = cluster
            .store
            .delete(NAMESPACES, "a", leaving.revision, |_| leaving.object.clone())
            .expect("deleted");
        let new = json!({"metadata": {"name": "a", "uid": "2"}, "spec": {"finalizers": ["kubernetes"]}, "status": {}});
        let fresh = put(&cluster, NAMESPACES, "a", new);
        map(&cluster, "late");
        tokio::time::advance(DELAY).await;
        while namespaces.work(&*cluster) {}
        assert_eq!(maps(&cluster), ["a/early", "a/late"]);
        namespaces.see(&seen(&gone, Happened::Deleted));
        namespaces.see(&seen(&fresh, Happened::Added));
        while namespaces.work(&*cluster) {}
        assert_eq!(
            maps(&cluster),
            ["a/late"],
            "what came in while the first one went"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_is_looked_at_once_for_all_that_happens_in_it_at_a_time() {
        let cluster = bare();
        let mut namespaces = Namespaces::default();
        let old = json!({"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"finalizers": ["kubernetes"]}, "status": {}});
        let leaving = put(&cluster, NAMESPACES, "a", old);
        namespaces.see(&seen(&leaving, Happened::Modified));
        let held = json!({"metadata": {"namespace": "a", "name": "held", "uid": "3", "finalizers": ["example.com/hold"]}});
        put(&cluster, "configmaps", "a/held", held);
        tokio::time::advance(DELAY).await;
        while namespaces.work(&*cluster) {}
        let reported = cluster.store.revision();
        let mut inside = seen(&leaving, Happened::Modified);
        inside.place.collection = "configmaps".to_owned();
        inside.place.key = "a/held".to_owned();
        namespaces.see(&inside);
        assert!(!namespaces.work(&*cluster), "not at once");
        tokio::time::advance(GATHER).await;
        assert!(namespaces.work(&*cluster));
        assert!(!namespaces.work(&*cluster));
        assert_eq!(
            cluster.store.revision(),
            reported,
            "what goes already is not asked again"
        );
    }
}
