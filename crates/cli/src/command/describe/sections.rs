//! The parts of a description: the head, the conditions, the events, and what is left out of an object.

use entourage_core::object::{LAST_APPLIED, Time};
use serde_json::Value;

use crate::{
    command::get::table::{Row, Shown, View, items, since, text},
    plain::plain,
};

/// The longest value of an annotation that is shown.
const LONGEST: usize = 160;

/// The text in the place of a value that is not shown.
const NOT_SHOWN: &str = "(not shown)";

/// The columns of the head.
const WIDTH: usize = 14;

/// A line of the head.
pub(super) fn line(label: &str, value: &str) -> String {
    let label = format!("{label}:");
    let value = if value.is_empty() { "<none>" } else { value };
    format!("{label:<WIDTH$}{}\n", plain(value))
}

/// Name, kind, owners, labels and annotations, and what keeps it from going.
pub(super) fn head(object: &Value, now: Time) -> String {
    let mut head = line("Name", text(object, "/metadata/name"));
    let namespace = text(object, "/metadata/namespace");
    if !namespace.is_empty() {
        head.push_str(&line("Namespace", namespace));
    }
    let kind = format!("{} ({})", text(object, "/kind"), text(object, "/apiVersion"));
    head.push_str(&line("Kind", &kind));
    let created = text(object, "/metadata/creationTimestamp");
    head.push_str(&line("Created", &ago(created, now)));
    let deleted = text(object, "/metadata/deletionTimestamp");
    if !deleted.is_empty() {
        head.push_str(&line("Deleted", &ago(deleted, now)));
    }
    let finalizers = items(object, "/metadata/finalizers").iter();
    let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
    let owners = items(object, "/metadata/ownerReferences").iter();
    let owners = owners.map(|owner| format!("{} {}", text(owner, "/kind"), text(owner, "/name")));
    let owners: Vec<String> = owners.collect();
    for (label, all) in [
        ("Finalizers", finalizers.join(",")),
        ("Owned by", owners.join(", ")),
    ] {
        if !all.is_empty() {
            head.push_str(&line(label, &all));
        }
    }
    for (label, field) in [("Labels", "labels"), ("Annotations", "annotations")] {
        let pairs = pairs(&object["metadata"][field]);
        head.push_str(&line(label, pairs.first().map_or("", String::as_str)));
        for pair in pairs.iter().skip(1) {
            head.push_str(&format!("{:<WIDTH$}{pair}\n", ""));
        }
    }
    head
}

/// `key=value` of each; the annotation with the whole object is left out, long values are.
fn pairs(map: &Value) -> Vec<String> {
    let all = map.as_object().into_iter().flatten();
    all.filter(|(key, _)| *key != LAST_APPLIED)
        .map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            if value.len() > LONGEST {
                return plain(&format!("{key}=({} bytes)", value.len()));
            }
            plain(&format!("{key}={value}"))
        })
        .collect()
}

/// `3h ago (2026-01-01T00:00:00Z)`.
fn ago(time: &str, now: Time) -> String {
    match since(time, now) {
        since if since.is_empty() => time.to_owned(),
        since => format!("{since} ago ({time})"),
    }
}

/// A titled part, indented; nothing if it is empty.
pub(super) fn section(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    let lines = body.lines().map(|line| {
        let line = format!("  {line}");
        format!("{}\n", line.trim_end())
    });
    format!("{title}:\n{}", lines.collect::<String>())
}

/// A table of these columns; empty without rows.
pub(super) fn table<const N: usize>(columns: [&'static str; N], rows: Vec<[String; N]>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let row = |cells: [String; N]| Row {
        name: String::new(),
        cells: cells.into(),
        item: Value::Null,
    };
    let view = View {
        columns: columns.map(|title| (title, Shown::Always)).into(),
        rows: rows.into_iter().map(row).collect(),
        more: Vec::new(),
    };
    view.table(false, false)
}

/// The conditions of an object.
pub(super) fn conditions(object: &Value, now: Time) -> String {
    let all = items(object, "/status/conditions").iter();
    let rows = all.map(|each| {
        [
            text(each, "/type").to_owned(),
            text(each, "/status").to_owned(),
            text(each, "/reason").to_owned(),
            since(text(each, "/lastTransitionTime"), now),
            text(each, "/message").to_owned(),
        ]
    });
    table(["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], rows.collect())
}

/// Events, the latest last; or why there are none to show.
pub(super) fn events(events: &Result<Vec<Value>, String>, now: Time) -> String {
    let events = match events {
        Ok(events) => events,
        Err(why) => return format!("cannot be read: {why}\n"),
    };
    let mut all: Vec<&Value> = events.iter().collect();
    all.sort_by_key(|event| time_of(event));
    let rows = all.into_iter().map(|event| {
        let source = match text(event, "/source/component") {
            "" => text(event, "/reportingComponent"),
            source => source,
        };
        let count = event["count"].as_i64().unwrap_or(1);
        let last = since(time_of(event), now);
        [
            text(event, "/type").to_owned(),
            text(event, "/reason").to_owned(),
            if count > 1 {
                format!("{last} (x{count})")
            } else {
                last
            },
            source.to_owned(),
            text(event, "/message").to_owned(),
        ]
    });
    table(["TYPE", "REASON", "AGE", "FROM", "MESSAGE"], rows.collect())
}

fn time_of(event: &Value) -> &str {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let mut times = times.iter().map(|pointer| text(event, pointer));
    times.find(|time| !time.is_empty()).unwrap_or_default()
}

/// Takes out what must not be shown, however deep: payloads of Secrets, as a distribution has one, headers for proxies, and the
/// annotation with the whole object, which may be a Secret.
pub(super) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove(LAST_APPLIED);
            let is_secret = fields.get("kind").is_some_and(|kind| kind == "Secret");
            let is_list = fields.get("kind").is_some_and(|kind| kind == "SecretList");
            for (key, value) in fields.iter_mut() {
                // The items of a list leave their kind out.
                if is_list && key == "items" {
                    let items = value.as_array_mut().into_iter().flatten();
                    let items = items.filter_map(Value::as_object_mut);
                    items.for_each(|item| drop(item.insert("kind".to_owned(), "Secret".into())));
                }
                if is_secret && (key == "data" || key == "stringData") {
                    *value = NOT_SHOWN.into();
                } else if key == "proxyHeader" {
                    value
                        .as_object_mut()
                        .into_iter()
                        .flatten()
                        .for_each(|(_, value)| *value = NOT_SHOWN.into());
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(redact),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn payloads_are_taken_out_however_deep() {
        let mut object = json!({
            "kind": "ResourceDistribution",
            "spec": {
                "resource": {"kind": "Secret", "data": {"k": "Y2FuYXJ5"}, "stringData": {"k": "canary"}, "type": "Opaque"},
                "list": [{"kind": "Secret", "data": {"k": "Y2FuYXJ5"}}, {"kind": "ConfigMap", "data": {"k": "shown"}}],
                "proxyHeader": {"Authorization": "canary"},
                "manifest": {"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED: "canary", "a": "kept"}}},
                "secrets": {"kind": "SecretList", "items": [{"data": {"k": "Y2FuYXJ5"}, "type": "of an item"}, "no object"]},
            },
        });
        redact(&mut object);
        let text = object.to_string();
        assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
        for shown in ["Opaque", "shown", "Authorization", "kept", "of an item"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }

    #[test]
    fn a_head_leaves_out_what_repeats_the_object() {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "login", "namespace": "shop",
            "annotations": {LAST_APPLIED: "canary", "a": "b", "long": "x".repeat(500), "z": "two\nlines\u{1b}[2J"}}});
        assert_eq!(
            head(&object, Time(0)),
            "Name:         login\nNamespace:    shop\nKind:         Secret (v1)\nCreated:      <none>\n\
             Labels:       <none>\nAnnotations:  a=b\n              long=(500 bytes)\n              z=two\\nlines\\u{1b}[2J\n"
        );
    }

    #[test]
    fn a_head_says_what_keeps_an_object_and_whose_it_is() {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "web-1", "finalizers": ["a/keep", "b"], "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}});
        let head = head(&object, Time(0));
        assert!(
            head.contains("Finalizers:   a/keep,b\nOwned by:     ReplicaSet web\n"),
            "{head}"
        );
    }

    #[test]
    fn what_a_member_sends_is_not_obeyed_by_a_terminal() {
        let message = "\u{1b}]0;x\u{7}\u{1b}[2J\rfine\nNormal";
        let event =
            json!({"type": "Warning", "reason": message, "message": message, "reportingComponent": message});
        let condition = json!({"type": "Ready", "status": "False", "message": message});
        let object = json!({"metadata": {"labels": {"a": message}}, "status": {"conditions": [condition]}});
        for (text, lines) in [
            (events(&Ok(vec![event]), Time(0)), 2),
            (conditions(&object, Time(0)), 2),
            (head(&object, Time(0)), 5),
        ] {
            let is_shown = |c: char| c == '\n' || !c.is_control();
            assert!(text.chars().all(is_shown), "{text:?}");
            assert_eq!(text.lines().count(), lines, "{text:?}");
        }
    }

    #[test]
    fn the_latest_event_is_the_last() {
        let event = |reason: &str, field: &str, time: &str| json!({"reason": reason, "type": "Normal", field: time, "count": 3});
        let all = Ok(vec![
            event("Later", "lastTimestamp", "2026-01-02T00:00:00Z"),
            event("Earlier", "eventTime", "2026-01-01T00:00:00.000000Z"),
        ]);
        let text = events(&all, Time(1_767_312_060_000));
        let reasons: Vec<&str> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(reasons, ["Earlier", "Later"], "{text}");
        assert!(text.contains("(x3)"), "{text}");
        assert_eq!(events(&Err("no".into()), Time(0)), "cannot be read: no\n");
        assert_eq!(events(&Ok(Vec::new()), Time(0)), "");
    }
}
