//! Deployments.

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    object::{
        Object, metadata,
        tree::{Errors, below, default, made, number, object, text},
    },
    printer::{AGE, CONTAINERS, IMAGES, NAME, Printer, wide, words},
    status::{FieldError, Problem},
};

pub(super) static DEF: KindDef = KindDef {
    short: &["deploy"],
    categories: &["all"],
    subresources: &["scale", "status"],
    has_generation: true,
    kept_by_status: &["labels"],
    generation_changes: |old, new| {
        old.get("spec") != new.get("spec")
            || below(metadata(old), "annotations") != below(metadata(new), "annotations")
    },
    defaults,
    created: |deployment| workloads::fresh_status(deployment, &[]),
    errors,
    changes: Some(|new, old, all| {
        errors(new, all);
        all.immutable(below(new, "spec"), below(old, "spec"), "spec", "selector");
    }),
    status_changes: |new, old, errors| {
        errors.extend(status(below(new, "status")));
        errors.extend(workloads::collisions(new, old));
    },
    warnings: workloads::warnings,
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::of(&[
        NAME,
        words("Ready", "Number of the pod with ready state").shows(workloads::ready),
        words("Up-to-date", ".status.updatedReplicas")
            .shows(|object| object.number("status.updatedReplicas").into()),
        words("Available", ".status.availableReplicas")
            .shows(|object| object.number("status.availableReplicas").into()),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", ".spec.selector").shows(|object| object.selector_text("spec.selector").into()),
    ]),
    ..KindDef::of::<k8s_openapi::api::apps::v1::Deployment>()
};

fn defaults(object: &mut Object) {
    let spec = made(object, "spec");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    pod_spec::template_defaults(spec);
    let strategy = made(spec, "strategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = made(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", "25%");
        default(rolling, "maxSurge", "25%");
    }
    made(object, "status");
}

fn errors(object: &Object, errors: &mut Errors) {
    let spec = below(object, "spec");
    errors.nonnegative(spec, "spec", "replicas");
    workloads::selector(spec, "spec", "empty selector is invalid for deployment", errors);
    workloads::labels_selected(spec, "spec", errors);
    workloads::template(spec, "spec", "ReplicaSet", errors);
    strategy(spec, errors);
    for key in [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ] {
        errors.nonnegative(spec, "spec", key);
    }
    if let Some(deadline) = number(spec, "progressDeadlineSeconds")
        && deadline <= number(spec, "minReadySeconds").unwrap_or(0)
    {
        errors.invalid(
            "spec.progressDeadlineSeconds",
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

fn strategy(spec: &Object, errors: &mut Errors) {
    let strategy = below(spec, "strategy");
    let rolling = object(strategy, "rollingUpdate");
    match (text(strategy, "type"), rolling) {
        ("Recreate", Some(_)) => errors.forbidden(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        ),
        ("Recreate", None) => {}
        ("RollingUpdate", None) => errors.required(
            "spec.strategy.rollingUpdate",
            "this should be defaulted and never be nil",
        ),
        ("RollingUpdate", Some(rolling)) => {
            let path = "spec.strategy.rollingUpdate";
            workloads::amount(rolling, path, "maxUnavailable", errors);
            workloads::amount(rolling, path, "maxSurge", errors);
            let zero = |key| workloads::amount_of(rolling, key) == 0;
            if zero("maxUnavailable") && zero("maxSurge") {
                errors.invalid(
                    format!("{path}.maxUnavailable"),
                    rolling.get("maxUnavailable").cloned().unwrap_or_default(),
                    "may not be 0 when `maxSurge` is 0",
                );
            }
            workloads::at_most_all(rolling, path, "maxUnavailable", errors);
        }
        (kind, _) => errors.push(FieldError::new(
            "spec.strategy",
            Problem::NotSupported(serde_json::json!({"RollingUpdate": null, "Type": kind})),
            "supported values: \"Recreate\", \"RollingUpdate\"",
        )),
    }
}

fn status(status: &Object) -> Vec<FieldError> {
    workloads::counts(
        status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        &[
            ("updatedReplicas", "replicas", "status.replicas"),
            ("readyReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "readyReplicas", "readyReplicas"),
        ],
    )
}
