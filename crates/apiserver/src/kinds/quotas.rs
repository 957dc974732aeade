//! LimitRanges and ResourceQuotas: the objects. Admission enforces them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    amounts::nano,
    kind::{Kind, empty_status},
};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, each, items, list, made, object_mut, same, text},
    },
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

/// LimitRange.
pub(super) static LIMIT_RANGE: Kind = Kind {
    kind: "LimitRange",
    defaults: |range| {
        let spec = made(range, "spec");
        // Always sent.
        spec.entry("limits").or_insert(Value::Null);
        each(spec, "limits", |limit| {
            if text(limit, "type") == "Container" {
                container_defaults(limit);
            }
        });
    },
    errors: limits,
    ..Kind::PLAIN
};

/// ResourceQuota.
pub(super) static QUOTA: Kind = Kind {
    kind: "ResourceQuota",
    has_status: true,
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
    ..Kind::PLAIN
};

/// A container's limits give its requests: max → default → defaultRequest, and min → defaultRequest.
fn container_defaults(limit: &mut Object) {
    let of = |limit: &Object, key: &str| below(limit, key).clone();
    let fill = |limit: &mut Object, key: &str, from: Object| {
        if from.is_empty() {
            return;
        }
        let to = made(limit, key);
        for (name, amount) in from {
            to.entry(name).or_insert(amount);
        }
    };
    let max = of(limit, "max");
    fill(limit, "default", max);
    let defaults = of(limit, "default");
    fill(limit, "defaultRequest", defaults);
    let min = of(limit, "min");
    fill(limit, "defaultRequest", min);
    for key in ["default", "defaultRequest"] {
        if object_mut(limit, key).is_some_and(|map| map.is_empty()) {
            limit.remove(key);
        }
    }
}

fn limits(range: &Object, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (path, limit) in items(below(range, "spec"), "limits", "spec") {
        let kind = text(limit, "type");
        let field = format!("{path}.type");
        errors.extend(limit_type(kind, &field));
        if !seen.insert(kind) {
            errors.duplicate(&field, kind);
        }
        if kind == "Pod" {
            for key in ["default", "defaultRequest"] {
                if !below(limit, key).is_empty() {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.forbidden(format!("{path}.{key}"), detail);
                }
            }
        }
        if kind == "PersistentVolumeClaim"
            && !below(limit, "min").contains_key("storage")
            && !below(limit, "max").contains_key("storage")
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.required(format!("{path}.limits"), detail);
        }
        ordered(limit, &path, errors);
    }
}

fn limit_type(kind: &str, field: &str) -> Vec<FieldError> {
    let mut problems = names::qualified_name(kind);
    if problems.is_empty()
        && !kind.contains('/')
        && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        problems.push("must be a standard limit type or fully qualified".to_owned());
    }
    problems
        .into_iter()
        .map(|problem| FieldError::invalid(field, kind, problem))
        .collect()
}

/// What may not be greater than what.
struct Order {
    /// Field of the error.
    field: &'static str,
    /// Whose value the error quotes.
    quoted: &'static str,
    /// The lower amount and what it is called.
    low: (&'static str, &'static str),
    /// The higher one.
    high: (&'static str, &'static str),
}

const fn order(
    field: &'static str,
    quoted: &'static str,
    low: (&'static str, &'static str),
    high: (&'static str, &'static str),
) -> Order {
    Order {
        field,
        quoted,
        low,
        high,
    }
}

const MIN: (&str, &str) = ("min", "min");
const MAX: (&str, &str) = ("max", "max");
const REQUEST: (&str, &str) = ("defaultRequest", "default request");

const ORDER: [Order; 6] = [
    order("min", "min", MIN, MAX),
    order("defaultRequest", "defaultRequest", MIN, REQUEST),
    order("defaultRequest", "defaultRequest", REQUEST, MAX),
    order(
        "defaultRequest",
        "defaultRequest",
        REQUEST,
        ("default", "default limit"),
    ),
    order("default", "min", MIN, ("default", "default")),
    order("default", "max", ("default", "default"), MAX),
];

fn ordered(limit: &Object, path: &str, errors: &mut Errors) {
    let names: BTreeSet<&String> = ["max", "min", "default", "defaultRequest"]
        .iter()
        .flat_map(|key| below(limit, key).keys())
        .collect();
    for name in names {
        let amount = |key: &str| below(limit, key).get(name);
        for rule in &ORDER {
            let ((low, low_name), (high, high_name)) = (rule.low, rule.high);
            let (Some(less), Some(more)) = (amount(low), amount(high)) else {
                continue;
            };
            if nano(less) <= nano(more) {
                continue;
            }
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let detail = format!(
                "{low_name} value {} is greater than {high_name} value {}",
                shown(less),
                shown(more)
            );
            let value = amount(rule.quoted).map(shown).unwrap_or_default();
            errors.invalid(format!("{path}.{}[{name}]", rule.field), value, &detail);
        }
    }
}

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
