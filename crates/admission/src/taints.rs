//! Rules of ClusterTaintPolicy.

use std::collections::BTreeSet;

use entourage_model::problem::Problem;
use serde_json::Value;

use crate::request::{Request, items, text};

fn taints(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    let taints = items(&object["spec"]["taints"]).iter().enumerate();
    taints.map(|(at, taint)| (format!("spec.taints[{at}]"), taint))
}

/// Taints that evict must be allowed by the settings.
pub(super) fn no_execute(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    if request.settings.allow_no_execute {
        return;
    }
    for (path, taint) in taints(object) {
        if text(&taint["effect"]) == "NoExecute" {
            problems.push(Problem::new(
                format!("{path}.effect"),
                "NoExecute evicts every workload from the clusters that it matches",
                "use NoSchedule, or run the webhook with --allow-no-execute-taint-policy",
            ));
        }
    }
}

/// A cluster has one taint per key and effect.
pub(super) fn once(object: &Value, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (path, taint) in taints(object) {
        let (key, effect) = (text(&taint["key"]), text(&taint["effect"]));
        if !seen.insert((key, effect)) {
            problems.push(Problem::new(
                path,
                format!("the taint {key}:{effect} is in the list twice"),
                "keep one of the two",
            ));
        }
    }
}
