//! A namespace of a member: the hub that created it, the metadata that each hub set, and its content.

pub mod content;
pub mod list;

use entourage_api::keys::annotation;
use list::List;
use serde_json::Value;

use crate::{
    marks::Marks,
    object::{Meta, Str, StrMap},
    places::is_denied,
};

/// The cached state of a namespace of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The uid on the member.
    pub uid: Str,
    /// The resourceVersion as served.
    pub resource_version: Str,
    /// The revision as served.
    pub revision: u64,
    /// The value of [`annotation::CREATED_BY`].
    pub created_by: Option<Str>,
    /// For each hub with a list of its metadata: its id, and the hash of that metadata in its current state.
    hashes: Box<[(Str, u64)]>,
    /// True if it is being deleted.
    pub deleting: bool,
    /// Its labels.
    pub labels: StrMap,
    /// True if its owner forbids distributions.
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
            hashes: list::hashes(&meta),
            deleting: meta.deleting.is_some(),
            denied: is_denied(&meta),
            labels: meta.labels,
            uid: meta.uid,
            resource_version: meta.resource_version,
        }
    }

    /// True if its record names this hub and this cluster as creator, of this namespace or of one that it was copied from.
    pub fn is_of(&self, hub: &str, cluster: &str) -> bool {
        let record = self.created_by.as_deref();
        record.is_some_and(|record| is_of(record, hub, cluster))
    }

    /// True if this hub created this very namespace on this cluster: the record names its uid.
    pub fn is_proven(&self, hub: &str, cluster: &str) -> bool {
        self.created_by.as_deref() == Some(&*proof(hub, cluster, &self.uid))
    }

    /// True if another hub has a record on it.
    pub fn has_records_of_others(&self, hub: &str) -> bool {
        self.hashes.iter().any(|(each, _)| **each != *hub)
    }

    /// True if the metadata that a hub set there is exactly this.
    pub fn carries(&self, hub: &str, wanted: &Marks) -> bool {
        let held = self.hashes.iter().find(|(each, _)| **each == *hub);
        held.map(|(_, hash)| *hash) == hash(wanted)
    }
}

fn hash(wanted: &Marks) -> Option<u64> {
    let none = wanted.labels.is_empty() && wanted.annotations.is_empty();
    (!none).then(|| wanted.hash())
}

/// The keys of the labels and of the annotations that a hub set on a member's namespace, and of its list of them.
pub fn listed(namespace: &Value, hub: &str) -> (Vec<String>, Vec<String>) {
    let List {
        labels,
        mut annotations,
    } = List::on(&Meta::of(namespace), hub);
    annotations.push(list::key(hub));
    (labels, annotations)
}

/// The record on a namespace before its creation: the hub and the cluster. It proves nothing yet.
#[must_use]
pub fn creator(hub: &str, cluster: &str) -> String {
    format!("{hub}/{cluster}")
}

/// The record on a namespace after its creation: the hub, the cluster and the uid of the namespace.
#[must_use]
pub fn proof(hub: &str, cluster: &str, uid: &str) -> String {
    format!("{hub}/{cluster}/{uid}")
}

/// True if a record of a namespace's creation is of this hub on this cluster, whatever uid it names.
pub fn is_of(record: &str, hub: &str, cluster: &str) -> bool {
    let rest = record.strip_prefix(hub).and_then(|rest| rest.strip_prefix('/'));
    let rest = rest.and_then(|rest| rest.strip_prefix(cluster));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
