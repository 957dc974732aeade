//! Ingresses.

use serde_json::{Value, json};

use crate::{
    kinds::{
        core::service::{balancers, validation::ingress as ingress_addresses},
        kind_def::{KindDef, default_class},
    },
    names,
    object::{
        Object,
        tree::{Errors, at, below, count, each, items, list, made, object, text, within},
    },
    printer::{AGE, NAME, Printer, SHOWN, View, or_none, words},
};

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The annotation of the class that Ingresses without one get.
const DEFAULT: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

pub(super) static DEF: KindDef = KindDef {
    short: &["ing"],
    subresources: &["status"],
    has_generation: true,
    defaults: |ingress| {
        let spec = made(ingress, "spec");
        within(spec, "defaultBackend", grouped);
        each(spec, "rules", |rule| {
            within(rule, "http", |http| {
                each(http, "paths", |path| within(path, "backend", grouped));
            });
        });
    },
    placed: |_, ingress, old, around| {
        let annotated = at(ingress, &["metadata", "annotations"]).contains_key(CLASS_ANNOTATION);
        let spec = made(ingress, "spec");
        if old.is_none()
            && !annotated
            && !spec.contains_key("ingressClassName")
            && let Some(class) = default_class("networking.k8s.io/ingressclasses", &DEFAULT, around)
        {
            spec.insert("ingressClassName".to_owned(), class.into());
        }
        Ok(())
    },
    created: |ingress| {
        ingress.insert("status".to_owned(), json!({"loadBalancer": {}}));
    },
    errors: |ingress, errors| {
        let annotations = at(ingress, &["metadata", "annotations"]);
        let (value, class) = (
            text(annotations, CLASS_ANNOTATION),
            below(ingress, "spec").get("ingressClassName"),
        );
        if annotations.contains_key(CLASS_ANNOTATION) && class.is_some_and(|class| class != value) {
            let detail = "must match `ingressClassName` when both are specified";
            errors.invalid(format!("annotations.{CLASS_ANNOTATION}"), value, detail);
        }
        spec(ingress, errors);
    },
    changes: Some(|new, _, errors| spec(new, errors)),
    status_changes: |new, _, errors| {
        ingress_addresses(
            at(new, &["status", "loadBalancer"]),
            "status.loadBalancer",
            false,
            errors,
        );
    },
    warnings: |ingress, _| {
        let annotations = at(ingress, &["metadata", "annotations"]);
        let alone = !below(ingress, "spec").contains_key("ingressClassName");
        let deprecated = (alone && annotations.contains_key(CLASS_ANNOTATION)).then(|| {
            format!(
                "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
            )
        });
        deprecated.into_iter().collect()
    },
    printer: Printer::of(&[
        NAME,
        words(
            "Class",
            "The name of the IngressClass resource that should be used for additional configuration",
        )
        .shows(|ingress| {
            let class = match ingress.text("spec.ingressClassName") {
                "" => ingress.annotation("kubernetes.io/ingress.class"),
                class => class,
            };
            or_none(class.to_owned())
        }),
        words(
            "Hosts",
            "Hosts that incoming requests are matched against before the ingress rule",
        )
        .shows(|ingress| hosts(ingress).into()),
        words(
            "Address",
            "Address is a list containing ingress points for the load-balancer",
        )
        .shows(|ingress| balancers(ingress).join(",").into()),
        words("Ports", "Ports of TLS configurations that open").shows(|ingress| {
            let ports = if ingress.count("spec.tls") > 0 {
                "80, 443"
            } else {
                "80"
            };
            ports.into()
        }),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::networking::v1::Ingress>()
};

/// The group of a backend that is a resource is always shown.
fn grouped(backend: &mut Object) {
    within(backend, "resource", |resource| {
        resource.entry("apiGroup").or_insert(Value::Null);
    });
}

fn spec(ingress: &Object, errors: &mut Errors) {
    let spec = below(ingress, "spec");
    let rules = list(spec, "rules");
    if rules.is_empty() && object(spec, "defaultBackend").is_none() {
        // The server quotes its list of rules, which is nil.
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid("spec", Value::Null, detail);
    }
    if let Some(default) = object(spec, "defaultBackend") {
        backend(default, "spec.defaultBackend", errors);
    }
    for (path, rule) in items(spec, "rules", "spec") {
        let host = text(rule, "host");
        if !host.is_empty() {
            self::host(host, &format!("{path}.host"), errors);
        }
        let Some(http) = object(rule, "http") else {
            continue;
        };
        let path = format!("{path}.http");
        if list(http, "paths").is_empty() {
            errors.required(format!("{path}.paths"), "");
        }
        for (path, one) in items(http, "paths", &path) {
            http_path(one, &path, errors);
        }
    }
    for (path, tls) in items(spec, "tls", "spec") {
        for (at, host) in list(tls, "hosts").iter().filter_map(Value::as_str).enumerate() {
            let problems = match host.contains('*') {
                true => names::wildcard_subdomain(host),
                false => names::dns_subdomain(host, false),
            };
            errors.all_invalid(&format!("{path}.hosts[{at}]"), host, problems);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            let problems = names::dns_subdomain(secret, false);
            errors.all_invalid(&format!("{path}.secretName"), secret, problems);
        }
    }
    if let Some(Value::String(class)) = spec.get("ingressClassName") {
        let problems = names::dns_subdomain(class, false);
        errors.all_invalid("spec.ingressClassName", class.as_str(), problems);
    }
}

fn host(host: &str, field: &str, errors: &mut Errors) {
    if host.parse::<std::net::IpAddr>().is_ok() {
        errors.invalid(field, host, "must be a DNS name, not an IP address");
        return;
    }
    let problems = if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::dns_subdomain(host, false)
    };
    errors.all_invalid(field, host, problems);
}

fn http_path(one: &Object, field: &str, errors: &mut Errors) {
    const FORBIDDEN: [&str; 6] = ["//", "/./", "/../", "%2f", "%2F", "%25"];
    let path = text(one, "path");
    let path_field = format!("{field}.path");
    match text(one, "pathType") {
        "" => errors.required(format!("{field}.pathType"), "pathType must be specified"),
        "Exact" | "Prefix" => {
            if !path.starts_with('/') {
                errors.invalid(&path_field, path, "must be an absolute path");
            }
            if !path.is_empty() {
                for sequence in FORBIDDEN.iter().filter(|sequence| path.contains(**sequence)) {
                    errors.invalid(&path_field, path, &format!("must not contain '{sequence}'"));
                }
                for suffix in ["/..", "/."].iter().filter(|suffix| path.ends_with(**suffix)) {
                    errors.invalid(&path_field, path, &format!("cannot end with '{suffix}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !path.starts_with('/') {
                errors.invalid(&path_field, path, "must be an absolute path");
            }
        }
        other => errors.one_of(format!("{field}.pathType"), other, &PATH_TYPES),
    }
    backend(below(one, "backend"), &format!("{field}.backend"), errors);
}

fn backend(backend: &Object, field: &str, errors: &mut Errors) {
    let (resource, service) = (object(backend, "resource"), object(backend, "service"));
    match (resource, service) {
        (Some(_), Some(_)) => {
            let detail = "cannot set both resource and service backends";
            errors.invalid(field, "", detail);
        }
        (Some(resource), None) => {
            let field = format!("{field}.resource");
            if let Some(Value::String(group)) = resource.get("apiGroup") {
                let problems = names::dns_subdomain(group, false);
                errors.all_invalid(&format!("{field}.apiGroup"), group.as_str(), problems);
            }
            for key in ["kind", "name"] {
                let value = text(resource, key);
                errors.needs(resource, &field, key);
                errors.all_invalid(
                    &format!("{field}.{key}"),
                    value,
                    names::path_segment(value, false),
                );
            }
        }
        (None, None) => errors.invalid(field, "", "resource or service backend is required"),
        (None, Some(service)) => {
            let name = text(service, "name");
            let service_field = format!("{field}.service");
            if name.is_empty() {
                errors.required(format!("{service_field}.name"), "");
            } else {
                let problems = names::dns_label(name, false);
                errors.all_invalid(&format!("{service_field}.name"), name, problems);
            }
            let port = below(service, "port");
            let (port_name, number) = (text(port, "name"), count(port, "number"));
            match (port_name.is_empty(), number == 0) {
                (false, false) => errors.invalid(field, "", "cannot set both port name & port number"),
                (false, true) => {
                    let problems = names::port_name(port_name);
                    errors.all_invalid(&format!("{service_field}.port.name"), port_name, problems);
                }
                (true, false) => {
                    let problems = names::port_number(number);
                    errors.all_invalid(&format!("{service_field}.port.number"), number, problems);
                }
                (true, true) => errors.required(field, "port name or number is required"),
            }
        }
    }
}

/// The first hosts; `*` when no rule names one. Rules without one count among those that are not shown.
fn hosts(ingress: &View<'_>) -> String {
    let rules = ingress.list("spec.rules");
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        if let Some(host) = rule["host"].as_str().filter(|host| !more && !host.is_empty()) {
            shown.push(host);
        }
    }
    match (shown.as_slice(), more) {
        ([], _) => "*".to_owned(),
        (shown, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
        (shown, false) => shown.join(","),
    }
}
