//! The defaults that API servers derive from other fields of the same object. They are derived on both sides before the
//! comparison, whichever of them a server has completed already.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json::{at, at_mut, items, set, text};

/// Sets the derived fields.
type Complete = fn(&mut Value);

/// The kinds with derived fields, in the form of [`Scope::Kind`](super::Scope::Kind).
const DERIVED: &[(&str, Complete)] = &[
    ("HorizontalPodAutoscaler.autoscaling", scaling_rules),
    ("LimitRange", limits),
    ("NetworkPolicy.networking.k8s.io", policy_types),
];

/// The object as a server completes it; `kind` is in the form of [`Scope::Kind`](super::Scope::Kind), `pod_spec` is the path of
/// its pod spec.
///
/// Cost: O(1) for an object without derived fields, else O(size of the object).
pub(super) fn completed<'a>(kind: &str, object: &'a Value, pod_spec: Option<&[&str]>) -> Cow<'a, Value> {
    let mut object = Cow::Borrowed(object);
    if let Some(path) = pod_spec.filter(|path| at(&object, path)["hostNetwork"] == true) {
        let pod = at_mut(object.to_mut(), path);
        pod.into_iter().for_each(host_ports);
    }
    if let Some((_, complete)) = DERIVED.iter().find(|(name, _)| *name == kind) {
        complete(object.to_mut());
    }
    object
}

/// A server before 1.28 sets hostPort to containerPort in a pod template with hostNetwork; later ones do so for pods only.
fn host_ports(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = pod.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                let number = port["containerPort"].clone();
                if port["hostPort"].as_i64().unwrap_or_default() == 0 {
                    set(port, &["hostPort"], number);
                }
            }
        }
    }
}

/// An autoscaler with rules for one direction gets the other direction too, and policies in both.
fn scaling_rules(autoscaler: &mut Value) {
    const BEHAVIOR: &[&str] = &["spec", "behavior"];
    let Some(behavior) = at_mut(autoscaler, BEHAVIOR).filter(|behavior| behavior.is_object()) else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    for (direction, policies) in [
        ("scaleDown", json!([percent])),
        ("scaleUp", json!([pods, percent])),
    ] {
        let path = [direction, "policies"];
        if at(behavior, &path).is_null() {
            set(behavior, &path, policies);
        }
    }
}

/// A container's maximum is the default of its limit, that is the default of its request, and without one its minimum is.
fn limits(range: &mut Value) {
    let all = at_mut(range, &["spec", "limits"]).and_then(Value::as_array_mut);
    for limit in all.into_iter().flatten() {
        if text(limit, &["type"]) == "Container" {
            fill(limit, "default", "max");
            fill(limit, "defaultRequest", "default");
            fill(limit, "defaultRequest", "min");
        }
    }
}

/// Adds to the map in a field each missing key of another one.
fn fill(parent: &mut Value, field: &str, from: &str) {
    for (key, value) in parent[from].as_object().cloned().into_iter().flatten() {
        if at(parent, &[field, &key]).is_null() {
            set(parent, &[field, &key], value);
        }
    }
}

/// A policy without types has the type Ingress, and Egress if it has egress rules.
fn policy_types(policy: &mut Value) {
    const TYPES: &[&str] = &["spec", "policyTypes"];
    if policy["spec"].is_object() && items(policy, TYPES).is_empty() {
        let types = if items(policy, &["spec", "egress"]).is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        set(policy, TYPES, types);
    }
}
