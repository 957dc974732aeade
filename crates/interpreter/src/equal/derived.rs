//! The defaults that API servers derive from other fields of the same object. They are derived on both sides before the
//! comparison, whichever of them a server has completed already.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json::{at, at_mut, items, set, text};

/// Sets the derived fields that are absent.
type Complete = fn(&mut Cow<'_, Value>);

/// The kinds with derived fields, in the form of [`Scope::Kind`](super::Scope::Kind).
const DERIVED: &[(&str, Complete)] = &[
    ("HorizontalPodAutoscaler.autoscaling", autoscaler),
    ("Job.batch", backoff_limit),
    ("LimitRange", limits),
    ("NetworkPolicy.networking.k8s.io", policy_types),
    ("ReplicationController", selector),
    ("Service", cluster_ips),
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
        complete(&mut object);
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

/// An autoscaler without metrics gets one for CPU; one with rules for one direction gets the other direction too, and policies in
/// both. The first version has no list of metrics.
fn autoscaler(autoscaler: &mut Cow<'_, Value>) {
    const METRICS: &[&str] = &["spec", "metrics"];
    const BEHAVIOR: &[&str] = &["spec", "behavior"];
    if text(autoscaler, &["apiVersion"]).starts_with("autoscaling/v2")
        && items(autoscaler, METRICS).is_empty()
    {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(autoscaler.to_mut(), METRICS, json!([metric]));
    }
    if !at(autoscaler, BEHAVIOR).is_object() {
        return;
    }
    let Some(behavior) = at_mut(autoscaler.to_mut(), BEHAVIOR) else {
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

/// A Job with a limit for each index has no other limit.
fn backoff_limit(job: &mut Cow<'_, Value>) {
    const LIMIT: &[&str] = &["spec", "backoffLimit"];
    if !at(job, &["spec", "backoffLimitPerIndex"]).is_null() && at(job, LIMIT).is_null() {
        set(job.to_mut(), LIMIT, i32::MAX.into());
    }
}

/// A container's maximum is the default of its limit, that is the default of its request, and without one its minimum is.
fn limits(range: &mut Cow<'_, Value>) {
    let all = at_mut(range.to_mut(), &["spec", "limits"]).and_then(Value::as_array_mut);
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
fn policy_types(policy: &mut Cow<'_, Value>) {
    const TYPES: &[&str] = &["spec", "policyTypes"];
    if policy["spec"].is_object() && items(policy, TYPES).is_empty() {
        let types = if items(policy, &["spec", "egress"]).is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        set(policy.to_mut(), TYPES, types);
    }
}

/// A controller without a selector selects the labels of its own pods.
fn selector(controller: &mut Cow<'_, Value>) {
    const SELECTOR: &[&str] = &["spec", "selector"];
    let labels = at(controller, &["spec", "template", "metadata", "labels"]);
    if labels.is_object() && at(controller, SELECTOR).is_null() {
        let labels = labels.clone();
        set(controller.to_mut(), SELECTOR, labels);
    }
}

/// The list of a Service's addresses begins with its address, which may be `None`.
fn cluster_ips(service: &mut Cow<'_, Value>) {
    const ADDRESSES: &[&str] = &["spec", "clusterIPs"];
    let address = text(service, &["spec", "clusterIP"]);
    if !address.is_empty() && items(service, ADDRESSES).is_empty() {
        let addresses = json!([address]);
        set(service.to_mut(), ADDRESSES, addresses);
    }
}
