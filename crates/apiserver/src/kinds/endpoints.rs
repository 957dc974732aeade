//! Endpoints and EndpointSlices: addresses and ports behind a Service.

use serde_json::Value;

use super::kind::Kind;
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, count, default, each, items, list, text},
    },
    status::{FieldError, Problem},
};

/// Endpoints of one slice.
const MOST_ENDPOINTS: usize = 1000;

/// Addresses of one endpoint.
const MOST_ADDRESSES: usize = 100;

/// Ports of one slice.
const MOST_PORTS: usize = 20_000;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Endpoints.
pub(super) static ENDPOINTS: Kind = Kind {
    kind: "Endpoints",
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    create_on_update: true,
    defaults: |endpoints| {
        each(endpoints, "subsets", |subset| {
            each(subset, "ports", |port| default(port, "protocol", "TCP"));
        });
    },
    errors: subsets,
    ..Kind::PLAIN
};

/// EndpointSlice.
pub(super) static ENDPOINT_SLICE: Kind = Kind {
    kind: "EndpointSlice",
    has_generation: true,
    labels_count: true,
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
    ..Kind::PLAIN
};

fn subsets(endpoints: &Object, errors: &mut Errors) {
    for (at, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = format!("subsets[{at}]");
        let Some(subset) = subset.as_object() else {
            continue;
        };
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in ["addresses", "notReadyAddresses"] {
            for (path, address) in items(subset, key, &path) {
                self::address(address, &path, errors);
            }
        }
        let named = list(subset, "ports").len() > 1;
        for (path, port) in items(subset, "ports", &path) {
            self::port(port, &path, named, errors);
        }
    }
}

fn address(address: &Object, path: &str, errors: &mut Errors) {
    let ip = text(address, "ip");
    let field = format!("{path}.ip");
    errors.all_invalid(&field, ip, names::ip(ip));
    let hostname = text(address, "hostname");
    if !hostname.is_empty() {
        let problems = names::dns_label(hostname, false);
        errors.all_invalid(&format!("{path}.hostname"), hostname, problems);
    }
    let node = text(address, "nodeName");
    if !node.is_empty() {
        errors.all_invalid(
            &format!("{path}.nodeName"),
            node,
            names::dns_subdomain(node, false),
        );
    }
    special_ip(ip, &field, errors);
}

/// Addresses that no endpoint may have.
pub(super) fn special_ip(text: &str, field: &str, errors: &mut Errors) {
    let Ok(ip) = text.parse::<std::net::IpAddr>() else {
        errors.invalid(field, text, "must be a valid IP address");
        return;
    };
    let (local, multicast) = match ip {
        std::net::IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        std::net::IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        errors.invalid(field, text, &format!("may not be unspecified ({ip})"));
    }
    for (is, detail) in [
        (
            ip.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ] {
        if is {
            errors.invalid(field, text, detail);
        }
    }
}

fn port(port: &Object, path: &str, named: bool, errors: &mut Errors) {
    let name = text(port, "name");
    if named && name.is_empty() {
        errors.required(format!("{path}.name"), "");
    } else if !name.is_empty() {
        errors.all_invalid(&format!("{path}.name"), name, names::dns_label(name, false));
    }
    let number = count(port, "port");
    errors.all_invalid(&format!("{path}.port"), number, names::port_number(number));
    errors.required_one_of(format!("{path}.protocol"), text(port, "protocol"), &PROTOCOLS);
    app_protocol(port, path, errors);
}

pub(super) fn app_protocol(port: &Object, path: &str, errors: &mut Errors) {
    if let Some(Value::String(protocol)) = port.get("appProtocol") {
        let problems = names::qualified_name(protocol);
        errors.all_invalid(&format!("{path}.appProtocol"), protocol.as_str(), problems);
    }
}

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
