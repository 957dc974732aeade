//! Server-side apply and field ownership (`metadata.managedFields`). Source: KEP-555.
//!
//! [`track`] notes what a create, update or patch changed; [`apply()`] merges what a manager wants into what is there.
//! Both see an object as a tree of fields, which [`shape`] reads off the kind's schema.

use std::{collections::BTreeSet, sync::LazyLock};

use serde_json::Value;

use crate::{
    decode,
    object::{Object, metadata, metadata_mut},
    resource::Resource,
    scale::Paths,
};

pub mod compare;
pub mod element;
pub mod entries;
mod merge;
mod request;
mod scale;
pub mod set;
pub mod shape;
mod typed;

pub use request::apply;
pub(crate) use scale::Scaled;

use compare::{Comparison, compare};
use element::Element;
use entries::{Managed, Operation, Owned, Owner};
use set::FieldSet;
use shape::Shape;

/// The field manager of the server's own writes.
pub(crate) const SERVER: &str = "kube-apiserver-1.36";

/// The writer of a change, its subresource and its time.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// Name of the field manager.
    pub name: &'a str,
    /// Subresource written through, empty for the object.
    pub subresource: &'a str,
    /// Now, RFC 3339 in whole seconds.
    pub now: &'a str,
}

/// True if a `managedFields` can be read.
pub(crate) fn are_books(managed: Option<&Value>) -> bool {
    entries::parse(managed).is_some()
}

/// Metadata that belongs to the server, or names the object.
const UNOWNED: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Records in `new.metadata.managedFields` what an update (anything but apply) by `manager` changed against `old`.
///
/// Empty lists, which count as set until here, are converted to their stored form.
///
/// New and changed fields belong to the manager alone; removed ones belong to nobody. An object
/// whose managedFields were reset is not tracked until the next apply. Cost: O(size of both).
pub fn track(resource: &Resource, old: Option<&Object>, new: &mut Object, manager: Manager<'_>) {
    let given = metadata_mut(new).remove("managedFields");
    let live = || {
        let live = old.and_then(|old| metadata(old).get("managedFields"));
        entries::parse(live).unwrap_or_default()
    };
    let mut managed = match &given {
        _ if !manager.subresource.is_empty() => live(),
        given if entries::is_reset(given.as_ref()) => Managed::new(),
        given => entries::parse(given.as_ref())
            .filter(|managed| !managed.is_empty())
            .unwrap_or_else(live),
    };
    if old.is_some_and(|old| !fits_versions(resource, &managed, [old, new])) {
        managed.clear();
    }
    if !managed.is_empty() || old.is_none() {
        note_update(resource, old, new, &mut managed, manager);
    }
    decode::stored(resource, new);
    write(new, &managed);
}

/// False if fields are recorded in another version of a CRD that does not declare all fields of an object, or is no longer
/// there: what changed cannot be told in its terms, and the records are dropped.
fn fits_versions(resource: &Resource, managed: &Managed, objects: [&Object; 2]) -> bool {
    let Some(custom) = &resource.custom else {
        return true;
    };
    let versions: BTreeSet<&str> = managed.values().map(|owned| owned.version.as_str()).collect();
    versions
        .into_iter()
        .filter(|version| *version != resource.api_version())
        .all(|version| {
            let name = version
                .strip_prefix(&*resource.group)
                .and_then(|rest| rest.strip_prefix('/'));
            let Some(schema) = name.and_then(|name| custom.versions.get(name)) else {
                return false;
            };
            let shape = Shape::object(schema);
            objects.into_iter().all(|object| {
                let mut object = object.clone();
                object.remove("metadata");
                typed::problems(&shape, &Value::Object(object)).is_none()
            })
        })
}

/// If only the times in managedFields differ, the old ones stay: a change that came to nothing changes no time.
pub fn keep_times(old: &Object, new: &mut Object) {
    let (meta_old, meta_new) = (metadata(old), metadata(new));
    let entries = |of: &'_ Object| of.get("managedFields").and_then(Value::as_array).cloned();
    let same_but = |but: &str, old: &Object, new: &Object| {
        old.len() == new.len()
            && old
                .iter()
                .all(|(name, value)| name == but || new.get(name) == Some(value))
    };
    if !same_but("metadata", old, new) || !same_but("managedFields", meta_old, meta_new) {
        return;
    }
    let (Some(mut before), Some(mut after)) = (entries(meta_old), entries(meta_new)) else {
        return;
    };
    for entry in before
        .iter_mut()
        .chain(&mut after)
        .filter_map(Value::as_object_mut)
    {
        entry.remove("time");
    }
    if before == after
        && let Some(entries) = meta_old.get("managedFields").cloned()
    {
        metadata_mut(new).insert("managedFields".to_owned(), entries);
    }
}

/// Notes in `managed` what an update by `manager` changed.
fn note_update(
    resource: &Resource,
    old: Option<&Object>,
    new: &Object,
    managed: &mut Managed,
    manager: Manager<'_>,
) {
    let mut comparison = differences(resource, manager.subresource, old, new);
    let mut taken = std::mem::take(&mut comparison.added);
    taken.union(std::mem::take(&mut comparison.modified));
    if manager.subresource == "scale" && shows_no_replicas(resource, new) {
        comparison.removed.union(std::mem::take(&mut taken));
    }
    for owned in managed.values_mut() {
        owned.fields.subtract(&taken);
        owned.fields.subtract(&comparison.removed);
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
    strip(&mut taken);
    if !taken.is_empty() {
        let version = resource.api_version();
        let owner = Owner {
            manager: match manager.name {
                "" => "unknown".to_owned(),
                name => name.to_owned(),
            },
            operation: Operation::Update,
            version: version.clone(),
            subresource: manager.subresource.to_owned(),
        };
        let owned = managed.entry(owner).or_insert_with(|| Owned {
            version,
            time: None,
            fields: FieldSet::default(),
        });
        owned.fields.union(taken);
        // A manager of the scale is recorded without a time.
        owned.time = (manager.subresource != "scale").then(|| manager.now.to_owned());
    }
    entries::bound(managed);
}

/// True if the Scale of an object has no `spec.replicas`: it leaves a zero out, and so nobody owns it.
fn shows_no_replicas(resource: &Resource, object: &Object) -> bool {
    let paths = match &resource.custom {
        Some(custom) => custom.scale.clone(),
        None => Paths::builtin(),
    };
    paths.is_some_and(|paths| paths.spec_replicas.get(object).and_then(Value::as_i64) == Some(0))
}

/// The differences that requests through `subresource` may make.
fn differences(resource: &Resource, subresource: &str, old: Option<&Object>, new: &Object) -> Comparison {
    let shape = Shape::object(resource.schema.get());
    let empty = match old {
        // A custom resource that is not there has no fields at all, a Go struct has those that are always sent.
        None if resource.custom.is_none() => shape.zero(),
        _ => Object::new(),
    };
    let mut comparison = compare(&shape, old.unwrap_or(&empty), new);
    for set in [
        &mut comparison.added,
        &mut comparison.modified,
        &mut comparison.removed,
    ] {
        only_writable(resource, subresource, set);
    }
    comparison
}

/// Drops the fields that requests through `subresource` cannot write: status through the object, all else through status.
fn only_writable(resource: &Resource, subresource: &str, set: &mut FieldSet) {
    let is = |element: &Element, field: &str| matches!(element, Element::Field(name) if &**name == field);
    let status = |element: &Element| is(element, "status");
    match subresource {
        "" if writes_no_status(resource) => set.retain(|element| !status(element)),
        // Of what a built-in kind has beside it, the spec is set back, and of metadata what the kind keeps.
        "status" => {
            set.retain(|element| status(element) || resource.custom.is_none() && is(element, "metadata"))
        }
        _ => {}
    }
}

/// True if the status is written through its subresource; that of a new Node is kept, but nobody's.
fn writes_no_status(resource: &Resource) -> bool {
    resource.rules.has_status() || resource.custom.is_none() && resource.has("status")
}

/// Drops the fields without an owner.
fn strip(set: &mut FieldSet) {
    set.subtract(&NOBODYS);
}

/// The fields without an owner.
static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut unowned = FieldSet::default();
    for name in ["apiVersion", "kind"] {
        unowned.add(Element::field(name), true, FieldSet::default());
    }
    let mut below = FieldSet::default();
    for name in UNOWNED {
        below.add(Element::field(name), true, FieldSet::default());
    }
    unowned.add(Element::field("metadata"), true, below);
    unowned
});

/// Puts the entries into the object; without entries the field is absent.
fn write(object: &mut Object, managed: &Managed) {
    match entries::to_value(managed) {
        Some(value) => metadata_mut(object).insert("managedFields".to_owned(), value),
        None => metadata_mut(object).remove("managedFields"),
    };
}

#[cfg(test)]
mod tests;
