//! MutatingAdmissionPolicies.

use super::{PARAMETERS, compiles, parameters, policy_defaults};
use crate::{
    kinds::kind_def::KindDef,
    object::{
        Object,
        tree::{Errors, below, items, list, object, text},
    },
    printer::{AGE, NAME, Printer, integer},
};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    has_generation: true,
    defaults: policy_defaults,
    errors: |policy, errors| {
        let spec = below(policy, "spec");
        super::policy(spec, errors);
        mutations(spec, errors);
    },
    printer: Printer::of(&[
        NAME,
        integer(
            "Mutations",
            "Mutation indicates the number of mutations rules defined in this configuration",
        )
        .shows(|policy| {
            let rules = policy.count("spec.mutations");
            rules.into()
        }),
        PARAMETERS.shows(|policy| parameters(policy).into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy>()
};

fn mutations(spec: &Object, errors: &mut Errors) {
    if list(spec, "mutations").is_empty() {
        errors.required("spec.mutations", "mutations must contain at least one item");
    }
    for (path, mutation) in items(spec, "mutations", "spec") {
        let kind = text(mutation, "patchType");
        errors.required_one_of(
            format!("{path}.patchType"),
            kind,
            &["ApplyConfiguration", "JSONPatch"],
        );
        for (wanted, key) in [
            ("ApplyConfiguration", "applyConfiguration"),
            ("JSONPatch", "jsonPatch"),
        ] {
            match (kind == wanted, object(mutation, key)) {
                (true, None) => errors.required(format!("{path}.{key}"), ""),
                (true, Some(patch)) => {
                    let field = format!("{path}.{key}.expression");
                    match text(patch, "expression").trim() {
                        "" => errors.required(field, "expression is not specified"),
                        expression => compiles(expression, "", &field, errors),
                    }
                }
                (false, Some(_)) if !kind.is_empty() => {
                    errors.invalid(
                        format!("{path}.{key}"),
                        "{}",
                        &format!("must not be specified when patchType is {kind}"),
                    );
                }
                _ => {}
            }
        }
    }
    errors.required_one_of(
        "spec.reinvocationPolicy",
        text(spec, "reinvocationPolicy"),
        &["IfNeeded", "Never"],
    );
}
