//! Warnings about possible mistakes in a ResourceDistribution. Invalid targets have no warnings: they are refused.
//!
//! `kubectl` prints a warning whole only while it is short: each has at most `LONGEST` characters. Source:
//! ResourceDistribution reference 6.2, 6.3 and 6.5; section 2, hole 6.

use entourage_api::kruise::DistributionTargets;
use entourage_model::{places::is_system, problem::Problem};
use entourage_render::distributed::targets::Targets;
use serde_json::Value;

use crate::distribution::read_targets;

/// The maximum length of a warning that is shown in full everywhere, in characters. Source: Kubernetes, "Admission response
/// warnings".
#[cfg(test)]
pub(super) const LONGEST: usize = 256;

/// The maximum number of names in a warning.
const MAX_NAMED: usize = 2;

/// Targets that match no namespace: none given, an empty selector, or only exclusions.
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

/// Namespaces of the system among the named ones.
pub(super) fn protected(object: &Value, warnings: &mut Vec<Problem>) {
    let Some((_, compiled)) = readable(object) else {
        return;
    };
    let mut names = compiled.named().iter().filter(|name| is_system(name));
    let quoted: Vec<String> = names
        .by_ref()
        .take(MAX_NAMED)
        .map(|name| format!("{name:?}"))
        .collect();
    if quoted.is_empty() {
        return;
    }
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    warnings.push(Problem::new(
        "spec.targets",
        format!("system namespaces are never targets: {}{more}", quoted.join(", ")),
        "take them out",
    ));
}

/// Objects of other owners that would be deleted with the distribution.
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

/// The targets as written and as compiled, or `None` if they are invalid.
fn readable(object: &Value) -> Option<(DistributionTargets, Targets)> {
    let targets = read_targets(object)?;
    let compiled = Targets::compile(&targets).ok()?;
    Some((targets, compiled))
}
