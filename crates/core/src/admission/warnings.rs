//! What a ResourceDistribution may say without meaning it: its author is warned. Nothing is said about targets that cannot be
//! read: they are refused.
//!
//! `kubectl` prints a warning whole only while it is short: each has at most [`LONGEST`] characters. Source:
//! ResourceDistribution reference 6.2, 6.3 and 6.5; section 2, hole 6.

use entourage_api::kruise::DistributionTargets;
use serde_json::Value;

use super::{Problem, distribution::read_targets};
use crate::{distribution::targets::Targets, places::is_system};

/// The most characters of a warning that are shown wherever warnings are. Source: Kubernetes, "Admission response warnings".
#[cfg(test)]
pub(super) const LONGEST: usize = 256;

/// How many names a warning has.
const TOLD: usize = 2;

/// Targets of which nothing, an empty selector or what is excluded is all there is.
pub(super) fn means_nothing(object: &Value, warnings: &mut Vec<Problem>) {
    let Some((targets, compiled)) = readable(object) else {
        return;
    };
    if !compiled.mean_nothing() {
        return;
    }
    let selectors = [
        &targets.namespace_label_selector,
        &targets.namespace_selector,
        &targets.workload_label_selector,
    ];
    let remedy = if targets.excluded_namespaces.names().next().is_some() {
        "excluded namespaces alone select none: add allNamespaces: true to select all others"
    } else if selectors.iter().any(|selector| selector.is_some()) {
        "an empty selector selects none: write allNamespaces: true to select all"
    } else {
        "name or select some, or write allNamespaces: true to select all"
    };
    warnings.push(Problem::new("spec.targets", "no namespace is selected", remedy));
}

/// A selector with labels beside `matchLabels` and `matchExpressions`.
pub(super) fn flat_selectors(object: &Value, warnings: &mut Vec<Problem>) {
    let Some((targets, _)) = readable(object) else {
        return;
    };
    for (field, selector) in [
        ("namespaceLabelSelector", &targets.namespace_label_selector),
        ("namespaceSelector", &targets.namespace_selector),
        ("workloadLabelSelector", &targets.workload_label_selector),
    ] {
        if selector
            .as_ref()
            .is_some_and(|selector| !selector.flat.is_empty())
        {
            warnings.push(Problem::new(
                format!("spec.targets.{field}"),
                "labels beside matchLabels are read as matchLabels",
                "write them under matchLabels: OpenKruise drops them where they are",
            ));
        }
    }
}

/// Namespaces of the system among those that are named.
pub(super) fn protected(object: &Value, warnings: &mut Vec<Problem>) {
    let Some((_, compiled)) = readable(object) else {
        return;
    };
    let mut names = compiled.named().iter().filter(|name| is_system(name));
    let told: Vec<String> = names
        .by_ref()
        .take(TOLD)
        .map(|name| format!("{name:?}"))
        .collect();
    if told.is_empty() {
        return;
    }
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    warnings.push(Problem::new(
        "spec.targets",
        format!("system namespaces are never targets: {}{more}", told.join(", ")),
        "take them out",
    ));
}

/// Objects of others that would be deleted with the distribution.
pub(super) fn taken_over(object: &Value, warnings: &mut Vec<Problem>) {
    let spec = &object["spec"];
    if spec["writePolicy"] == "overwrite" && spec["deletionPolicy"] != "Orphan" {
        warnings.push(Problem::new(
            "spec.deletionPolicy",
            "objects that it takes over are deleted with the distribution",
            "set Orphan to keep them",
        ));
    }
}

/// Targets as written and as they are understood.
fn readable(object: &Value) -> Option<(DistributionTargets, Targets)> {
    let targets = read_targets(object)?;
    let compiled = Targets::compile(&targets).ok()?;
    Some((targets, compiled))
}
