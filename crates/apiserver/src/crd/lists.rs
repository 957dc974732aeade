//! Rules beyond the schema: items of sets and of list-maps are unique, embedded objects have a kind
//! and sound metadata.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    schema::{ListKind, Schema},
    status::{FieldError, Problem},
};

/// Duplicates in lists of type set and map below `value`. O(value).
#[must_use]
pub(crate) fn duplicates(path: &str, value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(path, value, schema, &mut |path, value, schema| {
        let Value::Array(items) = value else { return };
        match &schema.list {
            ListKind::Atomic => {}
            ListKind::Set => once(path, items, |item| Some(item.clone()), &mut errors),
            ListKind::Map(keys) => once(
                path,
                items,
                |item| {
                    let fields = item.as_object()?;
                    let shown: Map<String, Value> = keys
                        .iter()
                        .filter_map(|key| Some((key.clone(), fields.get(key)?.clone())))
                        .collect();
                    Some(Value::Object(shown))
                },
                &mut errors,
            ),
        }
        // The key of an item is what it shows; absent keys count as null.
        fn once(
            path: &str,
            items: &[Value],
            shown: impl Fn(&Value) -> Option<Value>,
            errors: &mut Vec<FieldError>,
        ) {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for (at, item) in items.iter().enumerate() {
                let Some(shown) = shown(item) else { continue };
                let count = seen.entry(shown.to_string()).or_default();
                *count += 1;
                // A value that occurs many times is reported once.
                if *count == 2 {
                    errors.push(FieldError::duplicate(format!("{path}[{at}]"), shown));
                }
            }
        }
    });
    errors
}

/// Embedded objects without apiVersion or kind, or with impossible ones, and what is wrong with their metadata. O(value).
#[must_use]
pub(crate) fn embedded(path: &str, value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(path, value, schema, &mut |path, value, schema| {
        if path.is_empty() || !schema.embedded {
            return;
        }
        let Value::Object(fields) = value else { return };
        for name in ["apiVersion", "kind"] {
            let field = format!("{path}.{name}");
            match fields.get(name) {
                None => errors.push(FieldError::required(field, "")),
                Some(Value::String(text)) if text.is_empty() => {
                    errors.push(FieldError::invalid(field, "", "must not be empty"));
                }
                Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                    errors.push(FieldError::invalid(
                        field,
                        text.as_str(),
                        format!("unexpected GroupVersion string: {text}"),
                    ));
                }
                Some(Value::String(text)) if name == "kind" => {
                    let problems = crate::names::dns1035_label(&text.to_ascii_lowercase(), false);
                    if !problems.is_empty() {
                        errors.push(FieldError::invalid(
                            field,
                            text.as_str(),
                            format!(
                                "may have mixed case, but should otherwise match: {}",
                                problems.join(",")
                            ),
                        ));
                    }
                }
                Some(Value::String(_)) => {}
                Some(other) => errors.push(FieldError::new(
                    field,
                    Problem::Invalid(other.clone()),
                    "must be a string",
                )),
            }
        }
        if fields.get("metadata").is_some_and(Value::is_object) {
            errors.extend(crate::meta::validate_embedded(path, fields));
        }
    });
    errors
}

/// Visits every node that the schema declares.
fn walk(path: &str, value: &Value, schema: &Schema, visit: &mut dyn FnMut(&str, &Value, &Schema)) {
    visit(path, value, schema);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if schema.embedded && name == "metadata" || !(value.is_object() || value.is_array()) {
                    continue;
                }
                if let Some(field) = schema.field(name) {
                    let here = if path.is_empty() {
                        name.clone()
                    } else if !schema.properties.contains_key(name) {
                        format!("{path}[{name}]")
                    } else {
                        format!("{path}.{name}")
                    };
                    walk(&here, value, field, visit);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    if item.is_object() || item.is_array() {
                        walk(&format!("{path}[{at}]"), item, inner, visit);
                    }
                }
            }
        }
        _ => {}
    }
}
