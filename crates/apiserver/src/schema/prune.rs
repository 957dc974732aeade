//! Pruning and defaulting of a custom resource before it is checked: unknown fields are removed, absent ones get their default,
//! and nulls that are not permitted count as absent. Source: the structural schemas of apiextensions (KEP-1425, KEP-1466).

use serde_json::Value;

use crate::schema::Schema;

/// Removes the fields that `schema` lacks below `object`, a whole object. Returns true if there were any. O(object).
pub(crate) fn prune(object: &mut Value, schema: Option<&Schema>) -> bool {
    pruned(object, schema, 0).dropped
}

/// The same; returns the paths of what was dropped, sorted, at most so many. O(object + paths).
pub(crate) fn prune_telling(object: &mut Value, schema: Option<&Schema>, most: usize) -> Vec<String> {
    let mut unknown = pruned(object, schema, most).unknown;
    unknown.sort();
    unknown
}

fn pruned(object: &mut Value, schema: Option<&Schema>, most: usize) -> Pruner {
    let mut pruner = Pruner {
        most,
        ..Pruner::default()
    };
    match schema {
        Some(schema) => pruner.value(object, Some(schema)),
        None => pruner.fields(object, None, true),
    }
    pruner
}

#[derive(Default)]
struct Pruner {
    /// Kept while an error is still to be reported.
    path: String,
    unknown: Vec<String>,
    most: usize,
    dropped: bool,
}

impl Pruner {
    fn value(&mut self, value: &mut Value, schema: Option<&Schema>) {
        match value {
            Value::Object(_) => self.fields(value, schema, schema.is_some_and(|schema| schema.embedded)),
            Value::Array(items) => {
                let inner = schema.and_then(|schema| schema.items.as_deref());
                if inner.is_none() && schema.is_some_and(|schema| schema.preserve_unknown) {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(|_| format!("[{at}]"), |pruner| pruner.value(item, inner));
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, value: &mut Value, schema: Option<&Schema>, whole: bool) {
        let Value::Object(fields) = value else { return };
        let mut gone = Vec::new();
        for (name, value) in fields.iter_mut() {
            if whole && is_object_field(name) {
                continue;
            }
            let step = |path: &str| {
                let dot = if path.is_empty() { "" } else { "." };
                format!("{dot}{name}")
            };
            match schema.and_then(|schema| schema.field(name)) {
                Some(field) => self.below(step, |pruner| pruner.value(value, Some(field))),
                // A closed object keeps its unknown fields: they are reported as errors.
                None if schema.is_some_and(|schema| schema.preserve_unknown || schema.closed) => {}
                None => {
                    self.dropped = true;
                    if self.tells() {
                        self.unknown.push(format!("{}{}", self.path, step(&self.path)));
                    }
                    gone.push(name.clone());
                }
            }
        }
        for name in gone {
            fields.remove(&name);
        }
    }

    fn tells(&self) -> bool {
        self.unknown.len() < self.most
    }

    /// `step`: what is added to this path.
    fn below(&mut self, step: impl FnOnce(&str) -> String, walk: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if self.tells() {
            let step = step(&self.path);
            self.path.push_str(&step);
        }
        walk(self);
        self.path.truncate(length);
    }
}

/// The fields that every object has; their schema is not the CRD's affair.
pub(crate) fn is_object_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Drops nulls of fields that are neither nullable nor have a default. O(object).
pub(crate) fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(field) = schema.field(name) else {
                    return true;
                };
                if schema.embedded && name == "metadata" {
                    return true;
                }
                !(value.is_null() && !field.nullable && field.default.is_none())
            });
            for (name, value) in fields.iter_mut() {
                if let Some(field) = schema
                    .field(name)
                    .filter(|_| value.is_object() || value.is_array())
                {
                    drop_nulls(value, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for item in items {
                    drop_nulls(item, inner);
                }
            }
        }
        _ => {}
    }
}

/// Fills in the defaults of what is absent, below parents that are there. O(object + schema beside it).
pub(crate) fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, field) in &schema.properties {
                let Some(default) = &field.default else { continue };
                let absent = fields
                    .get(name)
                    .is_none_or(|value| value.is_null() && !field.nullable);
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                let Some(field) = schema.field(name) else { continue };
                fill_null(value, field);
                if schema.embedded && name == "metadata" {
                    continue;
                }
                fill(value, field);
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else {
                return;
            };
            for item in items {
                fill_null(item, inner);
                fill(item, inner);
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

/// Numbers as Go reads and writes them: whole floats are integers, integers beyond 64 bits floats of sixteen digits. O(value).
pub(crate) fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.as_i64().is_none()
                && let Some(float) = number.as_f64()
                && let Some(whole) = whole(float)
            {
                *value = whole;
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        _ => {}
    }
}

/// A whole float as the integer that Go writes for it; `None` beyond what it writes without an exponent or we can hold.
fn whole(float: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() != 0.0 {
        return None;
    }
    if float.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        return Some(Value::from(float as i64));
    }
    // The shortest digits that mean this float, filled with zeros, as Go does below 1e21.
    let shown = format!("{float:e}");
    let (digits, exponent) = shown.split_once('e')?;
    let exponent: usize = exponent.parse().ok()?;
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let (first, rest) = digits.split_once('.').unwrap_or((digits, ""));
    if exponent >= 21 || rest.len() > exponent {
        return None;
    }
    let text = format!("{sign}{first}{rest}{}", "0".repeat(exponent - rest.len()));
    text.parse::<i64>()
        .map(Value::from)
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_is_unknown_goes_but_only_some_of_it_is_reported() {
        let schema = crate::schema::declared::understand(
            &json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "object"}}}}),
            0,
        );
        let items: Vec<Value> = (0..300).map(|at| json!({"odd": at})).collect();
        for most in [0, 100] {
            let mut object = json!({"l": items, "z": 1});
            let reported = prune_telling(&mut object, Some(&schema), most);
            assert_eq!(reported.len(), most);
            assert!(
                reported
                    .iter()
                    .all(|path| path.starts_with("l[") && path.ends_with("].odd"))
            );
            assert_eq!(object, json!({"l": vec![json!({}); 300]}));
        }
        assert!(prune(&mut json!({"z": 1}), Some(&schema)));
        assert!(!prune(&mut json!({"l": []}), Some(&schema)));
    }
}
