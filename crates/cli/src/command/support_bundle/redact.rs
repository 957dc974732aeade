//! Redaction of what must not leave a hub: payloads, environment variables, values of overrides; [`scrub`] removes credentials from
//! texts.
//!
//! The field decides, not its value: a value that looks harmless can be a password. What is removed is wiped.

use entourage_core::rendered::wipe;
use serde_json::{Map, Value, json};

use super::scrub::{names_credential, scrub};

/// In the place of a value.
pub const REDACTED: &str = "REDACTED";

/// Fields whose values are payloads, in Secrets and ConfigMaps and wherever such an object is embedded; values for proxies; values
/// from the status of a workload that moved.
const PAYLOADS: &[&str] = &[
    "data",
    "stringData",
    "binaryData",
    "proxyHeader",
    "preservedLabelState",
];

/// A field that is long and of no use.
const BUNDLE: &str = "caBundle";

/// Annotations with these domains, and those below, are of control planes; others may hold anything.
const DOMAINS: &[&str] = &["karmada.io", "entourage.dev"];

/// The domain of Kubernetes' own annotations. Those below it are of other projects too, such as ingress controllers.
const KUBERNETES: &str = "kubernetes.io";

/// Texts in the status of a workload that say how it is.
const STATES: &[&str] = &[
    "type",
    "status",
    "reason",
    "phase",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
];

/// Removes payloads from an object, at any depth.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            for (key, field) in fields.iter_mut() {
                redact_field(key, field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => *text = scrub(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_field(key: &str, field: &mut Value) {
    match field {
        Value::Object(fields) if PAYLOADS.contains(&key) => fields.values_mut().for_each(remove),
        Value::Array(_) if PAYLOADS.contains(&key) => remove(field),
        Value::String(_) if PAYLOADS.contains(&key) || key == BUNDLE || names_credential(key) => {
            remove(field);
        }
        Value::Object(annotations) if key == "annotations" => redact_annotations(annotations),
        // The objects of a Work.
        Value::Array(manifests) if key == "manifests" => {
            manifests.iter_mut().for_each(reduce);
        }
        // The object of a ResourceDistribution; a reference has no metadata.
        Value::Object(fields)
            if matches!(key, "resource" | "template")
                && fields.contains_key("metadata")
                && fields.contains_key("kind") =>
        {
            reduce(field);
        }
        Value::Array(named) if matches!(key, "env" | "httpHeaders") => {
            named
                .iter_mut()
                .filter_map(|each| each.get_mut("value"))
                .for_each(remove);
        }
        Value::Array(arguments) if matches!(key, "args" | "command") => redact_arguments(arguments),
        Value::Object(_) | Value::Array(_) if matches!(key, "overriders" | "overrideRules") => {
            redact_values(field);
            redact(field);
        }
        // The status of workloads, in bindings and in Works.
        Value::Array(reports) if matches!(key, "aggregatedStatus" | "manifestStatuses") => {
            for report in reports {
                if let Some(status) = report.get_mut("status") {
                    redact_status(status);
                }
                redact(report);
            }
        }
        _ => redact(field),
    }
}

/// The value of an override may be a password, and so may a text among several.
fn redact_values(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if key == "value" {
                    remove(field);
                } else {
                    redact_values(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_values),
        _ => {}
    }
}

/// Of a workload's status only numbers and the words of conditions are kept: a kind of its own may report anything.
fn redact_status(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if !(field.is_string() && STATES.contains(&key.as_str())) {
                    redact_status(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_status),
        Value::String(_) => remove(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_annotations(annotations: &mut Map<String, Value>) {
    for (key, value) in annotations.iter_mut() {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_known = DOMAINS.iter().any(|known| {
            domain
                .strip_suffix(known)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        if !is_known && domain != KUBERNETES {
            remove(value);
        } else {
            redact_annotation(value);
        }
    }
}

/// An annotation of a control plane may be JSON, with overrides that were applied.
fn redact_annotation(value: &mut Value) {
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    match parsed {
        Some(mut parsed @ (Value::Object(_) | Value::Array(_))) => {
            redact(&mut parsed);
            wipe(value);
            *value = json!(parsed.to_string());
        }
        _ => redact(value),
    }
}

/// A flag for a credential has its value behind it, unless it is behind an `=`.
fn redact_arguments(arguments: &mut [Value]) {
    let mut is_value = false;
    for argument in arguments {
        let names = argument
            .as_str()
            .is_some_and(|text| text.starts_with('-') && !text.contains('=') && names_credential(text));
        if is_value && !names {
            remove(argument);
        } else {
            redact(argument);
        }
        is_value = names;
    }
}

fn remove(value: &mut Value) {
    wipe(value);
    *value = json!(REDACTED);
}

/// Leaves the identity of an object, without its content.
fn reduce(object: &mut Value) {
    let metadata = &object["metadata"];
    let identity = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"namespace": metadata["namespace"], "name": metadata["name"]}});
    wipe(object);
    *object = identity;
}

#[cfg(test)]
mod tests;
