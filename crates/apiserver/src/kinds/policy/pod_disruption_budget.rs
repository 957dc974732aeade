//! `PodDisruptionBudgets`.

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use crate::{
    kinds::{kind_def::KindDef, workloads},
    names,
    object::{
        Object,
        tree::{Errors, below, object, text},
    },
    printer::{
        Printer,
        column::{AGE, NAME, integer, words},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

const COUNTS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

/// PodDisruptionBudget.
pub(super) static DEF: KindDef = KindDef {
    short: &["pdb"],
    subresources: &["status"],
    rules: Some(|| Arc::new(Budgets)),
    printer: Printer::new(
        &[
            NAME,
            words(
                "Min Available",
                "The minimum number of pods that must be available.",
            ),
            words(
                "Max Unavailable",
                "The maximum number of pods that may be unavailable.",
            ),
            integer(
                "Allowed Disruptions",
                "Calculated number of pods that may be disrupted at this time.",
            ),
            AGE,
        ],
        |object| {
            let bound = |path: &str| match object.at(path) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "N/A".to_owned(),
            };
            vec![
                object.name(),
                bound("spec.minAvailable").into(),
                bound("spec.maxUnavailable").into(),
                object.number("status.disruptionsAllowed").into(),
                object.age(),
            ]
        },
    ),
    ..KindDef::of::<PodDisruptionBudget>()
};

/// The rules of `policy/v1` `PodDisruptionBudgets`.
#[derive(Debug)]
pub(super) struct Budgets;

impl Rules for Budgets {
    fn defaults(&self, object: &mut Object) {
        workloads::shown_counts(object, &COUNTS);
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        workloads::fresh_status(object, &COUNTS);
        Ok(())
    }

    fn validate(&self, budget: &Object) -> Vec<FieldError> {
        let spec = below(budget, "spec");
        let mut errors = Errors::default();
        if spec.contains_key("minAvailable") && spec.contains_key("maxUnavailable") {
            let shown = |key: &str| spec.get(key).cloned().unwrap_or_default();
            errors.invalid(
                "spec",
                json!({"MinAvailable": shown("minAvailable"), "MaxUnavailable": shown("maxUnavailable"),
                    "Selector": shown("selector"), "UnhealthyPodEvictionPolicy": shown("unhealthyPodEvictionPolicy")}),
                "minAvailable and maxUnavailable cannot be both set",
            );
        }
        for key in ["minAvailable", "maxUnavailable"] {
            workloads::amount(spec, "spec", key, &mut errors);
            workloads::at_most_all(spec, "spec", key, &mut errors);
        }
        if let Some(selector) = object(spec, "selector") {
            errors.extend(names::label_selector(selector, "spec.selector"));
        }
        if spec.contains_key("unhealthyPodEvictionPolicy") {
            errors.one_of(
                "spec.unhealthyPodEvictionPolicy",
                text(spec, "unhealthyPodEvictionPolicy"),
                &["AlwaysAllow", "IfHealthyBudget"],
            );
        }
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, _old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            return workloads::counts(below(new, "status"), &COUNTS, &[]);
        }
        self.validate(new)
    }
}
