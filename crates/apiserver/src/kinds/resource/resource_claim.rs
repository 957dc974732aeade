//! ResourceClaims.

use crate::{
    kinds::kind_def::{KindDef, empty_status},
    object::{
        Object,
        tree::{Errors, IMMUTABLE, at, default, each, items, made, text, within},
    },
    printer::{AGE, NAME, Printer, View, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    defaults: |claim| devices(made(claim, "spec")),
    created: empty_status,
    errors: |claim, errors| requests(at(claim, &["spec", "devices"]), "spec.devices", errors),
    changes: Some(|new, old, errors| {
        if new.get("spec") != old.get("spec") {
            errors.invalid("spec", new.get("spec").cloned().unwrap_or_default(), IMMUTABLE);
        }
    }),
    printer: Printer::new(
        &[
            NAME,
            words(
                "State",
                "A summary of the current state (allocated, pending, reserved, etc.).",
            ),
            AGE,
        ],
        |claim| vec![claim.name(), state(claim).into(), claim.age()],
    ),
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

/// Each request has a name, and asks either for one kind of devices or for the first of several.
pub(super) fn requests(devices: &Object, path: &str, errors: &mut Errors) {
    for (path, request) in items(devices, "requests", path) {
        errors.needs(request, &path, "name");
        match (request.get("exactly"), request.get("firstAvailable")) {
            (None, None) => {
                errors.required(&path, "exactly one of `exactly` or `firstAvailable` is required")
            }
            (Some(_), Some(_)) => {
                let why =
                    "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                errors.invalid(&path, serde_json::Value::Object(request.clone()), why);
            }
            (Some(_), None) => {
                let path = format!("{path}.exactly");
                errors.needs(at(request, &["exactly"]), &path, "deviceClassName");
            }
            (None, Some(_)) => {
                for (path, one) in items(request, "firstAvailable", &path) {
                    errors.needs(one, &path, "name");
                    errors.needs(one, &path, "deviceClassName");
                }
            }
        }
    }
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
