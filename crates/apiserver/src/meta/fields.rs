//! Names, labels, annotations, finalizers and managedFields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::NameRule;
use crate::{
    names,
    object::{Object, field, finalizers, metadata, text},
    resource::Resource,
    status::{FieldError, Problem},
};

/// Keys and values of all annotations together, in bytes.
const ANNOTATIONS: usize = 256 << 10;

/// Finalizers that need no domain.
const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// The longest name of a subresource in managedFields.
const LONGEST_SUBRESOURCE: usize = 256;

/// generateName and name.
pub(super) fn names(object: &Object, rule: NameRule<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, prefix) in [("generateName", true), ("name", false)] {
        let value = field(object, at);
        if value.is_empty() {
            if !prefix {
                errors.push(FieldError::required(
                    "metadata.name",
                    "name or generateName is required",
                ));
            }
            continue;
        }
        let problems = rule(value, prefix).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(format!("metadata.{at}"), value, problem)));
    }
    errors
}

/// Labels and annotations.
pub(super) fn maps(object: &Object) -> Vec<FieldError> {
    let map = |name: &str| metadata(object).get(name).and_then(Value::as_object);
    let mut errors = map("labels").map_or_else(Vec::new, |labels| names::labels(labels, "metadata.labels"));
    let mut size = 0;
    for (key, value) in map("annotations").into_iter().flatten() {
        let problems = names::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(
            problems.map(|problem| FieldError::invalid("metadata.annotations", key.as_str(), problem)),
        );
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS {
        let detail = format!("may not be more than {ANNOTATIONS} bytes");
        errors.push(FieldError::new(
            "metadata.annotations",
            Problem::TooLong("".into()),
            detail,
        ));
    }
    errors
}

/// Finalizers: their form, and that the two of the garbage collector exclude each other.
pub(super) fn finalizer_names(object: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = finalizers(object)
        .flat_map(|name| {
            let problems = names::qualified_name(name).into_iter();
            problems.map(move |problem| FieldError::invalid("metadata.finalizers", name, problem))
        })
        .collect();
    let has = |wanted: &str| finalizers(object).any(|name| name == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let all: Vec<Value> = finalizers(object).map(Value::from).collect();
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", all, detail));
    }
    errors
}

/// Built-in kinds take no finalizers without a domain but the standard ones.
pub(super) fn standard_finalizers(resource: &Resource, object: &Object) -> Vec<FieldError> {
    if resource.custom.is_some() || resource.group == "apiextensions.k8s.io" {
        return Vec::new();
    }
    finalizers(object)
        .enumerate()
        .filter_map(|(at, name)| standard_finalizer(name, format!("metadata.finalizers[{at}]")))
        .collect()
}

/// The errors in a finalizer that has no domain, unless it is a standard one.
pub(crate) fn standard_finalizer(name: &str, field: String) -> Option<FieldError> {
    let good = name.contains('/') || STANDARD.contains(&name);
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    (!good).then(|| FieldError::invalid(field, name, detail))
}

/// The warnings about new finalizers of custom resources: names without a domain may collide.
pub(crate) fn finalizer_warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    /// The finalizers that the server itself handles.
    const OWN: [&str; 2] = ["orphan", "foregroundDeletion"];
    let is_new = |name: &&str| !old.is_some_and(|old| finalizers(old).any(|known| known == *name));
    let added: BTreeSet<&str> = finalizers(new).filter(is_new).collect();
    let mut warnings = Vec::new();
    for name in added {
        let tell = |what: &str| format!("metadata.finalizers: {name:?}: {what}");
        warnings.extend(names::qualified_name(name).iter().map(|problem| tell(problem)));
        if !name.contains('/') && !OWN.contains(&name) {
            warnings.push(tell(
                "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers",
            ));
        }
    }
    warnings
}

/// The errors in managedFields that a client wrote.
pub(super) fn managed_fields(object: &Object) -> Vec<FieldError> {
    let entries = metadata(object).get("managedFields").and_then(Value::as_array);
    let mut errors = Vec::new();
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        let path = |name: &str| format!("metadata.managedFields[{at}].{name}");
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(path("operation"), operation, detail));
        }
        let kind = text(entry, "fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            errors.push(FieldError::invalid(
                path("fieldsType"),
                kind,
                "must be `FieldsV1`",
            ));
        }
        errors.extend(manager_problems(text(entry, "manager"), &path("manager")));
        let subresource = text(entry, "subresource");
        if subresource.len() > LONGEST_SUBRESOURCE {
            let detail = format!("may not be more than {LONGEST_SUBRESOURCE} bytes");
            let problem = Problem::TooLong(subresource.into());
            errors.push(FieldError::new(path("subresource"), problem, detail));
        }
    }
    errors
}

/// The longest name of a field manager, in bytes.
pub(crate) const LONGEST_MANAGER: usize = 128;

/// The errors in the name of a field manager.
pub(crate) fn manager_problems(name: &str, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > LONGEST_MANAGER {
        let detail = format!("may not be more than {LONGEST_MANAGER} bytes");
        errors.push(FieldError::new(field, Problem::TooLong(name.into()), detail));
    }
    for (at, character) in name.char_indices().filter(|(_, one)| !printable(*one)) {
        let detail = format!(
            "invalid character U+{:04X} (at position {at})",
            u32::from(character)
        );
        errors.push(FieldError::invalid(field, name, detail));
    }
    errors
}

/// Go's `unicode.IsPrint`, nearly: no control characters, and no space but the plain one.
pub(crate) fn printable(character: char) -> bool {
    character == ' ' || !(character.is_control() || character.is_whitespace())
}
