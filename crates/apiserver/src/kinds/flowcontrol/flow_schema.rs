//! FlowSchemas.

use serde_json::json;

use crate::{
    kinds::kind_def::{KindDef, empty_status},
    object::tree::{default, made},
    printer::{AGE, NAME, NONE, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    has_generation: true,
    defaults: |schema| default(made(schema, "spec"), "matchingPrecedence", 1000),
    created: empty_status,
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
