//! The garbage collector: it deletes objects whose owners are gone; an owner waits for its dependents or orphans them, as its
//! deletion requested.
//!
//! The index maps owners to their dependents, for objects with owners only; the existence of an owner is looked up in the
//! store, by the kind and name in the reference. An owner of a kind that is not served keeps its dependents, unless its
//! deletion was observed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{Context, Controller, Head, Owner, Place, Queue, Seen};
use crate::{
    delete::{self, DeleteOptions, Propagation},
    object::{Object, metadata_mut, text},
    registry::rewrite,
    resource::Resource,
    store::{Entry, Happened, Revision},
};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Owners and dependents, and what to look at.
#[derive(Default)]
pub(super) struct Garbage {
    /// The owners of each object that has some.
    owners: BTreeMap<Place, Vec<Owner>>,
    /// The dependents of each uid.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// The uids in `dependents` whose object is deleted, whether or not its kind is still served.
    absent: BTreeSet<String>,
    /// Objects that are being deleted in the foreground.
    waiting: BTreeMap<String, Place>,
    /// Objects with an owner of a kind that is not served: looked at again when kinds change.
    unknown: BTreeSet<Place>,
    queue: Queue<Work>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Let the dependents of an owner go, then the owner.
    Orphan(Place),
    /// See whether an object's owners are there.
    Dependent(Place),
    /// See whether an owner still has dependents to wait for.
    Owner(Place),
}

impl Controller for Garbage {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        let Seen { place, head, .. } = seen;
        if seen.happened == Happened::Deleted {
            self.set_owners(place, &[]);
            self.unknown.remove(place);
            self.waiting.remove(&head.uid);
            if self.dependents.contains_key(&head.uid) {
                self.absent.insert(head.uid.clone());
                self.look_at_dependents(&head.uid);
            }
            return;
        }
        if self.set_owners(place, &head.owner_references) {
            self.queue.insert(Work::Dependent(place.clone()));
        }
        if !(head.is_leaving() && head.has(FOREGROUND)) {
            self.waiting.remove(&head.uid);
        } else if self.waiting.insert(head.uid.clone(), place.clone()).is_none() {
            self.look_at_dependents(&head.uid);
            self.queue.insert(Work::Owner(place.clone()));
        }
        if head.is_leaving() && head.has(ORPHAN) {
            self.queue.insert(Work::Orphan(place.clone()));
        }
    }

    fn kinds_changed(&mut self) {
        let again = std::mem::take(&mut self.unknown);
        self.queue.extend(again.into_iter().map(Work::Dependent));
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        match self.queue.pop_first() {
            None => return false,
            Some(Work::Orphan(place)) => self.orphan(cluster, &place),
            Some(Work::Dependent(place)) => self.dependent(cluster, &place),
            Some(Work::Owner(place)) => self.owner(cluster, &place),
        }
        true
    }
}

impl Garbage {
    /// Records the owners of an object. Returns true if they changed and there are any; former owners that wait are processed again.
    fn set_owners(&mut self, place: &Place, owners: &[Owner]) -> bool {
        let former = if owners.is_empty() {
            self.owners.remove(place).unwrap_or_default()
        } else if self.owners.get(place).is_some_and(|known| known == owners) {
            return false;
        } else {
            self.owners
                .insert(place.clone(), owners.to_vec())
                .unwrap_or_default()
        };
        for owner in &former {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                    self.absent.remove(&owner.uid);
                }
            }
            if let Some(owner) = self.waiting.get(&owner.uid) {
                self.queue.insert(Work::Owner(owner.clone()));
            }
        }
        for owner in owners {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.insert(place.clone());
        }
        !owners.is_empty()
    }

    fn look_at_dependents(&mut self, uid: &str) {
        let dependents = self.dependents.get(uid).into_iter().flatten();
        self.queue.extend(dependents.cloned().map(Work::Dependent));
    }

    /// Deletes an object all of whose owners are gone or wait for it; else forgets those owners.
    fn dependent(&mut self, cluster: &dyn Context, place: &Place) {
        let Some((resource, head, revision)) = present(cluster, place) else {
            return;
        };
        if head.is_leaving() {
            if head.has(FOREGROUND) {
                self.owner(cluster, place);
            }
            return;
        }
        let mut left: Vec<&str> = Vec::new();
        let mut waited_for = false;
        for owner in &head.owner_references {
            let found = if self.absent.contains(&owner.uid) {
                Found::Absent
            } else {
                find_owner(cluster, place, owner)
            };
            match found {
                Found::Solid => {}
                Found::Absent => left.push(&owner.uid),
                Found::Waiting => {
                    waited_for = true;
                    left.push(&owner.uid);
                }
                Found::Unknown => {
                    self.unknown.insert(place.clone());
                    return;
                }
            }
        }
        if left.is_empty() {
            return;
        }
        if left.len() < head.owner_references.len() {
            rewrite(cluster, &resource, &place.key, "", &mut |object| {
                drop_owners(object, &left)
            });
            return;
        }
        let dependents = self.dependents.get(&head.uid);
        let mut revision = revision;
        let propagation = if waited_for && dependents.is_some() {
            let circle = |dependent: &Place| {
                present(cluster, dependent)
                    .is_some_and(|(_, head, _)| head.is_leaving() && head.has(FOREGROUND))
            };
            if dependents.into_iter().flatten().any(circle) {
                let unblocked = rewrite(cluster, &resource, &place.key, "", &mut unblock);
                revision = unblocked.map_or(revision, |entry| entry.revision);
            }
            Propagation::Foreground
        } else if head.has(ORPHAN) {
            Propagation::Orphan
        } else if head.has(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(head.uid),
            // The decision is valid for this state.
            resource_version: Some(revision.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let deleted = delete::object(cluster, &resource, place.namespace(), place.name(), &options);
        if deleted.is_err_and(|status| status.code == 409) {
            self.queue.insert(Work::Dependent(place.clone()));
        }
    }

    /// An owner that waits goes when nothing blocks it any more.
    fn owner(&mut self, cluster: &dyn Context, place: &Place) {
        let Some((resource, head, _)) = present(cluster, place) else {
            return;
        };
        if !(head.is_leaving() && head.has(FOREGROUND)) {
            return;
        }
        let blocks = |dependent: &&Place| {
            let owners = self.owners.get(*dependent).into_iter().flatten();
            owners
                .into_iter()
                .any(|owner| owner.uid == head.uid && owner.block_owner_deletion == Some(true))
        };
        let dependents = self.dependents.get(&head.uid).into_iter().flatten();
        if !dependents.into_iter().any(|dependent| blocks(&dependent)) {
            rewrite(cluster, &resource, &place.key, "", &mut |object| {
                drop_finalizer(object, FOREGROUND)
            });
        }
    }

    /// An owner that shall leave its dependents goes when none of them knows it any more.
    fn orphan(&mut self, cluster: &dyn Context, place: &Place) {
        let Some((resource, head, _)) = present(cluster, place) else {
            return;
        };
        if !(head.is_leaving() && head.has(ORPHAN)) {
            return;
        }
        for dependent in self.dependents.get(&head.uid).into_iter().flatten() {
            if let Some((resource, ..)) = present(cluster, dependent) {
                let left = rewrite(cluster, &resource, &dependent.key, "", &mut |object| {
                    drop_owners(object, &[&head.uid])
                });
                // Another writer was always faster: the owner stays until this dependent no longer refers to it.
                if left.is_some_and(|entry| is_owned_by(&entry, &head.uid)) {
                    self.queue.insert(Work::Orphan(place.clone()));
                    return;
                }
            }
        }
        rewrite(cluster, &resource, &place.key, "", &mut |object| {
            drop_finalizer(object, ORPHAN)
        });
    }
}

/// The object at a place as it is now.
fn present(cluster: &dyn Context, place: &Place) -> Option<(Arc<Resource>, Head, Revision)> {
    let entry = cluster.store().get(&place.collection, &place.key)?;
    let resource = cluster.kinds().of_collection(&place.collection)?.clone();
    Some((resource, Head::of(&entry), entry.revision))
}

fn is_owned_by(entry: &Entry, uid: &str) -> bool {
    Head::of(entry)
        .owner_references
        .iter()
        .any(|owner| owner.uid == uid)
}

enum Found {
    /// The owner is there.
    Solid,
    /// It is not, or it is another object of the name.
    Absent,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// Its kind is not served, or it could not own the object.
    Unknown,
}

fn find_owner(cluster: &dyn Context, dependent: &Place, owner: &Owner) -> Found {
    let (group, version) = owner
        .api_version
        .split_once('/')
        .unwrap_or(("", &owner.api_version));
    let kinds = cluster.kinds();
    let Some(resource) = kinds.of_kind(group, version, &owner.kind) else {
        return Found::Unknown;
    };
    let namespace = dependent.namespace();
    if resource.namespaced && namespace.is_empty() {
        return Found::Unknown;
    }
    let key = resource.key(namespace, &owner.name);
    let head = cluster
        .store()
        .get(&resource.collection, &key)
        .map(|entry| Head::of(&entry));
    match head {
        Some(head) if head.uid != owner.uid => Found::Absent,
        None => Found::Absent,
        Some(head) if head.is_leaving() && head.has(FOREGROUND) => Found::Waiting,
        Some(_) => Found::Solid,
    }
}

fn drop_owners(object: &mut Object, uids: &[&str]) -> bool {
    retain(object, "ownerReferences", |owner| {
        !uids.contains(&text(owner, "uid"))
    })
}

fn drop_finalizer(object: &mut Object, finalizer: &str) -> bool {
    retain(object, "finalizers", |name| name != finalizer)
}

/// Retains the entries of a list of the metadata for which `keep` returns true, and removes an empty list. Returns true if the
/// list changed.
fn retain(object: &mut Object, name: &str, keep: impl Fn(&Value) -> bool) -> bool {
    let metadata = metadata_mut(object);
    let Some(Value::Array(list)) = metadata.get_mut(name) else {
        return false;
    };
    let before = list.len();
    list.retain(keep);
    let after = list.len();
    if after == 0 {
        metadata.remove(name);
    }
    after != before
}

/// Objects that own each other in a circle would wait for each other: none blocks any more.
fn unblock(object: &mut Object) -> bool {
    let owners = metadata_mut(object).get_mut("ownerReferences");
    let mut changed = false;
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(block) = owner
            .get_mut("blockOwnerDeletion")
            .filter(|block| **block == Value::Bool(true))
        {
            *block = Value::Bool(false);
            changed = true;
        }
    }
    changed
}
