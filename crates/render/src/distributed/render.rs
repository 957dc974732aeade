//! Rendering of a copy of a distribution in a namespace, pure.

use std::collections::BTreeSet;

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Map, Value, json};

pub use super::marks::{release, standing};
use super::{
    hash::resource_hash,
    marks::{self, Keys, has_owner_of, owners_of_copy},
    normal, template,
};
use entourage_interpreter as interpreter;
use entourage_model::object::Str;
pub use entourage_model::rendered::Rendered;

/// How a copy is made: data only, no content.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DistributionRenderSpec {
    /// The distribution's name.
    pub distribution: Str,
    /// The distribution's uid.
    pub uid: Str,
    /// The namespace of the copy.
    pub namespace: Str,
    /// How the copy says whose it is.
    pub mark: Mark,
    /// Whether an object without a controller is taken over (writePolicy overwrite).
    pub take_over: bool,
}

/// How a copy says whose it is.
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

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is a copy of this distribution.
    Ours,
    /// It is nobody's: it has no controller.
    Free,
    /// Its controller, as `Kind name`, or the distribution or hub that it says it is of.
    Held(String),
}

/// Renders the copy. With `live` the labels, annotations, finalizers and owners of others stay, and it carries uid and
/// resourceVersion, ready for a PUT.
///
/// Three states meet in labels and annotations: what the resource says, what the live object has, and what it says that a
/// distribution set ([`annotation::DISTRIBUTED_KEYS`]); what was set and is in the resource no more goes. OpenKruise leaves
/// no such record: on its copies everything stays that the resource does not set.
///
/// A resource that stands somewhere comes [`sanitised`](template::sanitised), so that the hash on its copies is that of what
/// travels. Cost: O(size of the objects).
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

/// Where a copy, rendered with the live object, first differs from it: a path without values and without keys of data. What
/// others set on the live object is no difference, and neither is a missing record of keys: a copy that OpenKruise wrote is
/// written again when something else changes, not for that.
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

/// Why a live object cannot become the rendered copy by an update, so that it must be deleted and made again: it is
/// immutable, or a Secret of another type. `None` when it can.
#[must_use]
pub fn must_be_recreated(rendered: &Rendered, live: &Value) -> Option<&'static str> {
    let copy = rendered.object();
    if copy["kind"] == "Secret" && normal::secret_type(copy) != normal::secret_type(live) {
        return Some("the type of a Secret cannot be changed");
    }
    let is_immutable = live["immutable"] == true;
    (is_immutable && interpreter::differs(copy, content_of(live, copy).object())).then_some("it is immutable")
}

/// Annotations and labels with which a ConfigMap asks a controller of its cluster to put certificates into it.
const INJECTIONS: &[(&str, &str)] = &[
    ("annotations", "service.beta.openshift.io/inject-cabundle"),
    ("labels", "config.openshift.io/inject-trusted-cabundle"),
];

/// What a live object holds, in the normal form, to be compared with a copy.
fn content_of(live: &Value, copy: &Value) -> Rendered {
    let kind = copy["kind"].as_str().unwrap_or_default();
    Rendered(Value::Object(normal::content(kind, live)))
}

/// Whether the resource asks; what others ask for on one copy is theirs to fight about.
fn asks_for_injection(copy: &Value) -> bool {
    copy["kind"] == "ConfigMap" && may_be_injected(&copy["metadata"])
}

/// Whether an object with this metadata, if it is a ConfigMap, may hold what was asked for.
pub(super) fn may_be_injected(meta: &Value) -> bool {
    INJECTIONS.iter().any(|(field, key)| meta[field][key] == TRUE)
}

/// Keeps the data that the resource does not have: whoever was asked for it would put it back, again and again.
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

/// Takes a map out of a sanitised resource, which is an object; an empty one where there is none.
fn taken(copy: &mut Value, field: &str) -> Map<String, Value> {
    match copy.as_object_mut().and_then(|fields| fields.remove(field)) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Adds what stands on the live object and was set by others.
fn keep_foreign(wanted: &mut Map<String, Value>, standing: &Value, set_before: &BTreeSet<String>) {
    for (key, value) in standing.as_object().into_iter().flatten() {
        if value.is_string() && !set_before.contains(key) && !wanted.contains_key(key) {
            wanted.insert(key.clone(), value.clone());
        }
    }
}

/// How copies in a place say whose they are.
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
