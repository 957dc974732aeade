//! The names of a CRD, and the conditions about their acceptance. Source: the naming controller of apiextensions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    object::{Object, finalizers, metadata_mut},
    schema::declared::{object, text, texts},
};

/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The status that a CRD should have, seeing the names that `others` of its group have been accepted with.
pub(crate) fn status(crd: &Object, others: &[&Map<String, Value>], now: &str) -> Value {
    let none = Map::new();
    let wanted = object(crd, "spec")
        .and_then(|spec| object(spec, "names"))
        .unwrap_or(&none);
    let mut status = object(crd, "status").cloned().unwrap_or_default();
    let had = object(&status, "acceptedNames").cloned().unwrap_or_default();
    let (accepted, problem) = accepted(wanted, &had, others);
    status.insert("acceptedNames".to_owned(), Value::Object(accepted));
    let mut crd: Object = [("status".to_owned(), Value::Object(status))]
        .into_iter()
        .collect();
    match problem {
        Some((reason, message)) => {
            set(&mut crd, "NamesAccepted", false, reason, &message, now);
            if !is(&crd, "Established") {
                set(
                    &mut crd,
                    "Established",
                    false,
                    "NotAccepted",
                    "not all names are accepted",
                    now,
                );
            }
        }
        None => {
            set(
                &mut crd,
                "NamesAccepted",
                true,
                "NoConflicts",
                "no conflicts found",
                now,
            );
            if !is(&crd, "Established") {
                let message = "the initial names have been accepted";
                set(&mut crd, "Established", false, "Installing", message, now);
            }
        }
    }
    crd.remove("status").unwrap_or_default()
}

/// The names that may be used, and the last conflict among the others.
fn accepted(
    wanted: &Map<String, Value>,
    had: &Map<String, Value>,
    others: &[&Map<String, Value>],
) -> (Map<String, Value>, Option<(&'static str, String)>) {
    let mut resources: BTreeSet<String> = BTreeSet::new();
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for names in others {
        let word = |name: &str| text(names, name).map(str::to_owned);
        resources.extend(word("plural").into_iter().chain(word("singular")));
        resources.extend(texts(names, "shortNames"));
        kinds.extend(word("kind").into_iter().chain(word("listKind")));
    }
    let in_use = |name: &str| format!("{name:?} is already in use");
    let mut accepted = had.clone();
    for name in ["plural", "kind"] {
        accepted.entry(name).or_insert_with(|| "".into());
    }
    let mut problem = None;
    let mut one = |name: &str, reason: &'static str, taken: &BTreeSet<String>| {
        let asked = text(wanted, name).unwrap_or_default();
        if text(had, name).unwrap_or_default() != asked && taken.contains(asked) {
            problem = Some((reason, in_use(asked)));
        } else if !asked.is_empty() {
            accepted.insert(name.to_owned(), asked.into());
        }
    };
    one("plural", "PluralConflict", &resources);
    one("singular", "SingularConflict", &resources);
    let mut short_problem = None;
    let short = texts(wanted, "shortNames");
    let ours = texts(had, "shortNames");
    let taken: Vec<String> = short
        .iter()
        .filter(|name| !ours.contains(name) && resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    match taken.as_slice() {
        [] => {}
        [single] => short_problem = Some(("ShortNamesConflict", single.clone())),
        several => short_problem = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    let free = short_problem.is_none();
    let mut kind_problem = None;
    for (name, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        let asked = text(wanted, name).unwrap_or_default();
        if text(had, name).unwrap_or_default() != asked && kinds.contains(asked) {
            kind_problem = Some((reason, in_use(asked)));
        } else if !asked.is_empty() {
            accepted.insert(name.to_owned(), asked.into());
        }
    }
    if free {
        put_list(&mut accepted, "shortNames", short);
    }
    put_list(&mut accepted, "categories", texts(wanted, "categories"));
    (accepted, kind_problem.or(short_problem).or(problem))
}

fn put_list(names: &mut Map<String, Value>, name: &str, list: Vec<String>) {
    if list.is_empty() {
        names.remove(name);
    } else {
        names.insert(name.to_owned(), list.into());
    }
}

/// Marks a CRD as established.
pub(crate) fn establish(crd: &mut Object, now: &str) {
    let message = "the initial names have been accepted";
    set(crd, "Established", true, "InitialNamesAccepted", message, now);
}

fn condition<'a>(crd: &'a Object, name: &str) -> Option<&'a Value> {
    crd.get("status")?
        .get("conditions")?
        .as_array()?
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(name))
}

/// True if a condition is True.
pub(crate) fn is(crd: &Object, name: &str) -> bool {
    condition(crd, name).is_some_and(|condition| condition.get("status") == Some(&json!("True")))
}

/// True if a condition has this reason.
pub(crate) fn has_reason(crd: &Object, name: &str, reason: &str) -> bool {
    condition(crd, name).is_some_and(|condition| condition.get("reason") == Some(&json!(reason)))
}

/// Sets a condition; its time changes with its status.
pub(crate) fn set(crd: &mut Object, name: &str, holds: bool, reason: &str, message: &str, now: &str) {
    let status = if holds { "True" } else { "False" };
    let since = condition(crd, name)
        .filter(|condition| condition.get("status") == Some(&json!(status)))
        .and_then(|condition| condition.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let next = json!({"type": name, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
    let slot = crd.entry("status").or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    let conditions = &mut slot["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(list) = conditions else { return };
    match list
        .iter_mut()
        .find(|condition| condition.get("type") == Some(&json!(name)))
    {
        Some(found) => *found = next,
        None => list.push(next),
    }
}

/// The state of a CRD that is being deleted: its objects go first. `now`: RFC 3339.
pub(crate) fn begin_delete(crd: &mut Object, now: &str) {
    if !finalizers(crd).any(|finalizer| finalizer == FINALIZER) {
        let mut all: Vec<Value> = finalizers(crd).map(Value::from).collect();
        all.push(json!(FINALIZER));
        metadata_mut(crd).insert("finalizers".to_owned(), all.into());
    }
    set(
        crd,
        "Terminating",
        true,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is, status};
    use crate::object::Object;

    #[expect(clippy::needless_pass_by_value, reason = "literals read best as they are")]
    fn crd(names: Value) -> Object {
        let crd = json!({"spec": {"names": names}, "status": {"conditions": null,
            "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}});
        crd.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn free_names_are_accepted_and_installing_begins() {
        let crd = crd(json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"}));
        let status = status(&crd, &[], "now");
        assert_eq!(
            status["acceptedNames"],
            json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"})
        );
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["conditions"][1]["reason"], "Installing");
        assert_eq!(status["storedVersions"], json!(["v1"]));
    }

    #[test]
    fn a_taken_kind_is_reported_before_taken_short_names() {
        let crd = crd(
            json!({"plural": "bs", "singular": "b", "kind": "A", "listKind": "BList", "shortNames": ["x"]}),
        );
        let other = json!({"plural": "as", "kind": "A", "shortNames": ["x"]});
        let status = status(&crd, &[other.as_object().unwrap()], "now");
        assert_eq!(status["conditions"][0]["reason"], "KindConflict");
        assert_eq!(status["conditions"][0]["message"], "\"A\" is already in use");
        assert_eq!(
            status["acceptedNames"],
            json!({"plural": "bs", "singular": "b", "kind": "", "listKind": "BList"})
        );
        assert!(!is(&crd, "Established"));
    }
}
