//! Rendering of a copy of a distribution in a namespace, pure.

use std::collections::BTreeSet;

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Map, Value, json};

pub use super::marks::{place, release, standing};
use super::{
    hash::resource_hash,
    marks::{self, Keys, has_owner_of, owners_of_copy},
    normal, template,
};
use entourage_interpreter as interpreter;
use entourage_model::object::Str;
pub use entourage_model::rendered::Rendered;

/// The parameters of rendering a copy: data only, no content.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DistributionRenderSpec {
    /// The distribution's name.
    pub distribution: Str,
    /// The distribution's uid.
    pub uid: Str,
    /// The namespace of the copy.
    pub namespace: Str,
    /// The form of the ownership metadata.
    pub mark: Mark,
    /// True if an object without a controller is taken over (writePolicy overwrite).
    pub take_over: bool,
}

/// The form of the ownership metadata of a copy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Mark {
    /// By a controller ownerReference: on the hub, where the distribution is.
    Owner,
    /// By a label with the id of the hub and an annotation with the place: on a member, where an ownerReference would dangle.
    Member {
        /// The id of the hub.
        hub: Str,
        /// The member.
        cluster: Str,
    },
}

/// The owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is a copy of this distribution.
    Ours,
    /// It has no owner: it has no controller.
    Free,
    /// Its controller, as `Kind name`, or the distribution or hub that its metadata names.
    Held(String),
}

/// Renders the copy. With `live` the labels, annotations, finalizers and owners of others are kept, and it carries uid and
/// resourceVersion, ready for a PUT.
///
/// Three states are merged in labels and annotations: those of the resource, those of the live object, and those that the
/// record on the live object lists as set by a distribution ([`annotation::DISTRIBUTED_KEYS`]); those that were set and are no
/// longer in the resource are removed. OpenKruise writes no such record: on its copies all keys that the resource does not set
/// are kept.
///
/// A resource from `resourceFrom` must be [`sanitised`](template::sanitised), so that the hash on its copies is that of the
/// propagated content. Cost: O(size of the objects).
#[must_use]
pub fn render(render_spec: &DistributionRenderSpec, resource: &Value, live: Option<&Value>) -> Rendered {
    let mut copy = Rendered(template::sanitised(resource));
    let live = live.unwrap_or(&Value::Null);
    if asks_for_injection(&copy.0) {
        keep_injected(&mut copy.0, live);
    }
    let mut meta = taken(&mut copy.0, "metadata");
    let mut map_of = |field: &str| match meta.remove(field) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let (mut labels, mut annotations) = (map_of("labels"), map_of("annotations"));
    let keys = Keys::of(&labels, &annotations).written();
    let mut put = |key: &str, value: &str| annotations.insert(key.to_owned(), json!(value));
    if let Mark::Member { hub, cluster } = &render_spec.mark {
        labels.insert(label::DISTRIBUTED_BY.to_owned(), json!(&**hub));
        put(
            annotation::DISTRIBUTED_IN,
            &marks::place(cluster, &render_spec.namespace),
        );
    }
    put(annotation::DISTRIBUTED_FROM, &render_spec.distribution);
    put(annotation::DISTRIBUTED_HASH, &resource_hash(resource));
    put(annotation::DISTRIBUTED_KEYS, &keys);

    let set_before = Keys::on(live);
    for (field, mut map) in [("labels", labels), ("annotations", annotations)] {
        keep_foreign(&mut map, &live["metadata"][field], set_before.in_field(field));
        if !map.is_empty() {
            meta.insert(field.to_owned(), Value::Object(map));
        }
    }
    meta.insert("namespace".to_owned(), json!(&*render_spec.namespace));
    let owners = owners_of_copy(render_spec, live);
    if !owners.is_empty() {
        meta.insert("ownerReferences".to_owned(), Value::Array(owners));
    }
    for field in ["resourceVersion", "uid", "finalizers"] {
        if let Some(value) = live["metadata"].get(field) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    copy.0["metadata"] = Value::Object(meta);
    copy
}

/// The first difference between a copy, rendered with the live object, and the live object: a path without values and without
/// keys of data. Entries that others set on the live object are no difference, and neither is a missing record of keys: a copy
/// that OpenKruise wrote is written again when something else changes, not for that.
///
/// Cost: O(size of the objects).
#[must_use]
pub fn difference(rendered: &Rendered, live: &Value) -> Option<String> {
    let copy = rendered.object();
    let set_before = Keys::on(live);
    for field in ["labels", "annotations"] {
        let (ours, theirs) = (&copy["metadata"][field], &live["metadata"][field]);
        let is_other = |(key, value): (&String, &Value)| match theirs.get(key) {
            None => key != annotation::DISTRIBUTED_KEYS,
            Some(other) => other != value,
        };
        let is_left_over = |key: &String| theirs.get(key).is_some() && ours.get(key).is_none();
        if ours.as_object().into_iter().flatten().any(is_other)
            || set_before.in_field(field).iter().any(is_left_over)
        {
            return Some(format!("metadata.{field}"));
        }
    }
    if !has_owner_of(copy, live) {
        return Some("metadata.ownerReferences".to_owned());
    }
    interpreter::difference(copy, content_of(live, copy).object())
}

/// The reason why a live object cannot become the rendered copy by an update, so that it must be deleted and created again: it
/// is immutable, or a Secret of another type. `None` if an update is possible.
#[must_use]
pub fn must_be_recreated(rendered: &Rendered, live: &Value) -> Option<&'static str> {
    let copy = rendered.object();
    if copy["kind"] == "Secret" && normal::secret_type(copy) != normal::secret_type(live) {
        return Some("the type of a Secret cannot be changed");
    }
    let is_immutable = live["immutable"] == true;
    (is_immutable && interpreter::differs(copy, content_of(live, copy).object())).then_some("it is immutable")
}

/// Annotations and labels with which a ConfigMap requests that a controller of its cluster injects certificates.
const INJECTIONS: &[(&str, &str)] = &[
    ("annotations", "service.beta.openshift.io/inject-cabundle"),
    ("labels", "config.openshift.io/inject-trusted-cabundle"),
];

/// The content of a live object in the normal form, to be compared with a copy.
fn content_of(live: &Value, copy: &Value) -> Rendered {
    let kind = copy["kind"].as_str().unwrap_or_default();
    Rendered(Value::Object(normal::content(kind, live)))
}

/// True if the resource requests injection; a request on a single copy is ignored, and its injected data is overwritten.
fn asks_for_injection(copy: &Value) -> bool {
    copy["kind"] == "ConfigMap" && may_be_injected(&copy["metadata"])
}

/// True if an object with this metadata, if it is a ConfigMap, may hold injected data.
pub(super) fn may_be_injected(meta: &Value) -> bool {
    INJECTIONS.iter().any(|(field, key)| meta[field][key] == TRUE)
}

/// Keeps the data that the resource does not have: the injecting controller would add it again after each write.
fn keep_injected(copy: &mut Value, live: &Value) {
    let mut data = taken(copy, "data");
    for (key, value) in live["data"].as_object().into_iter().flatten() {
        if value.is_string() && !data.contains_key(key) && copy["binaryData"].get(key).is_none() {
            data.insert(key.clone(), value.clone());
        }
    }
    if !data.is_empty() {
        copy["data"] = Value::Object(data);
    }
}

/// Takes a map out of a sanitised resource, which is an object; an empty one if there is none.
fn taken(copy: &mut Value, field: &str) -> Map<String, Value> {
    match copy.as_object_mut().and_then(|fields| fields.remove(field)) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Adds the entries of the live object that were set by others.
fn keep_foreign(wanted: &mut Map<String, Value>, standing: &Value, set_before: &BTreeSet<String>) {
    for (key, value) in standing.as_object().into_iter().flatten() {
        if value.is_string() && !set_before.contains(key) && !wanted.contains_key(key) {
            wanted.insert(key.clone(), value.clone());
        }
    }
}

/// Returns the form of the ownership metadata of copies in a place.
#[must_use]
pub fn mark(place: &entourage_model::places::Place, hub: &Str) -> Mark {
    match &place.cluster {
        None => Mark::Owner,
        Some(cluster) => Mark::Member {
            hub: hub.clone(),
            cluster: cluster.clone(),
        },
    }
}
