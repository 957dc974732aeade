//! Copies of a member in Pull mode: each is the manifest of a Work on the hub, which an agent on the member applies.
//!
//! For the engine such a member is one more API server. The shell translates each request about an object into one about its
//! Work, and each Work into the object, with the functions of this module. Invariants:
//!
//! - uid, resourceVersion, generation and deletionTimestamp of the object are those of its Work, so that preconditions carry over
//!   and a change of the Work's status alone is no change of the copy. Its status is the one that the agent reports.
//! - An object is released, and a Namespace is deleted, by a Work that preserves: the agent never deletes what is not only ours.
//!   Until the Work is deleted it keeps our marks, so that what was interrupted is done again.
//! - The words of an agent about a Secret or ConfigMap are left out: they may quote its content.

use entourage_api::{
    keys::{TRUE, annotation, finalizer, label},
    names,
};
use serde_json::{Map, Value, json};

use crate::object::{Gvk, NamespacedName, ResourceId};

pub use entourage_model::rendered::REPORT;

/// The maximum length of an agent's message that is passed on, in characters.
const LONGEST: usize = 512;

/// The labels by which objects on a member are listed, and that say whose they are: a Work has those of its manifest.
const SELECTED: [&str; 3] = [label::HUB, label::FEDERATED_QUOTA, label::DISTRIBUTED_BY];

/// Other labels of a manifest that its Work has, too.
const BINDINGS: [&str; 2] = [label::RESOURCE_BINDING_ID, label::CLUSTER_RESOURCE_BINDING_ID];

/// The annotations of a manifest that its Work has, too.
pub(crate) const REPEATED: [&str; 6] = [
    annotation::RESOURCE_BINDING_NAMESPACE,
    annotation::RESOURCE_BINDING_NAME,
    annotation::CLUSTER_RESOURCE_BINDING_NAME,
    annotation::CONFLICT_RESOLUTION,
    annotation::APPLIED_OVERRIDES,
    annotation::APPLIED_CLUSTER_OVERRIDES,
];

/// The metadata that API servers set: a manifest has none of it.
const SERVED: [&str; 11] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "finalizers",
    "ownerReferences",
    "generateName",
];

/// The state of a copy on its member, as an agent reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The agent has not reported yet.
    Awaited,
    /// It is there.
    Done,
    /// The agent could not apply it.
    Failed,
}

/// The value of the label [`label::WORK_KIND`] of the Works of a kind: readable where it fits.
#[must_use]
pub fn kind_label(gvk: &Gvk) -> String {
    let readable = match &*gvk.group {
        "" => gvk.kind.to_string(),
        group => format!("{}.{group}", gvk.kind),
    };
    if readable.len() <= 63 {
        readable
    } else {
        names::permanent_id(&[&gvk.group, &gvk.kind])
    }
}

/// The namespace and name of the Work of an object.
#[must_use]
pub fn name_of(id: &ResourceId, cluster: &str) -> NamespacedName {
    let name = names::work_name(&id.namespace, &id.name, &id.gvk.kind);
    NamespacedName::new(&names::execution_namespace(cluster), &name)
}

/// True if the object has a mark of a hub. One that is written without is released.
#[must_use]
pub fn is_owned(object: &Value) -> bool {
    let meta = &object["metadata"];
    let is_record =
        |key: &String| key == annotation::CREATED_BY || key.starts_with(annotation::MANAGED_BY_PREFIX);
    SELECTED.iter().any(|key| meta["labels"][*key].is_string())
        || meta["annotations"]
            .as_object()
            .is_some_and(|all| all.keys().any(is_record))
}

/// The Work of a new object. It may hold a Secret: to be wiped. Cost: O(size of the object).
#[must_use]
pub fn work(id: &ResourceId, cluster: &str, object: &Value) -> Value {
    let name = name_of(id, cluster);
    let manifest = manifest(id, &name, object);
    let (mut labels, annotations) = marks(&manifest);
    let permanent_id = names::permanent_id(&["Work", &name.namespace, &name.name]);
    labels.insert(label::WORK_ID.into(), json!(permanent_id));
    labels.insert(label::WORK_KIND.into(), json!(kind_label(&id.gvk)));
    let mut work = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "namespace": &*name.namespace, "name": &*name.name,
            "labels": labels, "annotations": annotations, "finalizers": [finalizer::EXECUTION],
        },
        "spec": {"workload": {"manifests": [manifest]}},
    });
    preserve(&mut work, &id.gvk);
    work
}

/// The Work of a Namespace preserves it from the beginning: whoever deletes the Work does not delete all that is in it.
fn preserve(work: &mut Value, gvk: &Gvk) {
    if gvk.is_namespace() {
        work["spec"]["preserveResourcesOnDeletion"] = json!(true);
    }
}

/// The merge patch of a Work that replaces its object by this one, which has uid and resourceVersion. It may hold a Secret: to be
/// wiped. Cost: O(size of the object).
#[must_use]
pub fn patch(id: &ResourceId, cluster: &str, object: &Value) -> Value {
    let manifest = manifest(id, &name_of(id, cluster), object);
    let (mut labels, mut annotations) = marks(&manifest);
    for key in SELECTED {
        labels.entry(key).or_insert(Value::Null);
    }
    labels.insert(label::WORK_KIND.into(), json!(kind_label(&id.gvk)));
    for key in REPEATED {
        annotations.entry(key).or_insert(Value::Null);
    }
    let mut patch = json!({
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"workload": {"manifests": [manifest]}},
    });
    preserve(&mut patch, &id.gvk);
    identify(&mut patch, &object["metadata"]);
    patch
}

/// The merge patch of a Work whose object is released: the Work preserves it from now on, and is to be deleted. All else stays, so
/// that a release that is interrupted is recognised as one of ours, and is done again. A Work that a user made preserve is not
/// marked as made so by us.
#[must_use]
pub fn release(gvk: &Gvk, object: &Value) -> Value {
    let mut patch = json!({"metadata": {}, "spec": {"preserveResourcesOnDeletion": true}});
    if !gvk.is_namespace() && object[REPORT]["preserves"] != true {
        patch["metadata"]["annotations"] = json!({annotation::WORK_RELEASED: TRUE});
    }
    identify(&mut patch, &object["metadata"]);
    patch
}

/// True if the Work preserves its object when it is deleted.
#[must_use]
pub fn preserves(work: &Value) -> bool {
    work["spec"]["preserveResourcesOnDeletion"] == true
}

/// The merge patch that ends a release that was not completed, of a Work whose object is managed again; `None` if there is none.
#[must_use]
pub fn unreleased(work: &Value) -> Option<Value> {
    let meta = &work["metadata"];
    if !meta["annotations"][annotation::WORK_RELEASED].is_string() || meta["deletionTimestamp"].is_string() {
        return None;
    }
    let mut patch = json!({
        "metadata": {"annotations": {annotation::WORK_RELEASED: null}},
        "spec": {"preserveResourcesOnDeletion": null},
    });
    identify(&mut patch, meta);
    Some(patch)
}

/// The merge patch that adds the finalizer of an agent to a Work without it: deleted without, the Work would be gone at once, and its
/// object would stay. `None` if it has it, or is being deleted.
#[must_use]
pub fn unheld(work: &Value) -> Option<Value> {
    let meta = &work["metadata"];
    let mut all = meta["finalizers"].as_array().cloned().unwrap_or_default();
    if meta["deletionTimestamp"].is_string() || all.iter().any(|each| each == finalizer::EXECUTION) {
        return None;
    }
    all.push(json!(finalizer::EXECUTION));
    let mut patch = json!({"metadata": {"finalizers": all}});
    identify(&mut patch, meta);
    Some(patch)
}

/// The patch of [`unheld`], or else that of [`unreleased`].
#[must_use]
pub fn lacking(work: &Value) -> Option<Value> {
    unheld(work).or_else(|| unreleased(work))
}

/// The patch is of exactly this version of exactly this object.
fn identify(patch: &mut Value, meta: &Value) {
    for field in ["uid", "resourceVersion"] {
        if let Some(value) = meta.get(field) {
            patch["metadata"][field] = value.clone();
        }
    }
}

/// The object that a Work carries: its metadata and the agent's report, or with `whole` all of it. `None` if the Work carries
/// another object, or several. The Work is consumed. Cost: O(size of the Work).
#[must_use]
pub fn object(gvk: &Gvk, mut work: Value, whole: bool) -> Option<Value> {
    let mut report = report(gvk, &work);
    if preserves(&work) && !work["metadata"]["annotations"][annotation::WORK_RELEASED].is_string() {
        report["preserves"] = json!(true);
    }
    let status = work.pointer_mut("/status/manifestStatuses/0/status");
    let status = status.map(Value::take).unwrap_or_default();
    let carried = carried(gvk, &mut work);
    let mut object = match carried {
        Some(object) => object,
        None => {
            crate::rendered::wipe(&mut work);
            return None;
        }
    };
    let served = work["metadata"].take();
    crate::rendered::wipe(&mut work);
    if !object["metadata"]["labels"][label::HUB].is_string() {
        for (field, key) in ADDED {
            if let Some(all) = object["metadata"].get_mut(field).and_then(Value::as_object_mut) {
                all.remove(key);
            }
        }
    }
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
    ] {
        if let Some(value) = served.get(field) {
            object["metadata"][field] = value.clone();
        }
    }
    // While it ends it is held by the agent, as an object is by a finalizer.
    if served["deletionTimestamp"].is_string() {
        object["metadata"]["finalizers"] = served["finalizers"].clone();
    }
    if whole {
        if let Some(all) = object.as_object_mut() {
            all.remove("status");
        }
        if !status.is_null() {
            object["status"] = status;
        }
        object[REPORT] = report;
        return Some(object);
    }
    let metadata = object["metadata"].take();
    crate::rendered::wipe(&mut object);
    Some(json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata, REPORT: report,
    }))
}

/// The state of a copy by the report in it, and the agent's words; `None` for an object that was not read from a Work.
#[must_use]
pub fn applied(object: &Value) -> Option<(Applied, &str)> {
    let report = object.get(REPORT)?;
    let applied = match report["applied"].as_str() {
        Some("True") => Applied::Done,
        Some("False") => Applied::Failed,
        _ => Applied::Awaited,
    };
    Some((applied, report["message"].as_str().unwrap_or_default()))
}

/// The metadata that an object that is no copy of a binding gets in its manifest, so that the agent finds its Work and may change it, and loses
/// when it is read.
const ADDED: [(&str, &str); 6] = [
    ("labels", label::MANAGED),
    ("annotations", annotation::WORK_NAMESPACE),
    ("annotations", annotation::WORK_NAME),
    ("annotations", annotation::CONFLICT_RESOLUTION),
    ("annotations", annotation::MANAGED_LABELS),
    ("annotations", annotation::MANAGED_ANNOTATIONS),
];

/// The manifest of an object.
fn manifest(id: &ResourceId, work: &NamespacedName, object: &Value) -> Value {
    let mut manifest = object.clone();
    if let Some(all) = manifest.as_object_mut() {
        all.remove("status");
        all.remove(REPORT);
    }
    manifest["apiVersion"] = json!(id.gvk.api_version());
    manifest["kind"] = json!(&*id.gvk.kind);
    if let Some(meta) = manifest["metadata"].as_object_mut() {
        for field in SERVED {
            meta.remove(field);
        }
    }
    if !manifest["metadata"]["labels"][label::HUB].is_string() && is_owned(object) {
        // A namespace that is there already is adopted: it gets labels and annotations, and nothing of it is replaced.
        let resolution = if id.gvk.is_namespace() {
            "overwrite"
        } else {
            "abort"
        };
        // The last two list all keys, so that the agent takes off what is not set any more.
        let values = [TRUE, &*work.namespace, &*work.name, resolution, "", ""];
        for ((field, key), value) in ADDED.into_iter().zip(values) {
            if !manifest["metadata"][field].is_object() {
                manifest["metadata"][field] = json!({});
            }
            manifest["metadata"][field][key] = json!(value);
        }
        let meta = &mut manifest["metadata"];
        let (labels, annotations) = (keys(&meta["labels"]), keys(&meta["annotations"]));
        meta["annotations"][annotation::MANAGED_LABELS] = json!(labels);
        meta["annotations"][annotation::MANAGED_ANNOTATIONS] = json!(annotations);
    }
    manifest
}

/// The keys of a map, sorted and separated by commas.
fn keys(map: &Value) -> String {
    let mut all: Vec<&str> = map
        .as_object()
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
        .collect();
    all.sort_unstable();
    all.join(",")
}

/// The labels and annotations that a Work has of its manifest.
fn marks(manifest: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let meta = &manifest["metadata"];
    let of = |field: &str, keys: &[&str]| {
        let found = keys
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), meta[field].get(*key)?.clone())));
        found.collect::<Map<_, _>>()
    };
    let mut labels = of("labels", &SELECTED);
    labels.extend(of("labels", &BINDINGS));
    (labels, of("annotations", &REPEATED))
}

/// The only manifest of a Work, if it is of this kind, and the Work has the name that follows from it.
fn carried(gvk: &Gvk, work: &mut Value) -> Option<Value> {
    let name = work["metadata"]["name"].take();
    let manifests = work["spec"]["workload"]["manifests"].as_array_mut()?;
    let [manifest] = manifests.as_mut_slice() else {
        return None;
    };
    let api_version = manifest["apiVersion"].as_str()?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let meta = &manifest["metadata"];
    let named = names::work_name(
        meta["namespace"].as_str().unwrap_or_default(),
        meta["name"].as_str()?,
        &gvk.kind,
    );
    let is_it = *group == *gvk.group && manifest["kind"] == *gvk.kind && name == *named;
    is_it.then(|| manifest.take())
}

fn report(gvk: &Gvk, work: &Value) -> Value {
    let status = &work["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|each| each["type"] == "Applied");
    // An agent that names the generation has not seen a later one.
    let is_of_now = |condition: &&Value| {
        let observed = condition["observedGeneration"].as_i64().unwrap_or_default();
        observed == 0 || observed >= work["metadata"]["generation"].as_i64().unwrap_or_default()
    };
    let Some(condition) = condition.filter(is_of_now) else {
        return json!({"health": status["manifestStatuses"][0]["health"]});
    };
    let reason = condition["reason"].as_str().unwrap_or_default();
    let message = condition["message"].as_str().unwrap_or_default();
    let is_private = gvk.group.is_empty() && matches!(&*gvk.kind, "Secret" | "ConfigMap");
    let words = match (reason, message) {
        (reason, message) if is_private || message.is_empty() => reason.to_owned(),
        ("", message) => message.chars().take(LONGEST).collect(),
        (reason, message) => {
            let message: String = message.chars().take(LONGEST).collect();
            format!("{reason}: {message}")
        }
    };
    json!({
        "applied": condition["status"], "message": words, "health": status["manifestStatuses"][0]["health"],
    })
}

#[cfg(test)]
mod tests;
