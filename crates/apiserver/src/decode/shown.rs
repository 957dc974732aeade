//! The form of objects in errors about patches.

use serde_json::Value;

use crate::json::{MANAGED, METADATA, printed};

/// The result of a patch as one line of JSON: sorted fields, but metadata in the order of its type.
pub(super) fn patched(value: &Value) -> String {
    let Value::Object(object) = value else {
        return value.to_string();
    };
    let mut text = String::from("{");
    for (index, (key, value)) in object.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        if key == "metadata" {
            ordered(value, METADATA, &mut text);
        } else {
            text.push_str(&value.to_string());
        }
    }
    text.push('}');
    text
}

fn ordered(value: &Value, order: &[&str], text: &mut String) {
    let Value::Object(object) = value else {
        text.push_str(&value.to_string());
        return;
    };
    let place = |key: &str| order.iter().position(|name| *name == key).unwrap_or(order.len());
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by_key(|(key, _)| place(key));
    text.push('{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        match value {
            Value::Array(entries) if key == "managedFields" => {
                text.push('[');
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    ordered(entry, MANAGED, text);
                }
                text.push(']');
            }
            value => text.push_str(&value.to_string()),
        }
    }
    text.push('}');
}

/// A patch as Go prints a map: `map[spec:map[replicas:x]]`.
pub(super) fn go_map(patch: &[u8]) -> String {
    crate::read::Node::parse(patch).map_or_else(
        |_| String::from_utf8_lossy(patch).into_owned(),
        |node| printed(&node.into_value()),
    )
}
