//! A custom resource: one served version of a CustomResourceDefinition, compiled.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    object::Object,
    scale,
    schema::{Schema, prune},
};

/// Verbs of every custom resource, in the order of discovery.
pub(crate) const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// One served version of a CRD, understood.
#[derive(Debug, Default)]
pub struct Custom {
    /// Name of the CRD: `plural.group`.
    pub crd: String,
    /// The schema of objects.
    pub schema: Arc<Schema>,
    /// `additionalPrinterColumns` as written, or the default column Age.
    pub columns: Vec<Value>,
    /// Paths of `selectableFields`: `spec.colour`, with how they are reached.
    pub(crate) selectable: Vec<(String, Vec<String>)>,
    /// The scale subresource, if there is one.
    pub scale: Option<scale::Paths>,
    /// True if status is a subresource.
    pub status: bool,
    /// The Warning of every request when the version is deprecated.
    pub deprecation: Option<String>,
    /// Version that objects are stored as.
    pub storage: String,
    /// The schemas of all versions by their names, also of those that are not served.
    pub(crate) versions: Arc<BTreeMap<String, Arc<Schema>>>,
    /// True if the CRD is being deleted: nothing new is created.
    pub terminating: bool,
    /// True if this is the only served version, and the stored one.
    pub(crate) alone: bool,
    /// Objects written at or after this revision went through this schema; 0: not known yet.
    pub(crate) since: AtomicU64,
    /// The last revision that was written by an earlier definition after it had been replaced; shared by all of a CRD.
    pub(crate) late: Arc<AtomicU64>,
    /// Cancelled when this definition is no longer the one that is served: watches end.
    pub replaced: CancellationToken,
}

impl Custom {
    /// Values of the selectable fields; `None` when the CRD names none. Absent fields are empty.
    #[must_use]
    pub fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        if self.selectable.is_empty() {
            return None;
        }
        let value = |steps: &[String]| {
            let mut steps = steps.iter();
            let mut value = object.get(steps.next()?)?;
            for step in steps {
                value = value.get(step)?;
            }
            match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                _ => None,
            }
        };
        let values = self
            .selectable
            .iter()
            .map(|(name, steps)| (name.clone(), value(steps).unwrap_or_default()));
        Some(values.collect())
    }

    /// True if an object last written at `revision` is stored as it is shown: neither pruned nor given defaults on the way.
    #[must_use]
    pub fn is_as_stored(&self, revision: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        self.alone && since > 0 && revision >= since && revision > self.late.load(Ordering::Relaxed)
    }

    /// An object is written by this definition at `revision`, under the lock of the store.
    pub(crate) fn writes(&self, revision: u64) {
        if self.replaced.is_cancelled() {
            self.late.fetch_max(revision, Ordering::Relaxed);
        }
    }

    /// From `revision` on, objects are written by this definition; [`Custom::writes`] is false for those of an earlier one.
    pub(crate) fn served_since(&self, revision: u64) {
        // The first value stays.
        let _ = self
            .since
            .compare_exchange(0, revision, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A stored object as this version shows it, unless it is so already: pruned and with defaults as the version that it was
    /// stored as has them, then pruned by this version. O(object).
    pub fn show(&self, object: &mut Object, stored_as: Option<&str>) {
        let revision = object
            .get("metadata")
            .and_then(|metadata| metadata.get("resourceVersion"))
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok());
        if revision.is_some_and(|revision| self.is_as_stored(revision)) {
            return;
        }
        let mut value = Value::Object(std::mem::take(object));
        let stored = stored_as.and_then(|version| self.versions.get(version));
        let stored = stored
            .or_else(|| self.versions.get(&self.storage))
            .unwrap_or(&self.schema);
        prune::prune(&mut value, Some(stored));
        prune::drop_nulls(&mut value, stored);
        prune::fill(&mut value, stored);
        if !Arc::ptr_eq(stored, &self.schema) {
            prune::prune(&mut value, Some(&self.schema));
        }
        if let Value::Object(fields) = value {
            *object = fields;
        }
    }
}
