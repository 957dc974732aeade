//! The contest over the status of a template: two writers that replace each other's.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

use crate::{
    drift::{DriftBackoff, Drifting},
    object::Time,
};

/// The fate of the status that was last written to a template.
#[derive(Clone, Debug)]
pub struct Contest {
    sent: u64,
    stored: bool,
    drift_backoff: Option<DriftBackoff>,
}

impl Contest {
    /// The contest that begins with our status.
    pub(crate) fn begins(status: &Value) -> Self {
        Self {
            sent: hash_of(status),
            stored: false,
            drift_backoff: None,
        }
    }

    /// Our status is sent again. Cost: O(size of the status).
    pub(crate) fn sends(&mut self, status: &Value) {
        (self.sent, self.stored) = (hash_of(status), false);
    }

    /// The template's status differs from the one before. Returns true if ours was replaced too often. Cost: O(size of the status).
    pub(crate) fn observe(&mut self, status: &Value, now: Time) -> bool {
        if hash_of(status) == self.sent {
            self.stored = true;
            return false;
        }
        if !std::mem::take(&mut self.stored) {
            return false;
        }
        let held = self.drift_backoff.take();
        let drift_backoff = DriftBackoff::corrected(held, Drifting::Status, "status", now);
        let is_reported = drift_backoff.is_reported();
        self.drift_backoff = Some(drift_backoff);
        is_reported
    }
}

/// The hash of a status: the same whatever the order of its fields; null counts as absent.
fn hash_of(value: &Value) -> u64 {
    fn add(value: &Value, hasher: &mut DefaultHasher) {
        match value {
            Value::Object(map) => {
                let sorted: BTreeMap<_, _> = map.iter().filter(|(_, value)| !value.is_null()).collect();
                sorted.len().hash(hasher);
                for (key, value) in sorted {
                    key.hash(hasher);
                    add(value, hasher);
                }
            }
            Value::Array(items) => {
                items.len().hash(hasher);
                items.iter().for_each(|item| add(item, hasher));
            }
            plain => plain.to_string().hash(hasher),
        }
    }
    let mut hasher = DefaultHasher::new();
    add(value, &mut hasher);
    hasher.finish()
}
