//! The errors in an autoscaler, in its `v2` form.

use serde_json::Value;

use crate::{
    kinds::amounts,
    names,
    object::{
        Object,
        tree::{Errors, below, count, items, list, number, object, text},
    },
    status::FieldError,
};

/// Types of metrics, and the field of each.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn spec(spec: &Object) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if let Some(least) = number(spec, "minReplicas").filter(|least| *least < 1) {
        errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    let most = count(spec, "maxReplicas");
    if most < 1 {
        errors.required("spec.maxReplicas", "must be set and greater than 0");
    }
    if number(spec, "minReplicas").is_some_and(|least| most < least) {
        errors.invalid(
            "spec.maxReplicas",
            most,
            "must be greater than or equal to `minReplicas`",
        );
    }
    let target = below(spec, "scaleTargetRef");
    reference(target, "spec.scaleTargetRef", &mut errors);
    let version = text(target, "apiVersion");
    let controller = version == "v1" && text(target, "kind") == "ReplicationController";
    if !version.contains('/') && !controller {
        let field = "spec.scaleTargetRef.apiVersion";
        errors.invalid(field, version, "apiVersion must specify API group");
    }
    for (path, metric) in items(spec, "metrics", "spec") {
        self::metric(metric, &path, &mut errors);
    }
    let idles = list(spec, "metrics")
        .iter()
        .any(|metric| matches!(metric["type"].as_str(), Some("Object" | "External")));
    if number(spec, "minReplicas") == Some(0) && !idles {
        errors.forbidden(
            "spec.metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        );
    }
    if let Some(behavior) = object(spec, "behavior") {
        for (key, longest) in [("scaleUp", 3600), ("scaleDown", 3600)] {
            if let Some(rules) = object(behavior, key) {
                scaling(rules, &format!("spec.behavior.{key}"), longest, &mut errors);
            }
        }
    }
    errors.0
}

fn reference(reference: &Object, path: &str, errors: &mut Errors) {
    for key in ["kind", "name"] {
        let value = text(reference, key);
        if value.is_empty() {
            errors.required(format!("{path}.{key}"), "");
        } else {
            errors.all_invalid(&format!("{path}.{key}"), value, names::path_segment(value, false));
        }
    }
    let version = text(reference, "apiVersion");
    if version.matches('/').count() > 1 {
        errors.invalid(
            format!("{path}.apiVersion"),
            version,
            &format!("unexpected GroupVersion string: {version}"),
        );
    }
}

fn metric(metric: &Object, path: &str, errors: &mut Errors) {
    let kind = text(metric, "type");
    let field = format!("{path}.type");
    if kind.is_empty() {
        errors.required(&field, "must specify a metric source type");
    }
    let possible: Vec<&str> = SOURCES.iter().map(|(kind, _)| *kind).collect();
    errors.one_of(&field, kind, &possible);
    let given: Vec<&str> = SOURCES
        .iter()
        .map(|(_, key)| *key)
        .filter(|key| object(metric, key).is_some())
        .collect();
    if let Some(first) = given.first() {
        source(first, below(metric, first), &format!("{path}.{first}"), errors);
    }
    let expected = match SOURCES.iter().find(|(known, _)| *known == kind) {
        Some((_, key)) => *key,
        None => {
            errors.one_of(&field, kind, &possible);
            ""
        }
    };
    if !expected.is_empty() && !given.contains(&expected) {
        errors.required(
            format!("{path}.{expected}"),
            "must populate information for the given metric source",
        );
    }
    if given.len() != 1 {
        for key in given.iter().filter(|key| **key != expected) {
            errors.forbidden(
                format!("{path}.{key}"),
                "must populate the given metric source only",
            );
        }
    }
}

fn source(key: &str, source: &Object, path: &str, errors: &mut Errors) {
    match key {
        "resource" | "containerResource" => {
            if key == "containerResource" && text(source, "container").is_empty() {
                errors.required(format!("{path}.container"), "must specify a container");
            }
            if text(source, "name").is_empty() {
                errors.required(format!("{path}.name"), "must specify a resource name");
            }
        }
        _ => {
            if key == "object" {
                reference(
                    below(source, "describedObject"),
                    &format!("{path}.describedObject"),
                    errors,
                );
            }
            let name = text(below(source, "metric"), "name");
            if name.is_empty() {
                errors.required(format!("{path}.metric.name"), "must specify a metric name");
            } else {
                errors.all_invalid(
                    &format!("{path}.metric.name"),
                    name,
                    names::path_segment(name, false),
                );
            }
        }
    }
    target(key, below(source, "target"), &format!("{path}.target"), errors);
}

fn target(key: &str, target: &Object, path: &str, errors: &mut Errors) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.required(format!("{path}.type"), "must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        errors.invalid(
            format!("{path}.type"),
            kind,
            "must be either Utilization, Value, or AverageValue",
        );
    }
    for amount in ["value", "averageValue"] {
        let Some(value) = target.get(amount) else { continue };
        if amounts::nano(value).is_some_and(|nano| nano <= 0) {
            errors.invalid(format!("{path}.{amount}"), value.clone(), "must be positive");
        }
    }
    if let Some(percent) = number(target, "averageUtilization").filter(|percent| *percent < 1) {
        errors.invalid(
            format!("{path}.averageUtilization"),
            percent,
            "must be greater than 0",
        );
    }
    let has = |name: &str| target.contains_key(name);
    match key {
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => errors.required(
                format!("{path}.averageUtilization"),
                "must set either a target raw value or a target utilization",
            ),
            (true, true) => errors.forbidden(
                format!("{path}.averageValue"),
                "may not set both a target raw value and a target utilization",
            ),
            _ => {}
        },
        "pods" if !has("averageValue") => errors.required(
            format!("{path}.averageValue"),
            "must specify a positive target averageValue",
        ),
        "object" | "external" if !has("value") && !has("averageValue") => errors.required(
            format!("{path}.averageValue"),
            "must set either a target value for metric or a per-pod target",
        ),
        "external" if has("value") && has("averageValue") => errors.forbidden(
            format!("{path}.value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        _ => {}
    }
}

fn scaling(rules: &Object, path: &str, longest: i64, errors: &mut Errors) {
    let mut late = Errors::default();
    if let Some(tolerance) = rules.get("tolerance")
        && amounts::nano(tolerance).is_some_and(|nano| nano < 0)
    {
        late.invalid(
            format!("{path}.tolerance"),
            tolerance.clone(),
            crate::object::tree::NOT_NEGATIVE,
        );
    }
    if let Some(window) = number(rules, "stabilizationWindowSeconds") {
        let field = format!("{path}.stabilizationWindowSeconds");
        if window < 0 {
            errors.invalid(&field, window, "must be greater than or equal to zero");
        }
        if window > longest {
            let why = format!("must be less than or equal to {longest}");
            errors.invalid(&field, window, &why);
        }
    }
    errors.one_of(
        format!("{path}.selectPolicy"),
        text(rules, "selectPolicy"),
        &["Disabled", "Max", "Min"],
    );
    if list(rules, "policies").is_empty() {
        errors.required(format!("{path}.policies"), "must specify at least one Policy");
    }
    for (path, policy) in items(rules, "policies", path) {
        errors.one_of(format!("{path}.type"), text(policy, "type"), &["Percent", "Pods"]);
        for key in ["value", "periodSeconds"] {
            if count(policy, key) <= 0 {
                errors.invalid(
                    format!("{path}.{key}"),
                    Value::from(count(policy, key)),
                    "must be greater than zero",
                );
            }
        }
        if count(policy, "periodSeconds") > 1800 {
            errors.invalid(
                format!("{path}.periodSeconds"),
                count(policy, "periodSeconds"),
                "must be less than or equal to 1800",
            );
        }
    }
    errors.extend(late.0);
}
