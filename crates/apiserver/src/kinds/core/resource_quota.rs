//! ResourceQuotas: the objects. Admission enforces them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    kinds::{
        amounts::nano,
        kind_def::{KindDef, empty_status},
        pod_spec,
    },
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, items, list, made, same, text},
    },
    printer::{AGE, NAME, Printer, View, words},
};

/// Scopes of a quota.
const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Scopes that are compared with values.
const WITH_VALUES: [&str; 2] = ["PriorityClass", "VolumeAttributesClass"];

const PATH: &str = "spec.scopeSelector.matchExpressions";

const UNSUPPORTED: &str = "unsupported scope applied to resource";

/// The resources of quotas without a domain, and the objects whose scopes they have.
const RESOURCES: [(&str, &str); 19] = [
    ("cpu", "pod"),
    ("memory", "pod"),
    ("ephemeral-storage", ""),
    ("requests.cpu", "pod"),
    ("requests.memory", "pod"),
    ("requests.storage", "claim"),
    ("requests.ephemeral-storage", ""),
    ("limits.cpu", "pod"),
    ("limits.memory", "pod"),
    ("limits.ephemeral-storage", ""),
    ("pods", "pod"),
    ("resourcequotas", ""),
    ("services", ""),
    ("replicationcontrollers", ""),
    ("secrets", ""),
    ("persistentvolumeclaims", "claim"),
    ("configmaps", ""),
    ("services.nodeports", ""),
    ("services.loadbalancers", ""),
];

/// Resources that count whole things.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const ABOUT_REQUEST: &str = "Request represents a minimum amount of cpu/memory that a container may consume.";
const ABOUT_LIMIT: &str = "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.";

pub(super) static DEF: KindDef = KindDef {
    short: &["quota"],
    subresources: &["status"],
    returns_object: true,
    defaults: |quota| {
        made(quota, "spec");
    },
    created: empty_status,
    errors: quota,
    changes: Some(|new, old, errors| {
        quota(new, errors);
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        let set = |spec: &Object| -> BTreeSet<String> {
            let scopes = list(spec, "scopes").iter().filter_map(Value::as_str);
            scopes.map(str::to_owned).collect()
        };
        if set(before) != set(after) {
            let scopes = after.get("scopes").cloned().unwrap_or(Value::Null);
            errors.invalid("spec.scopes", scopes, IMMUTABLE);
        }
        if !same(before.get("scopeSelector"), after.get("scopeSelector")) {
            let selector = after.get("scopeSelector").cloned().unwrap_or(Value::Null);
            errors.invalid("spec.scopeSelector", selector, IMMUTABLE);
        }
    }),
    status_changes: |new, _, errors| {
        let status = below(new, "status");
        for key in ["hard", "used"] {
            amounts(below(status, key), &format!("status.{key}"), errors);
        }
    },
    printer: Printer::of(&[
        NAME,
        words("Request", ABOUT_REQUEST).shows(|quota| used(quota, false).into()),
        words("Limit", ABOUT_LIMIT).shows(|quota| used(quota, true).into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::ResourceQuota>()
};

fn quota(quota: &Object, errors: &mut Errors) {
    let spec = below(quota, "spec");
    amounts(below(spec, "hard"), "spec.hard", errors);
    let hard: Vec<&String> = below(spec, "hard")
        .keys()
        .filter(|name| is_standard(name))
        .collect();
    let scopes: Vec<&str> = list(spec, "scopes").iter().filter_map(Value::as_str).collect();
    let shown = || spec.get("scopes").cloned().unwrap_or(Value::Null);
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.invalid("spec.scopes", shown(), "unsupported scope");
        }
        for _ in hard.iter().filter(|name| !counts_in(scope, name)) {
            errors.invalid("spec.scopes", shown(), UNSUPPORTED);
        }
    }
    contradictions(&scopes, "spec.scopes", &shown(), errors);
    let mut scopes = Vec::new();
    let selector = below(spec, "scopeSelector");
    for (_, expression) in items(selector, "matchExpressions", "") {
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !SCOPES.contains(&scope) {
            errors.invalid(format!("{PATH}.scopeName"), scope, "unsupported scope");
        }
        for _ in hard.iter().filter(|name| !counts_in(scope, name)) {
            errors.invalid(PATH, Value::Object(selector.clone()), UNSUPPORTED);
        }
        if SCOPES.contains(&scope) && !WITH_VALUES.contains(&scope) && operator != "Exists" {
            errors.invalid(
                format!("{PATH}.operator"),
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            );
        }
        let values = list(expression, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => errors.required(
                format!("{PATH}.values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.invalid(
                format!("{PATH}.values"),
                Value::Array(values.to_vec()),
                "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(format!("{PATH}.operator"), other, "not a valid selector operator"),
        }
        scopes.push(scope);
    }
    contradictions(&scopes, PATH, &shown(), errors);
}

/// Scopes that exclude each other.
fn contradictions(scopes: &[&str], path: &str, shown: &Value, errors: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["NotTerminating", "Terminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.invalid(path, shown.clone(), "conflicting scopes");
        }
    }
}

fn is_standard(name: &str) -> bool {
    RESOURCES.iter().any(|(known, _)| *known == name)
        || name
            .strip_prefix("requests.")
            .unwrap_or(name)
            .starts_with("hugepages-")
}

/// True if a scope is one of the objects that a standard resource is about; any scope goes with others.
fn counts_in(scope: &str, name: &str) -> bool {
    let about = RESOURCES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, about)| about);
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => about == "claim",
        scope if SCOPES.contains(&scope) => about == "pod",
        _ => true,
    }
}

/// Names and amounts of quotas.
fn amounts(map: &Object, path: &str, errors: &mut Errors) {
    let map: BTreeMap<&String, &Value> = map.iter().collect();
    for (name, amount) in map {
        let field = format!("{path}[{name}]");
        let problems = names::qualified_name(name);
        if problems.is_empty() && !name.contains('/') && !is_standard(name) {
            if name != "storage" {
                let detail = "must be a standard resource type or fully qualified";
                errors.invalid(&field, name.as_str(), detail);
            }
            errors.invalid(&field, name.as_str(), "must be a standard resource for quota");
        }
        errors.all_invalid(&field, name.as_str(), problems);
        let nano = nano(amount).unwrap_or(0);
        if nano < 0 {
            let detail = crate::object::tree::NOT_NEGATIVE;
            errors.invalid(&field, amount.clone(), detail);
        }
        let counted = WHOLE.contains(&name.as_str()) || pod_spec::resources::is_extended(name);
        if counted && nano % 1_000_000_000 != 0 {
            errors.invalid(&field, amount.clone(), "must be an integer");
        }
    }
}

/// The usage of a quota: `pods: 1/10, …`; limits are apart from the rest.
fn used(quota: &View<'_>, limits: bool) -> String {
    let hard = quota.at("status.hard").and_then(Value::as_object);
    let used = quota.at("status.used");
    let words: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used
                .and_then(|used| used.get(name))
                .and_then(Value::as_str)
                .unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    words.join(", ")
}
