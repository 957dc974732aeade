//! `ReplicaSets` and the `ReplicationControllers` before them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{pod_spec, workloads};
use crate::{
    object::{
        Object,
        tree::{Errors, below, count, default, made},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

const COUNTS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
];

const BOUNDS: [(&str, &str, &str); 4] = [
    ("fullyLabeledReplicas", "replicas", "status.replicas"),
    ("readyReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "readyReplicas"),
];

/// The rules of `apps/v1` `ReplicaSets`.
#[derive(Debug)]
pub(super) struct ReplicaSets;

impl Rules for ReplicaSets {
    fn defaults(&self, object: &mut Object) {
        let spec = made(object, "spec");
        default(spec, "replicas", 1);
        pod_spec::template_defaults(spec);
        workloads::shown_counts(object, &["replicas"]);
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        workloads::fresh_status(object, &["replicas"]);
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = below(object, "spec");
        let mut errors = Errors::default();
        errors.nonnegative(spec, "spec", "replicas");
        errors.nonnegative(spec, "spec", "minReadySeconds");
        workloads::selector(
            spec,
            "spec",
            "empty selector is invalid for deployment",
            &mut errors,
        );
        workloads::labels_selected(spec, "spec", &mut errors);
        workloads::template(spec, "spec", "ReplicaSet", &mut errors);
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            return workloads::counts(below(new, "status"), &COUNTS, &BOUNDS);
        }
        let mut errors = Errors(self.validate(new));
        errors.immutable(below(new, "spec"), below(old, "spec"), "spec", "selector");
        errors.0
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        workloads::warnings(new, old)
    }
}

/// The rules of `ReplicationControllers`.
#[derive(Debug)]
pub(super) struct ReplicationControllers;

impl Rules for ReplicationControllers {
    fn defaults(&self, object: &mut Object) {
        let spec = made(object, "spec");
        default(spec, "replicas", 1);
        if spec.contains_key("template") {
            pod_spec::template_defaults(spec);
        }
        let labels = workloads::template_labels(spec).clone();
        if !labels.is_empty() && below(spec, "selector").is_empty() {
            spec.insert("selector".to_owned(), Value::Object(labels));
        }
        workloads::labels_of_template(object);
        workloads::shown_counts(object, &["replicas"]);
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        workloads::fresh_status(object, &["replicas"]);
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = below(object, "spec");
        let mut errors = Errors::default();
        errors.nonnegative(spec, "spec", "minReadySeconds");
        let selector = below(spec, "selector");
        if selector.is_empty() {
            errors.required("spec.selector", "");
        }
        errors.nonnegative(spec, "spec", "replicas");
        if !spec.contains_key("template") {
            errors.required("spec.template", "");
            return errors.0;
        }
        let labels = workloads::template_labels(spec);
        if selector.iter().any(|(key, value)| labels.get(key) != Some(value)) {
            workloads::mismatch(spec, "spec", &mut errors);
        }
        workloads::template(spec, "spec", "ReplicationController", &mut errors);
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, _old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            return workloads::counts(below(new, "status"), &COUNTS, &BOUNDS);
        }
        self.validate(new)
    }

    fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        let replicas = count(below(object, "status"), "replicas");
        Some([("status.replicas".to_owned(), replicas.to_string())].into())
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        workloads::warnings(new, old)
    }
}
