//! Scheduling constraints of a pod: affinity, tolerations, spreading.

use serde_json::Value;

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, count, items, list, number, object, text},
    },
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn tolerations(spec: &Object, path: &str, errors: &mut Errors) {
    for (path, toleration) in items(spec, "tolerations", path) {
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        let field = |name: &str| format!("{path}.{name}");
        if !key.is_empty() {
            errors.all_invalid(&field("key"), key, names::qualified_name(key));
        }
        if key.is_empty() && operator != "Exists" {
            errors.invalid(
                field("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        if number(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            errors.invalid(
                field("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator {
            "" | "Equal" => {
                let problems = names::label_value(value);
                if !problems.is_empty() {
                    errors.invalid(field("operator"), value, &problems.join(";"));
                }
            }
            "Exists" if !value.is_empty() => errors.invalid(
                field("operator"),
                Value::Object(toleration.clone()),
                "value must be empty when `operator` is 'Exists'",
            ),
            "Exists" => {}
            other => errors.one_of(field("operator"), other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of(field("effect"), effect, &EFFECTS);
        }
    }
}

pub(super) fn affinity(spec: &Object, path: &str, errors: &mut Errors) {
    let Some(affinity) = object(spec, "affinity") else {
        return;
    };
    let path = format!("{path}.affinity");
    if let Some(node) = object(affinity, "nodeAffinity") {
        node_affinity(node, &format!("{path}.nodeAffinity"), errors);
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = object(affinity, key) else {
            continue;
        };
        let path = format!("{path}.{key}");
        for (path, term) in items(pods, REQUIRED, &path) {
            pod_term(term, &path, errors);
        }
        for (path, weighted) in items(pods, PREFERRED, &path) {
            weight(weighted, &path, errors);
            if let Some(term) = object(weighted, "podAffinityTerm") {
                pod_term(term, &format!("{path}.podAffinityTerm"), errors);
            }
        }
    }
}

fn node_affinity(node: &Object, path: &str, errors: &mut Errors) {
    if let Some(required) = object(node, REQUIRED) {
        node_selector(required, &format!("{path}.{REQUIRED}"), errors);
    }
    for (path, preferred) in items(node, PREFERRED, path) {
        weight(preferred, &path, errors);
        if let Some(term) = object(preferred, "preference") {
            node_term(term, &format!("{path}.preference"), errors);
        }
    }
}

/// Terms that select nodes: at least one.
pub(crate) fn node_selector(selector: &Object, path: &str, errors: &mut Errors) {
    if list(selector, "nodeSelectorTerms").is_empty() {
        errors.required(
            format!("{path}.nodeSelectorTerms"),
            "must have at least one node selector term",
        );
    }
    for (path, term) in items(selector, "nodeSelectorTerms", path) {
        node_term(term, &path, errors);
    }
}

fn weight(weighted: &Object, path: &str, errors: &mut Errors) {
    let weight = count(weighted, "weight");
    if !(1..=100).contains(&weight) {
        errors.invalid(format!("{path}.weight"), weight, "must be in the range 1-100");
    }
}

fn node_term(term: &Object, path: &str, errors: &mut Errors) {
    for (path, one) in items(term, "matchExpressions", path) {
        let values = list(one, "values");
        let operator = text(one, "operator");
        let field = format!("{path}.values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(field, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
                field,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "Gt" | "Lt" if values.len() != 1 => errors.required(
                field,
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid(format!("{path}.operator"), other, "not a valid selector operator"),
        }
        let key = text(one, "key");
        errors.all_invalid(&format!("{path}.key"), key, names::qualified_name(key));
    }
    for (path, one) in items(term, "matchFields", path) {
        let values = list(one, "values");
        let operator = text(one, "operator");
        if !["In", "NotIn"].contains(&operator) {
            errors.invalid(
                format!("{path}.operator"),
                operator,
                "not a valid selector operator",
            );
        } else if values.len() != 1 {
            errors.required(
                format!("{path}.values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            );
        }
        if text(one, "key") != "metadata.name" {
            errors.invalid(
                format!("{path}.key"),
                text(one, "key"),
                "not a valid field selector key",
            );
        }
    }
}

fn pod_term(term: &Object, path: &str, errors: &mut Errors) {
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = object(term, key) {
            errors.extend(names::label_selector(selector, &format!("{path}.{key}")));
        }
    }
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        errors.all_invalid(&format!("{path}.namespace"), name, names::dns_label(name, false));
    }
    topology_key(term, path, errors);
}

fn topology_key(term: &Object, path: &str, errors: &mut Errors) {
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.required(format!("{path}.topologyKey"), "can not be empty");
    } else {
        errors.all_invalid(&format!("{path}.topologyKey"), key, names::qualified_name(key));
    }
}

pub(super) fn spread(spec: &Object, path: &str, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (path, one) in items(spec, "topologySpreadConstraints", path) {
        let skew = count(one, "maxSkew");
        if skew <= 0 {
            errors.invalid(format!("{path}.maxSkew"), skew, "must be greater than zero");
        }
        topology_key(one, &path, errors);
        let unsatisfiable = text(one, "whenUnsatisfiable");
        errors.one_of(
            format!("{path}.whenUnsatisfiable"),
            unsatisfiable,
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        let pair = (text(one, "topologyKey"), unsatisfiable);
        if seen.contains(&pair) {
            errors.duplicate(
                format!("{path}.{{topologyKey, whenUnsatisfiable}}"),
                format!("{{{}, {}}}", pair.0, pair.1),
            );
        }
        seen.push(pair);
        if let Some(domains) = number(one, "minDomains") {
            let field = format!("{path}.minDomains");
            if domains <= 0 {
                errors.invalid(&field, domains, "must be greater than zero");
            }
            if unsatisfiable != "DoNotSchedule" {
                let why = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
                );
                errors.invalid(&field, domains, &why);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if one.contains_key(key) {
                errors.one_of(format!("{path}.{key}"), text(one, key), &["Honor", "Ignore"]);
            }
        }
        if let Some(selector) = object(one, "labelSelector") {
            errors.extend(names::label_selector(selector, &format!("{path}.labelSelector")));
        }
    }
}
