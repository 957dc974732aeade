//! The syntax of other values: ports, environment variables, keys of data, addresses, numbers in a range.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::{SUBDOMAIN_LENGTH, shape, too_long};
use crate::{
    object::Object,
    status::{FieldError, Problem},
};

/// A port's name (IANA service name).
#[must_use]
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 15);
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// A port's number, 1 to 65535.
#[must_use]
pub(crate) fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number between two others, both included.
#[must_use]
pub(crate) fn in_range(number: i64, least: i64, most: i64) -> Vec<String> {
    if (least..=most).contains(&number) {
        Vec::new()
    } else {
        vec![format!("must be between {least} and {most}, inclusive")]
    }
}

/// An environment variable's name: printable ASCII without `=` (relaxed since 1.32).
#[must_use]
pub(crate) fn env_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push("environment variable name must be non-empty".to_owned());
    }
    if !name
        .bytes()
        .all(|byte| (byte.is_ascii_graphic() || byte == b' ') && byte != b'=')
    {
        problems.push("a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned());
    }
    problems
}

/// A key of a ConfigMap or Secret.
#[must_use]
pub(crate) fn config_map_key(key: &str) -> Vec<String> {
    let mut problems = too_long(key, SUBDOMAIN_LENGTH);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(allowed) {
        problems.push(shape(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// A header of an HTTP probe.
#[must_use]
pub(crate) fn http_header_name(name: &str) -> Vec<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(allowed) {
        return Vec::new();
    }
    vec![shape(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// `25%`.
#[must_use]
pub(crate) fn percent(text: &str) -> Vec<String> {
    let number = text.strip_suffix('%').unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    vec![shape(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// An IPv4 or IPv6 address.
#[must_use]
pub(crate) fn ip(text: &str) -> Vec<String> {
    let problem = if text.parse::<Ipv4Addr>().is_ok() {
        return Vec::new();
    } else if let Ok(ip) = text.parse::<Ipv6Addr>() {
        if ip.to_ipv4_mapped().is_none() {
            return Vec::new();
        }
        "must not be an IPv4-mapped IPv6 address"
    } else if unpadded(text).parse::<Ipv4Addr>().is_ok() {
        "must not have leading 0s"
    } else {
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    };
    vec![problem.to_owned()]
}

/// An IPv4 address without the zeros in front of its numbers, which old clients send.
fn unpadded(text: &str) -> String {
    let numbers: Vec<&str> = text
        .split('.')
        .map(|number| match number.trim_start_matches('0') {
            "" if !number.is_empty() => "0",
            rest => rest,
        })
        .collect();
    numbers.join(".")
}

/// A network: address, slash, length of the prefix.
#[must_use]
pub(crate) fn cidr(text: &str) -> Vec<String> {
    let problem = match text.split_once('/') {
        Some((address, length)) => network(address, length),
        None => Some(NO_NETWORK),
    };
    problem.map(str::to_owned).into_iter().collect()
}

const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// True if one network is a part of another and smaller; true for what is none.
#[must_use]
pub(crate) fn is_smaller(part: &str, whole: &str) -> bool {
    let parsed = |text: &str| {
        let (address, length) = text.split_once('/')?;
        let (family, bits) = match unpadded(address).parse().or_else(|_| address.parse()).ok()? {
            IpAddr::V4(ip) => (4, u128::from(ip.to_bits()) << 96),
            IpAddr::V6(ip) => (6, ip.to_bits()),
        };
        Some((family, bits, length.parse::<u32>().ok()?))
    };
    let (Some(part), Some(whole)) = (parsed(part), parsed(whole)) else {
        return true;
    };
    let start = |bits: u128| bits.checked_shr(128 - whole.2.min(128)).unwrap_or(0);
    part.0 == whole.0 && part.2 > whole.2 && start(part.1) == start(whole.1)
}

fn network(address: &str, length: &str) -> Option<&'static str> {
    let strict = address.parse::<IpAddr>();
    let Some(ip) = strict
        .clone()
        .or_else(|_| unpadded(address).parse::<IpAddr>())
        .ok()
    else {
        return Some(NO_NETWORK);
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let Some(prefix) = length
        .parse::<u8>()
        .ok()
        .filter(|prefix| digits && *prefix <= bits)
    else {
        return Some(NO_NETWORK);
    };
    if strict.is_err() || length.len() > 1 && length.starts_with('0') {
        return Some("must not have leading 0s in IP or prefix length");
    }
    let host = match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            return Some("must not have an IPv4-mapped IPv6 address");
        }
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let beyond = host.checked_shl(u32::from(prefix)).unwrap_or(0);
    (beyond != 0).then_some("must not have bits set beyond the prefix length")
}

/// The errors of an update without those about addresses that the field had before: the rules for zeros, mapped addresses and bits
/// came later than the fields (KEP-4858). Cost: for each such error the values of its field.
#[must_use]
pub(crate) fn ratcheted(mut errors: Vec<FieldError>, old: &Object) -> Vec<FieldError> {
    errors.retain(|error| {
        let detail = error.detail.as_str();
        let is_late = detail.starts_with("must not have leading 0s")
            || detail.ends_with("IPv4-mapped IPv6 address")
            || detail == "must not have bits set beyond the prefix length";
        !is_late || !matches!(&error.problem, Problem::Invalid(value) if has(old, &error.field, value))
    });
    errors
}

/// True if a field has a value, at any index of its lists.
fn has(object: &Object, path: &str, value: &Value) -> bool {
    let items = |value: &'_ Value| match value {
        Value::Array(items) => items.clone(),
        value => vec![value.clone()],
    };
    let mut names = path
        .split('.')
        .map(|step| step.split('[').next().unwrap_or_default());
    let first = names.next().and_then(|name| object.get(name));
    let mut found: Vec<Value> = first.map(items).unwrap_or_default();
    for name in names {
        found = found
            .iter()
            .filter_map(|value| value.get(name))
            .flat_map(items)
            .collect();
    }
    found.contains(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_of_an_old_form_may_stay_where_it_was() {
        let old = json!({"spec": {"externalIPs": ["010.0.0.1", "10.0.0.2"], "clusterIP": "::ffff:10.0.0.1",
            "rules": [{"cidr": "10.0.0.1/8"}]}});
        let old = old.as_object().expect("an object");
        for (field, text, stays) in [
            // At another index of the list, too.
            ("spec.externalIPs[1]", "010.0.0.1", true),
            ("spec.externalIPs[0]", "010.0.0.3", false),
            ("spec.clusterIP", "::ffff:10.0.0.1", true),
            ("spec.clusterIPs[0]", "::ffff:10.0.0.1", false),
            ("spec.rules[0].cidr", "10.0.0.1/8", true),
            ("spec.rules[0].cidr", "10.0.0.0/08", false),
        ] {
            let problems = if text.contains('/') { cidr(text) } else { ip(text) };
            let errors = problems
                .iter()
                .map(|detail| FieldError::invalid(field, text, detail));
            let errors = ratcheted(errors.collect(), old);
            assert_eq!(errors.is_empty(), stays, "{field} {text}");
        }
        // What was never an address is wrong wherever it was.
        let wrong = json!({"spec": {"clusterIP": "x"}});
        let errors = vec![FieldError::invalid("spec.clusterIP", "x", &ip("x")[0])];
        assert_eq!(ratcheted(errors, wrong.as_object().expect("an object")).len(), 1);
    }

    /// A rule, texts that it takes, texts that it refuses.
    type Case = (
        fn(&str) -> Vec<String>,
        &'static [&'static str],
        &'static [&'static str],
    );

    #[test]
    fn each_rule_takes_and_refuses_what_the_server_does() {
        let cases: &[Case] = &[
            (
                port_name,
                &["http", "a-1"],
                &["", "HTTP", "123", "a--b", "-a", "a-", "abcdefghijklmnop"],
            ),
            (
                env_name,
                &["A", "my.env-name", "a b", "1"],
                &["", "a=b", "é", "a\n"],
            ),
            (config_map_key, &["a.b", ".a"], &["", "a/b", ".", "..", "..a"]),
            (http_header_name, &["X-A"], &["", "X_A"]),
            (percent, &["0%", "250%"], &["", "%", "1", "-1%", "1.5%"]),
            (
                ip,
                &["10.0.0.1", "::1"],
                &["", "10.0.0", "1.2.3.4/8", "010.0.0.1"],
            ),
            (
                cidr,
                &["10.0.0.0/8", "::/0"],
                &["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "a/8"],
            ),
        ];
        for (rule, good, bad) in cases {
            for text in *good {
                assert_eq!(rule(text), Vec::<String>::new(), "{text}");
            }
            for text in *bad {
                assert_ne!(rule(text), Vec::<String>::new(), "{text}");
            }
        }
    }
}
