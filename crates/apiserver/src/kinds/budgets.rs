//! `PodDisruptionBudgets`.

use serde_json::json;

use super::workloads;
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, object, text},
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
