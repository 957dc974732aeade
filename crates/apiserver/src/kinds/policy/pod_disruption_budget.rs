//! `PodDisruptionBudgets`.

use serde_json::{Value, json};

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    names,
    object::{
        Object,
        tree::{Errors, below, list, object, text},
    },
    printer::{AGE, NAME, Printer, integer, words},
};

const COUNTS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

const CONDITION: &str = "DisruptionAllowed";

pub(super) static DEF: KindDef = KindDef {
    short: &["pdb"],
    subresources: &["status"],
    has_generation: true,
    conditional: true,
    defaults: |budget| workloads::shown_counts(budget, &COUNTS),
    created: |budget| workloads::fresh_status(budget, &COUNTS),
    errors,
    status_changes: |new, _, errors| errors.extend(workloads::counts(below(new, "status"), &COUNTS, &[])),
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
    ..KindDef::of::<k8s_openapi::api::policy::v1::PodDisruptionBudget>()
};

/// Puts the condition `DisruptionAllowed` into a status: status, reason and message.
pub(crate) fn report(status: &mut Object, [holds, reason, message]: [&str; 3], generation: i64, now: &str) {
    let mut conditions = list(status, "conditions").to_vec();
    let at = conditions.iter().position(|one| one["type"] == CONDITION);
    let old = at.map(|at| &conditions[at]).filter(|one| one["status"] == holds);
    let since = old.map_or_else(|| json!(now), |one| one["lastTransitionTime"].clone());
    let condition = json!({"type": CONDITION, "status": holds, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": generation});
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    status.insert("conditions".to_owned(), conditions.into());
}

fn errors(budget: &Object, errors: &mut Errors) {
    let spec = below(budget, "spec");
    if spec.contains_key("minAvailable") && spec.contains_key("maxUnavailable") {
        let shown = pod_spec::internal::shown("BudgetSpec", spec);
        errors.invalid_text(
            "spec",
            shown,
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
    for key in ["minAvailable", "maxUnavailable"] {
        workloads::amount(spec, "spec", key, errors);
        workloads::at_most_all(spec, "spec", key, errors);
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
}
