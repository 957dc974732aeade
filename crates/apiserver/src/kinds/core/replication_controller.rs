//! ReplicationControllers, which came before the ReplicaSets.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::Value;

use crate::{
    kinds::{
        apps::replica_set::{BOUNDS, COUNTS, REPLICAS, replicas},
        kind_def::KindDef,
        pod_spec, workloads,
    },
    object::{
        Object,
        tree::{Errors, below, count, default, made},
    },
    printer::Printer,
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

/// ReplicationController.
pub(super) static DEF: KindDef = KindDef {
    short: &["rc"],
    categories: &["all"],
    subresources: &["scale", "status"],
    rules: Some(|| Arc::new(ReplicationControllers)),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::new(REPLICAS, |object| {
        replicas(object, object.labels("spec.selector"))
    }),
    ..KindDef::of::<ReplicationController>()
};

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
