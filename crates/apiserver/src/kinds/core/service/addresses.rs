//! Validation of `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` of a Service, which depend on each other.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::Value;

use super::HEADLESS;
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, list, text},
    },
};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Errors of the four fields; `old`: the spec before an update.
pub(super) fn related(spec: &Object, old: Option<&Object>, errors: &mut Errors) {
    let ips: Vec<&str> = list(spec, "clusterIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let families: Vec<&str> = list(spec, "ipFamilies")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if text(spec, "type") == "ExternalName" {
        for (key, is) in [
            ("clusterIPs", !ips.is_empty()),
            ("ipFamilies", !families.is_empty()),
            ("ipFamilyPolicy", spec.contains_key("ipFamilyPolicy")),
        ] {
            if is {
                errors.forbidden(format!("spec.{key}"), "may not be set for ExternalName services");
            }
        }
        return;
    }
    let all = || Value::from(ips.clone());
    let ip = text(spec, "clusterIP");
    match ips.first() {
        None if !ip.is_empty() => errors.required("spec.clusterIPs", ""),
        Some(_) if ip.is_empty() => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.invalid("spec.clusterIPs", all(), detail);
        }
        Some(first) if *first != ip => {
            errors.invalid("spec.clusterIPs", all(), "first value must match `clusterIP`");
        }
        _ => {}
    }
    self::families(&families, errors);
    if let Some(policy) = spec.get("ipFamilyPolicy").and_then(Value::as_str) {
        errors.one_of("spec.ipFamilyPolicy", policy, &POLICIES);
    }
    let mut wrong = false;
    for (at, ip) in ips.iter().enumerate() {
        if at == 0 && *ip == HEADLESS {
            if ips.len() > 1 {
                wrong = true;
                let detail = "'None' must be the first and only value";
                errors.invalid("spec.clusterIPs", all(), detail);
            }
            continue;
        }
        let problems = names::ip(ip);
        wrong |= !problems.is_empty();
        errors.all_invalid(&format!("spec.clusterIPs[{at}]"), *ip, problems);
    }
    if ips.len() > 2 {
        errors.invalid("spec.clusterIPs", all(), "may only hold up to 2 values");
    }
    if wrong {
        return;
    }
    let of: Vec<&str> = ips.iter().filter_map(|ip| family(ip)).collect();
    if ips.len() > 1 && of.iter().collect::<BTreeSet<_>>().len() < 2 {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid("spec.clusterIPs", all(), detail);
    }
    for (at, (of, wanted)) in of.iter().zip(&families).enumerate() {
        if of != wanted {
            let article = format!("expected an {wanted} value as indicated by `ipFamilies[{at}]`");
            errors.invalid(format!("spec.clusterIPs[{at}]"), ips[at], &article);
        }
    }
    if let Some(old) = old.filter(|old| text(old, "type") != "ExternalName") {
        let before: Vec<&str> = list(old, "clusterIPs").iter().filter_map(Value::as_str).collect();
        if let Some(was) = before.first() {
            match ips.first() {
                None => errors.invalid("spec.clusterIPs[0]", all(), "primary clusterIP can not be unset"),
                Some(is) if is != was => {
                    errors.invalid("spec.clusterIPs[0]", all(), "may not change once set")
                }
                Some(_) => {}
            }
        }
    }
}

/// `IPv4` or `IPv6`; `None` for what is no address.
pub(super) fn family(ip: &str) -> Option<&'static str> {
    match ip.parse::<IpAddr>().ok()? {
        IpAddr::V4(_) => Some("IPv4"),
        IpAddr::V6(_) => Some("IPv6"),
    }
}

fn families(families: &[&str], errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (at, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{at}]");
        errors.one_of(&field, family, &FAMILIES);
        if !seen.insert(family) {
            errors.duplicate(&field, *family);
        }
    }
}
