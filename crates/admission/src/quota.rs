//! Rules of FederatedResourceQuota.

use std::collections::{BTreeMap, BTreeSet};

use entourage_model::{
    problem::{Problem, is_label_key, is_subdomain},
    quantity,
};
use serde_json::Value;

use crate::request::{items, text};

/// The resources that a ResourceQuota counts in whole numbers.
const COUNTED: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// The other resources of a ResourceQuota without a domain in their name.
const MEASURED: &[&str] = &[
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

/// The amount of one unit, as [`quantity::amount`] counts.
const UNIT: i128 = 1_000_000_000;

/// Members must accept the ResourceQuotas made of it.
pub(super) fn resources(object: &Value, problems: &mut Vec<Problem>) {
    list("spec.overall", &object["spec"]["overall"], problems);
    for (path, assignment) in assignments(object) {
        list(&format!("{path}.hard"), &assignment["hard"], problems);
    }
}

/// The limits of a list of resources.
fn list(path: &str, limits: &Value, problems: &mut Vec<Problem>) {
    for (name, limit) in limits.as_object().into_iter().flatten() {
        let path = format!("{path}[{name}]");
        if !is_resource(name) {
            problems.push(Problem::new(
                &path,
                "it is no resource that a ResourceQuota limits",
                "use cpu, memory, pods and the like, or a name with a domain",
            ));
        }
        let cause = match quantity::amount(limit) {
            None => "it is not a quantity",
            Some(amount) if amount < 0 => "it is negative",
            Some(amount) if COUNTED.contains(&name.as_str()) && amount % UNIT != 0 => {
                "it is not a whole number"
            }
            Some(_) => continue,
        };
        problems.push(Problem::new(path, cause, "write a quantity such as 10 or 500Mi"));
    }
}

/// A cluster that has no part of a limit of its own would not know which of two counts; parts of a limit add up to it at most.
pub(super) fn assigned(object: &Value, problems: &mut Vec<Problem>) {
    let overall = &object["spec"]["overall"];
    let mut clusters = BTreeSet::new();
    let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
    for (path, assignment) in assignments(object) {
        let cluster = text(&assignment["clusterName"]);
        if !is_subdomain(cluster) {
            problems.push(Problem::new(
                format!("{path}.clusterName"),
                format!("{cluster:?} is not the name of a cluster"),
                "use the name of a Cluster",
            ));
        } else if !clusters.insert(cluster) {
            problems.push(Problem::new(
                format!("{path}.clusterName"),
                format!("the cluster {cluster} is in the list twice"),
                "keep one of the two",
            ));
        }
        for (name, limit) in assignment["hard"].as_object().into_iter().flatten() {
            if overall.get(name).is_none() {
                problems.push(Problem::new(
                    format!("{path}.hard[{name}]"),
                    "spec.overall does not limit it",
                    "add it to spec.overall, or remove it here",
                ));
            }
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(quantity::amount(limit).unwrap_or_default().max(0));
        }
    }
    for (name, limit) in overall.as_object().into_iter().flatten() {
        let sum = sums.get(name.as_str()).copied().unwrap_or_default();
        if quantity::amount(limit).is_some_and(|limit| limit < sum) {
            problems.push(Problem::new(
                format!("spec.overall[{name}]"),
                "it is less than the sum of spec.staticAssignments",
                "raise it, or assign less to clusters",
            ));
        }
    }
}

fn assignments(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    let all = items(&object["spec"]["staticAssignments"]).iter().enumerate();
    all.map(|(at, assignment)| (format!("spec.staticAssignments[{at}]"), assignment))
}

fn is_resource(name: &str) -> bool {
    let huge = name.strip_prefix("requests.").unwrap_or(name);
    is_label_key(name)
        && (name.contains('/')
            || COUNTED.contains(&name)
            || MEASURED.contains(&name)
            || huge.starts_with("hugepages-"))
}
