//! ControllerRevisions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    object::{Object, tree::Errors},
    printer::{
        Printer,
        column::{AGE, NAME, words},
        view::{NONE, View},
    },
    resource::Rules,
    status::FieldError,
};

/// ControllerRevision.
pub(super) static DEF: KindDef = KindDef {
    rules: Some(|| Arc::new(Revisions)),
    printer: Printer::new(
        &[
            NAME,
            words("Controller", "Controller of the object"),
            words("Revision", ".revision"),
            AGE,
        ],
        |object| {
            vec![
                object.name(),
                controller(object).into(),
                object.number("revision").into(),
                object.age(),
            ]
        },
    ),
    ..KindDef::of::<ControllerRevision>()
};

/// The rules of `apps/v1` `ControllerRevisions`.
#[derive(Debug)]
pub(super) struct Revisions;

impl Rules for Revisions {
    fn defaults(&self, object: &mut Object) {
        crate::object::tree::default(object, "revision", 0);
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        if object.get("data").is_none_or(Value::is_null) {
            errors.required("data", "data is mandatory");
        }
        if let Some(revision) = crate::object::tree::number(object, "revision").filter(|number| *number < 0) {
            errors.invalid("revision", revision, crate::object::tree::NOT_NEGATIVE);
        }
        errors.0
    }

    fn validate_update(&self, _subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = Errors(self.validate(new));
        if new.get("data") != old.get("data") {
            errors.invalid(
                "data",
                new.get("data").cloned().unwrap_or_default(),
                crate::object::tree::IMMUTABLE,
            );
        }
        errors.0
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
