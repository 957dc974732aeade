//! An object as a member has it.

use entourage_core::object::Time;
use serde_json::Value;

use super::sections::{conditions, events, head, line, redact, section};
use crate::plain::plain;

/// The description of an object of a member.
pub(super) fn text(cluster: &str, object: &Value, seen: &Result<Vec<Value>, String>, now: Time) -> String {
    let mut object = object.clone();
    redact(&mut object);
    let mut text = line("Cluster", cluster);
    text.push_str(&head(&object, now));
    for (key, value) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "status"].contains(&key.as_str()) {
            text.push_str(&section(&title(key), &yaml(value)));
        }
    }
    if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
        text.push_str(&section("Data", "(not read: values of Secrets are never shown)"));
    }
    let mut status = object["status"].clone();
    if let Some(fields) = status.as_object_mut() {
        // They have a table of their own.
        fields.remove("conditions");
        if !fields.is_empty() {
            text.push_str(&section("Status", &yaml(&status)));
        }
    }
    text.push_str(&section("Conditions", &conditions(&object, now)));
    text.push_str(&section("Events", &events(seen, now)));
    text
}

/// `Spec` for `spec`.
fn title(key: &str) -> String {
    let key = plain(key);
    let mut letters = key.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}
