//! The difference of two objects, as lines that a reviewer reads beside the first of them.
//!
//! | line | meaning |
//! |---|---|
//! | `+ spec.paused: true` | added; of an added map or list every leaf has a line |
//! | `- metadata.uid` | removed, with all that is below it |
//! | `~ spec.replicas: 2 -> 5` | changed |
//!
//! An element of a list has the index that it has in the first object, an added one that of the second. A list of texts and
//! numbers is shown whole.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::{Map, Value};

/// The changes that lead from one value to another. Two results that differ have other changes from the same value: comparing
/// changes is as strict as comparing results.
#[must_use]
pub fn changes(before: &Value, after: &Value) -> Value {
    let mut lines = String::new();
    compare("", before, after, &mut lines);
    if lines.is_empty() { "unchanged" } else { &*lines }.into()
}

fn compare(path: &str, before: &Value, after: &Value, lines: &mut String) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_maps(path, before, after, lines),
        (Value::Array(before), Value::Array(after)) if !before.iter().chain(after).all(is_leaf) => {
            compare_lists(path, before, after, lines);
        }
        _ => line(lines, '~', path, &format!(": {before} -> {after}")),
    }
}

fn compare_maps(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, lines: &mut String) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let path = field(path, key);
        match (before.get(key), after.get(key)) {
            (Some(before), Some(after)) => compare(&path, before, after, lines),
            (None, Some(after)) => add(&path, after, lines),
            _ => line(lines, '-', &path, ""),
        }
    }
}

/// Elements that are equal at the beginning and at the end stay where they are; those between are compared in order.
fn compare_lists(path: &str, before: &[Value], after: &[Value], lines: &mut String) {
    let shorter = before.len().min(after.len());
    let pairs = || before.iter().zip(after);
    let start = pairs().take_while(|(one, other)| one == other).count();
    let pairs_from_end = before.iter().rev().zip(after.iter().rev());
    let end = pairs_from_end
        .take(shorter - start)
        .take_while(|(one, other)| one == other)
        .count();
    for (index, (one, other)) in pairs().enumerate().take(shorter - end).skip(start) {
        compare(&element(path, index), one, other, lines);
    }
    for index in shorter - end..before.len() - end {
        line(lines, '-', &element(path, index), "");
    }
    // On one line: its leaves could be taken for fields that are added to the element with this index.
    for (index, added) in after
        .iter()
        .enumerate()
        .take(after.len() - end)
        .skip(shorter - end)
    {
        line(lines, '+', &element(path, index), &format!(": {added}"));
    }
}

fn add(path: &str, added: &Value, lines: &mut String) {
    match added {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                add(&field(path, key), value, lines);
            }
        }
        Value::Array(list) if !list.iter().all(is_leaf) => {
            for (index, value) in list.iter().enumerate() {
                add(&element(path, index), value, lines);
            }
        }
        leaf => line(lines, '+', path, &format!(": {leaf}")),
    }
}

fn is_leaf(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn line(lines: &mut String, sign: char, path: &str, rest: &str) {
    let path = if path.is_empty() { "(all)" } else { path };
    // Writing to a String cannot fail.
    let _ = writeln!(lines, "{sign} {path}{rest}");
}

fn field(path: &str, key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match key {
        key if key.is_empty() || !key.chars().all(is_plain) => format!("{path}[{}]", Value::from(key)),
        key if path.is_empty() => key.to_owned(),
        key => format!("{path}.{key}"),
    }
}

fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_named_by_their_paths() {
        let before = json!({
            "metadata": {"uid": "u", "labels": {"app": "web"}, "annotations": {"example.io/a": "1"}},
            "spec": {"replicas": 2, "args": ["a", "b"], "containers": [{"name": "init"}, {"name": "app", "image": "i:1"}]},
            "status": {"replicas": 2},
        });
        let after = json!({
            "metadata": {"labels": {}, "annotations": {"example.io/a": "2"}},
            "spec": {
                "replicas": 3, "args": ["b"], "containers": [{"name": "app", "image": "i:1"}, {"name": "sidecar"}],
                "strategy": {"type": "Recreate", "steps": [{"pause": {}}, {"args": [1, null]}]},
            },
        });
        assert_eq!(
            changes(&before, &after),
            "~ metadata.annotations[\"example.io/a\"]: \"1\" -> \"2\"\n\
             - metadata.labels.app\n\
             - metadata.uid\n\
             ~ spec.args: [\"a\",\"b\"] -> [\"b\"]\n\
             + spec.containers[0].image: \"i:1\"\n\
             ~ spec.containers[0].name: \"init\" -> \"app\"\n\
             - spec.containers[1].image\n\
             ~ spec.containers[1].name: \"app\" -> \"sidecar\"\n\
             ~ spec.replicas: 2 -> 3\n\
             + spec.strategy.steps[0].pause: {}\n\
             + spec.strategy.steps[1].args: [1,null]\n\
             + spec.strategy.type: \"Recreate\"\n\
             - status\n"
        );
    }

    #[test]
    fn elements_that_move_up_are_not_compared_with_their_neighbours() {
        let list = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        let without_first = json!([{"name": "b"}, {"name": "c"}]);
        assert_eq!(changes(&list, &without_first), "- [0]\n");
        assert_eq!(changes(&without_first, &list), "+ [0]: {\"name\":\"a\"}\n");
    }

    #[test]
    fn what_does_not_change_says_so() {
        assert_eq!(changes(&json!({"a": 1}), &json!({"a": 1})), "unchanged");
    }

    /// Values of every form, two levels deep: whatever a key, a text or an order could be taken for is among them.
    fn values() -> Vec<Value> {
        let leaves = [
            json!(null),
            json!(1),
            json!("1"),
            json!("unchanged"),
            json!([]),
            json!({}),
        ];
        let mut inner = leaves.to_vec();
        for one in &leaves {
            inner.extend([
                json!([one]),
                json!({"a": one}),
                json!({"a.b": one}),
                json!({"": one}),
            ]);
        }
        let few = [
            json!(1),
            json!({}),
            json!([]),
            json!({"a": 1}),
            json!({"a": {}}),
            json!([1]),
            json!([{}]),
            json!([{"a": 1}]),
        ];
        let mut all = inner.clone();
        for one in &inner {
            all.extend([json!([one]), json!({"a": one})]);
        }
        for one in &few {
            for other in &few {
                all.extend([
                    json!([one, other]),
                    json!({"a": one, "b": other}),
                    json!({"a": {"b": one}, "a.b": other}),
                ]);
                all.extend(few.iter().map(|third| json!([one, other, third])));
                all.extend([json!({"a": [one, other]}), json!([{"a": [one, other]}])]);
            }
        }
        all.sort_by_key(Value::to_string);
        all.dedup();
        all
    }

    #[test]
    fn two_results_that_differ_have_different_changes() {
        let values = values();
        for before in &values {
            let results: BTreeSet<String> = values
                .iter()
                .map(|after| changes(before, after).to_string())
                .collect();
            assert_eq!(results.len(), values.len(), "{before}");
        }
    }
}
