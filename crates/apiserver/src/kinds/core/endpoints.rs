//! Endpoints: addresses and ports behind a Service, all in one object.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, count, default, each, items, list, text},
    },
    printer::{AGE, NAME, NONE, Printer, SHOWN, View, some_of, words},
};

pub(in crate::kinds) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) static DEF: KindDef = KindDef {
    short: &["ep"],
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    create_on_update: true,
    defaults: |endpoints| {
        each(endpoints, "subsets", |subset| {
            each(subset, "ports", |port| default(port, "protocol", "TCP"));
        });
    },
    errors: subsets,
    printer: Printer::of(&[
        NAME,
        words("Endpoints", ".subsets").shows(|object| endpoints(object).into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::Endpoints>()
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
pub(in crate::kinds) fn special_ip(text: &str, field: &str, errors: &mut Errors) {
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

pub(in crate::kinds) fn app_protocol(port: &Object, path: &str, errors: &mut Errors) {
    if let Some(Value::String(protocol)) = port.get("appProtocol") {
        let problems = names::qualified_name(protocol);
        errors.all_invalid(&format!("{path}.appProtocol"), protocol.as_str(), problems);
    }
}

/// The first endpoints: `10.0.0.1:80,[fd00::1]:80 + 2 more...`.
fn endpoints(object: &View<'_>) -> String {
    let mut words = Vec::new();
    if object.count("subsets") == 0 {
        return NONE.to_owned();
    }
    for subset in object.list("subsets") {
        let list = |name: &str| subset[name].as_array().map_or(&[][..], Vec::as_slice);
        let addresses = list("addresses").iter().filter_map(|one| one["ip"].as_str());
        if list("ports").is_empty() {
            words.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in list("ports") {
            words.extend(addresses.clone().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{}", port["port"])
                } else {
                    format!("{address}:{}", port["port"])
                }
            }));
        }
    }
    some_of(&words, SHOWN)
}
