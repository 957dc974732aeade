//! The ownership metadata of a member's namespace: who created it, what each hub set there, and what is in it.

pub mod content;
pub mod list;

use std::collections::BTreeMap;

use entourage_api::keys::annotation;
use list::List;
use serde_json::Value;

use crate::{
    marks::Marks,
    object::{Meta, Str},
    places::is_denied,
};

/// What is kept of a namespace of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The uid the member gave.
    pub uid: Str,
    /// The resourceVersion as served.
    pub resource_version: Str,
    /// The revision as served.
    pub revision: u64,
    /// What [`annotation::CREATED_BY`] says.
    pub created_by: Option<Str>,
    /// For each hub that says that it set something: its id, and the hash of that as it is now.
    marks: Box<[(Str, u64)]>,
    /// It is being deleted.
    pub deleting: bool,
    /// Its labels.
    pub labels: BTreeMap<Str, Str>,
    /// Whether its owner keeps distributions out.
    pub denied: bool,
}

impl Seen {
    /// Projects a namespace of a member.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let meta = Meta::of(object);
        Self {
            revision: meta.revision(),
            created_by: meta.annotations.get(annotation::CREATED_BY).cloned(),
            marks: list::hashes(&meta),
            deleting: meta.deleting.is_some(),
            denied: is_denied(&meta),
            labels: meta.labels,
            uid: meta.uid,
            resource_version: meta.resource_version,
        }
    }

    /// Whether it says that this hub created it on this cluster, or one that it was made of.
    pub fn is_of(&self, hub: &str, cluster: &str) -> bool {
        let record = self.created_by.as_deref();
        record.is_some_and(|record| is_of(record, hub, cluster))
    }

    /// Whether it is the very one that this hub created on this cluster.
    pub fn is_proven(&self, hub: &str, cluster: &str) -> bool {
        self.created_by.as_deref() == Some(&*proof(hub, cluster, &self.uid))
    }

    /// Whether another hub has a record on it.
    pub fn has_records_of_others(&self, hub: &str) -> bool {
        self.marks.iter().any(|(each, _)| **each != *hub)
    }

    /// Whether what a hub set there is exactly this.
    pub fn carries(&self, hub: &str, wanted: &Marks) -> bool {
        let held = self.marks.iter().find(|(each, _)| **each == *hub);
        held.map(|(_, hash)| *hash) == hash(wanted)
    }
}

fn hash(wanted: &Marks) -> Option<u64> {
    let none = wanted.labels.is_empty() && wanted.annotations.is_empty();
    (!none).then(|| wanted.hash())
}

/// The keys of the labels and of the annotations that a hub set on a member's namespace, and its list of them.
pub fn listed(namespace: &Value, hub: &str) -> (Vec<String>, Vec<String>) {
    let List {
        labels,
        mut annotations,
    } = List::on(&Meta::of(namespace), hub);
    annotations.push(list::key(hub));
    (labels, annotations)
}

/// What a namespace says that we create: which hub, on which cluster. It proves nothing yet.
#[must_use]
pub fn creator(hub: &str, cluster: &str) -> String {
    format!("{hub}/{cluster}")
}

/// What a namespace says that we created: that, and which object it was.
#[must_use]
pub fn proof(hub: &str, cluster: &str, uid: &str) -> String {
    format!("{hub}/{cluster}/{uid}")
}

/// Whether a record of who created a namespace is of this hub on this cluster, whichever object it is about.
pub fn is_of(record: &str, hub: &str, cluster: &str) -> bool {
    let rest = record.strip_prefix(hub).and_then(|rest| rest.strip_prefix('/'));
    let rest = rest.and_then(|rest| rest.strip_prefix(cluster));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
