//! `DaemonSets`.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    object::{
        Object, metadata, metadata_mut,
        tree::{Errors, below, default, made, object, same, text},
    },
    printer::{
        Printer,
        column::{AGE, CONTAINERS, IMAGES, NAME, integer, wide, words},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Problem, Result},
};

/// Counts how often the template changed.
const TEMPLATE: &str = "deprecated.daemonset.template.generation";

const COUNTS: [&str; 4] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
];

/// DaemonSet.
pub(super) static DEF: KindDef = KindDef {
    short: &["ds"],
    categories: &["all"],
    subresources: &["status"],
    rules: Some(|| Arc::new(DaemonSets)),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::new(
        &[
            NAME,
            integer("Desired", ".status.desiredNumberScheduled"),
            integer("Current", ".status.currentNumberScheduled"),
            integer("Ready", ".status.numberReady"),
            integer("Up-to-date", ".status.updatedNumberScheduled"),
            integer("Available", ".status.numberAvailable"),
            words("Node Selector", ".spec.template.spec.nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.selector"),
        ],
        |object| {
            let [names, images] = object.containers(TEMPLATE);
            vec![
                object.name(),
                object.number("status.desiredNumberScheduled").into(),
                object.number("status.currentNumberScheduled").into(),
                object.number("status.numberReady").into(),
                object.number("status.updatedNumberScheduled").into(),
                object.number("status.numberAvailable").into(),
                object.labels("spec.template.spec.nodeSelector"),
                object.age(),
                names,
                images,
                object.selector("spec.selector"),
            ]
        },
    ),
    ..KindDef::of::<DaemonSet>()
};

/// The rules of `apps/v1` `DaemonSets`.
#[derive(Debug)]
pub(super) struct DaemonSets;

impl Rules for DaemonSets {
    fn defaults(&self, object: &mut Object) {
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

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        workloads::fresh_status(object, &COUNTS);
        let given = template_generation(object).max(1);
        set_template_generation(object, given);
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        _around: &dyn Surroundings,
    ) -> Result<()> {
        if subresource.is_empty() {
            let template = |object| below(object, "spec").get("template");
            let changed = !same(template(new), template(old));
            set_template_generation(new, template_generation(old) + i64::from(changed));
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = below(object, "spec");
        let mut errors = Errors::default();
        workloads::selector(
            spec,
            "spec",
            "empty selector is invalid for daemonset",
            &mut errors,
        );
        workloads::labels_selected(spec, "spec", &mut errors);
        workloads::template(spec, "spec", "DaemonSet", &mut errors);
        errors.nonnegative(spec, "spec", "minReadySeconds");
        update_strategy(below(spec, "updateStrategy"), &mut errors);
        errors.nonnegative(spec, "spec", "revisionHistoryLimit");
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            let mut errors = workloads::counts(
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
            );
            errors.extend(workloads::collisions(new, old));
            return errors;
        }
        let mut errors = Errors::default();
        errors.immutable(below(new, "spec"), below(old, "spec"), "spec", "selector");
        errors.extend(self.validate(new));
        errors.0
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let mut found = workloads::warnings(new, old);
        // The name of a DaemonSet is not that of a host.
        found.retain(|warning| !warning.starts_with("metadata.name"));
        found
    }
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
            Problem::NotSupported(serde_json::json!({"RollingUpdate": null, "Type": kind})),
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
