//! Probes and lifecycle handlers.

use serde_json::Value;

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, count, items, list, number, object, text},
    },
};

pub(super) fn of_container(container: &Object, path: &str, errors: &mut Errors) {
    if let Some(lifecycle) = object(container, "lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(hook) = object(lifecycle, key) {
                handler(hook, &format!("{path}.lifecycle.{key}"), errors);
            }
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(one) = object(container, key) {
            probe(one, key, &format!("{path}.{key}"), errors);
        }
    }
}

fn probe(probe: &Object, key: &str, path: &str, errors: &mut Errors) {
    handler(probe, path, errors);
    for key in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        errors.nonnegative(probe, path, key);
    }
    let grace = number(probe, "terminationGracePeriodSeconds");
    let field = format!("{path}.terminationGracePeriodSeconds");
    if let Some(grace) = grace.filter(|grace| *grace <= 0) {
        errors.invalid(&field, grace, "must be greater than 0");
    }
    if key == "readinessProbe" {
        if let Some(grace) = grace {
            errors.invalid(&field, grace, "must not be set for readinessProbes");
        }
    } else if count(probe, "successThreshold") != 1 {
        errors.invalid(
            format!("{path}.successThreshold"),
            count(probe, "successThreshold"),
            "must be 1",
        );
    }
}

fn handler(handler: &Object, path: &str, errors: &mut Errors) {
    let mut given = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = object(handler, key) else {
            continue;
        };
        let path = format!("{path}.{key}");
        if given > 0 {
            errors.forbidden(path, "may not specify more than 1 handler type");
            continue;
        }
        given += 1;
        match key {
            "exec" if list(action, "command").is_empty() => {
                errors.required(format!("{path}.command"), "");
            }
            "httpGet" => {
                errors.needs(action, &path, "path");
                port(action, &path, errors);
                errors.one_of(
                    format!("{path}.scheme"),
                    text(action, "scheme"),
                    &["HTTP", "HTTPS"],
                );
                for (_, header) in items(action, "httpHeaders", &path) {
                    let name = text(header, "name");
                    errors.all_invalid(
                        &format!("{path}.httpHeaders"),
                        name,
                        names::http_header_name(name),
                    );
                }
            }
            "tcpSocket" | "grpc" => port(action, &path, errors),
            "sleep" if count(action, "seconds") < 0 => errors.invalid(
                format!("{path}.seconds"),
                count(action, "seconds"),
                "must be non-negative",
            ),
            _ => {}
        }
    }
    if given == 0 {
        errors.required(path, "must specify a handler type");
    }
}

fn port(action: &Object, path: &str, errors: &mut Errors) {
    let path = format!("{path}.port");
    match action.get("port") {
        Some(Value::String(name)) => {
            errors.all_invalid(&path, name.as_str(), names::port_name(name));
        }
        port => {
            let number = port.and_then(Value::as_i64).unwrap_or(0);
            errors.all_invalid(&path, number, names::port_number(number));
        }
    }
}
