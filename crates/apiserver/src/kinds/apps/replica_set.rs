//! ReplicaSets.

use serde_json::Value;

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    object::{
        Object,
        tree::{Errors, below, default, made},
    },
    printer::{AGE, CONTAINERS, Column, IMAGES, NAME, Printer, View, integer, wide},
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

pub(super) static DEF: KindDef = KindDef {
    short: &["rs"],
    categories: &["all"],
    subresources: &["scale", "status"],
    has_generation: true,
    defaults: |set| {
        let spec = made(set, "spec");
        default(spec, "replicas", 1);
        pod_spec::template_defaults(spec);
        workloads::shown_counts(set, &["replicas"]);
    },
    created: |set| workloads::fresh_status(set, &["replicas"]),
    errors,
    changes: Some(|new, old, all| {
        errors(new, all);
        all.immutable(below(new, "spec"), below(old, "spec"), "spec", "selector");
    }),
    status_changes: |new, _, errors| errors.extend(workloads::counts(below(new, "status"), &COUNTS, &BOUNDS)),
    warnings: workloads::warnings,
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::of(&replicas(|object| object.selector("spec.selector"))),
    ..KindDef::of::<k8s_openapi::api::apps::v1::ReplicaSet>()
};

fn errors(object: &Object, errors: &mut Errors) {
    let spec = below(object, "spec");
    errors.nonnegative(spec, "spec", "replicas");
    errors.nonnegative(spec, "spec", "minReadySeconds");
    workloads::selector(spec, "spec", "empty selector is invalid for deployment", errors);
    workloads::labels_selected(spec, "spec", errors);
    workloads::template(spec, "spec", "ReplicaSet", errors);
}

pub(in crate::kinds) const fn replicas(selector: fn(&View<'_>) -> Value) -> [Column; 8] {
    [
        NAME,
        integer("Desired", ".spec.replicas"),
        integer("Current", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", ".spec.selector").shows(selector),
    ]
}
