//! Events, in two groups that show the same objects. They are stored in the form of the core group.
//!
//! The core group takes nearly everything, as old clients need it; `events.k8s.io` is strict. Errors name the fields of
//! the core group in both.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kind::{Kind, fields};
use crate::{
    names,
    object::{
        Object, field,
        tree::{Errors, IMMUTABLE, below, count, same, text},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

/// What a field is in the core group and in `events.k8s.io`.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Characters of the short texts.
const SHORT: usize = 128;

/// Characters of the message.
const LONG: usize = 1024;

/// Fields that an update through `events.k8s.io` leaves alone.
const FIXED: [&str; 13] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "eventTime",
    "related",
    "reportingComponent",
    "reportingInstance",
    "action",
    "type",
];

/// Event of the core group.
pub(super) static EVENT: Kind = Kind {
    kind: "Event",
    create_on_update: true,
    names: names::path_segment,
    errors: |event, errors| old_rules(event, "reportingComponent", errors),
    selectable: Some(|event| {
        let mut all = common(event, "involvedObject");
        let source = match text(below(event, "source"), "component") {
            "" => text(event, "reportingComponent"),
            component => component,
        };
        all.insert("source".to_owned(), source.to_owned());
        all.insert(
            "reportingComponent".to_owned(),
            text(event, "reportingComponent").to_owned(),
        );
        all
    }),
    ..Kind::PLAIN
};

/// Event of `events.k8s.io`.
#[derive(Debug)]
pub(super) struct Modern;

impl Rules for Modern {
    fn show_stored(&self, event: &mut Object) {
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

    fn to_stored(&self, event: &mut Object) {
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

    fn prepare_create(&self, _: &mut Object, _: &dyn Surroundings) -> Result<()> {
        Ok(())
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn validate(&self, event: &Object) -> Vec<FieldError> {
        let event = core_form(event);
        let mut errors = Errors::default();
        old_rules(&event, "reportingController", &mut errors);
        series(&event, &mut errors);
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
        errors.0
    }

    fn validate_update(&self, _: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        let (new, old) = (core_form(new), core_form(old));
        let mut errors = Errors::default();
        old_rules(&new, "reportingController", &mut errors);
        if !same(new.get("series"), old.get("series")) {
            series(&new, &mut errors);
        }
        for key in FIXED {
            if !same(new.get(key), old.get(key)) {
                let value = new.get(key).cloned().unwrap_or_default();
                let field = if key == "reportingComponent" {
                    "reportingController"
                } else {
                    key
                };
                errors.invalid(field, value, IMMUTABLE);
            }
        }
        errors.0
    }

    fn selectable(&self, event: &Object) -> Option<BTreeMap<String, String>> {
        let event = core_form(event);
        let mut all = common(&event, "regarding");
        all.insert(
            "reportingController".to_owned(),
            text(&event, "reportingComponent").to_owned(),
        );
        Some(all)
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
    Modern.to_stored(&mut event);
    event
}

fn common(event: &Object, prefix: &str) -> BTreeMap<String, String> {
    let mut all = fields([("reason", text(event, "reason")), ("type", text(event, "type"))]);
    let involved = below(event, "involvedObject");
    for key in [
        "kind",
        "namespace",
        "name",
        "uid",
        "apiVersion",
        "resourceVersion",
        "fieldPath",
    ] {
        all.insert(format!("{prefix}.{key}"), text(involved, key).to_owned());
    }
    all
}

/// The rules that both groups have.
fn old_rules(event: &Object, controller_field: &str, errors: &mut Errors) {
    let namespace = field(event, "namespace");
    let involved = text(below(event, "involvedObject"), "namespace");
    let dated = !event.get("eventTime").is_none_or(Value::is_null);
    let fits = match (dated, involved) {
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (false, "") => namespace == "default",
        (true, _) => true,
        (false, involved) => involved == namespace,
    };
    if !fits {
        errors.invalid(
            "involvedObject.namespace",
            involved,
            "does not match event.namespace",
        );
    }
    if !dated {
        return;
    }
    let controller = text(event, "reportingComponent");
    if controller.is_empty() {
        errors.required(controller_field, "");
    }
    errors.all_invalid(controller_field, controller, names::qualified_name(controller));
    for key in ["reportingInstance", "action", "reason"] {
        let value = text(event, key);
        if value.is_empty() {
            errors.required(key, "");
        }
        if value.len() > SHORT {
            errors.invalid(key, "", &format!("can have at most {SHORT} characters"));
        }
    }
    if text(event, "message").len() > LONG {
        errors.invalid("message", "", &format!("can have at most {LONG} characters"));
    }
}

fn series(event: &Object, errors: &mut Errors) {
    let Some(Value::Object(series)) = event.get("series") else {
        return;
    };
    if count(series, "count") < 2 {
        let number = count(series, "count");
        errors.invalid("series.count", number, "should be at least 2");
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
        Modern.show_stored(&mut other);
        assert_eq!(text(&other, "note"), "m");
        assert!(!other.contains_key("involvedObject"));
        Modern.to_stored(&mut other);
        assert_eq!(other, stored);
    }
}
