//! ReplicaSets.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::Value;

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    object::{
        Object,
        tree::{Errors, below, default, made},
    },
    printer::{
        Printer,
        column::{AGE, CONTAINERS, Column, IMAGES, NAME, integer, wide},
        view::View,
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

pub(in crate::kinds) const COUNTS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
];

pub(in crate::kinds) const BOUNDS: [(&str, &str, &str); 4] = [
    ("fullyLabeledReplicas", "replicas", "status.replicas"),
    ("readyReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "readyReplicas"),
];

/// ReplicaSet.
pub(super) static DEF: KindDef = KindDef {
    short: &["rs"],
    categories: &["all"],
    subresources: &["scale", "status"],
    rules: Some(|| Arc::new(ReplicaSets)),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::new(REPLICAS, |object| {
        replicas(object, object.selector("spec.selector"))
    }),
    ..KindDef::of::<ReplicaSet>()
};

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

pub(in crate::kinds) const REPLICAS: &[Column] = &[
    NAME,
    integer("Desired", ".spec.replicas"),
    integer("Current", ".status.replicas"),
    integer("Ready", ".status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", ".spec.selector"),
];

pub(in crate::kinds) fn replicas(object: &View<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = object.containers(workloads::CONTAINERS);
    vec![
        object.name(),
        object.number("spec.replicas").into(),
        object.number("status.replicas").into(),
        object.number("status.readyReplicas").into(),
        object.age(),
        names,
        images,
        selector,
    ]
}
