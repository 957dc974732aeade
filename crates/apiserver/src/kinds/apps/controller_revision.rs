//! ControllerRevisions.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, NOT_NEGATIVE, default, number},
    },
    printer::{AGE, NAME, NONE, Printer, View, words},
};

pub(super) static DEF: KindDef = KindDef {
    defaults: |revision| default(revision, "revision", 0),
    errors,
    changes: Some(|new, old, all| {
        errors(new, all);
        if new.get("data") != old.get("data") {
            all.invalid("data", new.get("data").cloned().unwrap_or_default(), IMMUTABLE);
        }
    }),
    printer: Printer::of(&[
        NAME,
        words("Controller", "Controller of the object").shows(|object| controller(object).into()),
        words("Revision", ".revision").shows(|object| object.number("revision").into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::apps::v1::ControllerRevision>()
};

fn errors(object: &Object, errors: &mut Errors) {
    if object.get("data").is_none_or(Value::is_null) {
        errors.required("data", "data is mandatory");
    }
    if let Some(revision) = number(object, "revision").filter(|number| *number < 0) {
        errors.invalid("revision", revision, NOT_NEGATIVE);
    }
}

/// The owner that controls the object: `statefulset.apps/web`.
fn controller(object: &View<'_>) -> String {
    let owners = object.list("metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return NONE.to_owned();
    };
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let kind = text("kind").to_lowercase();
    match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", text("name")),
        None => format!("{kind}/{}", text("name")),
    }
}
