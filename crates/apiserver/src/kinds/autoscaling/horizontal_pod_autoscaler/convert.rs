//! Between `autoscaling/v1` and `v2`: fields that the first lacks are in annotations there.

use serde_json::{Value, json};

use crate::object::{
    Object, metadata, metadata_mut,
    tree::{below, list, made, number, text},
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// All of them.
pub(super) const ANNOTATIONS: [&str; 4] = [METRICS, CURRENT, CONDITIONS, BEHAVIOR];

const PERCENT: &str = "targetCPUUtilizationPercentage";
const CURRENT_PERCENT: &str = "currentCPUUtilizationPercentage";

/// Fields whose names differ: of `v2` below the source, of `v1` in it.
const TARGETS: [(&str, &str); 3] = [
    ("averageUtilization", "targetAverageUtilization"),
    ("averageValue", "targetAverageValue"),
    ("value", "targetValue"),
];

/// The same for what was measured.
const MEASURED: [(&str, &str); 3] = [
    ("averageUtilization", "currentAverageUtilization"),
    ("averageValue", "currentAverageValue"),
    ("value", "currentValue"),
];

/// Makes `v1` of `v2`.
pub(super) fn to_first(object: &mut Object) {
    let spec = made(object, "spec");
    let mut metrics = taken_list(spec, "metrics");
    if let Some(at) = metrics.iter().position(is_cpu) {
        let cpu = metrics.remove(at);
        let percent = cpu["resource"]["target"]["averageUtilization"].clone();
        spec.insert(PERCENT.to_owned(), percent);
    }
    let behavior = spec.remove("behavior");
    let status = made(object, "status");
    // The measured cpu stays among the others: its raw value has no field here.
    let current = taken_list(status, "currentMetrics");
    if let Some(cpu) = current.iter().find(|metric| is_measured_cpu(metric)) {
        let percent = cpu["resource"]["current"]["averageUtilization"].clone();
        status.insert(CURRENT_PERCENT.to_owned(), percent);
    }
    let conditions = taken_list(status, "conditions");
    for key in ["currentReplicas", "desiredReplicas"] {
        crate::object::tree::default(status, key, 0);
    }
    if !metrics.is_empty() {
        let metrics = metrics
            .iter()
            .map(|one| flattened(one, "target", &TARGETS))
            .collect();
        annotate(object, METRICS, &one_line(&Value::Array(metrics)));
    }
    if !current.is_empty() {
        let current = current
            .iter()
            .map(|one| flattened(one, "current", &MEASURED))
            .collect();
        annotate(object, CURRENT, &one_line(&Value::Array(current)));
    }
    if !conditions.is_empty() {
        annotate(object, CONDITIONS, &one_line(&Value::Array(conditions)));
    }
    if let Some(behavior) = behavior.as_ref().and_then(Value::as_object) {
        annotate(object, BEHAVIOR, &internal_behavior(behavior));
    }
}

/// Makes `v2` of `v1`.
pub(super) fn to_second(object: &mut Object) {
    let [metrics, current, conditions, behavior] =
        [METRICS, CURRENT, CONDITIONS, BEHAVIOR].map(|key| annotation(object, key));
    let spec = made(object, "spec");
    let mut all = Vec::new();
    if let Some(percent) = spec.remove(PERCENT).filter(|percent| !percent.is_null()) {
        all.push(json!({"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}));
    }
    let nested = |list: &[Value], part: &str, names| -> Vec<Value> {
        list.iter().map(|one| self::nested(one, part, names)).collect()
    };
    if let Some(Value::Array(list)) = &metrics {
        all.extend(nested(list, "target", &TARGETS));
    }
    if !all.is_empty() {
        spec.insert("metrics".to_owned(), Value::Array(all));
    }
    if let Some(Value::Object(behavior)) = &behavior {
        spec.insert("behavior".to_owned(), lowered(behavior));
    }
    let status = made(object, "status");
    let percent = status.remove(CURRENT_PERCENT);
    if let Some(Value::Array(list)) = &current {
        let all = nested(list, "current", &MEASURED);
        status.insert("currentMetrics".to_owned(), all.into());
    } else if let Some(percent) = percent {
        let cpu = json!([{"type": "Resource", "resource":
            {"name": "cpu", "current": {"averageUtilization": percent}}}]);
        status.insert("currentMetrics".to_owned(), cpu);
    }
    if let Some(Value::Array(list)) = conditions {
        status.insert("conditions".to_owned(), Value::Array(list));
    }
    if number(status, "currentReplicas") == Some(0) {
        status.remove("currentReplicas");
    }
}

fn taken_list(parent: &mut Object, key: &str) -> Vec<Value> {
    match parent.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["target"]["averageUtilization"].is_number()
}

fn is_measured_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["current"]["averageUtilization"].is_number()
}

/// A metric of `v1`: what `v2` has in `part` and in `metric` stands beside each other.
fn flattened(metric: &Value, part: &str, names: &[(&str, &str)]) -> Value {
    let mut metric = metric.clone();
    for (kind, source) in sources(&mut metric) {
        let Some(Value::Object(inner)) = source.remove(part) else {
            continue;
        };
        for (second, first) in names {
            if let Some(value) = inner.get(*second) {
                source.insert(first_name(kind, second, first).to_owned(), value.clone());
            }
        }
        if let Some(Value::Object(mut named)) = source.remove("metric") {
            if let Some(name) = named.remove("name") {
                source.insert("metricName".to_owned(), name);
            }
            if let Some(selector) = named.remove("selector") {
                source.insert(selector_name(kind).to_owned(), selector);
            }
        }
        if let Some(described) = source.remove("describedObject") {
            source.insert("target".to_owned(), described);
        }
    }
    metric
}

/// A metric of `v2`, from one of `v1`.
fn nested(metric: &Value, part: &str, names: &[(&str, &str)]) -> Value {
    let mut metric = metric.clone();
    for (kind, source) in sources(&mut metric) {
        if let Some(described) = source.remove("target") {
            source.insert("describedObject".to_owned(), described);
        }
        let mut inner = Object::new();
        for (second, first) in names {
            if let Some(value) = source.remove(first_name(kind, second, first)) {
                if part == "target" {
                    let sort = match *second {
                        "averageUtilization" => "Utilization",
                        "averageValue" => "AverageValue",
                        _ => "Value",
                    };
                    inner.insert("type".to_owned(), sort.into());
                }
                inner.insert((*second).to_owned(), value);
            }
        }
        source.insert(part.to_owned(), Value::Object(inner));
        if let Some(name) = source.remove("metricName") {
            let mut named = json!({"name": name});
            if let Some(selector) = source.remove(selector_name(kind)) {
                named["selector"] = selector;
            }
            source.insert("metric".to_owned(), named);
        }
    }
    metric
}

/// The name of an amount in `v1`: objects have one of their own.
fn first_name<'a>(kind: &str, second: &'a str, first: &'a str) -> &'a str {
    if kind == "object" && second == "averageValue" {
        second
    } else {
        first
    }
}

/// The name of the selector of a metric in `v1`.
fn selector_name(kind: &str) -> &'static str {
    if kind == "external" {
        "metricSelector"
    } else {
        "selector"
    }
}

/// The fields of a metric beside its type, by name.
fn sources(metric: &mut Value) -> impl Iterator<Item = (&str, &mut Object)> {
    metric
        .as_object_mut()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "type")
        .filter_map(|(key, value)| Some((key.as_str(), value.as_object_mut()?)))
}

/// The order in which the server writes the fields of metrics and conditions.
const ORDER: [&str; 20] = [
    "type",
    "status",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetValue",
    "currentValue",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "lastTransitionTime",
    "reason",
    "message",
];

/// JSON on one line, in the server's order.
fn one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let rank = |key: &str| {
                ORDER
                    .iter()
                    .position(|known| *known == key)
                    .unwrap_or(ORDER.len())
            };
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_by_key(|key| (rank(key), (*key).clone()));
            let parts: Vec<String> = keys
                .into_iter()
                .map(|key| format!("{}:{}", Value::from(key.as_str()), one_line(&fields[key])))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", parts.join(","))
        }
        other => other.to_string(),
    }
}

fn annotate(object: &mut Object, key: &str, value: &str) {
    made(metadata_mut(object), "annotations").insert(key.to_owned(), value.into());
}

/// Takes an annotation out; what is not JSON is lost, as in the real server.
fn annotation(object: &mut Object, key: &str) -> Option<Value> {
    let text = text(below(metadata(object), "annotations"), key).to_owned();
    let annotations = made(metadata_mut(object), "annotations");
    annotations.remove(key);
    if annotations.is_empty() {
        metadata_mut(object).remove("annotations");
    }
    serde_json::from_str(&text).ok()
}

/// The behavior by the names of the server's own types, every field shown.
fn internal_behavior(behavior: &Object) -> String {
    let rules = |key: &str| {
        let Some(rules) = crate::object::tree::object(behavior, key) else {
            return "null".to_owned();
        };
        let shown = |key: &str| rules.get(key).unwrap_or(&Value::Null).to_string();
        let policies: Vec<String> = list(rules, "policies")
            .iter()
            .map(|one| {
                format!(
                    "{{\"Type\":{},\"Value\":{},\"PeriodSeconds\":{}}}",
                    one["type"], one["value"], one["periodSeconds"]
                )
            })
            .collect();
        format!(
            "{{\"StabilizationWindowSeconds\":{},\"SelectPolicy\":{},\"Policies\":[{}],\"Tolerance\":{}}}",
            shown("stabilizationWindowSeconds"),
            shown("selectPolicy"),
            policies.join(","),
            shown("tolerance")
        )
    };
    format!(
        "{{\"ScaleUp\":{},\"ScaleDown\":{}}}",
        rules("scaleUp"),
        rules("scaleDown")
    )
}

/// The same by the names of JSON, without what is null.
fn lowered(object: &Object) -> Value {
    let fields = object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let mut letters = key.chars();
            let key = letters.next().map_or_else(String::new, |first| {
                first.to_lowercase().collect::<String>() + letters.as_str()
            });
            let value = match value {
                Value::Object(inner) => lowered(inner),
                Value::Array(items) => Value::Array(
                    items
                        .iter()
                        .map(|one| one.as_object().map_or_else(|| one.clone(), lowered))
                        .collect(),
                ),
                other => other.clone(),
            };
            (key, value)
        });
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{to_first, to_second};
    use crate::object::Object;

    fn object(value: &serde_json::Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_the_first_version_cannot_say_survives_it() {
        let second = object(
            &json!({"metadata": {"name": "a", "annotations": {"mine": "stays"}},
            "spec": {"maxReplicas": 5, "minReplicas": 1,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
                    {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
                        "target": {"type": "Value", "value": "1"}}}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}},
            "status": {"desiredReplicas": 2, "conditions": [{"type": "AbleToScale", "status": "True"}]}}),
        );
        let mut there = second.clone();
        to_first(&mut there);
        assert_eq!(
            there["spec"],
            json!({"maxReplicas": 5, "minReplicas": 1, "targetCPUUtilizationPercentage": 70})
        );
        assert_eq!(
            there["status"],
            json!({"currentReplicas": 0, "desiredReplicas": 2})
        );
        to_second(&mut there);
        assert_eq!(there, second);
    }
}
