//! FlowSchemas.

use serde_json::json;

use crate::{
    kinds::kind_def::{KindDef, empty_status},
    object::Object,
    object::tree::{Errors, below, default, made, number, text},
    printer::{AGE, NAME, NONE, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    has_generation: true,
    defaults: |schema| default(made(schema, "spec"), "matchingPrecedence", 1000),
    created: empty_status,
    errors,
    printer: Printer::new(
        &[
            NAME,
            words("PriorityLevel", ".spec.priorityLevelConfiguration.name"),
            words("MatchingPrecedence", ".spec.matchingPrecedence"),
            words("DistinguisherMethod", ".spec.distinguisherMethod.type"),
            AGE,
            words("MissingPL", "whether the referenced priority level is missing"),
        ],
        |schema| {
            let conditions = schema.list("status.conditions");
            let dangling = conditions.iter().find(|one| one["type"] == "Dangling");
            vec![
                schema.name(),
                schema.text("spec.priorityLevelConfiguration.name").into(),
                schema.number("spec.matchingPrecedence").into(),
                schema.or("spec.distinguisherMethod.type", NONE),
                schema.age(),
                dangling.map_or_else(|| json!("?"), |one| one["status"].clone()),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::flowcontrol::v1::FlowSchema>()
};

fn errors(schema: &Object, errors: &mut Errors) {
    let spec = below(schema, "spec");
    let precedence = number(spec, "matchingPrecedence").unwrap_or(0);
    if !(1..=10_000).contains(&precedence) {
        let why = "must be greater than or equal to 1 and less than or equal to 10000";
        errors.invalid("spec.matchingPrecedence", precedence, why);
    }
    let level = below(spec, "priorityLevelConfiguration");
    if text(level, "name").is_empty() {
        let why = "must reference a priority level";
        errors.required("spec.priorityLevelConfiguration.name", why);
    }
    let method = below(spec, "distinguisherMethod");
    if !method.is_empty() {
        let known = ["ByNamespace", "ByUser"];
        errors.one_of("spec.distinguisherMethod", text(method, "type"), &known);
    }
}
