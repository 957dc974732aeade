//! Events of `events.k8s.io`: the same objects as those of the core group, in a form of their own. They are stored in that of the
//! core group.

use serde_json::{Value, json};

use crate::{
    kinds::{
        core::event::{PRINTER, common, old_rules},
        kind_def::{Form, KindDef},
        pod_spec::internal,
    },
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, count, object, same, text},
    },
};

/// The names of a field in the core group and in `events.k8s.io`.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Fields that an update through `events.k8s.io` leaves alone.
const FIXED: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    // The server compares it twice.
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// Event of `events.k8s.io`.
pub(super) static DEF: KindDef = KindDef {
    short: &["ev"],
    stored_group: "",
    form: Some(Form {
        show_stored,
        to_stored,
    }),
    create_on_update: true,
    errors,
    changes: Some(changes),
    selectable: Some(|event| {
        let event = core_form(event);
        let mut all = common(&event, "regarding");
        all.insert(
            "reportingController".to_owned(),
            text(&event, "reportingComponent").to_owned(),
        );
        all
    }),
    printer: PRINTER,
    ..KindDef::of::<k8s_openapi::api::events::v1::Event>()
};

fn show_stored(event: &mut Object) {
    rename(event, |(core, modern)| (core, modern));
    for always in ["regarding", "deprecatedSource"] {
        event.entry(always).or_insert_with(|| json!({}));
    }
    for always in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        event.entry(always).or_insert(Value::Null);
    }
    for optional in ["note", "reportingController", "reportingInstance"] {
        if text(event, optional).is_empty() {
            event.remove(optional);
        }
    }
}

fn to_stored(event: &mut Object) {
    rename(event, |(core, modern)| (modern, core));
    for always in ["involvedObject", "source"] {
        event.entry(always).or_insert_with(|| json!({}));
    }
    for always in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        event.entry(always).or_insert(Value::Null);
    }
    for always in ["reportingComponent", "reportingInstance"] {
        event.entry(always).or_insert_with(|| "".into());
    }
}

fn errors(event: &Object, errors: &mut Errors) {
    let event = core_form(event);
    old_rules(&event, "reportingController", errors);
    series(&event, errors);
    if event.get("eventTime").is_none_or(Value::is_null) {
        errors.required("eventTime", "");
    }
    let kind = text(&event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid("type", "", &format!("has invalid value: {kind}"));
    }
    let source = below(&event, "source");
    for (field, set) in [
        ("firstTimestamp", !event["firstTimestamp"].is_null()),
        ("lastTimestamp", !event["lastTimestamp"].is_null()),
        ("count", count(&event, "count") != 0),
        (
            "source",
            !text(source, "component").is_empty() || !text(source, "host").is_empty(),
        ),
    ] {
        if set {
            errors.invalid(field, "", "needs to be unset");
        }
    }
}

fn changes(new: &Object, old: &Object, errors: &mut Errors) {
    let (new, old) = (core_form(new), core_form(old));
    old_rules(&new, "reportingController", errors);
    if !same(new.get("series"), old.get("series")) {
        series(&new, errors);
    }
    for key in FIXED {
        if !same(new.get(key), old.get(key)) {
            match (key, object(&new, key)) {
                ("involvedObject" | "related", Some(referred)) => {
                    errors.invalid_text(key, internal::shown("ObjectReference", referred), IMMUTABLE);
                }
                ("source", Some(source)) => {
                    errors.invalid_text(key, internal::shown("EventSource", source), IMMUTABLE);
                }
                _ => {
                    let field = if key == "reportingComponent" {
                        "reportingController"
                    } else {
                        key
                    };
                    errors.invalid(field, new.get(key).cloned().unwrap_or_default(), IMMUTABLE);
                }
            }
        }
    }
}

fn rename(
    event: &mut Object,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    for pair in NAMES {
        let (from, to) = direction(*pair);
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
}

/// The event as stored; it may have either form.
fn core_form(event: &Object) -> Object {
    let mut event = event.clone();
    to_stored(&mut event);
    event
}

fn series(event: &Object, errors: &mut Errors) {
    let Some(Value::Object(series)) = event.get("series") else {
        return;
    };
    if count(series, "count") < 2 {
        errors.invalid("series.count", "", "should be at least 2");
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.required("series.lastObservedTime", "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_the_way_through_the_other_form() {
        let stored = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "message": "m", "count": 2,
            "source": {"component": "c"}, "firstTimestamp": null, "lastTimestamp": "2020-01-01T00:00:00Z",
            "eventTime": null, "reportingComponent": "", "reportingInstance": "", "type": "Normal"});
        let Value::Object(stored) = stored else { return };
        let mut other = stored.clone();
        show_stored(&mut other);
        assert_eq!(text(&other, "note"), "m");
        assert!(!other.contains_key("involvedObject"));
        to_stored(&mut other);
        assert_eq!(other, stored);
    }
}
