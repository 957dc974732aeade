//! Leases.

use crate::{
    kinds::kind_def::KindDef,
    object::{
        Object,
        tree::{Errors, below, made, number, object_mut},
    },
    printer::{AGE, NAME, Printer, words},
};

/// Lease. Coordinated leader election is off, as in a server without feature gates: its two fields are dropped.
pub(super) static DEF: KindDef = KindDef {
    create_on_update: true,
    created: drop_gated,
    updated: |_, new, _| drop_gated(new),
    errors,
    printer: Printer::of(&[NAME, words("Holder", ".spec.holderIdentity"), AGE]),
    ..KindDef::of::<k8s_openapi::api::coordination::v1::Lease>()
};

fn drop_gated(lease: &mut Object) {
    made(lease, "spec");
    if let Some(spec) = object_mut(lease, "spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

fn errors(lease: &Object, errors: &mut Errors) {
    let spec = below(lease, "spec");
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    errors.nonnegative(spec, "spec", "leaseTransitions");
}
