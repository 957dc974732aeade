//! The rules of custom resources: those of their CRD.

use std::sync::Arc;

use serde_json::Value;

use super::lists;
use crate::{
    meta,
    object::{Object, field},
    resource::{Custom, Rules, Surroundings, differ_beside},
    schema::{
        cel::{self, Which},
        prune, validate,
    },
    status::{About, FieldError, Problem, Result, Status},
};

/// The rules of one version of a custom resource.
#[derive(Debug)]
pub(super) struct CustomRules {
    custom: Arc<Custom>,
    kind: String,
}

impl CustomRules {
    pub(super) fn new(custom: Arc<Custom>, kind: String) -> Self {
        Self { custom, kind }
    }

    /// The errors in the part of the object that a request may write, and those of the rules of the whole.
    fn errors(&self, subresource: &str, new: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let schema = &*self.custom.schema;
        let value = Value::Object(new.clone());
        let old = old.map(|old| Value::Object(old.clone()));
        let mut errors = Vec::new();
        if subresource == "status" {
            if let (Some(status), Some(schema)) = (value.get("status"), schema.properties.get("status")) {
                let old = old.as_ref().and_then(|old| old.get("status"));
                errors.extend(validate::value(Some("status"), status, old, schema));
                errors.extend(lists::embedded("status", status, schema));
            }
        } else {
            errors.extend(validate::value(None, &value, old.as_ref(), schema));
            errors.extend(self.scale_errors(new));
            errors.extend(lists::embedded("", &value, schema));
        }
        // Earlier duplicates may stay.
        let twice = lists::duplicates("", &value, schema);
        let had_some = |old: &Value| !lists::duplicates("", old, schema).is_empty();
        if !twice.is_empty() && !old.as_ref().is_some_and(had_some) {
            errors.extend(twice);
        }
        self.check(&mut errors, &value, old.as_ref());
        errors
    }

    fn check(&self, errors: &mut Vec<FieldError>, value: &Value, old: Option<&Value>) {
        let schema = &*self.custom.schema;
        if !schema.checked {
            return;
        }
        let blocking = errors.iter().any(|error| {
            matches!(
                error.problem,
                Problem::NotSupported(_)
                    | Problem::Required
                    | Problem::TooLong(_)
                    | Problem::TooMany(_)
                    | Problem::TypeInvalid(_)
            )
        });
        if blocking {
            errors.push(FieldError::invalid("<nil>", Value::Null, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"));
        } else {
            errors.extend(cel::evaluate(None, value, old, schema, Which::Deciding));
        }
    }

    /// The numbers behind the scale subresource are not negative.
    fn scale_errors(&self, object: &Object) -> Vec<FieldError> {
        let Some(paths) = &self.custom.scale else {
            return Vec::new();
        };
        [&paths.spec_replicas, &paths.status_replicas]
            .into_iter()
            .filter_map(|path| {
                let value = path
                    .get(object)
                    .filter(|value| value.as_i64().is_some_and(|count| count < 0))?;
                Some(FieldError::invalid(
                    path.text.clone(),
                    value.clone(),
                    "should be a non-negative integer",
                ))
            })
            .collect()
    }
}

impl Rules for CustomRules {
    fn defaults(&self, object: &mut Object) {
        let mut value = Value::Object(std::mem::take(object));
        prune::drop_nulls(&mut value, &self.custom.schema);
        prune::fill(&mut value, &self.custom.schema);
        if let Value::Object(fields) = value {
            *object = fields;
        }
    }

    fn has_status(&self) -> bool {
        self.custom.status
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn generation_changes(&self, old: &Object, new: &Object) -> bool {
        let fields: &[&str] = if self.custom.status {
            &["metadata", "status"]
        } else {
            &["metadata"]
        };
        differ_beside(fields, old, new)
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        if !self.custom.terminating {
            return Ok(());
        }
        let (plural, group) = self.custom.crd.split_once('.').unwrap_or_default();
        let about = About {
            group,
            resource: plural,
            name: field(object, "name"),
        };
        Err(Status::forbidden(
            about,
            "create not allowed while custom resource definition is terminating",
        ))
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        debug_assert_eq!(
            object.get("kind").and_then(Value::as_str),
            Some(self.kind.as_str())
        );
        self.errors("", object, None)
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        self.errors(subresource, new, Some(old))
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let schema = &self.custom.schema;
        let mut warnings = meta::finalizer_warnings(new, old);
        if let Some(old) = old.filter(|_| schema.checked) {
            let new = Value::Object(new.clone());
            let old = Value::Object(old.clone());
            let reported = cel::evaluate(None, &new, Some(&old), schema, Which::Ratcheted);
            warnings.extend(reported.iter().map(ToString::to_string));
        }
        warnings
    }

    fn selectable(&self, object: &Object) -> Option<std::collections::BTreeMap<String, String>> {
        self.custom.selectable(object)
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}
