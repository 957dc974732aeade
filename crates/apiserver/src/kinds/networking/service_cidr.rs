//! ServiceCIDRs.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::tree::{below, list, made},
    printer::{AGE, NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    defaults: |cidr| {
        made(cidr, "spec");
    },
    created: crate::kinds::kind_def::empty_status,
    errors: |cidr, errors| {
        let cidrs = list(below(cidr, "spec"), "cidrs");
        if cidrs.is_empty() {
            errors.required("spec.cidrs", "at least one CIDR required");
        } else if cidrs.len() > 2 {
            let value = Value::Array(cidrs.to_vec());
            errors.invalid("spec", value, "may only hold up to 2 values");
        }
        for (at, range) in cidrs.iter().filter_map(Value::as_str).enumerate().take(2) {
            errors.all_invalid(&format!("spec.cidrs[{at}]"), range, names::cidr(range));
        }
    },
    changes: Some(|new, old, errors| {
        errors.immutable(below(new, "spec"), below(old, "spec"), "spec", "cidrs");
    }),
    printer: Printer::of(&[
        NAME,
        words("CIDRs", ".spec.cidrs").shows(|range| range.texts("spec.cidrs").join(",").into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::networking::v1::ServiceCIDR>()
};
