//! The permitted fields of an `openAPIV3Schema`, checked before its structure.

use serde_json::{Map, Value};

use crate::{
    schema::declared::{DEEPEST, list, object, pattern_of, text, texts},
    status::{FieldError, Problem},
};

/// Types of OpenAPI.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The unsupported fields; true if with such a field the structure is not checked.
const FORBIDDEN: [(&str, &str); 6] = [
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
];

/// The schema of a version.
pub(super) fn schema_of(version: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object(object(version, "schema")?, "openAPIV3Schema")
}

/// Visits the schemas directly below one, with their steps: `.properties[a]`, `.items`, `.anyOf[0]`.
pub(super) fn children<'a>(
    schema: &'a Map<String, Value>,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>),
) {
    for name in ["additionalProperties", "items", "not"] {
        if let Some(child) = object(schema, name) {
            visit(&format!(".{name}"), child);
        }
    }
    for (name, child) in object(schema, "properties").into_iter().flatten() {
        if let Some(child) = child.as_object() {
            visit(&format!(".properties[{name}]"), child);
        }
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (at, child) in list(schema, name).enumerate() {
            if let Some(child) = child.as_object() {
                visit(&format!(".{name}[{at}]"), child);
            }
        }
    }
}

/// True if the schema is nested deeper than is supported.
pub(super) fn is_too_deep(schema: &Map<String, Value>) -> bool {
    fn deeper(schema: &Map<String, Value>, left: usize) -> bool {
        if left == 0 {
            return true;
        }
        let mut found = false;
        children(schema, &mut |_, child| found = found || deeper(child, left - 1));
        found
    }
    deeper(schema, DEEPEST)
}

/// True if the schema has a structure at all.
pub(super) fn is_structural(schema: &Map<String, Value>) -> bool {
    let forbidden = FORBIDDEN.iter().any(|(name, _)| is_set(schema, name))
        || schema.get("uniqueItems") == Some(&Value::Bool(true))
        || schema.get("items").is_some_and(Value::is_array);
    let mut structural = !forbidden;
    children(schema, &mut |_, child| {
        structural = structural && is_structural(child)
    });
    structural
}

fn is_set(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => name == "$ref" || !text.is_empty(),
        Some(Value::Object(fields)) => name == "dependencies" || !fields.is_empty(),
        Some(_) => true,
    }
}

/// The errors of the root alone.
pub(super) fn root_errors(root: &Map<String, Value>, path: &str, status: bool) -> Vec<FieldError> {
    // With the status subresource the schema of status is taken out: nothing else may speak of it.
    const ALLOWED: [&str; 18] = [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
    ];
    let mut errors = Vec::new();
    if is_too_deep(root) {
        errors.push(FieldError::forbidden(
            path,
            format!("must not be nested deeper than {DEEPEST}"),
        ));
        return errors;
    }
    if status {
        let kind = text(root, "type").unwrap_or_default();
        if !kind.is_empty() && kind != "object" {
            errors.push(FieldError::invalid(
                format!("{path}.type"),
                kind,
                r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#,
            ));
        } else if root.iter().any(|(name, value)| {
            !value.is_null()
                && !ALLOWED.contains(&name.as_str())
                && !name.starts_with("x-kubernetes-")
                && !matches!(name.as_str(), "externalDocs" | "example")
        }) {
            errors.push(FieldError::new(
                path,
                Problem::Invalid(Value::Object(root.clone())),
                "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled",
            ));
        }
    }
    if root.get("nullable") == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            format!("{path}.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    errors
}

/// The errors of every node. O(schema).
pub(super) fn errors(schema: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !is_too_deep(schema) {
        node(schema, path, &mut errors);
    }
    errors
}

fn node(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for (name, detail) in FORBIDDEN {
        if is_set(schema, name) {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), detail));
        }
    }
    let kind = text(schema, "type").unwrap_or_default();
    if kind == "null" {
        errors.push(FieldError::forbidden(
            format!("{path}.type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    } else if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(
            format!("{path}.items"),
            "items must be a schema object and not an array",
        ));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            format!("{path}.uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    let has_fields = object(schema, "properties").is_some_and(|fields| !fields.is_empty());
    if has_fields
        && schema
            .get("additionalProperties")
            .is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
    {
        errors.push(FieldError::forbidden(
            format!("{path}.additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
    if let Some(pattern) = text(schema, "pattern")
        && let Err(error) = pattern_of(pattern)
    {
        errors.push(FieldError::invalid(
            format!("{path}.pattern"),
            pattern,
            format!(
                "must be a valid regular expression, but isn't: {}",
                pattern_problem(pattern, &error)
            ),
        ));
    }
    children(schema, &mut |step, child| {
        node(child, &format!("{path}{step}"), errors)
    });
    extensions(schema, kind, path, errors);
}

fn extensions(schema: &Map<String, Value>, kind: &str, path: &str, errors: &mut Vec<FieldError>) {
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.push(FieldError::invalid(
            format!("{path}.x-kubernetes-preserve-unknown-fields"),
            false,
            "must be true or undefined",
        ));
    }
    for (name, possible, wanted) in [
        ("x-kubernetes-map-type", &["atomic", "granular"][..], "object"),
        ("x-kubernetes-list-type", &["atomic", "set", "map"], "array"),
    ] {
        let Some(value) = text(schema, name) else { continue };
        if kind != wanted {
            let detail = format!("must be {wanted} if {name} is specified");
            let field = format!("{path}.type");
            errors.push(if kind.is_empty() {
                FieldError::required(field, detail)
            } else {
                FieldError::invalid(field, kind, detail)
            });
        }
        if !possible.contains(&value) {
            errors.push(FieldError::not_supported(
                format!("{path}.{name}"),
                value,
                possible,
            ));
        }
    }
    lists(schema, path, errors);
}

/// Lists whose items have keys.
fn lists(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    const TYPE: &str = "x-kubernetes-list-type";
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let list_type = text(schema, TYPE);
    let keys = texts(schema, KEYS);
    let items = object(schema, "items");
    if !keys.is_empty() && list_type != Some("map") {
        let detail = format!("must be map if {KEYS} is non-empty");
        errors.push(match list_type {
            None => FieldError::required(format!("{path}.{TYPE}"), detail),
            Some(other) => FieldError::invalid(format!("{path}.{TYPE}"), other, detail),
        });
    }
    let nullable = |items: &Map<String, Value>| items.get("nullable") == Some(&Value::Bool(true));
    match list_type {
        Some("set") => {
            let Some(items) = items else { return };
            let atomic = text(items, "x-kubernetes-map-type");
            if text(items, "type") == Some("object") && atomic != Some("atomic") {
                let shown = atomic.map_or(Value::Null, Value::from);
                errors.push(FieldError::invalid(
                    format!("{path}.items.x-kubernetes-map-type"),
                    shown,
                    "must be atomic as item of a list with x-kubernetes-list-type=set",
                ));
            }
            let inner = text(items, TYPE);
            if text(items, "type") == Some("array") && !matches!(inner, None | Some("atomic")) {
                errors.push(FieldError::invalid(
                    format!("{path}.items.{TYPE}"),
                    inner.unwrap_or_default(),
                    "must be atomic as item of a list with x-kubernetes-list-type=set",
                ));
            }
            if nullable(items) {
                errors.push(FieldError::forbidden(
                    format!("{path}.items.nullable"),
                    "cannot be nullable when x-kubernetes-list-type is set",
                ));
            }
        }
        Some("map") => {
            if keys.is_empty() {
                errors.push(FieldError::required(
                    format!("{path}.{KEYS}"),
                    format!("must not be empty if {TYPE} is map"),
                ));
            }
            let Some(items) = items else {
                errors.push(FieldError::required(
                    format!("{path}.items"),
                    format!("must have a schema if {TYPE} is map"),
                ));
                return;
            };
            if text(items, "type") != Some("object") {
                errors.push(FieldError::invalid(
                    format!("{path}.items.type"),
                    text(items, "type").unwrap_or_default(),
                    format!("must be object if parent array's {TYPE} is map"),
                ));
            }
            if nullable(items) {
                errors.push(FieldError::forbidden(
                    format!("{path}.items.nullable"),
                    format!("cannot be nullable when {TYPE} is map"),
                ));
            }
            map_keys(items, &keys, path, errors);
        }
        _ => {}
    }
}

fn map_keys(items: &Map<String, Value>, keys: &[String], path: &str, errors: &mut Vec<FieldError>) {
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let none = Map::new();
    let fields = object(items, "properties").unwrap_or(&none);
    let required = texts(items, "required");
    for key in keys {
        let Some(field) = object(fields, key) else {
            let shown: Vec<Value> = keys.iter().map(|key| key.as_str().into()).collect();
            errors.push(FieldError::invalid(
                format!("{path}.{KEYS}"),
                shown,
                "entries must all be names of item properties",
            ));
            return;
        };
        let at = format!("{path}.items.properties[{key}]");
        if let Some(kind @ ("object" | "array")) = text(field, "type") {
            errors.push(FieldError::invalid(
                format!("{at}.type"),
                kind,
                format!("must be a scalar type if parent array's x-kubernetes-list-type is map, so its key can be used in {KEYS}"),
            ));
        }
        if field.get("nullable") == Some(&Value::Bool(true)) {
            errors.push(FieldError::forbidden(
                format!("{at}.nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
        if !required.contains(key) && !field.contains_key("default") {
            errors.push(FieldError::required(
                format!("{at}.default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
    }
    let unique: std::collections::BTreeSet<&String> = keys.iter().collect();
    if unique.len() != keys.len() {
        let shown: Vec<Value> = keys.iter().map(|key| key.as_str().into()).collect();
        errors.push(FieldError::invalid(
            format!("{path}.{KEYS}"),
            shown,
            "map keys must not contain duplicates",
        ));
    }
}

/// The error in a pattern, in the words of RE2 in Go, for the common cases.
fn pattern_problem(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let brackets = |open: char, close: char| pattern.matches(open).count() > pattern.matches(close).count();
    let problem = if last.contains("unclosed character class") {
        let at = pattern.rfind('[').unwrap_or(0);
        format!("missing closing ]: `{}`", &pattern[at..])
    } else if last.contains("unclosed group") || (last.contains("group") && brackets('(', ')')) {
        format!("missing closing ): `{pattern}`")
    } else if last.contains("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if last.contains("repetition operator missing expression") {
        let at = pattern.find(['*', '+', '?', '{']).unwrap_or(0);
        let operator: String = pattern[at..].chars().take(1).collect();
        format!("missing argument to repetition operator: `{operator}`")
    } else if last.contains("unrecognized escape") {
        let at = pattern.find('\\').unwrap_or(0);
        let escape: String = pattern[at..].chars().take(2).collect();
        format!("invalid escape sequence: `{escape}`")
    } else {
        format!("{last}: `{pattern}`")
    };
    format!("error parsing regexp: {problem}")
}
