//! The labels and annotations of a copy: the template's own and ours (karmada reference 0.2, 0.3, observed example).

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use entourage_api::{
    keys::{annotation, label},
    names,
};

use super::{
    Recipe,
    render::{RELEASED_ANNOTATIONS, RELEASED_LABELS},
};
use crate::{
    object::{Id, Meta, Named, Str, WHOLE_OBJECTS},
    overrides, twin,
};

/// The labels and annotations that a copy must carry: the template's own and ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Labels.
    pub labels: BTreeMap<Str, Str>,
    /// Annotations.
    pub annotations: BTreeMap<Str, Str>,
}

impl Marks {
    /// From a template's metadata and what overrides do to it (karmada reference 0.2, 0.3, observed example).
    #[must_use]
    pub fn of(template: &Meta, recipe: &Recipe, id: &Id, cluster: &str) -> Self {
        let mut labels = with_preserved(template, recipe);
        let mut annotations = template.annotations.clone();
        for of_ours in [
            annotation::WAITS,
            annotation::CREATED_BY,
            annotation::APPLIED_OVERRIDES,
            annotation::APPLIED_CLUSTER_OVERRIDES,
            annotation::VOLUME_RETENTION,
            annotation::RELEASED_FROM,
            annotation::DATA_RESTORED_AT,
        ] {
            annotations.remove(of_ours);
        }
        annotations.retain(|key, _| !key.starts_with(annotation::MANAGED_BY_PREFIX));
        // What cannot be applied is not rendered: it does not matter what the copy would say.
        let _ = overrides::apply_to_metadata(&recipe.overrides, cluster, &mut labels, &mut annotations);
        labels.insert(label::MANAGED.into(), "true".into());
        labels.insert(label::HUB.into(), recipe.hub.clone());
        let owner = twin::binding(&recipe.binding.namespace);
        labels.insert(owner.id_label.into(), recipe.permanent_id.clone());

        let resolution = if recipe.overwrite { "overwrite" } else { "abort" };
        let work = names::work_name(&id.namespace, &id.name, &id.gvk.kind);
        let mut put = |key: &str, value: &str| annotations.insert(key.into(), value.into());
        if recipe.binding.namespace.is_empty() {
            put(annotation::CLUSTER_RESOURCE_BINDING_NAME, &recipe.binding.name);
        } else {
            put(annotation::RESOURCE_BINDING_NAMESPACE, &recipe.binding.namespace);
            put(annotation::RESOURCE_BINDING_NAME, &recipe.binding.name);
        }
        put(annotation::WORK_NAMESPACE, &names::execution_namespace(cluster));
        put(annotation::WORK_NAME, &work);
        put(annotation::CONFLICT_RESOLUTION, resolution);
        put(annotation::TEMPLATE_UID, &template.uid);
        if let Some(generation) = template.generation {
            put(annotation::TEMPLATE_GENERATION, &generation.to_string());
        }
        for (key, record) in overrides::records(&recipe.overrides, id) {
            put(key, &record);
        }
        put(annotation::MANAGED_LABELS, "");
        put(annotation::MANAGED_ANNOTATIONS, "");
        let keys = |map: &BTreeMap<Str, Str>| map.keys().map(|key| &**key).collect::<Vec<_>>().join(",");
        let (label_keys, annotation_keys) = (keys(&labels), keys(&annotations));
        annotations.insert(annotation::MANAGED_LABELS.into(), label_keys.into());
        annotations.insert(annotation::MANAGED_ANNOTATIONS.into(), annotation_keys.into());
        Self { labels, annotations }
    }

    /// The hash of all of them, to be compared with [`on`].
    #[must_use]
    pub fn hash(&self) -> u64 {
        hash(self.labels.iter(), self.annotations.iter())
    }
}

/// The labels of a template, and those that its copy is told by the one that it replaces. Overrides see both.
pub(super) fn with_preserved(template: &Meta, recipe: &Recipe) -> BTreeMap<Str, Str> {
    let mut labels = template.labels.clone();
    let preserved = recipe.preserved.iter().filter(|(key, _)| !is_mark(key));
    labels.extend(preserved.map(|(key, value)| (key.clone(), value.clone())));
    labels
}

/// Whether a label or annotation is one of ours, or never travels: no override may set, change or remove it.
#[must_use]
pub(crate) fn is_mark(key: &str) -> bool {
    RELEASED_LABELS.contains(&key)
        || RELEASED_ANNOTATIONS.contains(&key)
        || WHOLE_OBJECTS.contains(&key)
        || key.starts_with("entourage.dev/")
        || key.starts_with(annotation::MANAGED_BY_PREFIX)
}

/// The binding that a copy says it belongs to.
#[must_use]
pub fn owner(copy: &Meta) -> Option<Named> {
    if let Some(name) = copy.annotation(annotation::RESOURCE_BINDING_NAME) {
        let namespace = copy.annotation(annotation::RESOURCE_BINDING_NAMESPACE)?;
        return (!namespace.is_empty()).then(|| Named::new(namespace, name));
    }
    let name = copy.annotation(annotation::CLUSTER_RESOURCE_BINDING_NAME)?;
    Some(Named::new("", name))
}

/// The hash of the labels and annotations that a copy says are set by us, and whether it carries any that are not, or
/// finalizers: a PUT must then be preceded by a GET, so that they stay.
///
/// A key that we set and that somebody changed or took away makes another hash; so does a change of the lists of keys,
/// which are annotations of ours themselves.
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
pub(crate) fn hash<'a>(
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
