//! The metadata that a hub set on a member's namespace: an annotation of each hub lists the keys.
//!
//! A member may belong to several hubs, and no namespace has one owner. Each hub keeps its list under its own id and removes
//! only the keys in it.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;
use serde::{Deserialize, Serialize};

use crate::{
    marks::{self, Marks},
    object::{Meta, Str},
};

/// The keys that a hub set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Of labels, sorted.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Of annotations, sorted; the list itself is not among them.
    #[serde(default)]
    pub annotations: Vec<String>,
}

/// The annotation with a hub's list.
#[must_use]
pub fn key(hub: &str) -> String {
    format!("{}{hub}", annotation::MANAGED_BY_PREFIX)
}

impl List {
    /// The list of a hub on a namespace; empty if there is none, or if it cannot be read.
    pub fn on(namespace: &Meta, hub: &str) -> Self {
        Self::read(namespace.annotation(&key(hub)).unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Adds to `marks` the annotation that lists the keys of `marks`.
    pub fn add(hub: &str, marks: &mut Marks) {
        let list = Self {
            labels: marks.labels.keys().map(ToString::to_string).collect(),
            annotations: marks.annotations.keys().map(ToString::to_string).collect(),
        };
        let text = serde_json::to_string(&list).unwrap_or_default();
        marks.annotations.insert(key(hub).into(), text.into());
    }
}

/// The list of a hub that takes over what another one set: the keys of both lists.
#[must_use]
pub fn merged(namespace: &Meta, (hub, former): (&str, &str)) -> String {
    let (ours, theirs) = (List::on(namespace, hub), List::on(namespace, former));
    let union = |one: Vec<String>, other: Vec<String>| -> Vec<String> {
        let all: BTreeSet<String> = one.into_iter().chain(other).collect();
        all.into_iter().collect()
    };
    let list = List {
        labels: union(ours.labels, theirs.labels),
        annotations: union(ours.annotations, theirs.annotations),
    };
    serde_json::to_string(&list).unwrap_or_default()
}

/// For each hub that has a list on a namespace: its id, and the hash of the listed metadata in its current state, to be
/// compared with [`Marks::hash`]. Cost: O(labels and annotations) for each.
pub fn hashes(namespace: &Meta) -> Box<[(Str, u64)]> {
    let lists = namespace.annotations.iter().filter_map(|(key, text)| {
        let hub = key.strip_prefix(annotation::MANAGED_BY_PREFIX)?;
        let list = List::read(text);
        let labels = namespace.labels.iter();
        let annotations = namespace.annotations.iter();
        let hash = marks::hash(
            labels.filter(|(each, _)| list.labels.iter().any(|held| **held == ***each)),
            annotations
                .filter(|(each, _)| *each == key || list.annotations.iter().any(|held| **held == ***each)),
        );
        Some((hub.into(), hash))
    });
    lists.collect()
}
