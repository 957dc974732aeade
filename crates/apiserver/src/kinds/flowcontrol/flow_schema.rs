//! FlowSchemas.

use serde_json::json;

use crate::{
    kinds::kind_def::{KindDef, METADATA, empty_status},
    object::tree::made,
    printer::{AGE, NAME, NONE, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    kept_by_status: METADATA,
    has_generation: true,
    defaults: |schema| {
        let spec = made(schema, "spec");
        if spec.get("matchingPrecedence").is_none_or(|given| *given == 0) {
            spec.insert("matchingPrecedence".to_owned(), 1000.into());
        }
    },
    created: empty_status,
    printer: Printer::of(&[
        NAME,
        words("PriorityLevel", ".spec.priorityLevelConfiguration.name"),
        words("MatchingPrecedence", ".spec.matchingPrecedence")
            .shows(|schema| schema.number("spec.matchingPrecedence").into()),
        words("DistinguisherMethod", ".spec.distinguisherMethod.type").or(NONE),
        AGE,
        words("MissingPL", "whether the referenced priority level is missing").shows(|schema| {
            let conditions = schema.list("status.conditions");
            let dangling = conditions.iter().find(|one| one["type"] == "Dangling");
            dangling.map_or_else(|| json!("?"), |one| one["status"].clone())
        }),
    ]),
    ..KindDef::of::<k8s_openapi::api::flowcontrol::v1::FlowSchema>()
};
