//! Warnings about accepted fields of a pod spec.

use serde_json::Value;

use super::CONTAINERS;
use crate::object::{
    Object,
    tree::{below, count, items, list, number, object, text},
};

/// Sources of volumes that are on their way out or gone.
const VOLUMES: [(&str, &str); 9] = [
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warnings about the source of a volume at `path`.
pub(crate) fn deprecated_volumes(volume: &Object, path: &str) -> Vec<String> {
    let found = VOLUMES.iter().filter(|(kind, _)| object(volume, kind).is_some());
    found.map(|(kind, why)| format!("{path}.{kind}: {why}")).collect()
}

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
        found.extend(deprecated_volumes(volume, &path));
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
