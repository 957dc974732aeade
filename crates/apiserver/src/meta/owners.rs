//! ownerReferences.

use serde_json::Value;

use crate::{
    object::{Object, metadata, text},
    status::{FieldError, Problem},
};

const FIELD: &str = "metadata.ownerReferences";

/// The errors in the owners of an object: in each of them, and in the number of controllers among them.
pub(super) fn validate(object: &Object) -> Vec<FieldError> {
    let owners = metadata(object).get("ownerReferences").and_then(Value::as_array);
    let Some(owners) = owners else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for owner in owners {
        errors.extend(one(owner));
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        let Some(first) = &controller else {
            controller = Some(name);
            continue;
        };
        let all: Vec<String> = owners.iter().map(written).collect();
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
        );
        let value = Problem::InvalidText(format!("[{}]", all.join(",")));
        errors.push(FieldError::new(FIELD, value, detail));
    }
    errors
}

fn one(owner: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut empty = |name: &str, detail: &str| {
        errors.push(FieldError::invalid(
            format!("{FIELD}.{name}"),
            text(owner, name),
            detail,
        ));
    };
    let api_version = text(owner, "apiVersion");
    // More than one slash is no version at all, which the server takes as an empty one.
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((group, version)) if !version.contains('/') => (group, version),
        Some(_) => ("", ""),
    };
    if version.is_empty() {
        empty("apiVersion", "version must not be empty");
    }
    for name in ["kind", "name", "uid"] {
        if text(owner, name).is_empty() {
            empty(name, "must not be empty");
        }
    }
    if (group, version, text(owner, "kind")) == ("", "v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::new(
            FIELD,
            Problem::InvalidText(written(owner)),
            detail,
        ));
    }
    errors
}

/// An owner in the order in which the server writes its fields.
fn written(owner: &Value) -> String {
    let mut fields: Vec<String> = ["apiVersion", "kind", "name", "uid"]
        .into_iter()
        .map(|name| format!("{name:?}:{}", Value::from(text(owner, name))))
        .collect();
    for name in ["controller", "blockOwnerDeletion"] {
        if let Some(Value::Bool(value)) = owner.get(name) {
            fields.push(format!("{name:?}:{value}"));
        }
    }
    format!("{{{}}}", fields.join(","))
}
