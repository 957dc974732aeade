//! The IP families of a Service. The cluster has one: IPv4.

use serde_json::{Value, json};

use super::{addresses::family, is_headless, needs_ip};
use crate::object::{
    Object,
    tree::{Errors, below, list, text},
};

const OURS: &str = "IPv4";

/// Fills in `ipFamilies` and `ipFamilyPolicy`, or returns the reason why the request cannot be met.
pub(super) fn fill(spec: &mut Object, errors: &mut Errors) {
    if !needs_ip(spec) {
        return;
    }
    let ips: Vec<String> = strings(spec, "clusterIPs");
    let mut families: Vec<String> = strings(spec, "ipFamilies");
    for (at, ip) in ips.iter().enumerate() {
        let Some(family) = family(ip) else { break };
        if at < families.len() {
            continue;
        }
        if family != OURS {
            let detail = "may not use IPv6 on a cluster which is not configured for it";
            errors.invalid(format!("spec.clusterIPs[{at}]"), json!(ips), detail);
        } else {
            families.push(family.to_owned());
        }
    }
    let asked = text(spec, "ipFamilyPolicy").to_owned();
    let anywhere = is_headless(spec) && below(spec, "selector").is_empty();
    let policy = match asked.as_str() {
        "" if anywhere && families.is_empty() => "RequireDualStack",
        "" if ips.len() == 2 || families.len() == 2 => "RequireDualStack",
        "" => "SingleStack",
        asked => asked,
    };
    if anywhere {
        // It has no cluster IP and no selector, so both families will do.
        for family in [OURS, "IPv6"] {
            let wanted = if policy == "SingleStack" { 1 } else { 2 };
            if families.len() < wanted && !families.iter().any(|has| has == family) {
                families.push(family.to_owned());
            }
        }
    } else {
        if policy == "RequireDualStack" {
            let detail = "this cluster is not configured for dual-stack services";
            errors.invalid("spec.ipFamilyPolicy", policy, detail);
        }
        for (at, family) in families.iter().enumerate().filter(|(_, family)| *family != OURS) {
            let detail = "not configured on this cluster";
            errors.invalid(format!("spec.ipFamilies[{at}]"), family.as_str(), detail);
        }
        if families.is_empty() {
            families.push(OURS.to_owned());
        }
    }
    let policy = policy.to_owned();
    spec.insert("ipFamilyPolicy".to_owned(), policy.into());
    spec.insert("ipFamilies".to_owned(), json!(families));
}

fn strings(spec: &Object, key: &str) -> Vec<String> {
    list(spec, key)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
