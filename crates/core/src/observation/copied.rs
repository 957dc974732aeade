//! The fields of a copy on a member that are kept.

use entourage_api::keys::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde_json::Value;

use super::{Copy, CopyMeta, interpreted, unhealthy};
use crate::{
    interpreter::{self, Health, Interpretation},
    object::{Gvk, Time},
};

/// Projects a copy.
#[must_use]
pub fn copy(interpretation: &Interpretation, gvk: &Gvk, object: &Value) -> Copy {
    let mut copy = copy_as_known(gvk, object);
    if !interpretation.version().is_empty() {
        interpreted::interpret_copy(interpretation, object, &mut copy);
    }
    if copy.health == Some(Health::Unhealthy) {
        copy.why_unhealthy = Some(unhealthy::reason(object).into());
    }
    copy
}

/// Projects a copy by its native interpreter.
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
            data_restored_at: gvk.is_claim().then(|| restored_at(object)).flatten(),
            ..Copy::default()
        },
        Some(_) => Copy {
            meta,
            ..Copy::default()
        },
        // The kind has no native interpreter: its status is reflected as it is (karmada reference 1.6).
        None => Copy {
            meta,
            status: object.get("status").filter(|status| status.is_object()).cloned(),
            health: Some(Health::Healthy),
            ..Copy::default()
        },
    }
}

fn restored_at(object: &Value) -> Option<Box<Time>> {
    let text = object["metadata"]["annotations"][annotation::DATA_RESTORED_AT].as_str()?;
    let time: v1::Time = serde_json::from_value(text.into()).ok()?;
    Some(Box::new(Time::from_k8s(&time)))
}
