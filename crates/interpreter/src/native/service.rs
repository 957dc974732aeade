//! Service.

use serde_json::Value;

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource, load_balancer, prune_metadata, whole_status,
};
use crate::json::{at, at_mut, items as list, remove, set, text};

/// v1 Service.
///
/// Never sent: the cluster IPs and the health-check node port that the hub's API server allocated, and the second family of a Service that merely
/// prefers both: each member adds it if it has it, and refuses it if not. That it is headless (`None`) is the user's
/// choice and is propagated, as are node ports: those that the hub allocated cannot be distinguished from those the user wrote.
///
/// Retained: what the member's API server allocated: cluster IPs and families, the node port of each port for which the
/// template has none, and the health-check node port, which is immutable. The class of a load balancer, which a webhook of
/// the member may choose and which is immutable too. Source: Karmada reference 1.4, 3.1; node ports, families and the
/// class are ours.
pub(super) struct Service;

const TYPE: &[&str] = &["spec", "type"];
const PORTS: &[&str] = &["spec", "ports"];
const CLUSTER_IP: &[&str] = &["spec", "clusterIP"];
const CLUSTER_IPS: &[&str] = &["spec", "clusterIPs"];
const HEALTH_CHECK: &[&str] = &["spec", "healthCheckNodePort"];
const CLASS: &[&str] = &["spec", "loadBalancerClass"];
const TRAFFIC_POLICY: &[&str] = &["spec", "externalTrafficPolicy"];

const FAMILIES: &[&str] = &["spec", "ipFamilies"];
const FAMILY_POLICY: &[&str] = &["spec", "ipFamilyPolicy"];
const PREFER_BOTH: &str = "PreferDualStack";

impl NativeKind for Service {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "Service",
        }
    }

    fn summary(&self) -> &'static str {
        "traffic: a name and addresses for pods"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("services"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
        if text(template, CLUSTER_IP) != "None" {
            remove(template, CLUSTER_IP);
            remove(template, CLUSTER_IPS);
        }
        remove(template, HEALTH_CHECK);
        if text(template, FAMILY_POLICY) == PREFER_BOTH {
            keep_first(template, FAMILIES);
        }
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        if !desired["spec"].is_object() {
            return;
        }
        let kind = text(desired, TYPE);
        let exposed = ["NodePort", "LoadBalancer"].contains(&kind);
        let balanced = kind == "LoadBalancer";
        let checked = balanced && text(desired, TRAFFIC_POLICY) == "Local";
        if kind != "ExternalName" {
            retain_addresses(desired, live);
        }
        if exposed {
            retain_node_ports(desired, live);
        }
        if checked {
            keep(desired, live, HEALTH_CHECK);
        }
        if balanced && is_balanced(live) && at(desired, CLASS).is_null() {
            keep(desired, live, CLASS);
        }
    }

    /// The status of a load balancer; a Service of another type has nothing to report.
    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live).filter(|_| is_balanced(live))
    }

    /// Healthy: it exists, or its load balancer has an address. Source: Karmada reference 3.1.
    fn health(&self, live: &Value) -> Health {
        if is_balanced(live) {
            load_balancer::health(live)
        } else {
            Health::Healthy
        }
    }

    fn aggregate_reads(&self) -> &'static [&'static [&'static str]] {
        &[TYPE]
    }

    /// The points of all clusters; nothing for a template that is no load balancer, whose status an API server keeps
    /// empty.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        if is_balanced(template) {
            load_balancer::aggregate(template, items)
        } else {
            None
        }
    }
}

fn is_balanced(service: &Value) -> bool {
    text(service, TYPE) == "LoadBalancer"
}

/// Cluster IPs are immutable but for the second one, which comes and goes with the policy; families go with them.
fn retain_addresses(desired: &mut Value, live: &Value) {
    for path in [FAMILIES, FAMILY_POLICY] {
        if at(desired, path).is_null() {
            keep(desired, live, path);
        }
    }
    let same_first = list(desired, FAMILIES).first() == list(live, FAMILIES).first();
    if text(desired, FAMILY_POLICY) == PREFER_BOTH && same_first {
        keep(desired, live, FAMILIES);
    }
    if at(desired, CLUSTER_IP).is_null() {
        keep(desired, live, CLUSTER_IP);
        keep(desired, live, CLUSTER_IPS);
        if text(desired, FAMILY_POLICY) == "SingleStack" {
            keep_first(desired, CLUSTER_IPS);
        }
    }
}

fn keep_first(object: &mut Value, path: &[&str]) {
    if let Some(list) = at_mut(object, path).and_then(Value::as_array_mut) {
        list.truncate(1);
    }
}

/// Takes the live value over, if there is one.
fn keep(desired: &mut Value, live: &Value, path: &[&str]) {
    let live = at(live, path);
    if !live.is_null() {
        set(desired, path, live.clone());
    }
}

/// A port without a node port gets the one that the same port has on the member, unless another port of the template wants
/// that number.
fn retain_node_ports(desired: &mut Value, live: &Value) {
    let is_same = |a: &Value, b: &Value| a["port"] == b["port"] && protocol(a) == protocol(b);
    let taken: Vec<(String, i64)> = list(desired, PORTS)
        .iter()
        .filter_map(|port| Some((protocol(port).to_owned(), port["nodePort"].as_i64()?)))
        .collect();
    let is_taken = |port: &Value, number: i64| {
        taken
            .iter()
            .any(|(of, other)| *of == protocol(port) && *other == number)
    };
    let ports = at_mut(desired, PORTS).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let number = port["nodePort"].as_i64().unwrap_or_default();
        let live = list(live, PORTS).iter().find(|live| is_same(port, live));
        if number == 0
            && let Some(allocated) = live.and_then(|live| live["nodePort"].as_i64())
            && !is_taken(port, allocated)
        {
            set(port, &["nodePort"], allocated.into());
        }
    }
}

fn protocol(port: &Value) -> &str {
    port["protocol"].as_str().unwrap_or("TCP")
}
