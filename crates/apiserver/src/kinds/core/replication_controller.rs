//! ReplicationControllers, which came before the ReplicaSets.

use serde_json::Value;

use crate::{
    kinds::{
        apps::replica_set::{BOUNDS, COUNTS, replicas},
        kind_def::{KindDef, fields},
        pod_spec, workloads,
    },
    object::{
        Object,
        tree::{Errors, below, count, default, made},
    },
    printer::Printer,
};

pub(super) static DEF: KindDef = KindDef {
    short: &["rc"],
    categories: &["all"],
    subresources: &["scale", "status"],
    has_generation: true,
    orphans_by_default: true,
    defaults,
    created: |controller| workloads::fresh_status(controller, &["replicas"]),
    errors,
    status_changes: |new, _, errors| errors.extend(workloads::counts(below(new, "status"), &COUNTS, &BOUNDS)),
    warnings: workloads::warnings,
    selectable: Some(|controller| {
        let replicas = count(below(controller, "status"), "replicas");
        fields([("status.replicas", &replicas.to_string())])
    }),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::of(&replicas(|object| object.labels("spec.selector"))),
    ..KindDef::of::<k8s_openapi::api::core::v1::ReplicationController>()
};

fn defaults(object: &mut Object) {
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

fn errors(object: &Object, errors: &mut Errors) {
    let spec = below(object, "spec");
    errors.nonnegative(spec, "spec", "minReadySeconds");
    let selector = below(spec, "selector");
    if selector.is_empty() {
        errors.required("spec.selector", "");
    }
    errors.nonnegative(spec, "spec", "replicas");
    if !spec.contains_key("template") {
        errors.required("spec.template", "");
        return;
    }
    let labels = workloads::template_labels(spec);
    if selector.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        workloads::mismatch(spec, "spec", errors);
    }
    workloads::template(spec, "spec", "ReplicationController", errors);
}
