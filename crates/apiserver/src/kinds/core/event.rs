//! Events of the core group, which takes nearly everything, as old clients need it. Errors name its fields in both groups.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use crate::{
    kinds::kind_def::{KindDef, fields},
    names,
    object::{
        Object, field,
        tree::{Errors, below, text},
    },
    printer::{Column, NAME, Printer, View, wide, words},
    schema::builtin::Root,
};

/// Characters of the short texts.
const SHORT: usize = 128;

/// Characters of the message.
const LONG: usize = 1024;

/// Event of the core group.
pub(super) static DEF: KindDef = KindDef {
    short: &["ev"],
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
    printer: PRINTER,
    ..KindDef::of::<Event>()
};

pub(in crate::kinds) fn common(event: &Object, prefix: &str) -> BTreeMap<String, String> {
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
pub(in crate::kinds) fn old_rules(event: &Object, controller_field: &str, errors: &mut Errors) {
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

/// The printer of the events of both groups.
pub(in crate::kinds) const PRINTER: Printer = Printer {
    documented: Some(Root::of::<Event>()),
    ..Printer::new(EVENT, event)
};

const EVENT: &[Column] = &[
    words(
        "Last Seen",
        "The time at which the most recent occurrence of this event was recorded.",
    ),
    words("Type", ".type"),
    words(
        "Reason",
        "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
    ),
    words("Object", "The object that this event is about."),
    wide(
        "Subobject",
        "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.",
    ),
    wide(
        "Source",
        "The component reporting this event. Should be a short machine understandable string.",
    ),
    words(
        "Message",
        "A human-readable description of the status of this operation.",
    ),
    wide(
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
    ),
    wide("Count", "The number of times this event has occurred."),
    Column { priority: 1, ..NAME },
];

/// A field of an event, by its name in the first or in the second API.
fn either<'a>(event: &View<'a>, old: &str, new: &str) -> &'a str {
    match event.text(old) {
        "" => event.text(new),
        found => found,
    }
}

fn event(event: &View<'_>) -> Vec<Value> {
    let first = match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
        "" => event.text("eventTime"),
        time => time,
    };
    let mut last = match either(event, "lastTimestamp", "deprecatedLastTimestamp") {
        "" => first,
        time => time,
    };
    let mut count = event.number("count").max(event.number("deprecatedCount")).max(1);
    if event.at("series").is_some() {
        last = event.text("series.lastObservedTime");
        count = event.number("series.count");
    }
    let kind = either(event, "involvedObject.kind", "regarding.kind").to_lowercase();
    let target = match either(event, "involvedObject.name", "regarding.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = match either(event, "source.component", "deprecatedSource.component") {
        "" => {
            let reporter = either(event, "reportingComponent", "reportingController");
            [reporter, event.text("reportingInstance")]
        }
        component => [component, either(event, "source.host", "deprecatedSource.host")],
    };
    let source = if source[1].is_empty() {
        source[0].to_owned()
    } else {
        source.join(", ")
    };
    vec![
        event.since_text(last).into(),
        event.text("type").into(),
        event.text("reason").into(),
        target.into(),
        either(event, "involvedObject.fieldPath", "regarding.fieldPath").into(),
        source.into(),
        either(event, "message", "note").trim().into(),
        event.since_text(first).into(),
        count.into(),
        event.name(),
    ]
}
