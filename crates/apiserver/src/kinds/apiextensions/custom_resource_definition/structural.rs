//! Structural schemas: every field has a type outside of logical combinations, and these only check values and declare no
//! further fields. Source: KEP-1425.

use serde_json::{Map, Value, json};

use super::openapi::children;
use crate::{
    schema::declared::{list, object, text},
    status::FieldError,
};

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The parts that are not structural, sorted as reported. O(schema).
pub(super) fn errors(root: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(root, Level::Root, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn node(schema: &Map<String, Value>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type").unwrap_or_default();
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if kind == "array" && object(schema, "items").is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = object(schema, "items") {
        node(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, field) in object(schema, "properties").into_iter().flatten() {
        if let Some(field) = field.as_object() {
            node(field, Level::Field, &format!("{path}.properties[{name}]"), errors);
        }
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|value| !value.is_null())
    {
        let at = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if embedded {
            errors.push(FieldError::forbidden(
                &at,
                "must not be used if x-kubernetes-embedded-resource is set",
            ));
        }
        if let Some(values) = values.as_object() {
            node(values, Level::Field, &at, errors);
        }
    }
    if int_or_string && preserve {
        errors.push(FieldError::invalid(
            format!("{path}.x-kubernetes-preserve-unknown-fields"),
            true,
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
    if int_or_string && embedded {
        errors.push(FieldError::invalid(
            format!("{path}.x-kubernetes-embedded-resource"),
            true,
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
    combinations(schema, int_or_string, path, errors);
    types(schema, kind, level, path, errors);
    metadata(schema, level, embedded, path, errors);
    let has_fields = object(schema, "properties").is_some_and(|fields| !fields.is_empty());
    if embedded && !preserve && !has_fields {
        errors.push(FieldError::required(
            format!("{path}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn types(schema: &Map<String, Value>, kind: &str, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{path}.type");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at.as_str(), detail)
        } else {
            FieldError::invalid(at.as_str(), kind, detail)
        });
    } else if kind.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.as_str(), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
}

/// Of metadata a schema may restrict the names only.
fn metadata(
    schema: &Map<String, Value>,
    level: Level,
    embedded: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if level != Level::Root && !embedded {
        return;
    }
    let Some(fields) = object(schema, "properties") else {
        return;
    };
    for name in ["kind", "apiVersion"] {
        if let Some(field) = object(fields, name)
            && text(field, "type") != Some("string")
        {
            errors.push(FieldError::invalid(
                format!("{path}.properties[{name}].type"),
                text(field, "type").unwrap_or_default(),
                "must be string",
            ));
        }
    }
    let Some(meta) = object(fields, "metadata") else {
        return;
    };
    let at = format!("{path}.properties[metadata]");
    if text(meta, "type") != Some("object") {
        errors.push(FieldError::invalid(
            format!("{at}.type"),
            text(meta, "type").unwrap_or_default(),
            "must be object",
        ));
    }
    if level != Level::Root {
        return;
    }
    let only_names = object(meta, "properties").is_none_or(|fields| {
        fields
            .keys()
            .all(|name| matches!(name.as_str(), "name" | "generateName"))
    });
    let nothing_else = meta
        .iter()
        .all(|(name, value)| matches!(name.as_str(), "type" | "properties" | "default") || value.is_null());
    if !only_names || !nothing_else {
        errors.push(FieldError::forbidden(
            at,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ));
    }
}

/// allOf, anyOf, oneOf, not: they check values and declare nothing else.
fn combinations(schema: &Map<String, Value>, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    // These two forms are how an int-or-string is written.
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let skip_any = int_or_string && schema.get("anyOf") == Some(&either);
    for name in ["allOf", "anyOf", "oneOf"] {
        if name == "anyOf" && skip_any {
            continue;
        }
        for (at, branch) in list(schema, name).enumerate() {
            let Some(branch) = branch.as_object() else {
                continue;
            };
            let both = branch.get("anyOf") == Some(&either);
            let here = format!("{path}.{name}[{at}]");
            if name == "allOf" && at == 0 && int_or_string && both {
                let mut rest = branch.clone();
                rest.remove("anyOf");
                nested(&rest, &here, errors);
            } else {
                nested(branch, &here, errors);
            }
        }
    }
    if let Some(branch) = object(schema, "not") {
        nested(branch, &format!("{path}.not"), errors);
    }
}

fn nested(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    const UNDEFINED: &str = "must be undefined to be structural";
    const EMPTY: &str = "must be empty to be structural";
    const FALSE: &str = "must be false to be structural";
    for (name, detail) in [
        ("type", EMPTY),
        ("additionalProperties", UNDEFINED),
        ("default", UNDEFINED),
        ("title", EMPTY),
        ("description", EMPTY),
        ("nullable", FALSE),
        ("x-kubernetes-preserve-unknown-fields", FALSE),
        ("x-kubernetes-embedded-resource", FALSE),
        ("x-kubernetes-int-or-string", FALSE),
        ("x-kubernetes-list-map-keys", EMPTY),
        ("x-kubernetes-list-type", UNDEFINED),
        ("x-kubernetes-map-type", UNDEFINED),
    ] {
        let reported = match schema.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        if reported {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), detail));
        }
    }
    if object(schema, "properties").is_some_and(|fields| fields.contains_key("metadata")) {
        errors.push(FieldError::forbidden(
            format!("{path}.properties[metadata]"),
            "must not be specified in a nested context",
        ));
    }
    children(schema, &mut |step, child| {
        if step != ".additionalProperties" {
            nested(child, &format!("{path}{step}"), errors);
        }
    });
}
