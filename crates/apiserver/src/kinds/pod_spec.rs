//! The pod spec, wherever it stands: in a pod, or in the template of a workload. What is filled in and what is refused, in the
//! order and the words of the real server (core/v1 defaults and validation).

mod containers;
mod defaults;
mod env;
pub(crate) mod internal;
mod probes;
pub(crate) mod resources;
mod scheduling;
mod security;
mod volumes;
mod warnings;

use serde_json::Value;

pub(crate) use defaults::{
    pod as pod_defaults, quality, template as template_defaults, volume_source as source_defaults,
};
pub(crate) use scheduling::node_selector;
pub(crate) use volumes::{token_seconds, volume_source};
pub(crate) use warnings::{deprecated_volumes, pod as pod_warnings, template as template_warnings};

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, items, list, number, object, text},
    },
    status::FieldError,
};

/// The three lists of containers.
pub(crate) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// The errors in a pod spec at `path`; `whole`: it is that of a pod, not of a template. O(spec).
pub(crate) fn validate(spec: &Object, path: &str, whole: bool) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let volumes = volumes::validate(spec, path, &mut errors);
    resource_claims(spec, path, &mut errors);
    containers::validate(spec, path, &volumes, whole, &mut errors);
    errors.required_one_of(
        format!("{path}.restartPolicy"),
        text(spec, "restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    errors.required_one_of(
        format!("{path}.dnsPolicy"),
        text(spec, "dnsPolicy"),
        &DNS_POLICIES,
    );
    errors.extend(names::labels(
        below(spec, "nodeSelector"),
        &format!("{path}.nodeSelector"),
    ));
    security::pod(spec, path, &mut errors);
    for (path, secret) in items(spec, "imagePullSecrets", path) {
        errors.needs(secret, &path, "name");
    }
    scheduling::affinity(spec, path, &mut errors);
    dns_config(spec, path, &mut errors);
    gates(spec, path, &mut errors);
    scheduling::spread(spec, path, &mut errors);
    named(spec, path, &mut errors);
    if let Some(seconds) = number(spec, "activeDeadlineSeconds") {
        errors.all_invalid(
            &format!("{path}.activeDeadlineSeconds"),
            seconds,
            names::in_range(seconds, 1, i64::from(i32::MAX)),
        );
    }
    for key in ["hostname", "subdomain"] {
        let value = text(spec, key);
        if !value.is_empty() {
            errors.all_invalid(&format!("{path}.{key}"), value, names::dns_label(value, false));
        }
    }
    scheduling::tolerations(spec, path, &mut errors);
    for (path, alias) in items(spec, "hostAliases", path) {
        let ip = text(alias, "ip");
        errors.all_invalid(&format!("{path}.ip"), ip, names::ip(ip));
        for host in list(alias, "hostnames").iter().filter_map(Value::as_str) {
            errors.all_invalid(
                &format!("{path}.hostnames"),
                host,
                names::dns_subdomain(host, false),
            );
        }
    }
    for key in ["priorityClassName", "runtimeClassName"] {
        let value = text(spec, key);
        if !value.is_empty() {
            errors.all_invalid(
                &format!("{path}.{key}"),
                value,
                names::dns_subdomain(value, false),
            );
        }
    }
    let policy = text(spec, "preemptionPolicy");
    if !policy.is_empty() {
        errors.one_of(
            format!("{path}.preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }
    if let Some(overhead) = object(spec, "overhead") {
        resources::amounts(overhead, &format!("{path}.overhead"), &mut errors);
    }
    if let Some(os) = object(spec, "os") {
        errors.required_one_of(format!("{path}.os.name"), text(os, "name"), &["linux", "windows"]);
    }
    errors.0
}

/// The errors in a pod template at `path` (`spec.template`).
pub(crate) fn validate_template(template: &Object, path: &str) -> Vec<FieldError> {
    let metadata = below(template, "metadata");
    let mut errors = Errors::default();
    errors.extend(names::labels(
        below(metadata, "labels"),
        &format!("{path}.labels"),
    ));
    annotations(metadata, path, &mut errors);
    errors.extend(validate(below(template, "spec"), &format!("{path}.spec"), false));
    if !list(below(template, "spec"), "ephemeralContainers").is_empty() {
        errors.forbidden(
            format!("{path}.spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
    errors.0
}

fn annotations(metadata: &Object, path: &str, errors: &mut Errors) {
    for key in below(metadata, "annotations").keys() {
        errors.all_invalid(
            &format!("{path}.annotations"),
            key.as_str(),
            names::qualified_name(&key.to_lowercase()),
        );
    }
}

fn named(spec: &Object, path: &str, errors: &mut Errors) {
    for key in ["serviceAccountName", "nodeName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            errors.all_invalid(&format!("{path}.{key}"), name, names::dns_subdomain(name, false));
        }
    }
}

fn resource_claims(spec: &Object, path: &str, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (path, claim) in items(spec, "resourceClaims", path) {
        let name = text(claim, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if seen.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        } else {
            errors.all_invalid(&format!("{path}.name"), name, names::dns_label(name, false));
            seen.push(name);
        }
        let given = |key| !text(claim, key).is_empty();
        match (given("resourceClaimName"), given("resourceClaimTemplateName")) {
            (true, true) => errors.invalid(
                &path,
                Value::Object(claim.clone()),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => errors.invalid(
                &path,
                Value::Object(claim.clone()),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
            _ => {}
        }
    }
}

fn dns_config(spec: &Object, path: &str, errors: &mut Errors) {
    let config = object(spec, "dnsConfig");
    let path = format!("{path}.dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        let Some(config) = config else {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        };
        if list(config, "nameservers").is_empty() {
            return errors.required(
                format!("{path}.nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
        }
    }
    let Some(config) = config else { return };
    let servers = list(config, "nameservers");
    if servers.len() > 3 {
        errors.invalid(
            format!("{path}.nameservers"),
            Value::Array(servers.to_vec()),
            "must not have more than 3 nameservers",
        );
    }
    for (at, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        errors.all_invalid(&format!("{path}.nameservers[{at}]"), server, names::ip(server));
    }
    let searches = list(config, "searches");
    if searches.len() > 32 {
        errors.invalid(
            format!("{path}.searches"),
            Value::Array(searches.to_vec()),
            "must not have more than 32 search paths",
        );
    }
    for (at, search) in searches.iter().filter_map(Value::as_str).enumerate() {
        if search != "." {
            let name = search.strip_suffix('.').unwrap_or(search);
            errors.all_invalid(
                &format!("{path}.searches[{at}]"),
                search,
                names::dns_subdomain(&name.replace('_', "-"), false),
            );
        }
    }
    for (path, option) in items(config, "options", &path) {
        if text(option, "name").is_empty() {
            errors.required(path, "must not be empty");
        }
    }
}

fn gates(spec: &Object, path: &str, errors: &mut Errors) {
    for (path, gate) in items(spec, "readinessGates", path) {
        let kind = text(gate, "conditionType");
        errors.all_invalid(
            &format!("{path}.conditionType"),
            kind,
            names::qualified_name(kind),
        );
    }
    let mut seen = Vec::new();
    for (path, gate) in items(spec, "schedulingGates", path) {
        let name = text(gate, "name");
        errors.all_invalid(&path, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.duplicate(&path, name);
        }
        seen.push(name);
    }
}
