//! The status of Service and Ingress: the addresses of a load balancer.

use serde_json::{Value, json};

use super::Health;
use crate::json::{at, items as list, remove, same, text};

const POINTS: &[&str] = &["loadBalancer", "ingress"];

/// The points of all clusters, cluster by cluster, as the members report them. The rest of the stored status stays. `None` if that
/// changes nothing.
///
/// Source: Karmada 1.19; before, it filled in the cluster's name as the hostname of a point without one.
pub(super) fn aggregate(template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
    let stored = at(template, &["status"]);
    let mut points: Vec<Value> = Vec::new();
    for (_, status) in items {
        let reported = status.map(|status| list(status, POINTS)).unwrap_or_default();
        points.extend(reported.iter().filter(|point| point.is_object()).cloned());
    }
    let balancer = if points.is_empty() {
        json!({})
    } else {
        json!({ "ingress": points })
    };
    if same(
        &without_default_modes(&balancer),
        &without_default_modes(&stored["loadBalancer"]),
    ) {
        return None;
    }
    let mut status = stored.as_object().cloned().unwrap_or_default();
    status.insert("loadBalancer".to_owned(), balancer);
    Some(Value::Object(status))
}

/// Without each `ipMode: VIP` of a point with an address: the hub's API server fills it in from 1.30 on, and an older
/// one drops it.
fn without_default_modes(balancer: &Value) -> Value {
    let mut balancer = balancer.clone();
    let points = balancer.get_mut("ingress").and_then(Value::as_array_mut);
    for point in points.into_iter().flatten() {
        if text(point, &["ipMode"]) == "VIP" && !text(point, &["ip"]).is_empty() {
            remove(point, &["ipMode"]);
        }
    }
    balancer
}

/// Healthy: a point can be reached at an address. Source: Karmada reference 3.1.
pub(super) fn health(live: &Value) -> Health {
    let has_address = |point: &Value| {
        ["ip", "hostname"]
            .iter()
            .any(|field| !text(point, &[field]).is_empty())
    };
    if list(&live["status"], POINTS).iter().any(has_address) {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}
