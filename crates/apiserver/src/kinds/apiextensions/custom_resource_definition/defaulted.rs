//! Defaults of a schema: they are valid by the schema, without unknown fields.

use serde_json::{Map, Value};

use crate::{
    schema::{
        cel::{self, Which},
        declared::{object, understand},
        prune, validate,
    },
    status::FieldError,
};

/// The errors in the defaults of a structural schema. O(schema × defaults).
pub(super) fn errors(root: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(root, path, &mut errors);
    errors
}

fn node(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|value| !value.is_null()) {
        errors.extend(one(
            &Value::Object(schema.clone()),
            default,
            &format!("{path}.default"),
        ));
    }
    if let Some(items) = object(schema, "items") {
        node(items, &format!("{path}.items"), errors);
    }
    if let Some(values) = object(schema, "additionalProperties") {
        node(values, &format!("{path}.additionalProperties"), errors);
    }
    for (name, field) in object(schema, "properties").into_iter().flatten() {
        if let Some(field) = field.as_object() {
            node(field, &format!("{path}.properties[{name}]"), errors);
        }
    }
}

fn one(declared: &Value, default: &Value, path: &str) -> Vec<FieldError> {
    let schema = understand(declared, 0);
    let mut pruned = default.clone();
    if prune::prune(&mut pruned, Some(&schema)) {
        return vec![FieldError::invalid(
            path,
            default.clone(),
            "must not have unknown fields",
        )];
    }
    prune::fill(&mut pruned, &schema);
    let errors = validate::value(Some(path), &pruned, None, &schema);
    if !errors.is_empty() {
        return errors;
    }
    cel::evaluate(Some(path), &pruned, None, &schema, Which::Deciding)
}
