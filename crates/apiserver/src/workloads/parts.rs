//! The common parts of workloads: statuses that are written when they change, Pods of a template, names.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Action,
    node::{NODE, Node},
};
use crate::object::{Object, holds};
pub(super) use crate::{
    kinds::{core::pod::is_finished as is_over, workloads::share},
    object::is_leaving,
};

/// The surroundings of a decision.
#[derive(Debug)]
pub(super) struct Around {
    /// The time as it is written.
    pub(super) now: String,
    pub(super) time: Timestamp,
    pub(super) node: Node,
    /// The error of the last request about the object, if it was refused.
    pub(super) refusal: Option<String>,
}

impl Around {
    /// The time from now until some seconds after `since`; zero when that is past or `since` is none.
    pub(super) fn until(&self, since: &Value, seconds: i64) -> Duration {
        let since = text(since).parse::<Timestamp>().ok();
        let end = since.and_then(|since| since.checked_add(SignedDuration::from_secs(seconds)).ok());
        let left = end.map(|end| end.duration_since(self.time));
        left.and_then(|left| Duration::try_from(left).ok())
            .unwrap_or_default()
    }
}

/// The earlier of two times at which something is to be done.
pub(super) fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// A field of an object; null when absent.
pub(super) fn part<'a>(object: &'a Object, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

/// A number of a value.
pub(super) fn int(value: &Value, or: i64) -> i64 {
    value.as_i64().unwrap_or(or)
}

/// Fields of a status; counts of nothing are left out, as controllers do.
#[derive(Debug, Default)]
pub(super) struct Counts(pub(super) Map<String, Value>);

impl Counts {
    pub(super) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    pub(super) fn count(&mut self, field: &str, value: i64) {
        self.set(field, (value != 0 || field == "replicas").then_some(value));
    }

    /// The patch of the status, unless it is the same already.
    pub(super) fn patch(mut self, group_version: &str, plural: &str, object: &Object) -> Option<Action> {
        if !matches!(plural, "jobs" | "cronjobs") {
            self.set("observedGeneration", object["metadata"]["generation"].clone());
        }
        let old = part(object, "status");
        let differs = self.0.iter().any(|(field, value)| {
            let zero = value == 0 && old.get(field).is_none();
            !zero && old[field] != without_nulls(value)
        });
        differs.then(|| Action::Patch {
            path: format!("{}/status", path_of(group_version, plural, object)),
            patch: json!({"status": self.0}),
        })
    }
}

/// The value that a merge patch leaves.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect()
        }
        other => other.clone(),
    }
}

/// A condition as it is written: the one before if nothing changed, else with the time since when its status holds.
pub(super) fn condition(old: &Value, [kind, status, reason, message]: [&str; 4], now: &str) -> Value {
    let before = condition_of(old, kind);
    let same = |key: &str, value: &str| before[key] == value;
    if same("status", status) && same("reason", reason) && same("message", message) {
        return before.clone();
    }
    let since = if same("status", status) {
        before["lastTransitionTime"].clone()
    } else {
        json!(now)
    };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

/// The condition of a type in a status; null when there is none.
pub(super) fn condition_of<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|one| one["type"] == kind));
    found.unwrap_or(&Value::Null)
}

/// A Pod of a template, of this name or, when that ends with a dash, of one that the server makes of it. Where the scheduler has
/// nothing to wait for, it is on the node at once.
pub(super) fn pod(
    owner: &Object,
    (api_version, kind): (&str, &str),
    name: &str,
    template: &Value,
    labels: &[(&str, &str)],
    node: &Node,
) -> Value {
    let meta = &owner["metadata"];
    let mut metadata = template["metadata"].as_object().cloned().unwrap_or_default();
    metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations" | "finalizers"));
    let field = if name.ends_with('-') {
        "generateName"
    } else {
        "name"
    };
    metadata.insert(field.to_owned(), json!(name));
    metadata.insert("ownerReferences".to_owned(), owned_by(api_version, kind, meta));
    let mut spec = template["spec"].clone();
    if text(&spec["nodeName"]).is_empty()
        && !is_held(&spec)
        && node.refuses(&spec).is_none()
        && claims_of(&spec).next().is_none()
    {
        spec["nodeName"] = json!(NODE);
    }
    let mut made = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    for (key, value) in labels {
        made["metadata"]["labels"][*key] = json!(value);
    }
    made
}

/// True if a pod waits at a gate or for a scheduler other than that of Kubernetes.
pub(super) fn is_held(spec: &Value) -> bool {
    let gates = spec["schedulingGates"].as_array();
    gates.is_some_and(|gates| !gates.is_empty())
        || !matches!(text(&spec["schedulerName"]), "" | "default-scheduler")
}

/// The names of the claims that a pod uses.
pub(super) fn claims_of(spec: &Value) -> impl Iterator<Item = &str> {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}

/// The request that creates an object in the namespace of another.
pub(super) fn create(group_version: &str, plural: &str, near: &Object, object: Value) -> Action {
    let namespace = text(&near["metadata"]["namespace"]);
    Action::Create {
        path: format!("/{group_version}/namespaces/{namespace}/{plural}"),
        object,
    }
}

pub(super) fn remove(pod: &Object) -> Action {
    remove_of("api/v1", "pods", pod)
}

/// The deletion of an object of another kind.
pub(super) fn remove_of(group_version: &str, plural: &str, object: &Object) -> Action {
    Action::Delete {
        path: path_of(group_version, plural, object),
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

pub(super) fn phase_of(pod: &Object) -> &str {
    text(&part(pod, "status")["phase"])
}

pub(super) fn is_ready(pod: &Object) -> bool {
    holds(pod, "Ready")
}

pub(super) fn ready(pods: &[&Object]) -> i64 {
    count(pods.iter().filter(|pod| is_ready(pod)).count())
}

/// The number of pods that have been ready for so many seconds, and the time until one more is.
pub(super) fn available(pods: &[&Object], seconds: i64, around: &Around) -> (i64, Option<Duration>) {
    let (mut number, mut next) = (0, None);
    for pod in pods.iter().filter(|pod| is_ready(pod)) {
        let since = &condition_of(part(pod, "status"), "Ready")["lastTransitionTime"];
        let left = if seconds > 0 {
            around.until(since, seconds)
        } else {
            Duration::ZERO
        };
        if left.is_zero() {
            number += 1;
        } else {
            next = sooner(next, Some(left));
        }
    }
    (number, next)
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Ten characters that stand for a template.
pub(super) fn hash_of(template: &Value) -> String {
    let digest = Sha256::digest(template.to_string());
    digest
        .iter()
        .take(10)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// The name that the server makes a longer one of, for a pod.
pub(super) fn prefix(owner: &Object) -> String {
    format!("{}-", text(&owner["metadata"]["name"]))
}
