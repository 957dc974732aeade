//! The objects of an API server in the simulation: ids, versions, merges, finalizers.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use entourage_core::{
    object::{ResourceId, Time},
    plan::Preconditions,
    rendered::wipe,
};

/// The objects of an API server. They may be Secrets: no `Debug`, wiped on drop.
#[derive(Clone, Default, PartialEq)]
pub struct Objects(BTreeMap<ResourceId, Value>);

impl Deref for Objects {
    type Target = BTreeMap<ResourceId, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Objects {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.0.values_mut().for_each(wipe);
    }
}

/// The source of uids and resourceVersions: one sequence for all servers, above every version that was observed.
#[derive(Clone, Default)]
pub struct Versions {
    last: u64,
    uids: u64,
}

impl Versions {
    /// Records a version of a real server.
    pub fn saw(&mut self, object: &Value) {
        let version = object["metadata"]["resourceVersion"].as_str();
        if let Some(version) = version.and_then(|text| text.parse().ok()) {
            self.last = self.last.max(version);
        }
    }

    /// The newest version.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next version.
    pub fn advance(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Goes back to an earlier version, as servers restored from a backup do.
    pub fn go_back(&mut self, last: u64) {
        self.last = last;
    }

    /// The object that results from a POST.
    #[must_use]
    pub fn created(&mut self, id: &ResourceId, mut object: Value, now: Time) -> Value {
        self.uids += 1;
        let uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
        let version = self.advance().to_string();
        named(id, &mut object);
        let has_generation = has_generation(id);
        let meta = &mut object["metadata"];
        meta["uid"] = json!(uid);
        meta["resourceVersion"] = json!(version);
        meta["creationTimestamp"] = json!(now.to_k8s());
        if has_generation {
            meta["generation"] = json!(1);
        }
        object
    }

    /// The object that results from a PUT of `next` over `held`: the same if nothing differs.
    #[must_use]
    pub fn replaced(&mut self, id: &ResourceId, held: &Value, mut next: Value) -> Value {
        named(id, &mut next);
        let meta = &held["metadata"];
        for field in [
            "uid",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "resourceVersion",
        ] {
            match meta.get(field).filter(|value| !value.is_null()) {
                Some(value) => next["metadata"][field] = value.clone(),
                None => {
                    if let Some(meta) = next["metadata"].as_object_mut() {
                        meta.remove(field);
                    }
                }
            }
        }
        if next == *held {
            return next;
        }
        next["metadata"]["resourceVersion"] = json!(self.advance().to_string());
        // The annotations of a Deployment count as its spec does.
        let is_annotated =
            &*id.gvk.kind == "Deployment" && next["metadata"]["annotations"] != meta["annotations"];
        // Whatever an EndpointSlice says is beside a spec.
        let is_of_slice = |field: &&str| next[*field] != held[*field];
        let is_redirected = &*id.gvk.kind == "EndpointSlice"
            && (["addressType", "endpoints", "ports"].iter().any(is_of_slice)
                || next["metadata"]["labels"] != meta["labels"]);
        if let Some(generation) = meta["generation"]
            .as_i64()
            .filter(|_| next["spec"] != held["spec"] || is_annotated || is_redirected)
        {
            next["metadata"]["generation"] = json!(generation + 1);
        }
        next
    }
}

/// The kinds of Kubernetes itself whose objects have no `metadata.generation`.
const WITHOUT_GENERATION: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "Endpoints",
    "HorizontalPodAutoscaler",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StorageClass",
];

fn has_generation(id: &ResourceId) -> bool {
    let is_of_kubernetes = !id.gvk.group.contains('.') || id.gvk.group.ends_with(".k8s.io");
    !(is_of_kubernetes && WITHOUT_GENERATION.contains(&&*id.gvk.kind))
}

/// Sets the kind and name of an object, which a typed body omits.
fn named(id: &ResourceId, object: &mut Value) {
    object["apiVersion"] = json!(id.gvk.api_version());
    object["kind"] = json!(&*id.gvk.kind);
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"]["name"] = json!(&*id.name);
    if !id.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(&*id.namespace);
    }
}

/// An object as it is stored: without managedFields, and with a Secret's `stringData` moved to `data`.
pub(crate) fn kept(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    let is_secret = object["apiVersion"] == "v1" && object["kind"] == "Secret";
    if !is_secret {
        return object;
    }
    let mut plain = object
        .as_object_mut()
        .and_then(|map| map.remove("stringData"))
        .unwrap_or_default();
    // A server refuses data that is no map: there it stays as it is, for the validation of the object.
    let takes = object["data"].is_object() || object["data"].is_null();
    for (key, value) in plain.as_object().into_iter().flatten().filter(|_| takes) {
        let bytes = ByteString(value.as_str().unwrap_or_default().as_bytes().to_vec());
        object["data"][key] = serde_json::to_value(bytes).unwrap_or_default();
    }
    wipe(&mut plain);
    object
}

/// A JSON merge patch. Source: RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// True if this is the very version of the object that the preconditions name.
#[must_use]
pub fn is_exactly(object: &Value, preconditions: &Preconditions) -> bool {
    let meta = &object["metadata"];
    meta["uid"] == *preconditions.uid && meta["resourceVersion"] == *preconditions.resource_version
}

/// True if the object has a finalizer.
#[must_use]
pub fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_another_form_is_stored_without_a_panic() {
        for data in [json!("canary"), json!(["canary"]), json!({"a": 7}), json!({})] {
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "data": data, "stringData": {"a": {"b": "c"}}});
            drop(kept(secret));
        }
    }
}
