//! IPAddresses.

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::tree::{below, object},
    printer::{NAME, Printer, words},
};

/// IPAddress: its name is the address.
pub(super) static DEF: KindDef = KindDef {
    short: &["ip"],
    names: |name, _| names::ip(name),
    errors: |address, errors| {
        let spec = below(address, "spec");
        let Some(parent) = object(spec, "parentRef") else {
            errors.required("spec.parentRef", "");
            return;
        };
        for key in ["resource", "name"] {
            errors.needs(parent, "spec.parentRef", key);
        }
    },
    changes: Some(|new, old, errors| {
        errors.immutable(below(new, "spec"), below(old, "spec"), "spec", "parentRef");
    }),
    printer: Printer::of(&[
        NAME,
        words("ParentRef", ".spec.parentRef").shows(|address| {
            let text = |name: &str| address.text(&format!("spec.parentRef.{name}"));
            let words = [text("group"), text("resource"), text("namespace"), text("name")];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            words.join("/").into()
        }),
    ]),
    ..KindDef::of::<k8s_openapi::api::networking::v1::IPAddress>()
};
