//! Warnings about accepted fields of a pod spec.

use serde_json::Value;

use super::CONTAINERS;
use crate::object::{
    Object,
    tree::{below, count, items, list, number, object, text},
};

/// Labels of nodes that have a new name: old, since when, new.
const NODE_LABELS: [(&str, &str, &str); 6] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "v1.17",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "v1.17",
        "topology.kubernetes.io/zone",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "v1.17",
        "node.kubernetes.io/instance-type",
    ),
    (
        "failure-domain.kubernetes.io/zone",
        "v1.17",
        "topology.kubernetes.io/zone",
    ),
];

/// Sources of volumes that are on their way out.
const VOLUMES: [(&str, &str); 2] = [
    ("gitRepo", "deprecated in v1.11"),
    ("cephfs", "deprecated in v1.28"),
];

/// Warnings of a pod.
pub(crate) fn pod(spec: &Object) -> Vec<String> {
    warnings(spec, "spec")
}

/// Warnings of a template at `path`.
pub(crate) fn template(template: &Object, path: &str) -> Vec<String> {
    warnings(below(template, "spec"), &format!("{path}.spec"))
}

fn warnings(spec: &Object, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for key in below(spec, "nodeSelector").keys() {
        if let Some((_, since, new)) = NODE_LABELS.iter().find(|(old, ..)| old == key) {
            found.push(format!(
                "{path}.nodeSelector[{key}]: deprecated since {since}; use {new:?} instead"
            ));
        }
    }
    let mut seen: Vec<(String, &str)> = Vec::new();
    for (path, alias) in items(spec, "hostAliases", path) {
        let ip = text(alias, "ip");
        match seen.iter().find(|(_, other)| *other == ip) {
            Some((first, _)) => found.push(format!(
                "{path}: an IP address with {first:?} specified more than once"
            )),
            None => seen.push((path, ip)),
        }
    }
    for (path, volume) in items(spec, "volumes", path) {
        for (kind, why) in VOLUMES {
            if object(volume, kind).is_some() {
                found.push(format!("{path}.{kind}: {why}"));
            }
        }
    }
    pull_secrets(spec, path, &mut found);
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|grace| grace < 0) {
        found.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    for key in CONTAINERS {
        for (path, container) in items(spec, key, path) {
            amounts(container, &path, &mut found);
            variables(container, &path, &mut found);
        }
    }
    for key in CONTAINERS {
        for (path, container) in items(spec, key, path) {
            ports(container, &path, &mut found);
        }
    }
    found
}

fn pull_secrets(spec: &Object, path: &str, found: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (at, secret) in list(spec, "imagePullSecrets")
        .iter()
        .filter_map(Value::as_object)
        .enumerate()
    {
        let name = text(secret, "name");
        if name.is_empty() {
            found.push(format!("{path}.imagePullSecrets[{at}]: invalid empty name \"\""));
        } else if seen.contains(&name) {
            found.push(format!("{path}.imagePullSecrets[{at}]: duplicate name {name:?}"));
        }
        seen.push(name);
    }
}

fn amounts(container: &Object, path: &str, found: &mut Vec<String>) {
    let resources = below(container, "resources");
    for kind in ["limits", "requests"] {
        for name in ["memory", "ephemeral-storage"] {
            let Some(amount) = below(resources, kind).get(name) else {
                continue;
            };
            let part = super::resources::amount(amount).is_some_and(|nano| nano % 1_000_000_000 != 0);
            if part {
                found.push(format!(
                    "{path}.resources.{kind}[{name}]: fractional byte value {:?} is invalid, must be an integer",
                    amount.as_str().unwrap_or_default()
                ));
            }
        }
    }
}

fn variables(container: &Object, path: &str, found: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (path, variable) in items(container, "env", path) {
        let name = text(variable, "name");
        let extends = text(variable, "value").contains(&format!("$({name})"));
        if seen.contains(&name) && !extends {
            found.push(format!(
                "{path}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
        seen.push(name);
    }
}

fn ports(container: &Object, path: &str, found: &mut Vec<String>) {
    let mut seen = Vec::new();
    for (path, port) in items(container, "ports", path) {
        let key = (
            count(port, "containerPort"),
            text(port, "protocol"),
            count(port, "hostPort"),
            text(port, "hostIP"),
        );
        match seen.iter().find(|(_, other)| *other == key) {
            Some((first, _)) => found.push(format!("{path}: duplicate port definition with {first}")),
            None => seen.push((path, key)),
        }
    }
}
