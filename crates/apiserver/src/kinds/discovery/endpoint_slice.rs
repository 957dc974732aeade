//! EndpointSlices: some of the addresses and ports behind a Service.

use serde_json::Value;

use crate::{
    kinds::{
        core::endpoints::{PROTOCOLS, app_protocol, special_ip},
        kind_def::KindDef,
    },
    names,
    object::{
        Object, metadata,
        tree::{Errors, IMMUTABLE, default, each, list, text},
    },
    printer::{AGE, NAME, Printer, SHOWN, UNSET, some_of, words},
    resource::differ_beside,
    status::{FieldError, Problem},
};

/// Endpoints of one slice.
const MOST_ENDPOINTS: usize = 1000;

/// Addresses of one endpoint.
const MOST_ADDRESSES: usize = 100;

/// Ports of one slice.
const MOST_PORTS: usize = 20_000;

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    generation_changes: |old, new| {
        let labels = |object| metadata(object).get("labels");
        differ_beside(&["metadata", "status"], old, new) || labels(old) != labels(new)
    },
    defaults: |slice| {
        each(slice, "ports", |port| {
            port.entry("name").or_insert_with(|| "".into());
            default(port, "protocol", "TCP");
        });
        // Always sent.
        slice.entry("endpoints").or_insert(Value::Null);
        slice.entry("ports").or_insert(Value::Null);
    },
    errors: slice,
    changes: Some(|new, old, errors| {
        slice(new, errors);
        if text(new, "addressType") != text(old, "addressType") {
            errors.invalid("addressType", text(new, "addressType"), IMMUTABLE);
        }
    }),
    printer: Printer::new(
        &[
            NAME,
            words("AddressType", ".addressType"),
            words("Ports", ".ports"),
            words("Endpoints", ".endpoints"),
            AGE,
        ],
        |slice| {
            let ports: Vec<String> = slice
                .list("ports")
                .iter()
                .map(|port| {
                    port["port"]
                        .as_i64()
                        .map_or_else(|| "*".to_owned(), |port| port.to_string())
                })
                .collect();
            let addresses: Vec<String> = slice
                .list("endpoints")
                .iter()
                .flat_map(|endpoint| strings(&endpoint["addresses"]))
                .collect();
            let shown = |words: &[String]| match some_of(words, SHOWN).as_str() {
                "" => UNSET.into(),
                found => Value::from(found),
            };
            vec![
                slice.name(),
                slice.text("addressType").into(),
                shown(&ports),
                shown(&addresses),
                slice.age(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::discovery::v1::EndpointSlice>()
};

fn slice(slice: &Object, errors: &mut Errors) {
    let kind = text(slice, "addressType");
    let kinds = ["FQDN", "IPv4", "IPv6"];
    errors.required_one_of("addressType", kind, &kinds);
    let endpoints = list(slice, "endpoints").len();
    if endpoints > MOST_ENDPOINTS {
        too_many("endpoints", endpoints, MOST_ENDPOINTS, errors);
        return;
    }
    for (at, endpoint) in list(slice, "endpoints").iter().enumerate() {
        if let Some(endpoint) = endpoint.as_object() {
            self::endpoint(endpoint, kind, &format!("endpoints[{at}]"), errors);
        }
    }
    let ports = list(slice, "ports");
    if ports.len() > MOST_PORTS {
        too_many("ports", ports.len(), MOST_PORTS, errors);
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let Some(port) = port.as_object() else { continue };
        let path = format!("ports[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            errors.all_invalid(&format!("{path}.name"), name, names::dns_label(name, false));
        }
        if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        errors.required_one_of(format!("{path}.protocol"), text(port, "protocol"), &PROTOCOLS);
        app_protocol(port, &path, errors);
    }
}

fn endpoint(endpoint: &Object, kind: &str, path: &str, errors: &mut Errors) {
    let addresses = list(endpoint, "addresses");
    if addresses.is_empty() {
        errors.required(format!("{path}.addresses"), "must contain at least 1 address");
    } else if addresses.len() > MOST_ADDRESSES {
        too_many(
            &format!("{path}.addresses"),
            addresses.len(),
            MOST_ADDRESSES,
            errors,
        );
    }
    for (at, address) in addresses.iter().enumerate().take(MOST_ADDRESSES) {
        let address = address.as_str().unwrap_or_default();
        let field = format!("{path}.addresses[{at}]");
        let wrong = match kind {
            "IPv4" if address.parse::<std::net::Ipv4Addr>().is_err() => Some("must be a valid IPv4 address"),
            "IPv6" if address.parse::<std::net::Ipv6Addr>().is_err() => Some("must be a valid IPv6 address"),
            _ => None,
        };
        match (kind, wrong) {
            ("FQDN", _) => errors.all_invalid(&field, address, names::dns_subdomain(address, false)),
            (_, Some(wrong)) => {
                errors.invalid(&field, address, wrong);
                special_ip(address, &field, errors);
            }
            ("IPv4" | "IPv6", None) => special_ip(address, &field, errors),
            _ => {}
        }
    }
    for (key, rule) in [
        ("nodeName", names::dns_subdomain as fn(&str, bool) -> Vec<String>),
        ("hostname", names::dns_label),
    ] {
        if let Some(Value::String(name)) = endpoint.get(key) {
            errors.all_invalid(&format!("{path}.{key}"), name.as_str(), rule(name, false));
        }
    }
}

fn too_many(field: &str, found: usize, most: usize, errors: &mut Errors) {
    errors.push(FieldError::new(
        field,
        Problem::TooMany(found.into()),
        format!("must have at most {most} items"),
    ));
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
