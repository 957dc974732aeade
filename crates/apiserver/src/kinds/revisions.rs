//! `ControllerRevisions` and `PodTemplates`.

use serde_json::Value;

use super::pod_spec;
use crate::{
    object::{
        Object,
        tree::{Errors, below},
    },
    resource::Rules,
    status::FieldError,
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

/// The rules of `PodTemplates`.
#[derive(Debug)]
pub(super) struct PodTemplates;

impl Rules for PodTemplates {
    fn defaults(&self, object: &mut Object) {
        pod_spec::template_defaults(object);
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        pod_spec::validate_template(below(object, "template"), "template")
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let template = |object| below(object, "template");
        if old.is_some_and(|old| template(old) == template(new)) {
            return Vec::new();
        }
        pod_spec::template_warnings(template(new), "template")
    }

    fn delete_returns_object(&self) -> bool {
        true
    }
}
