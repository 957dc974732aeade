//! LimitRanges: the objects. Admission enforces them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    kinds::{
        amounts::{nano, shown},
        kind_def::KindDef,
    },
    names,
    object::{
        Object,
        tree::{Errors, below, each, items, made, object_mut, text},
    },
    status::FieldError,
};

pub(super) static DEF: KindDef = KindDef {
    short: &["limits"],
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
    ..KindDef::of::<k8s_openapi::api::core::v1::LimitRange>()
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

/// The pairs of fields of which the first may not be greater than the second.
struct Order {
    /// Field of the error.
    field: &'static str,
    /// The bound whose value the error quotes.
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
