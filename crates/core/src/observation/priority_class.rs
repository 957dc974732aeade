//! PriorityClasses: their value.

use serde_json::Value;

use crate::object::{Gvk, Meta};

/// A PriorityClass of the hub.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorityClass {
    pub(crate) meta: Meta,
    /// The priority that it stands for.
    pub(crate) value: i32,
}

/// The kind.
pub(super) fn gvk() -> Gvk {
    Gvk::new("scheduling.k8s.io/v1", "PriorityClass")
}

impl PriorityClass {
    /// Reads a served object; one without a valid value stands for 0, which API servers refuse to store.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let value = object["value"]
            .as_i64()
            .and_then(|value| i32::try_from(value).ok());
        Self {
            meta: Meta::of(object),
            value: value.unwrap_or_default(),
        }
    }
}
