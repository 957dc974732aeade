//! The JSON patch (RFC 6902) between two values.

use serde_json::{Value, json};

/// The operations that turn `before` into `after`, in order; empty if they are equal. Lists of one length are changed item by
/// item, others as a whole. Cost: O(size of both).
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(&mut String::new(), before, after, &mut operations);
    operations
}

fn compare(path: &mut String, before: &Value, after: &Value, operations: &mut Vec<Value>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, old) in before {
                below(path, name, |path| match after.get(name) {
                    Some(new) => compare(path, old, new, operations),
                    None => operations.push(json!({"op": "remove", "path": path})),
                });
            }
            for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                below(path, name, |path| {
                    operations.push(json!({"op": "add", "path": path, "value": new}));
                });
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (old, new)) in before.iter().zip(after).enumerate() {
                below(path, &at.to_string(), |path| compare(path, old, new, operations));
            }
        }
        _ => operations.push(json!({"op": "replace", "path": path, "value": after})),
    }
}

fn below(path: &mut String, step: &str, then: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(&step.replace('~', "~0").replace('/', "~1"));
    then(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_need_no_operation() {
        let value = json!({"a": [1, {"b": null}]});
        assert!(between(&value, &value).is_empty());
    }

    #[test]
    fn what_differs_is_named_by_its_path() {
        let before = json!({"a": {"x/y": 1, "gone": 2}, "l": [{"n": 1}, 2], "k": [1]});
        let after = json!({"a": {"x/y": 3, "new~": 4}, "l": [{"n": 1, "m": 0}, 2], "k": [1, 2]});
        assert_eq!(
            Value::from(between(&before, &after)),
            json!([
                {"op": "remove", "path": "/a/gone"},
                {"op": "replace", "path": "/a/x~1y", "value": 3},
                {"op": "add", "path": "/a/new~0", "value": 4},
                {"op": "replace", "path": "/k", "value": [1, 2]},
                {"op": "add", "path": "/l/0/m", "value": 0},
            ])
        );
    }
}
