//! The errors in webhooks: names, clients, rules, reviews.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FAILURE_POLICIES, conditions, qualified, rule, selectors};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, items, list, number, object, text},
    },
};

pub(super) fn webhooks(configuration: &Object, mutating: bool, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (at, webhook) in list(configuration, "webhooks").iter().enumerate() {
        let Some(webhook) = webhook.as_object() else {
            continue;
        };
        let path = format!("webhooks[{at}]");
        self::webhook(webhook, &path, mutating, errors);
        let name = text(webhook, "name");
        if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
    }
}

fn webhook(webhook: &Object, path: &str, mutating: bool, errors: &mut Errors) {
    qualified(text(webhook, "name"), &format!("{path}.name"), errors);
    for (path, rule) in items(webhook, "rules", path) {
        self::rule(rule, &path, errors);
    }
    if let Some(Value::String(policy)) = webhook.get("failurePolicy") {
        errors.one_of(format!("{path}.failurePolicy"), policy, &FAILURE_POLICIES);
    }
    if let Some(Value::String(policy)) = webhook.get("matchPolicy") {
        errors.one_of(format!("{path}.matchPolicy"), policy, &["Equivalent", "Exact"]);
    }
    match webhook.get("sideEffects").and_then(Value::as_str) {
        None => errors.required(
            format!("{path}.sideEffects"),
            "must specify one of None, NoneOnDryRun",
        ),
        Some(effects) => errors.one_of(format!("{path}.sideEffects"), effects, &["None", "NoneOnDryRun"]),
    }
    if let Some(seconds) = number(webhook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(format!("{path}.timeoutSeconds"), seconds, detail);
    }
    selectors(webhook, path, errors);
    if mutating && let Some(Value::String(policy)) = webhook.get("reinvocationPolicy") {
        errors.one_of(
            format!("{path}.reinvocationPolicy"),
            policy,
            &["IfNeeded", "Never"],
        );
    }
    client(
        below(webhook, "clientConfig"),
        &format!("{path}.clientConfig"),
        errors,
    );
    conditions(webhook, path, errors);
    if list(webhook, "admissionReviewVersions").is_empty() {
        errors.required(
            format!("{path}.admissionReviewVersions"),
            "must specify one of v1, v1beta1",
        );
    } else if !list(webhook, "admissionReviewVersions")
        .iter()
        .any(|version| version == "v1" || version == "v1beta1")
    {
        let versions = webhook
            .get("admissionReviewVersions")
            .cloned()
            .unwrap_or_default();
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid(format!("{path}.admissionReviewVersions"), versions, detail);
    }
}

fn client(config: &Object, path: &str, errors: &mut Errors) {
    match (
        config.get("url").and_then(Value::as_str),
        object(config, "service"),
    ) {
        (Some(url), None) => self::url(url, &format!("{path}.url"), errors),
        (None, Some(service)) => {
            for (key, detail) in [
                ("name", "service name is required"),
                ("namespace", "service namespace is required"),
            ] {
                if text(service, key).is_empty() {
                    errors.required(format!("{path}.service.{key}"), detail);
                }
            }
            let port = number(service, "port").unwrap_or(443);
            for problem in names::port_number(port) {
                let detail = format!("port is not valid: {problem}");
                errors.invalid(format!("{path}.service.port"), port, &detail);
            }
        }
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

fn url(url: &str, field: &str, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(field, scheme, &detail);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() || scheme.is_empty() {
        errors.invalid(field, "", &format!("host must be specified{FORM}"));
    }
    if authority.contains('@') {
        errors.invalid(field, user, "user information is not permitted in the URL");
    }
    let (tail, fragment) = tail.split_once('#').unwrap_or((tail, ""));
    if !fragment.is_empty() {
        errors.invalid(field, fragment, "fragments are not permitted in the URL");
    }
    let query = tail.split_once('?').map_or("", |(_, query)| query);
    if !query.is_empty() {
        errors.invalid(field, query, "query parameters are not permitted in the URL");
    }
}
