//! Errors of one state of a Service.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{addresses, given, is_external, is_headless, needs_health_port, needs_ip};
use crate::{
    kinds::core::endpoints::{app_protocol, special_ip},
    names,
    object::{
        Object,
        tree::{Errors, at, below, count, items, list, number, same, text},
    },
    status::{FieldError, Problem},
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// The port of kubelets, which no load balancer may show to the world.
const KUBELET: i64 = 10_250;

/// The longest session affinity, a day in seconds.
const LONGEST: i64 = 86_400;

/// Errors of a spec.
pub(super) fn service(spec: &Object, old: Option<&Object>, errors: &mut Errors) {
    let kind = text(spec, "type");
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    of_type(spec, kind, errors);
    let mut seen = BTreeSet::new();
    let several = list(spec, "ports").len() > 1;
    for (path, port) in items(spec, "ports", "spec") {
        self::port(port, &path, several, &mut seen, errors);
    }
    if let Some(Value::Object(selector)) = spec.get("selector") {
        errors.extend(names::labels(selector, "spec.selector"));
    }
    affinity(spec, errors);
    addresses::related(spec, None, errors);
    for (at, ip) in list(spec, "externalIPs").iter().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        let field = format!("spec.externalIPs[{at}]");
        let problems = names::ip(ip);
        if problems.is_empty() {
            special_ip(ip, &field, errors);
        }
        errors.all_invalid(&field, ip, problems);
    }
    errors.required_one_of("spec.type", kind, &TYPES);
    duplicates(spec, kind, errors);
    source_ranges(spec, kind, errors);
    only_for_balancers(spec, old, kind, errors);
    traffic(spec, errors);
}

/// Errors of `status`.
pub(super) fn status(service: &Object, errors: &mut Errors) {
    let balancer = at(service, &["status", "loadBalancer"]);
    if list(balancer, "ingress").is_empty() {
        return;
    }
    if text(below(service, "spec"), "type") != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.forbidden("status.loadBalancer.ingress", detail);
        return;
    }
    ingress(balancer, "status.loadBalancer", true, errors);
}

/// Addresses in the status of a load balancer: of Services, whose addresses have a mode, and of Ingresses.
pub(in crate::kinds) fn ingress(balancer: &Object, path: &str, modes: bool, errors: &mut Errors) {
    for (path, ingress) in items(balancer, "ingress", path) {
        let (ip, hostname) = (text(ingress, "ip"), text(ingress, "hostname"));
        if !ip.is_empty() {
            errors.all_invalid(&format!("{path}.ip"), ip, names::ip(ip));
        }
        let mode = ingress.get("ipMode").and_then(Value::as_str).filter(|_| modes);
        match mode {
            Some(_) if ip.is_empty() => {
                errors.forbidden(
                    format!("{path}.ipMode"),
                    "may not be specified when `ip` is not set",
                );
            }
            Some(mode) => errors.one_of(format!("{path}.ipMode"), mode, &["Proxy", "VIP"]),
            None => {}
        }
        if !hostname.is_empty() {
            let field = format!("{path}.hostname");
            errors.all_invalid(&field, hostname, names::dns_subdomain(hostname, false));
            if names::ip(hostname).is_empty() {
                let detail = "must be a DNS name, not an IP address";
                errors.invalid(&field, hostname, detail);
            }
        }
    }
}

fn of_type(spec: &Object, kind: &str, errors: &mut Errors) {
    match kind {
        "LoadBalancer" | "NodePort" => {
            if kind == "LoadBalancer" {
                for (path, port) in items(spec, "ports", "spec") {
                    if count(port, "port") == KUBELET {
                        let detail = "may not expose port 10250 externally since it is used by kubelet";
                        errors.push(FieldError::new(
                            path,
                            Problem::InvalidText(internal(port)),
                            detail,
                        ));
                    }
                }
            }
            if is_headless(spec) {
                let detail = format!("may not be set to 'None' for {kind} services");
                errors.invalid("spec.clusterIPs[0]", "None", &detail);
            }
        }
        "ExternalName" => match text(spec, "externalName") {
            "" => errors.required("spec.externalName", ""),
            name => {
                let name = name.strip_suffix('.').unwrap_or(name);
                errors.all_invalid("spec.externalName", name, names::dns_subdomain(name, false));
            }
        },
        _ => {}
    }
}

fn port<'a>(port: &'a Object, path: &str, named: bool, seen: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            errors.required(format!("{path}.name"), "");
        }
    } else {
        errors.all_invalid(&format!("{path}.name"), name, names::dns_label(name, false));
        if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
    }
    let number = count(port, "port");
    errors.all_invalid(&format!("{path}.port"), number, names::port_number(number));
    errors.required_one_of(
        format!("{path}.protocol"),
        text(port, "protocol"),
        &["SCTP", "TCP", "UDP"],
    );
    let field = format!("{path}.targetPort");
    match port.get("targetPort") {
        Some(Value::String(name)) => errors.all_invalid(&field, name.as_str(), names::port_name(name)),
        target => {
            let number = target.and_then(Value::as_i64).unwrap_or(0);
            errors.all_invalid(&field, number, names::port_number(number));
        }
    }
    app_protocol(port, path, errors);
}

fn affinity(spec: &Object, errors: &mut Errors) {
    let affinity = text(spec, "sessionAffinity");
    errors.required_one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    if affinity == "ClientIP" {
        let seconds = count(at(spec, &["sessionAffinityConfig", "clientIP"]), "timeoutSeconds");
        if !(1..=LONGEST).contains(&seconds) {
            let detail = format!("must be greater than 0 and less than {LONGEST}");
            errors.invalid(
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                seconds,
                &detail,
            );
        }
    } else if affinity == "None" && spec.contains_key("sessionAffinityConfig") {
        let detail = "must not be set when session affinity is None";
        errors.forbidden("spec.sessionAffinityConfig", detail);
    }
}

fn duplicates(spec: &Object, kind: &str, errors: &mut Errors) {
    if kind == "ClusterIP" {
        for (path, port) in items(spec, "ports", "spec") {
            if given(port, "nodePort").is_some() {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.forbidden(format!("{path}.nodePort"), detail);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (path, port) in items(spec, "ports", "spec") {
        if let Some(number) = given(port, "nodePort")
            && !seen.insert((text(port, "protocol"), number))
        {
            errors.duplicate(format!("{path}.nodePort"), number);
        }
    }
    seen.clear();
    for (path, port) in items(spec, "ports", "spec") {
        if !seen.insert((text(port, "protocol"), count(port, "port"))) {
            // The server quotes the part of a port that makes it unique, in its own form.
            let quoted = json!({"protocol": text(port, "protocol"), "port": count(port, "port")});
            let quoted = internal(quoted.as_object().unwrap_or(port));
            errors.push(FieldError::new(path, Problem::DuplicateText(quoted), ""));
        }
    }
}

/// A port in the server's own form, whose fields are in another order than JSON's.
fn internal(port: &Object) -> String {
    let shown = |key: &str, absent: &str| port.get(key).map_or_else(|| absent.to_owned(), Value::to_string);
    format!(
        r#"{{"Name":{},"Protocol":{},"AppProtocol":{},"Port":{},"TargetPort":{},"NodePort":{}}}"#,
        shown("name", "\"\""),
        shown("protocol", "\"\""),
        shown("appProtocol", "null"),
        shown("port", "0"),
        shown("targetPort", "0"),
        shown("nodePort", "0"),
    )
}

fn source_ranges(spec: &Object, kind: &str, errors: &mut Errors) {
    let ranges = list(spec, "loadBalancerSourceRanges");
    if ranges.is_empty() {
        return;
    }
    if kind != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        errors.forbidden("spec.LoadBalancerSourceRanges", detail);
    }
    for (at, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default().trim();
        let field = format!("spec.LoadBalancerSourceRanges[{at}]");
        errors.all_invalid(&field, range, names::cidr(range));
    }
}

fn only_for_balancers(spec: &Object, old: Option<&Object>, kind: &str, errors: &mut Errors) {
    const DETAIL: &str = "may only be used when `type` is 'LoadBalancer'";
    let balancer = kind == "LoadBalancer";
    let allocates = spec.get("allocateLoadBalancerNodePorts");
    if balancer && allocates.is_none() {
        errors.required("spec.allocateLoadBalancerNodePorts", "");
    }
    if !balancer && allocates.is_some() {
        errors.forbidden("spec.allocateLoadBalancerNodePorts", DETAIL);
    }
    let before = old.filter(|old| balancer && text(old, "type") == kind);
    if before.is_some_and(|old| !same(old.get("loadBalancerClass"), spec.get("loadBalancerClass"))) {
        let class = spec.get("loadBalancerClass").cloned().unwrap_or(Value::Null);
        errors.invalid("spec.loadBalancerClass", class, "may not change once set");
    }
    if let Some(Value::String(class)) = spec.get("loadBalancerClass") {
        if balancer {
            errors.all_invalid(
                "spec.loadBalancerClass",
                class.as_str(),
                names::qualified_name(class),
            );
        } else {
            errors.forbidden("spec.loadBalancerClass", DETAIL);
        }
    }
}

fn traffic(spec: &Object, errors: &mut Errors) {
    let policies = ["Cluster", "Local"];
    let external = text(spec, "externalTrafficPolicy");
    match (is_external(spec), external) {
        (false, "") => {}
        (false, policy) => {
            let detail = "may only be set for externally-accessible services";
            errors.invalid("spec.externalTrafficPolicy", policy, detail);
        }
        (true, "") => errors.required("spec.externalTrafficPolicy", ""),
        (true, policy) => errors.one_of("spec.externalTrafficPolicy", policy, &policies),
    }
    let health = number(spec, "healthCheckNodePort").unwrap_or(0);
    if needs_health_port(spec) {
        if health == 0 {
            errors.required("spec.healthCheckNodePort", "");
        }
    } else if health != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.invalid("spec.healthCheckNodePort", health, detail);
    }
    if needs_ip(spec) {
        errors.required_one_of(
            "spec.internalTrafficPolicy",
            text(spec, "internalTrafficPolicy"),
            &policies,
        );
    }
    if let Some(Value::String(distribution)) = spec.get("trafficDistribution") {
        errors.one_of(
            "spec.trafficDistribution",
            distribution,
            &["PreferClose", "PreferSameZone", "PreferSameNode"],
        );
    }
}
