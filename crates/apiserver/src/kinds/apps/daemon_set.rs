//! `DaemonSets`.

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    object::{
        Object, metadata, metadata_mut,
        tree::{Errors, below, default, made, object, same, text},
    },
    printer::{AGE, CONTAINERS, IMAGES, NAME, Printer, integer, wide, words},
    status::{FieldError, Problem, field::quoted},
};

/// Counts how often the template changed.
const TEMPLATE: &str = "deprecated.daemonset.template.generation";

const COUNTS: [&str; 4] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
];

pub(super) static DEF: KindDef = KindDef {
    short: &["ds"],
    categories: &["all"],
    subresources: &["status"],
    has_generation: true,
    defaults,
    created: |set| {
        workloads::fresh_status(set, &COUNTS);
        let given = template_generation(set).max(1);
        set_template_generation(set, given);
    },
    updated: |subresource, new, old| {
        if subresource.is_empty() {
            let template = |object| below(object, "spec").get("template");
            let changed = !same(template(new), template(old));
            set_template_generation(new, template_generation(old) + i64::from(changed));
        }
    },
    errors,
    changes: Some(|new, old, all| {
        all.immutable(below(new, "spec"), below(old, "spec"), "spec", "selector");
        errors(new, all);
    }),
    status_changes,
    warnings: |new, old| {
        let mut found = workloads::warnings(new, old);
        // The name of a DaemonSet is not that of a host.
        found.retain(|warning| !warning.starts_with("metadata.name"));
        found
    },
    pod_spec: &["spec", "template", "spec"],
    printer: Printer {
        standing_in: &[TEMPLATE],
        ..Printer::of(&[
            NAME,
            integer("Desired", ".status.desiredNumberScheduled"),
            integer("Current", ".status.currentNumberScheduled"),
            integer("Ready", ".status.numberReady"),
            integer("Up-to-date", ".status.updatedNumberScheduled"),
            integer("Available", ".status.numberAvailable"),
            words("Node Selector", ".spec.template.spec.nodeSelector")
                .shows(|object| object.labels("spec.template.spec.nodeSelector")),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.selector").shows(|object| object.selector("spec.selector")),
        ])
    },
    ..KindDef::of::<k8s_openapi::api::apps::v1::DaemonSet>()
};

fn defaults(object: &mut Object) {
    let spec = made(object, "spec");
    default(spec, "revisionHistoryLimit", 10);
    pod_spec::template_defaults(spec);
    let strategy = made(spec, "updateStrategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = made(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", 1);
        default(rolling, "maxSurge", 0);
    }
    workloads::shown_counts(object, &COUNTS);
    // The real server always shows the annotation: who writes the object owns it.
    default(made(metadata_mut(object), "annotations"), TEMPLATE, "0");
}

fn errors(object: &Object, errors: &mut Errors) {
    let spec = below(object, "spec");
    // Without a selector only its labels are an error.
    workloads::labels_selected(spec, "spec", errors);
    if spec.contains_key("selector") {
        workloads::selector(spec, "spec", "empty selector is invalid for daemonset", errors);
    }
    workloads::template(spec, "spec", "DaemonSet", errors);
    errors.nonnegative(spec, "spec", "minReadySeconds");
    update_strategy(below(spec, "updateStrategy"), errors);
    errors.nonnegative(spec, "spec", "revisionHistoryLimit");
}

fn status_changes(new: &Object, old: &Object, errors: &mut Errors) {
    errors.extend(workloads::counts(
        below(new, "status"),
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        &[],
    ));
    errors.extend(workloads::collisions(new, old));
}

fn template_generation(object: &Object) -> i64 {
    text(below(metadata(object), "annotations"), TEMPLATE)
        .parse()
        .unwrap_or(0)
}

fn set_template_generation(object: &mut Object, generation: i64) {
    let annotations = made(metadata_mut(object), "annotations");
    annotations.insert(TEMPLATE.to_owned(), generation.to_string().into());
}

fn update_strategy(strategy: &Object, errors: &mut Errors) {
    let kind = text(strategy, "type");
    if kind == "OnDelete" {
        return;
    }
    let path = "spec.updateStrategy";
    if kind != "RollingUpdate" {
        return errors.push(FieldError::new(
            path,
            Problem::NotSupportedText(format!("{{\"Type\":{},\"RollingUpdate\":null}}", quoted(kind))),
            "supported values: \"RollingUpdate\", \"OnDelete\"",
        ));
    }
    let path = format!("{path}.rollingUpdate");
    let Some(rolling) = object(strategy, "rollingUpdate") else {
        return errors.required(path, "");
    };
    for key in ["maxUnavailable", "maxSurge"] {
        workloads::amount(rolling, &path, key, errors);
    }
    for key in ["maxUnavailable", "maxSurge"] {
        workloads::at_most_all(rolling, &path, key, errors);
    }
    let some = |key| workloads::amount_of(rolling, key) != 0;
    match (some("maxUnavailable"), some("maxSurge")) {
        (true, true) => errors.invalid(
            format!("{path}.maxSurge"),
            rolling.get("maxSurge").cloned().unwrap_or_default(),
            "may not be set when maxUnavailable is non-zero",
        ),
        (false, false) => errors.required(format!("{path}.maxUnavailable"), "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}
