//! The metadata of a copy that is kept.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use entourage_api::{
    keys::{annotation, label},
    names,
};
use serde_json::Value;

use crate::{
    marks,
    object::{Meta, NamespacedName, Str, Time, revision},
};

/// The metadata of a copy that is kept. There are as many copies as objects times members, so labels and annotations are kept
/// only as the facts that decisions need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMeta {
    /// The uid the member gave.
    pub uid: Str,
    /// The resourceVersion as served.
    pub resource_version: Str,
    /// `metadata.generation`, for kinds that have one, or its substitute
    /// ([`content_number`](crate::interpreter::content_number)).
    pub generation: Option<i64>,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Time>,
    /// The value of the label [`entourage_api::keys::label::HUB`].
    pub hub: Option<Str>,
    /// [`owner_hash`] of the binding that its annotations name.
    pub binding: u64,
    /// [`owner_hash`] of the cluster whose execution namespace its annotations name, without a namespace.
    pub cluster: u64,
    /// The hash of the labels and annotations that the copy records as set by this hub; see [`crate::marks`].
    pub marks: u64,
    /// True if it has labels, annotations, finalizers or ownerReferences of other writers.
    pub foreign: bool,
}

impl CopyMeta {
    /// Projects a copy's metadata.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let meta = Meta::of(object);
        let (marks, foreign) = marks::on(&meta);
        let owned = object["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let owner = marks::owner(&meta).unwrap_or_else(|| NamespacedName::new("", ""));
        let namespace = meta.annotation(annotation::WORK_NAMESPACE);
        let cluster = namespace.and_then(names::cluster_of_execution_namespace);
        Self {
            cluster: cluster.map_or(0, |cluster| owner_hash("", cluster)),
            binding: owner_hash(&owner.namespace, &owner.name),
            hub: meta.labels.get(label::HUB).cloned(),
            uid: meta.uid,
            resource_version: meta.resource_version,
            generation: meta.generation,
            deleting: meta.deleting,
            marks,
            foreign: foreign || owned,
        }
    }

    /// True if its annotations name the execution namespace of this cluster.
    #[must_use]
    pub fn names_cluster(&self, cluster: &str) -> bool {
        self.cluster == owner_hash("", cluster)
    }

    /// The resourceVersion as a number; see [`Meta::revision`].
    #[must_use]
    pub fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }

    /// True if this is the same version of the same object.
    #[must_use]
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.uid == other.uid && self.resource_version == other.resource_version
    }
}

/// The hash of a binding's name as copies store it; in memory only.
#[must_use]
pub fn owner_hash(namespace: &str, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (namespace, name).hash(&mut hasher);
    hasher.finish()
}
