//! The ownership metadata: our labels and annotations on objects of members.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use entourage_api::keys::{annotation, label};

use crate::object::{Meta, NamespacedName, Str, StrMap, WHOLE_OBJECTS};

/// The labels and annotations that a copy must carry: those of the template and the ownership metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Labels.
    pub labels: StrMap,
    /// Annotations.
    pub annotations: StrMap,
}

impl Marks {
    /// The hash of all of them, to be compared with [`on`].
    #[must_use]
    pub fn hash(&self) -> u64 {
        hash(self.labels.iter(), self.annotations.iter())
    }
}

/// True if a label or annotation is ownership metadata, or is never propagated: no override may set, change or remove it.
#[must_use]
pub fn is_mark(key: &str) -> bool {
    RELEASED_LABELS.contains(&key)
        || RELEASED_ANNOTATIONS.contains(&key)
        || WHOLE_OBJECTS.contains(&key)
        || key.starts_with("entourage.dev/")
        || key.starts_with(annotation::MANAGED_BY_PREFIX)
}

/// The binding that the metadata of a copy names, or `None` if it names none.
#[must_use]
pub fn owner(copy: &Meta) -> Option<NamespacedName> {
    if let Some(name) = copy.annotation(annotation::RESOURCE_BINDING_NAME) {
        let namespace = copy.annotation(annotation::RESOURCE_BINDING_NAMESPACE)?;
        return (!namespace.is_empty()).then(|| NamespacedName::new(namespace, name));
    }
    let name = copy.annotation(annotation::CLUSTER_RESOURCE_BINDING_NAME)?;
    Some(NamespacedName::new("", name))
}

/// Returns the hash of the labels and annotations that a copy lists as set by us, and true if it carries any other ones, or
/// finalizers: a PUT must then be preceded by a GET, so that they are kept.
///
/// A key that we set and that another writer changed or removed changes the hash; so does a change of the lists of keys, which
/// are annotations of ours themselves.
#[must_use]
pub fn on(live: &Meta) -> (u64, bool) {
    let keys = |annotation: &str| -> BTreeSet<&str> {
        live.annotation(annotation)
            .map(|keys| keys.split(',').collect())
            .unwrap_or_default()
    };
    let (labels, annotations) = (
        keys(annotation::MANAGED_LABELS),
        keys(annotation::MANAGED_ANNOTATIONS),
    );
    let foreign = live.labels.keys().any(|key| !labels.contains(&**key))
        || live.annotations.keys().any(|key| !annotations.contains(&**key))
        || !live.finalizers.is_empty();
    let of_ours = hash(
        live.labels.iter().filter(|(key, _)| labels.contains(&***key)),
        live.annotations
            .iter()
            .filter(|(key, _)| annotations.contains(&***key)),
    );
    (of_ours, foreign)
}

/// Held in memory only, so that its algorithm may change with any release.
pub fn hash<'a>(
    labels: impl Iterator<Item = (&'a Str, &'a Str)>,
    annotations: impl Iterator<Item = (&'a Str, &'a Str)>,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    for pair in labels {
        pair.hash(&mut hasher);
    }
    0_u8.hash(&mut hasher);
    for pair in annotations {
        pair.hash(&mut hasher);
    }
    hasher.finish()
}

/// The labels whose value is the id of the hub that made an object.
pub const HUB_LABELS: &[&str] = &[label::HUB, label::FEDERATED_QUOTA, label::DISTRIBUTED_BY];

/// Our labels, which are removed when a copy is released.
pub const RELEASED_LABELS: &[&str] = &[
    label::HUB,
    label::MANAGED,
    label::RESOURCE_BINDING_ID,
    label::CLUSTER_RESOURCE_BINDING_ID,
    label::WORK_ID,
    label::PROPAGATION_POLICY_ID,
    label::CLUSTER_PROPAGATION_POLICY_ID,
];

/// Our annotations, which are removed when a copy is released.
pub const RELEASED_ANNOTATIONS: &[&str] = &[
    annotation::RESOURCE_BINDING_NAMESPACE,
    annotation::RESOURCE_BINDING_NAME,
    annotation::CLUSTER_RESOURCE_BINDING_NAME,
    annotation::WORK_NAMESPACE,
    annotation::WORK_NAME,
    annotation::CONFLICT_RESOLUTION,
    annotation::APPLIED_OVERRIDES,
    annotation::APPLIED_CLUSTER_OVERRIDES,
    annotation::TEMPLATE_UID,
    annotation::TEMPLATE_GENERATION,
    annotation::MANAGED_LABELS,
    annotation::MANAGED_ANNOTATIONS,
    annotation::PROPAGATION_POLICY_NAMESPACE,
    annotation::PROPAGATION_POLICY_NAME,
    annotation::CLUSTER_PROPAGATION_POLICY_NAME,
    annotation::CREATED_BY,
    annotation::ADOPTED_FROM,
];
