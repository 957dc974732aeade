//! Updates of Services: what the server allocated stays when a client leaves it out, and goes when the new type has no use for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{given, is_external, needs_health_port, needs_ip, needs_node_ports};
use crate::object::{
    Object,
    tree::{each, list, same, text},
};

/// Brings `clusterIP` and `clusterIPs` together and keeps what was allocated.
pub(super) fn keep(new: &mut Object, old: &Object) {
    sync_addresses(new, old);
    if needs_ip(old) && needs_ip(new) {
        if text(new, "clusterIP").is_empty() {
            copy(new, old, "clusterIP");
        }
        if list(new, "clusterIPs").is_empty() && text(new, "clusterIP") == text(old, "clusterIP") {
            copy(new, old, "clusterIPs");
        }
    }
    if needs_node_ports(old) && needs_node_ports(new) {
        keep_node_ports(new, old);
    }
    if needs_health_port(old) && needs_health_port(new) && given(new, "healthCheckNodePort").is_none() {
        copy(new, old, "healthCheckNodePort");
    }
}

/// Removes fields that the old type has and the new one has not, unless the client changed them (which validation then reports).
pub(super) fn drop_unused(new: &mut Object, old: &Object) {
    let unused = |needs: fn(&Object) -> bool, new: &Object| needs(old) && !needs(new);
    let balancer = |spec: &Object| text(spec, "type") == "LoadBalancer";
    let mut gone: Vec<&str> = Vec::new();
    if unused(needs_ip, new) {
        if same_or_none(new, old, "clusterIP") && same_or_none(new, old, "clusterIPs") {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if unused(needs_health_port, new) {
        gone.push("healthCheckNodePort");
    }
    if unused(balancer, new) {
        gone.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if unused(is_external, new) {
        gone.push("externalTrafficPolicy");
    }
    for key in gone {
        if same_or_none(new, old, key) {
            new.remove(key);
        }
    }
    if unused(needs_node_ports, new) && node_ports(new) == node_ports(old) {
        each(new, "ports", |port| {
            port.remove("nodePort");
        });
    }
}

fn sync_addresses(new: &mut Object, old: &Object) {
    let (before, after) = (text(old, "clusterIP"), text(new, "clusterIP").to_owned());
    if !list(old, "clusterIPs").is_empty() && list(new, "clusterIPs").is_empty() && before == after {
        copy(new, old, "clusterIPs");
    }
    if before == after || !same(new.get("clusterIPs"), old.get("clusterIPs")) {
        return;
    }
    if after.is_empty() {
        new.remove("clusterIPs");
    } else {
        new.insert("clusterIPs".to_owned(), json!([after]));
    }
}

/// A port that names no node port keeps that of the old port of its name, unless another one has it now.
fn keep_node_ports(new: &mut Object, old: &Object) {
    let (before, after) = (node_ports(old), node_ports(new));
    let used: BTreeSet<i64> = before.intersection(&after).copied().collect();
    let mut by_name: BTreeMap<String, i64> = BTreeMap::new();
    for port in list(old, "ports").iter().filter_map(Value::as_object) {
        if let Some(node_port) = given(port, "nodePort") {
            by_name.insert(text(port, "name").to_owned(), node_port);
        }
    }
    each(new, "ports", |port| {
        if given(port, "nodePort").is_none()
            && let Some(kept) = by_name.get(text(port, "name"))
            && !used.contains(kept)
        {
            port.insert("nodePort".to_owned(), (*kept).into());
        }
    });
}

fn node_ports(spec: &Object) -> BTreeSet<i64> {
    list(spec, "ports")
        .iter()
        .filter_map(Value::as_object)
        .filter_map(|port| given(port, "nodePort"))
        .collect()
}

fn same_or_none(new: &Object, old: &Object, key: &str) -> bool {
    same(new.get(key), old.get(key))
}

fn copy(new: &mut Object, old: &Object, key: &str) {
    if let Some(value) = old.get(key) {
        new.insert(key.to_owned(), value.clone());
    }
}
