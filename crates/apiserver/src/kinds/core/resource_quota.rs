//! ResourceQuotas: the objects. Admission enforces them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    kinds::{
        amounts::nano,
        kind_def::{KindDef, empty_status},
    },
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, items, list, made, same, text},
    },
    printer::{AGE, NAME, Printer, View, words},
    status::FieldError,
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
    printer: Printer::new(
        &[
            NAME,
            words(
                "Request",
                "Request represents a minimum amount of cpu/memory that a container may consume.",
            ),
            words(
                "Limit",
                "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
            ),
            AGE,
        ],
        |quota| {
            vec![
                quota.name(),
                used(quota, false).into(),
                used(quota, true).into(),
                quota.age(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::core::v1::ResourceQuota>()
};

fn quota(quota: &Object, errors: &mut Errors) {
    let spec = below(quota, "spec");
    amounts(below(spec, "hard"), "spec.hard", errors);
    for scope in list(spec, "scopes").iter().filter_map(Value::as_str) {
        errors.extend((!SCOPES.contains(&scope)).then(|| {
            let scopes = spec.get("scopes").cloned().unwrap_or_default();
            FieldError::invalid("spec.scopes", scopes, "unsupported scope")
        }));
    }
    let selector = below(spec, "scopeSelector");
    for (path, expression) in items(selector, "matchExpressions", "spec.scopeSelector") {
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !SCOPES.contains(&scope) {
            errors.invalid(format!("{path}.scopeName"), scope, "unsupported scope");
        }
        let values = list(expression, "values").len();
        match operator {
            "In" | "NotIn" if values == 0 => errors.required(
                format!("{path}.values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if values > 0 => errors.invalid(
                format!("{path}.values"),
                expression.get("values").cloned().unwrap_or_default(),
                "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(format!("{path}.operator"), other, "not a valid selector operator"),
        }
    }
}

/// Names and amounts of quotas.
fn amounts(map: &Object, path: &str, errors: &mut Errors) {
    let map: BTreeMap<&String, &Value> = map.iter().collect();
    for (name, amount) in map {
        let field = format!("{path}[{name}]");
        errors.all_invalid(&field, name.as_str(), names::qualified_name(name));
        if nano(amount).is_some_and(|amount| amount < 0) {
            let detail = crate::object::tree::NOT_NEGATIVE;
            errors.invalid(&field, amount.clone(), detail);
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
