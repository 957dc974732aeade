//! Rules of a policy's placement: affinities, tolerations, division.

use std::collections::BTreeSet;

use entourage_model::problem::{Problem, is_label_key};
use serde_json::Value;

use crate::request::{Request, is_unset, items, text};

/// The fields that a field selector supports.
const FIELDS: [&str; 3] = ["provider", "region", "zone"];

/// The operators that a field selector supports.
const OPERATORS: [&str; 2] = ["In", "NotIn"];

fn placement(object: &Value) -> &Value {
    &object["spec"]["placement"]
}

/// Divided replicas without a preference are divided by weight.
pub(super) fn fill_preference(object: &mut Value, _: &Request<'_>) {
    let Some(scheduling) = object.pointer_mut("/spec/placement/replicaScheduling") else {
        return;
    };
    let divides = matches!(text(&scheduling["replicaSchedulingType"]), "" | "Divided");
    if scheduling.is_object() && divides && is_unset(&scheduling["replicaDivisionPreference"]) {
        scheduling["replicaDivisionPreference"] = "Weighted".into();
    }
}

/// Either one affinity or ordered groups of them are given.
pub(super) fn one_affinity(object: &Value, problems: &mut Vec<Problem>) {
    let placement = placement(object);
    if !placement["clusterAffinity"].is_null() && !placement["clusterAffinities"].is_null() {
        problems.push(Problem::new(
            "spec.placement",
            "clusterAffinity and clusterAffinities are mutually exclusive",
            "keep one: clusterAffinities when there is a second choice, else clusterAffinity",
        ));
    }
}

/// Groups of affinities have unique names; the overflow groups, too, among themselves and beside their group.
pub(super) fn affinity_names(object: &Value, problems: &mut Vec<Problem>) {
    const PATH: &str = "spec.placement.clusterAffinities";
    let mut seen = BTreeSet::new();
    for (at, group) in items(&placement(object)["clusterAffinities"]).iter().enumerate() {
        let path = format!("{PATH}[{at}]");
        check_name(&path, group, &mut seen, problems);
        let mut seen = BTreeSet::from([text(&group["affinityName"])]);
        for (at, overflow) in items(&group["overflowAffinities"]).iter().enumerate() {
            let path = format!("{path}.overflowAffinities[{at}]");
            check_name(&path, overflow, &mut seen, problems);
        }
    }
}

fn check_name<'a>(path: &str, group: &'a Value, seen: &mut BTreeSet<&'a str>, problems: &mut Vec<Problem>) {
    let name = text(&group["affinityName"]);
    let field = format!("{path}.affinityName");
    if name.is_empty() {
        problems.push(Problem::new(field, "it is empty", "give the group a name"));
    } else if !seen.insert(name) {
        problems.push(Problem::new(
            field,
            format!("{name:?} names another group too"),
            "give each of clusterAffinities a name of its own, and each of its overflowAffinities one beside it",
        ));
    }
}

/// Overflow needs a group of clusters to overflow from, and replicas that can be divided by available resources.
pub(super) fn overflow(object: &Value, problems: &mut Vec<Problem>) {
    let placement = placement(object);
    let scheduling = &placement["replicaScheduling"];
    let divides =
        scheduling.is_object() && matches!(text(&scheduling["replicaSchedulingType"]), "" | "Divided");
    let by_room = text(&scheduling["replicaDivisionPreference"]) == "Aggregated"
        || !is_unset(&scheduling["weightPreference"]["dynamicWeight"]);
    for (at, group) in items(&placement["clusterAffinities"]).iter().enumerate() {
        if items(&group["overflowAffinities"]).is_empty() {
            continue;
        }
        let path = format!("spec.placement.clusterAffinities[{at}]");
        if !(divides && by_room) {
            problems.push(Problem::new(
                format!("{path}.overflowAffinities"),
                "replicas overflow only where they are divided by the available replicas of clusters",
                "set replicaSchedulingType Divided with replicaDivisionPreference Aggregated or with dynamicWeight",
            ));
        }
        let empty = ["labelSelector", "fieldSelector", "clusterNames", "exclude"]
            .iter()
            .all(|part| group[*part].is_null() || group[*part].as_array().is_some_and(Vec::is_empty));
        if empty {
            problems.push(Problem::new(
                path,
                "without a selector the group has every cluster, and nothing is left to overflow to",
                "select the clusters that are filled first",
            ));
        }
    }
}

/// Field selectors support three fields and two operators.
pub(super) fn field_selectors(object: &Value, problems: &mut Vec<Problem>) {
    let placement = placement(object);
    check_selector(
        "spec.placement.clusterAffinity",
        &placement["clusterAffinity"],
        problems,
    );
    for (path, group) in groups(placement) {
        check_selector(&path, group, problems);
    }
    let weights = &placement["replicaScheduling"]["weightPreference"]["staticWeightList"];
    for (at, weight) in items(weights).iter().enumerate() {
        let path =
            format!("spec.placement.replicaScheduling.weightPreference.staticWeightList[{at}].targetCluster");
        check_selector(&path, &weight["targetCluster"], problems);
    }
}

/// The field selector of one affinity, of a policy or an override.
pub(super) fn check_selector(path: &str, affinity: &Value, problems: &mut Vec<Problem>) {
    let expressions = items(&affinity["fieldSelector"]["matchExpressions"]);
    for (at, expression) in expressions.iter().enumerate() {
        let path = format!("{path}.fieldSelector.matchExpressions[{at}]");
        for (part, known) in [("key", FIELDS.as_slice()), ("operator", &OPERATORS)] {
            let given = text(&expression[part]);
            if !known.contains(&given) {
                problems.push(Problem::new(
                    format!("{path}.{part}"),
                    format!("{given:?} is not known"),
                    format!("use {}", known.join(" or ")),
                ));
            }
        }
    }
}

/// Taints of clusters support only equality and existence.
pub(super) fn tolerations(object: &Value, problems: &mut Vec<Problem>) {
    for (at, toleration) in items(&placement(object)["clusterTolerations"]).iter().enumerate() {
        let operator = text(&toleration["operator"]);
        if matches!(operator, "Lt" | "Gt") {
            problems.push(Problem::new(
                format!("spec.placement.clusterTolerations[{at}].operator"),
                format!("{operator:?} compares numbers, and values of cluster taints are not numbers"),
                "use Equal or Exists",
            ));
        }
    }
}

/// Workload affinity and anti-affinity use different label keys.
pub(super) fn workload_affinity(object: &Value, problems: &mut Vec<Problem>) {
    let affinity = &placement(object)["workloadAffinity"];
    let key = |part: &str| affinity[part].get("groupByLabelKey").map(text);
    let keys = ["affinity", "antiAffinity"].map(|part| (part, key(part)));
    for (part, key) in keys {
        if let Some(key) = key.filter(|key| !is_label_key(key)) {
            problems.push(Problem::new(
                format!("spec.placement.workloadAffinity.{part}.groupByLabelKey"),
                format!("{key:?} cannot be the key of a label"),
                "use letters, digits, '-', '_' and '.', at most 63, behind a DNS name and '/' if it has a prefix",
            ));
        }
    }
    if let [(_, Some(one)), (_, Some(other))] = keys
        && one == other
    {
        problems.push(Problem::new(
            "spec.placement.workloadAffinity.antiAffinity.groupByLabelKey",
            format!("{one:?} cannot be both affinity and anti-affinity"),
            "use two labels, or one of the two affinities",
        ));
    }
}

/// All groups with their paths: those of `clusterAffinities`, and their overflow groups.
fn groups(placement: &Value) -> Vec<(String, &Value)> {
    let mut groups = Vec::new();
    for (at, group) in items(&placement["clusterAffinities"]).iter().enumerate() {
        let path = format!("spec.placement.clusterAffinities[{at}]");
        for (at, overflow) in items(&group["overflowAffinities"]).iter().enumerate() {
            groups.push((format!("{path}.overflowAffinities[{at}]"), overflow));
        }
        groups.push((path, group));
    }
    groups
}
