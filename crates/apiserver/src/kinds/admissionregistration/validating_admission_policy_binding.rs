//! ValidatingAdmissionPolicyBindings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{BINDING, binding_defaults};
use crate::{
    kinds::kind_def::KindDef,
    object::{
        Object,
        tree::{Errors, below, list},
    },
};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    has_generation: true,
    defaults: binding_defaults,
    errors: |binding, errors| {
        let spec = below(binding, "spec");
        super::binding(spec, errors);
        actions(spec, errors);
    },
    printer: BINDING,
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding>()
};

fn actions(spec: &Object, errors: &mut Errors) {
    let actions: Vec<&str> = list(spec, "validationActions")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if actions.is_empty() {
        errors.required(
            "spec.validationActions",
            "at least one validation action is required",
        );
    }
    let mut seen = BTreeSet::new();
    for (at, action) in actions.iter().enumerate() {
        let field = format!("spec.validationActions[{at}]");
        errors.one_of(&field, action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(action) {
            errors.duplicate(&field, *action);
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid("spec.validationActions", actions, detail);
    }
}
