//! ResourceClaims.

use crate::{
    kinds::kind_def::{KindDef, METADATA, empty_status},
    object::{
        Object,
        tree::{IMMUTABLE, default, each, made, text, within},
    },
    printer::{AGE, NAME, Printer, View, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    kept_by_status: METADATA,
    defaults: |claim| devices(made(claim, "spec")),
    created: empty_status,
    changes: Some(|new, old, errors| {
        if new.get("spec") != old.get("spec") {
            errors.invalid("spec", new.get("spec").cloned().unwrap_or_default(), IMMUTABLE);
        }
    }),
    printer: Printer::of(&[
        NAME,
        words(
            "State",
            "A summary of the current state (allocated, pending, reserved, etc.).",
        )
        .shows(|claim| state(claim).into()),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::resource::v1::ResourceClaim>()
};

/// Fills in the requests of a claim's spec.
pub(super) fn devices(spec: &mut Object) {
    fn one(request: &mut Object) {
        default(request, "allocationMode", "ExactCount");
        if text(request, "allocationMode") == "ExactCount" {
            default(request, "count", 1);
        }
        each(request, "tolerations", |toleration| {
            default(toleration, "operator", "Equal")
        });
    }
    within(spec, "devices", |devices| {
        each(devices, "requests", |request| {
            within(request, "exactly", one);
            each(request, "firstAvailable", one);
        });
    });
}

fn state(claim: &View<'_>) -> String {
    let allocated = claim.at("status.allocation").is_some();
    let reserved = !claim.list("status.reservedFor").is_empty();
    let leaving = !claim.text("metadata.deletionTimestamp").is_empty();
    let states = [
        ("deleted", leaving),
        ("allocated", allocated),
        ("reserved", reserved),
    ];
    let states: Vec<&str> = states
        .iter()
        .filter(|(_, is)| *is)
        .map(|(state, _)| *state)
        .collect();
    if states.is_empty() {
        "pending".to_owned()
    } else {
        states.join(",")
    }
}
