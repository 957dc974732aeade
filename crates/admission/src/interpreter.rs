//! Rules of customizations and interpreter webhooks.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::config::declarative::DeclarativeRules;
use entourage_interpreter::{
    declarative::Declared,
    hook::{Contract, VERSIONS},
    operations::Operation,
    rule,
};
use entourage_model::problem::Problem;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    hooks,
    request::{Request, is_unset, items, text},
};

/// The operations of a kind that only one customization may define, with the field of its script and of its declarative rule.
/// Not the references: those of several are merged.
const ALONE: &[(Operation, &str, &str)] = &[
    (Operation::Replicas, "replicaResource", "replicas"),
    (Operation::Components, "componentResource", "podTemplates"),
    (Operation::Revise, "replicaRevision", "replicas"),
    (Operation::Retain, "retention", "retention"),
    (Operation::Reflect, "statusReflection", "statusReflection"),
    (Operation::Aggregate, "statusAggregation", "statusAggregation"),
    (Operation::Health, "healthInterpretation", "health"),
];

/// Only one customization defines an operation of a kind.
pub(super) fn alone(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let target = &object["spec"]["target"];
    let own = operations(object);
    let name = |object: &Value| text(&object["metadata"]["name"]).to_owned();
    let rivals = request
        .others
        .iter()
        .filter(|other| name(other) != name(object) && other["spec"]["target"] == *target);
    for rival in rivals {
        let taken = operations(rival);
        let fields = own.iter().filter(|(operation, _)| taken.contains_key(operation));
        for field in fields.map(|(_, field)| field).collect::<BTreeSet<_>>() {
            problems.push(Problem::new(
                field.clone(),
                format!(
                    "{:?} already implements it for {} {}",
                    name(rival),
                    text(&target["apiVersion"]),
                    text(&target["kind"])
                ),
                "change that one, or remove it there first",
            ));
        }
    }
}

/// The operations that a customization defines exclusively, with the field of each; a script before a declarative rule, in their
/// order of precedence.
fn operations(object: &Value) -> BTreeMap<Operation, String> {
    let spec = &object["spec"];
    let declared = DeclarativeRules::deserialize(&spec["declarative"])
        .map(|rules| rule::operations(&rules))
        .unwrap_or_default();
    let field = |(operation, script, rule): &(Operation, &str, &str)| {
        let field = if !spec["customizations"][*script].is_null() {
            format!("spec.customizations.{script}")
        } else if declared.contains(operation) {
            format!("spec.declarative.{rule}")
        } else {
            return None;
        };
        Some((*operation, field))
    };
    ALONE.iter().filter_map(field).collect()
}

/// The declarative rules are valid: the first invalid one is reported with its path.
pub(super) fn declarative_rules(object: &Value, problems: &mut Vec<Problem>) {
    let given = &object["spec"]["declarative"];
    if given.is_null() {
        return;
    }
    let Ok(rules) = DeclarativeRules::deserialize(given) else {
        // Another shape is refused by the schema, with the field's name.
        return;
    };
    if let Err(error) = Declared::compile(&rules) {
        problems.push(Problem::new(
            format!("spec.declarative.{}", error.field),
            error.problem,
            error.remedy,
        ));
    }
}

/// Webhooks have unique, fully qualified names: two parts or more, with or without the dot at the end.
pub(super) fn names(object: &Value, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (at, webhook) in items(&object["webhooks"]).iter().enumerate() {
        let (field, name) = (format!("webhooks[{at}].name"), text(&webhook["name"]));
        let is_part = |part: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            (1..=63).contains(&part.len())
                && part.chars().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        let parts = name.strip_suffix('.').unwrap_or(name);
        if parts.len() > 253 || parts.split('.').count() < 2 || !parts.split('.').all(is_part) {
            problems.push(Problem::new(
                field,
                format!("{name:?} is not a full domain name"),
                "name it as workloads.example.com",
            ));
        } else if !seen.insert(name) {
            problems.push(Problem::new(
                field,
                format!("{name:?} names another webhook too"),
                "give each a name of its own",
            ));
        }
    }
}

/// Webhooks can be called: with one address, a valid timeout, and a supported version.
pub(super) fn clients(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let spoken = match hooks::contract(request).0 {
        Contract::Interpreter => "interpreterContextVersions",
        Contract::Explorer => "exploreReviewVersions",
    };
    for (at, webhook) in items(&object["webhooks"]).iter().enumerate() {
        let path = format!("webhooks[{at}]");
        let client = &webhook["clientConfig"];
        if is_unset(&client["url"]) == client["service"].is_null() {
            problems.push(Problem::new(
                format!("{path}.clientConfig"),
                "a webhook is at a url or behind a service",
                "give one of the two",
            ));
        }
        let url = text(&client["url"]);
        if !url.is_empty() && !url.starts_with("https://") {
            problems.push(Problem::new(
                format!("{path}.clientConfig.url"),
                format!("{url:?} is not https"),
                "give a URL that begins with https://",
            ));
        }
        let timeout = webhook["timeoutSeconds"].as_i64();
        if let Some(seconds) = timeout.filter(|seconds| !(1..=30).contains(seconds)) {
            problems.push(Problem::new(
                format!("{path}.timeoutSeconds"),
                format!("{seconds} is out of range"),
                "give 1 to 30 seconds",
            ));
        }
        let versions = items(&webhook[spoken]);
        if !versions.iter().any(|version| VERSIONS.contains(&text(version))) {
            problems.push(Problem::new(
                format!("{path}.{spoken}"),
                "none of them is a supported version",
                format!("add {}", VERSIONS.join(" or ")),
            ));
        }
    }
    hooks::addresses(object, request, problems);
}

#[cfg(test)]
mod tests {
    use entourage_api::config::customization::{CustomizationRules, Script};
    use serde_json::json;

    use super::*;

    /// A new kind of script has no field in this struct: then the table needs a row, or a reason.
    #[test]
    fn whatever_a_customization_decides_on_alone_has_a_row() {
        let given = || Some(Script::default());
        let every = CustomizationRules {
            retention: given(),
            replica_resource: given(),
            component_resource: given(),
            replica_revision: given(),
            status_reflection: given(),
            status_aggregation: given(),
            health_interpretation: given(),
            dependency_interpretation: given(),
        };
        let every = json!(every);
        let names = every.as_object().unwrap().keys().map(String::as_str);
        let scripts = names.filter(|name| *name != "dependencyInterpretation");
        assert_eq!(
            scripts.collect::<BTreeSet<_>>(),
            ALONE.iter().map(|(_, script, _)| *script).collect()
        );

        let rules = json!({
            "podTemplates": [{"paths": ["a"], "replicas": {"path": "b"}}], "replicas": {"path": "b"},
            "retention": ["c"], "statusReflection": {}, "statusAggregation": {"fields": []}, "health": {},
        });
        let declared = rule::operations(&DeclarativeRules::deserialize(&rules).unwrap());
        let alone = declared
            .into_iter()
            .filter(|operation| *operation != Operation::References);
        assert_eq!(
            alone.collect::<BTreeSet<_>>(),
            ALONE.iter().map(|(operation, ..)| *operation).collect()
        );
        assert!(ALONE.iter().all(|(_, _, rule)| !rules[*rule].is_null()));
    }
}
