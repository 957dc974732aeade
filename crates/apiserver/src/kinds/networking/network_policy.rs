//! NetworkPolicies.

use serde_json::{Value, json};

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, below, each, items, list, made, object, text},
    },
    printer::{AGE, NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    short: &["netpol"],
    has_generation: true,
    defaults: |policy| {
        let spec = made(policy, "spec");
        if list(spec, "policyTypes").is_empty() {
            let types: &[&str] = if list(spec, "egress").is_empty() {
                &["Ingress"]
            } else {
                &["Ingress", "Egress"]
            };
            spec.insert("policyTypes".to_owned(), json!(types));
        }
        // Always sent.
        spec.entry("podSelector").or_insert_with(|| json!({}));
        for direction in ["ingress", "egress"] {
            each(spec, direction, |rule| {
                each(rule, "ports", |port| {
                    port.entry("protocol").or_insert_with(|| "TCP".into());
                });
            });
        }
    },
    errors: policy,
    printer: Printer::of(&[
        NAME,
        words("Pod-Selector", ".spec.podSelector").shows(|policy| policy.selector("spec.podSelector")),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::networking::v1::NetworkPolicy>()
};

fn policy(policy: &Object, errors: &mut Errors) {
    let spec = below(policy, "spec");
    errors.extend(names::label_selector(
        below(spec, "podSelector"),
        "spec.podSelector",
    ));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (path, rule) in items(spec, direction, "spec") {
            for (path, port) in items(rule, "ports", &path) {
                policy_port(port, &path, errors);
            }
            for (path, peer) in items(rule, peers, &path) {
                policy_peer(peer, &path, errors);
            }
        }
    }
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let value = spec.get("policyTypes").cloned().unwrap_or_default();
        errors.invalid(
            "spec.policyTypes",
            value,
            "may not specify more than two policyTypes",
        );
        return;
    }
    for (at, kind) in types.iter().filter_map(Value::as_str).enumerate() {
        errors.one_of(format!("spec.policyTypes[{at}]"), kind, &["Egress", "Ingress"]);
    }
}

fn policy_port(port: &Object, path: &str, errors: &mut Errors) {
    errors.one_of(
        format!("{path}.protocol"),
        text(port, "protocol"),
        &["SCTP", "TCP", "UDP"],
    );
    match port.get("port") {
        Some(Value::Number(number)) => {
            let number = number.as_i64().unwrap_or(0);
            errors.all_invalid(&format!("{path}.port"), number, names::port_number(number));
            if let Some(end) = port.get("endPort").and_then(Value::as_i64) {
                if end < number {
                    let detail = "must be greater than or equal to `port`";
                    errors.invalid(format!("{path}.endPort"), end, detail);
                }
                errors.all_invalid(&format!("{path}.endPort"), end, names::port_number(end));
            }
        }
        Some(Value::String(name)) => {
            if let Some(end) = port.get("endPort").and_then(Value::as_i64) {
                let detail = "may not be specified when `port` is non-numeric";
                errors.invalid(format!("{path}.endPort"), end, detail);
            }
            errors.all_invalid(&format!("{path}.port"), name.as_str(), names::port_name(name));
        }
        _ => {
            if let Some(end) = port.get("endPort").and_then(Value::as_i64) {
                let detail = "may not be specified when `port` is not specified";
                errors.invalid(format!("{path}.endPort"), end, detail);
            }
        }
    }
}

fn policy_peer(peer: &Object, path: &str, errors: &mut Errors) {
    let mut set = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = object(peer, key) {
            set += 1;
            errors.extend(names::label_selector(selector, &format!("{path}.{key}")));
        }
    }
    if let Some(block) = object(peer, "ipBlock") {
        if set > 0 {
            let detail = "may not specify both ipBlock and another peer";
            errors.forbidden(path, detail);
        }
        set += 1;
        let cidr = text(block, "cidr");
        let field = format!("{path}.ipBlock.cidr");
        if cidr.is_empty() {
            errors.required(field, "");
        } else {
            errors.all_invalid(&field, cidr, names::cidr(cidr));
        }
        for (at, except) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
            errors.all_invalid(
                &format!("{path}.ipBlock.except[{at}]"),
                except,
                names::cidr(except),
            );
            if !names::is_smaller(except, cidr) {
                errors.invalid(
                    format!("{path}.ipBlock.except[{at}]"),
                    except,
                    "must be a strict subset of `cidr`",
                );
            }
        }
    }
    if set == 0 {
        errors.required(path, "must specify a peer");
    }
}
