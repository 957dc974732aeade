//! Objects for output: without fields that only machines read, and without any value of a Secret.

use serde_json::{Map, Value, json};

use entourage_api::keys::annotation;

use entourage_core::{object::WHOLE_OBJECTS, pulled::REPORT};

/// The substitute for a value of a Secret.
const REDACTED: &str = "<redacted>";

/// The substitute for a value of a Secret that differs from the earlier one.
const REDACTED_CHANGED: &str = "<redacted, changed>";

/// Fields of metadata that only machines read.
const MACHINES: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Annotations of this control plane that quote uids and versions, or repeat what the copy itself shows.
const BOOKKEEPING: &[&str] = &[
    annotation::TEMPLATE_UID,
    annotation::TEMPLATE_GENERATION,
    annotation::MANAGED_ANNOTATIONS,
    annotation::MANAGED_LABELS,
];

/// An object without its status and fields that only machines read. It still has a Secret's values: see [`pair`].
#[must_use]
pub(crate) fn clean(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
        map.remove(REPORT);
    }
    // A binding's reference to its template has a uid and a version.
    if let Some(resource) = object
        .pointer_mut("/spec/resource")
        .and_then(Value::as_object_mut)
    {
        resource.remove("uid");
        resource.remove("resourceVersion");
    }
    if let Some(owners) = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut)
    {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            owner.remove("uid");
        }
    }
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    meta.retain(|key, _| !MACHINES.contains(&key.as_str()));
    if let Some(all) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        all.retain(|key, _| {
            !WHOLE_OBJECTS.contains(&key.as_str())
                && !BOOKKEEPING.contains(&key.as_str())
                && key != annotation::CONTENT
                && !key.starts_with(annotation::MANAGED_BY_PREFIX)
        });
    }
    if let Some(all) = meta.get_mut("labels").and_then(Value::as_object_mut) {
        // Derived from uids, which a simulation cannot know.
        all.retain(|key, _| !key.ends_with("/permanent-id") && !key.contains("/depended-by-"));
    }
    meta.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    object
}

/// Both objects for output. The keys of a Secret are shown; a value is replaced by a word that says whether it changed. The same
/// holds for a Secret within a ResourceDistribution.
#[must_use]
pub fn pair(before: Option<&Value>, after: Option<&Value>) -> (Option<Value>, Option<Value>) {
    let (mut one, mut two) = (before.map(clean), after.map(clean));
    let all = [one.as_ref(), two.as_ref()];
    let Some(secret) = all.into_iter().flatten().find_map(secret_in) else {
        return (one, two);
    };
    let value = |object: Option<&Value>, field: &str, key: &str| -> Option<Value> {
        object
            .and_then(|object| object.pointer(secret)?[field].get(key))
            .cloned()
    };
    for field in ["data", "stringData"] {
        if let Some(data) = data_of(&mut two, secret, field) {
            for (key, text) in data.iter_mut() {
                let held = value(before, field, key);
                let changed = held.is_some_and(|held| held != *text);
                *text = json!(if changed { REDACTED_CHANGED } else { REDACTED });
            }
        }
        if let Some(data) = data_of(&mut one, secret, field) {
            data.values_mut().for_each(|text| *text = json!(REDACTED));
        }
    }
    for object in [&mut one, &mut two] {
        redact_annotations(object, "");
        redact_annotations(object, secret);
    }
    (one, two)
}

/// The JSON pointer of a Secret in an object: it is one, or it distributes one; else `None`.
fn secret_in(object: &Value) -> Option<&'static str> {
    const INSIDE: &str = "/spec/resource";
    if object["kind"] == "Secret" {
        return Some("");
    }
    let is_inside = object["kind"] == entourage_core::distribution::KIND
        && object
            .pointer(INSIDE)
            .is_some_and(|inside| inside["kind"] == "Secret");
    is_inside.then_some(INSIDE)
}

fn data_of<'a>(object: &'a mut Option<Value>, at: &str, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.as_mut()?.pointer_mut(at)?.get_mut(field)?.as_object_mut()
}

/// Redacts annotations. Tools may quote a Secret in its annotations: of those that look like objects only the key is shown. So
/// is the digest on a copy of a distribution: a value that is easy to guess could be found by it.
fn redact_annotations(object: &mut Option<Value>, at: &str) {
    let all = object
        .as_mut()
        .and_then(|object| object.pointer_mut(at)?.pointer_mut("/metadata/annotations"))
        .and_then(Value::as_object_mut);
    for (key, value) in all.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default().trim_start();
        if key == annotation::DISTRIBUTED_HASH || text.starts_with(['{', '[', '-']) || text.contains('\n') {
            *value = json!(REDACTED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entourage_core::object::LAST_APPLIED;

    fn secret(value: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "s", "uid": "u",
                "annotations": {LAST_APPLIED: value, "tool/original": format!("{{\"data\": \"{value}\"}}"), "a": "b"},
            },
            "data": {"password": value, "user": "same"},
        })
    }

    #[test]
    fn a_secret_that_is_distributed_shows_its_keys_alone() {
        let distribution = |value: &str| {
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
                "spec": {"targets": {"allNamespaces": true}, "resource": {"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "s", "annotations": {"tool": format!("{{\"k\": \"{value}\"}}")}},
                    "data": {"k": value, "same": "canary"}, "stringData": {"plain": value}}}})
        };
        let (before, after) = pair(Some(&distribution("canary1")), Some(&distribution("canary2")));
        let (before, after) = (before.unwrap(), after.unwrap());
        assert!(!format!("{before}{after}").contains("canary"), "{before} {after}");
        let inside = |object: &Value, key: &str| object["spec"]["resource"]["data"][key].clone();
        assert_eq!(inside(&after, "k"), REDACTED_CHANGED);
        assert_eq!(inside(&after, "same"), REDACTED);
        assert_eq!(before["spec"]["targets"], json!({"allNamespaces": true}));
    }

    #[test]
    fn no_value_of_a_secret_is_shown() {
        let (before, after) = pair(Some(&secret("canary-1")), Some(&secret("canary-2")));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let text = format!("{before}{after}");
        assert!(!text.contains("canary") && !text.contains("same"), "{text}");
        assert_eq!(before["data"], json!({"password": REDACTED, "user": REDACTED}));
        assert_eq!(
            after["data"],
            json!({"password": REDACTED_CHANGED, "user": REDACTED})
        );
        assert_eq!(after["metadata"]["annotations"]["a"], "b");
    }

    #[test]
    fn a_new_secret_shows_its_keys() {
        let (_, after) = pair(None, Some(&secret("canary")));
        let after = after.unwrap_or_default();
        assert_eq!(after["data"], json!({"password": REDACTED, "user": REDACTED}));
        let mut plain = secret("x");
        plain["stringData"] = json!({"token": "canary"});
        let (_, after) = pair(None, Some(&plain));
        assert!(!after.unwrap_or_default().to_string().contains("canary"));
    }

    #[test]
    fn what_only_machines_read_is_left_out() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "c", "uid": "u", "generation": 2, "labels": {}}, "status": {}});
        assert_eq!(
            clean(&object),
            json!({"kind": "ConfigMap", "metadata": {"name": "c"}})
        );
    }
}
