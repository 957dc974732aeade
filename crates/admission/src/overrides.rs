//! Rules of OverridePolicy and ClusterOverridePolicy.

use entourage_model::problem::Problem;
use serde_json::Value;

use crate::{
    placement::check_selector,
    request::{items, text},
};

/// Either the list of rules or the old single rule is given.
pub(super) fn one_form(object: &Value, problems: &mut Vec<Problem>) {
    let spec = &object["spec"];
    // Clients written in Go send empty lists, too.
    let overriders = spec["overriders"].as_object();
    let changes = overriders.is_some_and(|all| all.values().any(|list| !items(list).is_empty()));
    let has_old = changes || !spec["targetCluster"].is_null();
    if has_old && !items(&spec["overrideRules"]).is_empty() {
        problems.push(Problem::new(
            "spec.overrideRules",
            "overrideRules and the deprecated targetCluster and overriders are mutually exclusive",
            "move those into a rule of overrideRules",
        ));
    }
}

/// Field selectors support three fields and two operators.
pub(super) fn field_selectors(object: &Value, problems: &mut Vec<Problem>) {
    let spec = &object["spec"];
    check_selector("spec.targetCluster", &spec["targetCluster"], problems);
    for (at, rule) in items(&spec["overrideRules"]).iter().enumerate() {
        let path = format!("spec.overrideRules[{at}].targetCluster");
        check_selector(&path, &rule["targetCluster"], problems);
    }
}

/// Field overriders name fields with documents, and one format of them.
pub(super) fn field_overriders(object: &Value, problems: &mut Vec<Problem>) {
    for (path, overriders) in overriders(object) {
        for (at, overrider) in items(&overriders["fieldOverrider"]).iter().enumerate() {
            let path = format!("{path}.fieldOverrider[{at}]");
            let has = |part: &str| !items(&overrider[part]).is_empty();
            if has("json") == has("yaml") {
                problems.push(Problem::new(
                    path.as_str(),
                    "the text in a field is JSON or YAML",
                    "give operations under json or under yaml, not both and not neither",
                ));
            }
            starts_with_slash(format!("{path}.fieldPath"), &overrider["fieldPath"], problems);
            for part in ["json", "yaml"] {
                for (at, operation) in items(&overrider[part]).iter().enumerate() {
                    let path = format!("{path}.{part}[{at}].subPath");
                    starts_with_slash(path, &operation["subPath"], problems);
                }
            }
        }
    }
}

/// Paths are JSON pointers.
pub(super) fn paths(object: &Value, problems: &mut Vec<Problem>) {
    for (path, overriders) in overriders(object) {
        for (at, overrider) in items(&overriders["plaintext"]).iter().enumerate() {
            starts_with_slash(
                format!("{path}.plaintext[{at}].path"),
                &overrider["path"],
                problems,
            );
        }
        for (at, overrider) in items(&overriders["imageOverrider"]).iter().enumerate() {
            let predicate = &overrider["predicate"];
            if predicate.is_object() {
                let path = format!("{path}.imageOverrider[{at}].predicate.path");
                starts_with_slash(path, &predicate["path"], problems);
            }
        }
    }
}

fn starts_with_slash(field: String, path: &Value, problems: &mut Vec<Problem>) {
    let path = text(path);
    if !path.starts_with('/') {
        problems.push(Problem::new(
            field,
            format!("{path:?} is not a JSON pointer"),
            "begin with a slash, as in /spec/replicas",
        ));
    }
}

/// All sets of overriders with their paths.
fn overriders(object: &Value) -> Vec<(String, &Value)> {
    let spec = &object["spec"];
    let rules = items(&spec["overrideRules"]).iter().enumerate();
    let rules = rules.map(|(at, rule)| {
        (
            format!("spec.overrideRules[{at}].overriders"),
            &rule["overriders"],
        )
    });
    std::iter::once(("spec.overriders".to_owned(), &spec["overriders"]))
        .chain(rules)
        .collect()
}
