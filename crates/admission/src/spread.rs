//! Rules of a policy's spread constraints.

use std::collections::BTreeSet;

use entourage_model::problem::Problem;
use serde_json::Value;

use crate::request::{Request, is_unset, items, items_mut, text};

const PATH: &str = "spec.placement.spreadConstraints";

fn constraints(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    let constraints = items(&object["spec"]["placement"]["spreadConstraints"]);
    let constraints = constraints.iter().enumerate();
    constraints.map(|(at, constraint)| (format!("{PATH}[{at}]"), constraint))
}

/// Sets the defaults of a constraint: spread by cluster, over at least one group.
pub(super) fn fill(object: &mut Value, _: &Request<'_>) {
    for constraint in items_mut(object, "/spec/placement/spreadConstraints") {
        if !constraint.is_object() {
            continue;
        }
        if is_unset(&constraint["spreadByField"]) && is_unset(&constraint["spreadByLabel"]) {
            constraint["spreadByField"] = "cluster".into();
        }
        if constraint["minGroups"].is_null() || constraint["minGroups"] == 0 {
            constraint["minGroups"] = 1.into();
        }
    }
}

/// A constraint spreads by a field or by a label.
pub(super) fn by_one(object: &Value, problems: &mut Vec<Problem>) {
    for (path, constraint) in constraints(object) {
        if !is_unset(&constraint["spreadByField"]) && !is_unset(&constraint["spreadByLabel"]) {
            problems.push(Problem::new(
                path,
                "spreadByField and spreadByLabel are mutually exclusive",
                "use one constraint for each",
            ));
        }
    }
}

/// Numbers of groups are valid.
pub(super) fn sizes(object: &Value, problems: &mut Vec<Problem>) {
    for (path, constraint) in constraints(object) {
        let size = |name: &str| constraint[name].as_i64().unwrap_or(0);
        for name in ["minGroups", "maxGroups"] {
            if size(name) < 0 {
                problems.push(Problem::new(
                    format!("{path}.{name}"),
                    format!("{} is negative", size(name)),
                    "give a number of groups, or leave it out",
                ));
            }
        }
        // Without a maximum any number of groups is accepted.
        if size("maxGroups") > 0 && size("maxGroups") < size("minGroups") {
            problems.push(Problem::new(
                format!("{path}.maxGroups"),
                format!(
                    "{} is less than minGroups, {}",
                    size("maxGroups"),
                    size("minGroups")
                ),
                "raise it, or lower minGroups",
            ));
        }
    }
}

/// Each field and each label is used once; without either the constraint is by cluster.
pub(super) fn once(object: &Value, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (path, constraint) in constraints(object) {
        let of = |part| text(&constraint[part]);
        let by = match (of("spreadByField"), of("spreadByLabel")) {
            ("", "") => [("spreadByField", "cluster"), ("spreadByLabel", "")],
            (field, label) => [("spreadByField", field), ("spreadByLabel", label)],
        };
        for (part, given) in by {
            if !given.is_empty() && !seen.insert((part, given)) {
                problems.push(Problem::new(
                    format!("{path}.{part}"),
                    format!("{given:?} is used by another constraint too"),
                    "keep one constraint for it",
                ));
            }
        }
    }
}
