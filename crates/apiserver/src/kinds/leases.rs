//! Leases.

use super::kind::Kind;
use crate::object::{
    Object,
    tree::{Errors, below, made, number, object_mut},
};

/// Lease. Coordinated leader election is off, as in a server without feature gates: its two fields are dropped.
pub(super) static LEASE: Kind = Kind {
    kind: "Lease",
    create_on_update: true,
    created: drop_gated,
    updated: |_, new, _| drop_gated(new),
    errors,
    ..Kind::PLAIN
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
