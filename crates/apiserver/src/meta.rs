//! The rules of `metadata`, the same for every kind.
//!
//! The server checks metadata more than once, by the kind's own rules and by those of every object, and reports an error of an
//! update as often as it finds it. The functions here keep that count.

use serde_json::Value;

use crate::{
    names,
    object::{Object, field, finalizers, metadata},
    resource::Resource,
    status::{FieldError, Problem},
};

mod fields;
mod owners;

pub(crate) use fields::{
    LONGEST_MANAGER, finalizer_warnings, manager_problems, printable, standard_finalizer,
};

/// A rule for names: returns the errors in one; the flag is true for a prefix of a name.
type NameRule<'a> = &'a dyn Fn(&str, bool) -> Vec<String>;

/// The errors in the metadata of an object to be created, by the kind's rules.
#[must_use]
pub fn validate(resource: &Resource, object: &Object) -> Vec<FieldError> {
    let mut errors = whole(resource.namespaced, object, &|name, prefix| {
        resource.rules.name_problems(name, prefix)
    });
    errors.extend(fields::standard_finalizers(resource, object));
    errors
}

/// The same by the rules of every object, for one that passed those of its kind.
#[must_use]
pub fn validate_common(resource: &Resource, object: &Object) -> Vec<FieldError> {
    whole(resource.namespaced, object, &names::path_segment)
}

/// The errors in the metadata of an object at `path` inside of another. Its kind is unknown: it may have no name and any
/// namespace, and its name is any that fits into a path.
#[must_use]
pub(crate) fn validate_embedded(path: &str, object: &Object) -> Vec<FieldError> {
    let mut metadata = metadata(object).clone();
    if metadata
        .get("name")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        metadata.insert("name".to_owned(), "unnamed".into());
    }
    let object = Object::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    let mut errors = whole(
        !field(&object, "namespace").is_empty(),
        &object,
        &names::path_segment,
    );
    for error in &mut errors {
        error.field = format!("{path}.{}", error.field);
    }
    errors
}

/// The errors in the metadata of an update.
#[must_use]
pub fn validate_update(
    resource: &Resource,
    subresource: &str,
    new: &Object,
    old: &Object,
) -> Vec<FieldError> {
    let mut errors = validate_common(resource, new);
    errors.extend(changes(new, old));
    errors.extend(changes(new, old));
    errors.extend(fields::standard_finalizers(resource, new));
    // An update of the status is not checked as a whole.
    if subresource != "status" && resource.rules.revalidates() {
        errors.extend(validate(resource, new));
    }
    errors
}

/// Everything about one state.
fn whole(namespaced: bool, object: &Object, rule: NameRule<'_>) -> Vec<FieldError> {
    let mut errors = fields::names(object, rule);
    errors.extend(namespace(namespaced, object));
    if let Some(generation) = metadata(object).get("generation").and_then(Value::as_i64)
        && generation < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, detail));
    }
    errors.extend(fields::maps(object));
    errors.extend(owners::validate(object));
    errors.extend(fields::finalizer_names(object));
    errors.extend(fields::managed_fields(object));
    errors
}

fn namespace(namespaced: bool, object: &Object) -> Vec<FieldError> {
    let namespace = field(object, "namespace");
    match (namespaced, namespace.is_empty()) {
        (false, true) => Vec::new(),
        (false, false) => vec![FieldError::forbidden(
            "metadata.namespace",
            "not allowed on this type",
        )],
        (true, true) => vec![FieldError::required("metadata.namespace", "")],
        (true, false) => names::dns_label(namespace, false)
            .into_iter()
            .map(|problem| FieldError::invalid("metadata.namespace", namespace, problem))
            .collect(),
    }
}

/// The errors of a change: forbidden changes, and errors in permitted ones.
fn changes(new: &Object, old: &Object) -> Vec<FieldError> {
    const FIXED: [&str; 6] = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let mut errors = Vec::new();
    if !field(old, "deletionTimestamp").is_empty() {
        errors.extend(added_finalizers(new, old));
    }
    for name in FIXED {
        let (is, was) = (metadata(new).get(name), metadata(old).get(name));
        if is != was {
            let value = is.cloned().unwrap_or_default();
            let problem = Problem::Invalid(value);
            errors.push(FieldError::new(
                format!("metadata.{name}"),
                problem,
                "field is immutable",
            ));
        }
    }
    errors.extend(fields::maps(new));
    errors.extend(owners::validate(new));
    errors.extend(fields::managed_fields(new));
    errors
}

fn added_finalizers(new: &Object, old: &Object) -> Option<FieldError> {
    let mut added: Vec<&str> = finalizers(new)
        .filter(|one| !finalizers(old).any(|known| known == *one))
        .collect();
    added.sort_unstable();
    added.dedup();
    if added.is_empty() {
        return None;
    }
    let quoted: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    Some(FieldError::forbidden("metadata.finalizers", detail))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(metadata: &Value) -> Object {
        match json!({"metadata": metadata}) {
            Value::Object(object) => object,
            _ => Object::new(),
        }
    }

    fn reported(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_of_its_type_is_no_reason_to_panic() {
        let kinds = crate::kinds::builtin();
        let resource = kinds.find("", "v1", "configmaps").expect("built in");
        for odd in [
            json!(null),
            json!("text"),
            json!({"name": 1, "labels": "x", "annotations": [1], "finalizers": {"a": 1}, "ownerReferences": "x"}),
            json!({"name": "a", "ownerReferences": [1, null, {"uid": 1, "controller": "x"}], "managedFields": [1]}),
        ] {
            let odd = object(&odd);
            let _ = validate(resource, &odd);
            let _ = validate_update(resource, "", &odd, &odd);
        }
    }

    #[test]
    fn an_update_tells_each_change_of_what_is_fixed_twice() {
        let kinds = crate::kinds::builtin();
        let resource = kinds.find("", "v1", "services").expect("built in");
        let old = object(&json!({"name": "a", "namespace": "n", "uid": "1"}));
        let new = object(&json!({"name": "a", "namespace": "n", "uid": "2"}));
        let errors = validate_update(resource, "", &new, &old);
        assert_eq!(
            reported(&errors),
            ["metadata.uid: Invalid value: \"2\": field is immutable"; 2]
        );
    }

    #[test]
    fn finalizers_that_exclude_each_other_are_reported() {
        let kinds = crate::kinds::builtin();
        let resource = kinds.find("", "v1", "configmaps").expect("built in");
        let both =
            object(&json!({"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]}));
        assert_eq!(
            reported(&validate(resource, &both)),
            [
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set"
            ]
        );
    }
}
