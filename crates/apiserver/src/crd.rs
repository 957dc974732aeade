//! Custom resources: the resources that a CustomResourceDefinition defines, and the rules of its objects.
//!
//! [`resources`] makes the served resources of a definition; `rules` are the rules that the registry needs of every kind;
//! `names` are the names and the conditions about their acceptance. The rules of the CRD kind itself are in `kinds::crds`, its
//! life cycle in `controllers::definitions`.

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
    object::Object,
    resource::{Custom, LazySchema, Resource, custom::VERBS},
    scale,
    schema::{Schema, declared},
};

mod lists;
pub(crate) mod names;
mod rules;

#[cfg(test)]
mod tests;

/// The collection of CRDs in the store.
pub const COLLECTION: &str = "apiextensions.k8s.io/customresourcedefinitions";

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
    let part =
        |of: &'_ Map<String, Value>, name: &str| declared::object(of, name).cloned().unwrap_or_default();
    let spec = declared::object(crd, "spec").unwrap_or(&none);
    let status = part(crd, "status");
    let names = part(&status, "acceptedNames");
    let word = |of: &Map<String, Value>, name: &str| declared::text(of, name).unwrap_or_default().to_owned();
    let group = word(spec, "group");
    let served: Vec<&Map<String, Value>> = declared::list(spec, "versions")
        .filter_map(Value::as_object)
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .collect();
    let storage = declared::list(spec, "versions")
        .filter_map(Value::as_object)
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))
        .map(|version| word(version, "name"))
        .unwrap_or_default();
    let metadata = part(crd, "metadata");
    let (plural, kind) = (word(&names, "plural"), word(&names, "kind"));
    let before = before.and_then(|before| before.custom.as_deref());
    let replaced = before.map_or_else(CancellationToken::new, |before| before.replaced.clone());
    let since = before.map_or(0, |before| before.since.load(Ordering::Relaxed));
    let versions: BTreeMap<String, Arc<Schema>> = declared::list(spec, "versions")
        .filter_map(Value::as_object)
        .map(|version| (word(version, "name"), understood(version)))
        .collect();
    let versions = Arc::new(versions);
    served
        .iter()
        .map(|version| {
            let name = word(version, "name");
            let schema = versions.get(&name).cloned().unwrap_or_default();
            let subresources = part(version, "subresources");
            let custom = Custom {
                crd: word(&metadata, "name"),
                schema: schema.clone(),
                columns: columns(version),
                selectable: declared::list(version, "selectableFields")
                    .filter_map(|field| field.get("jsonPath").and_then(Value::as_str))
                    .filter_map(|path| Some((path.strip_prefix('.')?.to_owned(), scale::steps(path)?)))
                    .collect(),
                scale: subresources.get("scale").and_then(scale::Paths::of),
                status: subresources.get("status").is_some_and(Value::is_object),
                deprecation: deprecation(version, &group, &kind, &served),
                versions: versions.clone(),
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
                short_names: declared::texts(&names, "shortNames"),
                categories: declared::texts(&names, "categories"),
                namespaced: declared::text(spec, "scope") == Some("Namespaced"),
                verbs: VERBS.to_vec(),
                subresources: [("status", custom.status), ("scale", custom.scale.is_some())]
                    .into_iter()
                    .filter_map(|(name, there)| there.then_some(name))
                    .collect(),
                collection: format!("{group}/{plural}"),
                schema: LazySchema::new(move || schema),
                rules: Arc::new(rules::CustomRules::new(custom.clone(), kind.clone())),
                printer: crate::printer::Printer::DEFAULT,
                pod_spec: &[],
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
    Arc::new(declared::of_resource(&declared))
}

fn columns(version: &Map<String, Value>) -> Vec<Value> {
    const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
    let given: Vec<Value> = declared::list(version, "additionalPrinterColumns")
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
    if let Some(text) = declared::text(version, "deprecationWarning") {
        return Some(text.to_owned());
    }
    let name = declared::text(version, "name").unwrap_or_default();
    let mut warning = format!("{group}/{name} {kind} is deprecated");
    let better = served
        .iter()
        .filter(|other| other.get("deprecated") != Some(&Value::Bool(true)))
        .filter_map(|other| declared::text(other, "name"))
        .min_by(|a, b| crate::resource::by_priority(a, b));
    // Only a version that is as stable is recommended.
    if let Some(better) = better.filter(|better| crate::resource::by_priority(better, name).is_lt()) {
        warning.push_str(&format!("; use {group}/{better} {kind}"));
    }
    Some(warning)
}
