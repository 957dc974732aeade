//! ValidatingAdmissionPolicies.

use serde_json::Value;

use super::{PARAMETERS, compiles, parameters, policy_defaults};
use crate::{
    kinds::kind_def::{KindDef, empty_status},
    object::{
        Object,
        tree::{Errors, below, items, list, text},
    },
    printer::{AGE, NAME, Printer, integer},
};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    subresources: &["status"],
    has_generation: true,
    defaults: policy_defaults,
    created: empty_status,
    errors: |policy, errors| {
        let spec = below(policy, "spec");
        super::policy(spec, errors);
        validations(spec, errors);
    },
    printer: Printer::of(&[
        NAME,
        integer(
            "Validations",
            "Validations indicates the number of validation rules defined in this configuration",
        )
        .shows(|policy| {
            let rules = policy.count("spec.validations");
            rules.into()
        }),
        PARAMETERS.shows(|policy| parameters(policy).into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy>()
};

fn validations(spec: &Object, errors: &mut Errors) {
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must be specified";
        errors.required("spec.validations", detail);
        errors.required("spec.auditAnnotations", detail);
    }
    for (path, validation) in items(spec, "validations", "spec") {
        let expression = text(validation, "expression").trim();
        if expression.is_empty() {
            errors.required(format!("{path}.expression"), "expression is not specified");
        } else {
            compiles(expression, "bool", &format!("{path}.expression"), errors);
        }
        let reported = text(validation, "messageExpression");
        if !reported.is_empty() {
            let field = format!("{path}.messageExpression");
            if reported.trim().is_empty() {
                errors.invalid(&field, reported, "must be non-empty if specified");
            } else {
                compiles(reported.trim(), "string", &field, errors);
            }
        }
        let message = text(validation, "message");
        let field = format!("{path}.message");
        if !message.is_empty() && message.trim().is_empty() {
            errors.invalid(&field, message, "message must be non-empty if specified");
        } else if message.trim().contains('\n') {
            errors.invalid(&field, message, "message must not contain line breaks");
        } else if message.is_empty() && expression.contains('\n') {
            let detail = "message must be specified if expression contains line breaks";
            errors.required(&field, detail);
        }
        if let Some(Value::String(reason)) = validation.get("reason") {
            errors.one_of(
                format!("{path}.reason"),
                reason,
                &["Forbidden", "Invalid", "RequestEntityTooLarge"],
            );
        }
    }
    for (path, annotation) in items(spec, "auditAnnotations", "spec") {
        errors.needs(annotation, &path, "key");
        match text(annotation, "valueExpression").trim() {
            "" => errors.required(
                format!("{path}.valueExpression"),
                "valueExpression is not specified",
            ),
            expression => compiles(expression, "", &format!("{path}.valueExpression"), errors),
        }
    }
}
