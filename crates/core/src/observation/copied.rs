//! What is kept of a copy as a member serves it.

use serde_json::Value;

use super::{Copy, CopyMeta, taught, unhealthy};
use crate::{
    interpreter::{self, Health, Interpretation},
    object::Gvk,
};

/// Projects a copy.
#[must_use]
pub fn copy(taught: &Interpretation, gvk: &Gvk, object: &Value) -> Copy {
    let mut copy = copy_as_known(gvk, object);
    if !taught.version().is_empty() {
        taught::tell_copy(taught, object, &mut copy);
    }
    if copy.health == Some(Health::Unhealthy) {
        copy.why_unhealthy = Some(unhealthy::reason(object).into());
    }
    copy
}

/// What we know of it ourselves.
fn copy_as_known(gvk: &Gvk, object: &Value) -> Copy {
    let meta = CopyMeta::of(object);
    match interpreter::native(&gvk.group, &gvk.version, &gvk.kind) {
        Some(native) if native.reports_status() => Copy {
            meta: CopyMeta {
                generation: meta
                    .generation
                    .or_else(|| interpreter::content_number(native, object)),
                ..meta
            },
            status: native.reflect(object),
            health: Some(native.health(object)),
            holds_data: native.holds_data(object),
            ..Copy::default()
        },
        Some(_) => Copy {
            meta,
            ..Copy::default()
        },
        // Nothing is known of the kind: its status is shown as it is (karmada reference 1.6).
        None => Copy {
            meta,
            status: object.get("status").filter(|status| status.is_object()).cloned(),
            health: Some(Health::Healthy),
            ..Copy::default()
        },
    }
}
