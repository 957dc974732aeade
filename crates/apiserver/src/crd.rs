//! Custom resources: what a CustomResourceDefinition says, and how its objects are decoded, pruned, defaulted and validated.
//!
//! `lifecycle` makes CRDs served; `Custom` is one served version, understood; `decode` reads bodies; `rules` are what the
//! registry asks of every kind. The rules of the CRD kind itself are in `kinds::crds`.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    resource::{LazySchema, Object, Resource},
    scale,
    schema::Schema,
};

pub(crate) mod cel;
mod decode;
pub(crate) mod formats;
pub(crate) mod lifecycle;
mod lists;
mod metadata;
pub(crate) mod prune;
mod rules;
pub(crate) mod schema;
pub(crate) mod validate;

#[cfg(test)]
mod tests;

pub use decode::{decode_applied, decode_body, decode_value};

/// The collection of CRDs in the store.
pub const COLLECTION: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Verbs of every custom resource, in the order in which discovery tells them.
pub(crate) const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// One served version of a CRD, understood.
#[derive(Debug, Default)]
pub struct Custom {
    /// Name of the CRD: `plural.group`.
    pub crd: String,
    /// What objects look like.
    pub schema: Arc<Schema>,
    /// `additionalPrinterColumns` as written, or the default column Age.
    pub columns: Vec<Value>,
    /// Paths of `selectableFields`: `spec.colour`, with how they are reached.
    selectable: Vec<(String, Vec<String>)>,
    /// The scale subresource, if there is one.
    pub scale: Option<scale::Paths>,
    /// Whether status is a subresource.
    pub status: bool,
    /// The Warning of every request when the version is deprecated.
    pub deprecation: Option<String>,
    /// Version that objects are stored as.
    pub storage: String,
    /// What objects look like in that version, when it is another.
    stored: Option<Arc<Schema>>,
    /// Whether the CRD is being deleted: nothing new is created.
    pub terminating: bool,
    /// Whether this is the only served version, and the stored one.
    alone: bool,
    /// Objects written at or after this revision went through this schema; 0: not known yet.
    since: AtomicU64,
    /// The last revision that was written by an earlier definition after it had been replaced; shared by all of a CRD.
    late: Arc<AtomicU64>,
    /// Cancelled when this definition is no longer the one that is served: watches end.
    pub replaced: CancellationToken,
}

impl Custom {
    /// Values of the selectable fields; `None` when the CRD names none. Absent fields are empty.
    #[must_use]
    pub fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        if self.selectable.is_empty() {
            return None;
        }
        let value = |steps: &[String]| {
            let mut steps = steps.iter();
            let mut value = object.get(steps.next()?)?;
            for step in steps {
                value = value.get(step)?;
            }
            match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                _ => None,
            }
        };
        let values = self
            .selectable
            .iter()
            .map(|(name, steps)| (name.clone(), value(steps).unwrap_or_default()));
        Some(values.collect())
    }

    /// Whether an object last written at `revision` is stored as it is shown: neither pruned nor given defaults on the way.
    #[must_use]
    pub fn is_as_stored(&self, revision: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        self.alone && since > 0 && revision >= since && revision > self.late.load(Ordering::Relaxed)
    }

    /// An object is written by this definition at `revision`, under the lock of the store.
    pub(crate) fn writes(&self, revision: u64) {
        if self.replaced.is_cancelled() {
            self.late.fetch_max(revision, Ordering::Relaxed);
        }
    }

    /// From `revision` on, objects are written by this definition, or are told by [`Custom::writes`] of an earlier one.
    pub(crate) fn served_since(&self, revision: u64) {
        // What was said first stays true.
        let _ = self
            .since
            .compare_exchange(0, revision, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A stored object as this version shows it: pruned and with defaults, unless it is so already. O(object).
    pub fn show(&self, object: &mut Object) {
        let revision = object
            .get("metadata")
            .and_then(|metadata| metadata.get("resourceVersion"))
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok());
        if revision.is_some_and(|revision| self.is_as_stored(revision)) {
            return;
        }
        let mut value = Value::Object(std::mem::take(object));
        // First as it was stored, then as it is asked for.
        for schema in self.stored.iter().chain([&self.schema]) {
            prune::prune(&mut value, Some(schema));
            prune::drop_nulls(&mut value, schema);
            prune::fill(&mut value, schema);
        }
        if let Value::Object(fields) = value {
            *object = fields;
        }
    }
}

/// The object with the replicas of a Scale.
pub fn with_scale(resource: &Resource, object: &mut Object, scale: &Value) {
    let paths = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    if let Some(paths) = paths {
        scale::set(paths, object, scale);
    }
}

/// The resources that an established CRD serves, one for each served version. `before`: one that was made of the same
/// definition, whose watches go on. `late`: what all definitions of the CRD share. O(schemas).
#[must_use]
pub fn resources(crd: &Object, before: Option<&Resource>, late: &Arc<AtomicU64>) -> Vec<Arc<Resource>> {
    let none = Map::new();
    let part = |of: &'_ Map<String, Value>, name: &str| schema::object(of, name).cloned().unwrap_or_default();
    let spec = schema::object(crd, "spec").unwrap_or(&none);
    let status = part(crd, "status");
    let names = part(&status, "acceptedNames");
    let word = |of: &Map<String, Value>, name: &str| schema::text(of, name).unwrap_or_default().to_owned();
    let group = word(spec, "group");
    let served: Vec<&Map<String, Value>> = schema::list(spec, "versions")
        .filter_map(Value::as_object)
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .collect();
    let storage = schema::list(spec, "versions")
        .filter_map(Value::as_object)
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))
        .map(|version| word(version, "name"))
        .unwrap_or_default();
    let metadata = part(crd, "metadata");
    let (plural, kind) = (word(&names, "plural"), word(&names, "kind"));
    let before = before.and_then(|before| before.custom.as_deref());
    let replaced = before.map_or_else(CancellationToken::new, |before| before.replaced.clone());
    let since = before.map_or(0, |before| before.since.load(Ordering::Relaxed));
    let stored = schema::list(spec, "versions")
        .filter_map(Value::as_object)
        .find(|version| schema::text(version, "name") == Some(&storage))
        .map(understood);
    served
        .iter()
        .map(|version| {
            let name = word(version, "name");
            let schema = match &stored {
                Some(stored) if name == storage => stored.clone(),
                _ => understood(version),
            };
            let subresources = part(version, "subresources");
            let custom = Custom {
                crd: word(&metadata, "name"),
                schema: schema.clone(),
                columns: columns(version),
                selectable: schema::list(version, "selectableFields")
                    .filter_map(|field| field.get("jsonPath").and_then(Value::as_str))
                    .filter_map(|path| Some((path.strip_prefix('.')?.to_owned(), scale::steps(path)?)))
                    .collect(),
                scale: subresources.get("scale").and_then(scale::Paths::of),
                status: subresources.get("status").is_some_and(Value::is_object),
                deprecation: deprecation(version, &group, &kind, &served),
                stored: stored.clone().filter(|_| name != storage),
                storage: storage.clone(),
                terminating: metadata.contains_key("deletionTimestamp"),
                alone: served.len() == 1 && name == storage,
                since: AtomicU64::new(since),
                late: late.clone(),
                replaced: replaced.clone(),
            };
            let custom = Arc::new(custom);
            Arc::new(Resource {
                group: group.clone(),
                version: name,
                kind: kind.clone(),
                list_kind: word(&names, "listKind"),
                plural: plural.clone(),
                singular: word(&names, "singular"),
                short_names: schema::texts(&names, "shortNames"),
                categories: schema::texts(&names, "categories"),
                namespaced: schema::text(spec, "scope") == Some("Namespaced"),
                verbs: VERBS.to_vec(),
                subresources: [("status", custom.status), ("scale", custom.scale.is_some())]
                    .into_iter()
                    .filter_map(|(name, there)| there.then_some(name))
                    .collect(),
                collection: format!("{group}/{plural}"),
                schema: LazySchema::new(move || schema),
                rules: Arc::new(rules::CustomRules::new(custom.clone(), kind.clone())),
                custom: Some(custom),
            })
        })
        .collect()
}

/// The schema of a version; without one, everything is kept.
fn understood(version: &Map<String, Value>) -> Arc<Schema> {
    let declared = version
        .get("schema")
        .and_then(|schema| schema.get("openAPIV3Schema"))
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    Arc::new(schema::of_resource(&declared))
}

fn columns(version: &Map<String, Value>) -> Vec<Value> {
    const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
    let given: Vec<Value> = schema::list(version, "additionalPrinterColumns")
        .cloned()
        .collect();
    if !given.is_empty() {
        return given;
    }
    vec![
        json!({"name": "Age", "type": "date", "description": AGE, "jsonPath": ".metadata.creationTimestamp"}),
    ]
}

/// The warning about a deprecated version: its own text, or one that names the newest stable version that is not.
fn deprecation(
    version: &Map<String, Value>,
    group: &str,
    kind: &str,
    served: &[&Map<String, Value>],
) -> Option<String> {
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        return None;
    }
    if let Some(text) = schema::text(version, "deprecationWarning") {
        return Some(text.to_owned());
    }
    let name = schema::text(version, "name").unwrap_or_default();
    let mut warning = format!("{group}/{name} {kind} is deprecated");
    let better = served
        .iter()
        .filter(|other| other.get("deprecated") != Some(&Value::Bool(true)))
        .filter_map(|other| schema::text(other, "name"))
        .min_by(|a, b| crate::discovery::by_priority(a, b));
    // Only a version that is as stable is recommended.
    if let Some(better) = better.filter(|better| crate::discovery::by_priority(better, name).is_lt()) {
        warning.push_str(&format!("; use {group}/{better} {kind}"));
    }
    Some(warning)
}
