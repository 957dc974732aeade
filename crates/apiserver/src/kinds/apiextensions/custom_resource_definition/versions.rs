//! The versions of a CRD, and which of their parts are the same in all: errors speak of those as parts of the spec.

use serde_json::{Map, Value, json};

use super::list_in;
use crate::{object::Object, schema::declared::text};

/// The first version that is the storage version.
pub(super) fn storage(crd: &Object) -> Option<String> {
    list_in(crd, "versions")
        .into_iter()
        .find(|version| is_storage(version))
        .and_then(|version| text(version, "name").map(str::to_owned))
}

pub(super) fn is_storage(version: &Map<String, Value>) -> bool {
    version.get("storage") == Some(&Value::Bool(true))
}

/// A part of a version, with the path that errors speak of.
pub(super) struct Part<'a> {
    pub(super) path: String,
    pub(super) value: Option<&'a Value>,
    pub(super) version: &'a Map<String, Value>,
}

/// The part `name` of each version, or, when it is the same in all, once, as `spec.<shared>`. The errors of the parts of versions
/// come with their version, those of shared parts after all of them.
pub(super) struct Parts<'a> {
    pub(super) per_version: Vec<Part<'a>>,
    pub(super) shared: Option<Part<'a>>,
}

pub(super) fn parts<'a>(versions: &[&'a Map<String, Value>], name: &str, shared: &str) -> Parts<'a> {
    let value = |version: &&'a Map<String, Value>| version.get(name).filter(|value| !value.is_null());
    let Some(first) = versions.first() else {
        return Parts {
            per_version: Vec::new(),
            shared: None,
        };
    };
    if versions.iter().all(|version| value(version) == value(first)) {
        return Parts {
            per_version: Vec::new(),
            shared: Some(Part {
                path: format!("spec.{shared}"),
                value: value(first),
                version: first,
            }),
        };
    }
    let each = versions.iter().enumerate().map(|(at, version)| Part {
        path: format!("spec.versions[{at}].{name}"),
        value: value(version),
        version,
    });
    Parts {
        per_version: each.collect(),
        shared: None,
    }
}

/// The versions as the server writes them into an error: its own form, without the parts that are the same in all.
pub(super) fn shown(spec: &Map<String, Value>) -> String {
    let Some(Value::Array(versions)) = spec.get("versions") else {
        return "null".to_owned();
    };
    let one = |version: &Value| {
        let word = |name: &str| json!(version.get(name).and_then(Value::as_str).unwrap_or_default());
        let flag = |name: &str| json!(version.get(name) == Some(&Value::Bool(true)));
        let warning = version.get("deprecationWarning").cloned().unwrap_or_default();
        format!(
            r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{warning},"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}}"#,
            word("name"),
            flag("served"),
            flag("storage"),
            flag("deprecated"),
        )
    };
    let all: Vec<String> = versions.iter().map(one).collect();
    format!("[{}]", all.join(","))
}
