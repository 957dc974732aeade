//! Limit ranges: the defaults and the bounds of containers' requests and limits.

use serde_json::Value;

use crate::{
    kinds::amounts::{nano, shown},
    object::{
        Object, field, metadata_mut,
        tree::{below, each, list, made, text},
    },
    resource::Surroundings,
};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The limits of a namespace, one after the other.
fn limits(cluster: &dyn Surroundings, object: &Object) -> Vec<Object> {
    let ranges = cluster.list("limitranges", &format!("{}/", field(object, "namespace")));
    let of_one = |range: &Object| list(below(range, "spec"), "limits").to_vec();
    let all = ranges.iter().flat_map(of_one);
    all.filter_map(|limit| limit.as_object().cloned()).collect()
}

/// Sets default requests and limits in the containers of a pod, and records that in an annotation.
pub(super) fn fill(cluster: &dyn Surroundings, pod: &mut Object) {
    let mut reported = Vec::new();
    for limit in limits(cluster, pod) {
        if text(&limit, "type") != "Container" {
            continue;
        }
        for (key, shown) in [("containers", "container"), ("initContainers", "init-container")] {
            each(made(pod, "spec"), key, |container| {
                let name = text(container, "name").to_owned();
                let resources = made(container, "resources");
                for (key, defaults, one) in [
                    ("requests", "defaultRequest", "request"),
                    ("limits", "default", "limit"),
                ] {
                    let set = missing(resources, key, below(&limit, defaults));
                    if !set.is_empty() {
                        reported.push(format!("{} {one} for {shown} {name}", set.join(", ")));
                    }
                }
            });
        }
    }
    if !reported.is_empty() {
        let text = format!("LimitRanger plugin set: {}", reported.join("; "));
        made(metadata_mut(pod), "annotations").insert(ANNOTATION.to_owned(), text.into());
    }
}

/// Adds the amounts that are missing; returns their names.
fn missing(resources: &mut Object, key: &str, defaults: &Object) -> Vec<String> {
    let names: Vec<String> = defaults
        .keys()
        .filter(|name| !below(resources, key).contains_key(*name))
        .cloned()
        .collect();
    if !names.is_empty() {
        let amounts = made(resources, key);
        for name in &names {
            amounts.insert(name.clone(), defaults[name].clone());
        }
    }
    names
}

/// Checks a pod or claim against the limits; the error states the reasons.
pub(super) fn check(cluster: &dyn Surroundings, kind: &str, object: &Object) -> Result<(), String> {
    let mut problems = Vec::new();
    for limit in limits(cluster, object) {
        let about = text(&limit, "type");
        let spec = below(object, "spec");
        match (kind, about) {
            ("Pod", "Container") => {
                for key in ["containers", "initContainers"] {
                    for container in list(spec, key).iter().filter_map(Value::as_object) {
                        within(&limit, below(container, "resources"), &mut problems);
                    }
                }
            }
            ("PersistentVolumeClaim", "PersistentVolumeClaim") => {
                // A claim has requests and no limits: only requests count.
                let requests = below(below(spec, "resources"), "requests");
                least(&limit, requests, requests, &mut problems);
                for (name, most) in below(&limit, "max") {
                    if let Some(asked) = requests.get(name).filter(|asked| nano(asked) > nano(most)) {
                        problems.push(format!(
                            "maximum {name} usage per {about} is {}, but request is {}",
                            shown(most),
                            shown(asked)
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

fn within(limit: &Object, resources: &Object, problems: &mut Vec<String>) {
    let (requests, limits) = (below(resources, "requests"), below(resources, "limits"));
    let kind = text(limit, "type");
    least(limit, requests, limits, problems);
    for (name, most) in below(limit, "max") {
        let rule = format!("maximum {name} usage per {kind} is {}", shown(most));
        match (limits.get(name), requests.get(name)) {
            (None, _) => problems.push(format!("{rule}.  No limit is specified")),
            (Some(given), _) if nano(given) > nano(most) => {
                problems.push(format!("{rule}, but limit is {}", shown(given)));
            }
            (_, Some(asked)) if nano(asked) > nano(most) => {
                problems.push(format!("{rule}, but request is {}", shown(asked)));
            }
            _ => {}
        }
    }
}

fn least(limit: &Object, requests: &Object, limits: &Object, problems: &mut Vec<String>) {
    let kind = text(limit, "type");
    for (name, least) in below(limit, "min") {
        let rule = format!("minimum {name} usage per {kind} is {}", shown(least));
        match (requests.get(name), limits.get(name)) {
            (None, _) => problems.push(format!("{rule}.  No request is specified")),
            (Some(asked), _) if nano(asked) < nano(least) => {
                problems.push(format!("{rule}, but request is {}", shown(asked)));
            }
            (_, Some(given)) if nano(given) < nano(least) => {
                problems.push(format!("{rule}, but limit is {}", shown(given)));
            }
            _ => {}
        }
    }
}
