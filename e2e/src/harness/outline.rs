//! The state that must be equal in a disturbed and an undisturbed run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Objects by place, kind and name, with everything masked that differs from run to run: uids, versions, times,
/// permanent ids, and what is made from the name of the namespace.
pub type Outline = BTreeMap<String, Value>;

/// Fields and keys whose value is masked.
const VOLATILE: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "resourceTemplateGeneration",
    "schedulerObservedGeneration",
    "lastTransitionTime",
    "lastScheduledTime",
    "unhealthySince",
    "creationTimestamp",
    "copy",
    "resourcetemplate.karmada.io/uid",
    "resourcetemplate.karmada.io/generation",
    "work.karmada.io/name",
    "entourage.dev/content",
    // A uid and a generation.
    "entourage.dev/activation-waits",
    "entourage.dev/activated",
    // Each test on the embedded lane has a hub of its own.
    "entourage.dev/hub",
    "entourage.dev/distributed-by",
];

/// Beginnings of keys that end in a uid; they are counted instead.
const OF_A_UID: &[(&str, &str)] = &[
    ("resourcebinding.karmada.io/depended-by-", "depended-by"),
    ("managed-by.entourage.dev/", "managed-by"),
];

/// Fields and keys that are left out. Who creates a namespace on a member, the controllers or a test that puts something
/// there, is a matter of who is first.
const LEFT_OUT: &[&str] = &["managedFields", "selfLink", "entourage.dev/created-by"];

/// An object without what differs from run to run.
pub(super) fn masked(object: &Value, namespace: &str) -> Value {
    // Also inside of annotations, which hold JSON as text. No object names another namespace of a test.
    let text = object.to_string().replace(namespace, "NS");
    let mut object = serde_json::from_str(&text).unwrap_or_else(|_| object.clone());
    mask(&mut object);
    object
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
            for (start, shown) in OF_A_UID {
                let of_it: Vec<String> = map.keys().filter(|key| key.starts_with(start)).cloned().collect();
                for (at, key) in of_it.iter().enumerate() {
                    map.remove(key);
                    map.insert(format!("{shown}-{at}"), json!("*"));
                }
            }
            for (key, value) in map.iter_mut() {
                if VOLATILE.contains(&key.as_str()) || key.contains("permanent-id") {
                    *value = json!("*");
                } else {
                    mask(value);
                }
            }
            map.retain(|key, value| key != "annotations" || *value != json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// The differences of two outlines, one line for each path.
#[must_use]
pub fn differences(wanted: &Outline, found: &Outline) -> Vec<String> {
    let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        match (wanted.get(key), found.get(key)) {
            (Some(_), None) => lines.push(format!("{key}: missing")),
            (None, Some(_)) => lines.push(format!("{key}: should not be there")),
            (Some(wanted), Some(found)) => compare(key, wanted, found, &mut lines),
            (None, None) => {}
        }
    }
    lines
}

fn compare(at: &str, wanted: &Value, found: &Value, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = format!("{at}.{key}");
                compare(
                    &path,
                    one.get(key).unwrap_or(&Value::Null),
                    other.get(key).unwrap_or(&Value::Null),
                    lines,
                );
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (position, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{at}[{position}]"), one, other, lines);
            }
        }
        _ if wanted == found => {}
        _ => lines.push(format!("{at}: wanted {wanted}, found {found}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_masked() {
        let object = |ns: &str, uid: &str| {
            json!({"metadata": {"namespace": ns, "uid": uid, "labels": {
                format!("resourcebinding.karmada.io/depended-by-{uid}"): uid,
                "entourage.dev/distributed-by": uid,
            }, "annotations": {format!("managed-by.entourage.dev/{uid}"): "{}"}}, "status": {"message": format!("ConfigMap {ns}/a is missing")}})
        };
        assert_eq!(
            masked(&object("t-a", "1"), "t-a"),
            masked(&object("t-b", "2"), "t-b")
        );
        let created = json!({"metadata": {"annotations": {"entourage.dev/created-by": "hub/member1"}}});
        assert_eq!(masked(&created, "t-a"), json!({"metadata": {}}));
    }

    #[test]
    fn differences_name_the_path() {
        let outline = |value: Value| Outline::from([("hub a".to_owned(), value)]);
        let lines = differences(
            &outline(json!({"a": {"b": [1]}})),
            &outline(json!({"a": {"b": [2]}})),
        );
        assert_eq!(lines, ["hub a.a.b[0]: wanted 1, found 2"]);
    }
}
