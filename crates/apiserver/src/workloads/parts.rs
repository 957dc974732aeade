//! The common parts of workloads: statuses that are written when they change, Pods of a template, names.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Action, owners::NODE};
use crate::object::Object;

/// Fields of a status; counts of nothing are left out, as controllers do.
#[derive(Debug, Default)]
pub(super) struct Counts(pub(super) Map<String, Value>);

impl Counts {
    pub(super) fn count(&mut self, field: &str, value: i64) {
        self.0.insert(
            field.to_owned(),
            match value {
                0 if field != "replicas" => Value::Null,
                value => value.into(),
            },
        );
    }

    /// The patch of the status, unless it is the same already.
    pub(super) fn patch(mut self, group_version: &str, plural: &str, object: &Object) -> Option<Action> {
        if plural != "jobs" {
            self.0.insert(
                "observedGeneration".to_owned(),
                object["metadata"]["generation"].clone(),
            );
        }
        let old = object.get("status").cloned().unwrap_or_default();
        let differs = self.0.iter().any(|(field, value)| {
            let zero = value == 0 && old.get(field).is_none();
            !zero && old.get(field).unwrap_or(&Value::Null) != value
        });
        differs.then(|| Action::Patch {
            path: format!("{}/status", path_of(group_version, plural, object)),
            patch: json!({"status": self.0}),
        })
    }
}

pub(super) fn condition(
    old: &Value,
    kind: &str,
    holds: bool,
    reasons: [&str; 2],
    messages: [&str; 2],
    now: &str,
) -> Value {
    let at = usize::from(!holds);
    let status = if holds { "True" } else { "False" };
    let before = old["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|each| each["type"] == kind));
    if let Some(before) = before.filter(|before| {
        before["status"] == status && before["reason"] == reasons[at] && before["message"] == messages[at]
    }) {
        return before.clone();
    }
    let since = before
        .filter(|before| before["status"] == status)
        .map_or_else(|| json!(now), |before| before["lastTransitionTime"].clone());
    json!({"type": kind, "status": status, "reason": reasons[at], "message": messages[at],
        "lastTransitionTime": since, "lastUpdateTime": now})
}

/// A Pod of a template, on the node.
pub(super) fn pod(
    owner: &Object,
    api_version: &str,
    kind: &str,
    name: &str,
    template: &Value,
    labels: Map<String, Value>,
) -> Action {
    let meta = &owner["metadata"];
    let mut metadata = template["metadata"].as_object().cloned().unwrap_or_default();
    metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations" | "finalizers"));
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("ownerReferences".to_owned(), owned_by(api_version, kind, meta));
    if let Some(all) = metadata
        .entry("labels")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        all.extend(labels);
    }
    let mut spec = template["spec"].clone();
    spec["nodeName"] = json!(NODE);
    Action::Create {
        path: format!("/api/v1/namespaces/{}/pods", text(&meta["namespace"])),
        object: json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}),
    }
}

pub(super) fn remove(pod: &Object) -> Action {
    Action::Delete {
        path: path_of("api/v1", "pods", pod),
        options: json!({"propagationPolicy": "Background"}),
    }
}

pub(super) fn owned_by(api_version: &str, kind: &str, meta: &Value) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"],
        "controller": true, "blockOwnerDeletion": true}])
}

pub(super) fn path_of(group_version: &str, plural: &str, object: &Object) -> String {
    let meta = &object["metadata"];
    format!(
        "/{group_version}/namespaces/{}/{plural}/{}",
        text(&meta["namespace"]),
        text(&meta["name"])
    )
}

pub(super) fn is_leaving(object: &Object) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(super) fn is_over(pod: &Object) -> bool {
    matches!(phase_of(pod), "Succeeded" | "Failed")
}

pub(super) fn phase_of(pod: &Object) -> &str {
    pod.get("status").map_or("", |status| text(&status["phase"]))
}

pub(super) fn is_ready(pod: &Object) -> bool {
    let conditions = pod
        .get("status")
        .and_then(|status| status["conditions"].as_array());
    conditions.is_some_and(|all| {
        all.iter()
            .any(|each| each["type"] == "Ready" && each["status"] == "True")
    })
}

pub(super) fn ready(pods: &[&Object]) -> i64 {
    count(pods.iter().filter(|pod| is_ready(pod)).count())
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Ten characters that stand for a template.
pub(super) fn hash_of(template: &Value) -> String {
    let digest = Sha256::digest(template.to_string());
    digest
        .iter()
        .take(10)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// Five characters that stand for a Pod's number, the same for the same owner.
pub(super) fn suffix(owner: &Object, number: usize) -> String {
    let digest = Sha256::digest(format!("{}/{number}", owner["metadata"]["uid"]));
    digest
        .iter()
        .take(5)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}
