//! What is stored and has no effect in this version: its author is warned. The condition `Effective` of a policy says so later.

use serde_json::Value;

use super::Problem;

/// Failover moves nothing yet.
pub(super) fn failover(object: &Value, warnings: &mut Vec<Problem>) {
    if object["spec"]["failover"].is_object() {
        warnings.push(Problem::new(
            "spec.failover",
            "it is stored and has no effect in this version",
            "workloads stay where they are scheduled when they or a cluster fail",
        ));
    }
}

/// Bindings are scheduled as they come.
pub(super) fn priority(object: &Value, warnings: &mut Vec<Problem>) {
    if object["spec"]["schedulePriority"].is_object() {
        warnings.push(Problem::new(
            "spec.schedulePriority",
            "it is stored and has no effect in this version",
            "bindings are scheduled in the order of their arrival",
        ));
    }
}

/// Nobody acts on it.
pub(super) fn whole(_: &Value, warnings: &mut Vec<Problem>) {
    warnings.push(Problem::new(
        "spec",
        "it is stored and has no effect in this version",
        "taint Clusters with kubectl, or set rescheduleTriggeredAt of bindings, instead",
    ));
}

/// Of placements: what cannot select anything whatever clusters there are.
pub(super) fn excluded(object: &Value, warnings: &mut Vec<Problem>) {
    let placement = &object["spec"]["placement"];
    let groups = placement["clusterAffinities"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate();
    let groups = groups.map(|(at, each)| (format!("spec.placement.clusterAffinities[{at}]"), each));
    let one = (
        "spec.placement.clusterAffinity".to_owned(),
        &placement["clusterAffinity"],
    );
    for (path, affinity) in groups.chain([one]) {
        let names = |field: &str| affinity[field].as_array().cloned().unwrap_or_default();
        let (named, excluded) = (names("clusterNames"), names("exclude"));
        if !named.is_empty() && named.iter().all(|name| excluded.contains(name)) {
            warnings.push(Problem::new(
                format!("{path}.exclude"),
                "every cluster in clusterNames is excluded, so none is selected",
                "take one out of exclude",
            ));
        }
    }
}
