//! Namespace.

use serde_json::Value;

use super::{Health, NativeGvk, NativeKind, Operation, Resource, prune_metadata, whole_status};
use crate::json::{at, remove, set, text};

/// v1 Namespace.
///
/// Its spec has only the finalizers by which each API server empties it before it is deleted: never sent, and retained.
/// The label with its name is every API server's own.
pub(super) struct Namespace;

impl NativeKind for Namespace {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "Namespace",
        }
    }

    fn summary(&self) -> &'static str {
        "a place for objects"
    }

    /// Namespaces are on every member, whatever the policies; only a policy that selects one needs further rights there.
    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("namespaces").granted(true, false))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Health,
        ]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn hub_only_labels(&self, _template: &Value) -> &'static [&'static str] {
        &["kubernetes.io/metadata.name"]
    }

    fn prune(&self, template: &mut Value) {
        remove(template, &["spec", "finalizers"]);
        if at(template, &["spec"])
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
        {
            remove(template, &["spec"]);
        }
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        const FINALIZERS: &[&str] = &["spec", "finalizers"];
        if at(live, FINALIZERS).is_array() {
            set(desired, FINALIZERS, at(live, FINALIZERS).clone());
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// Healthy: it is not being deleted.
    fn health(&self, live: &Value) -> Health {
        match text(live, &["status", "phase"]) {
            "Active" => Health::Healthy,
            "" => Health::Unknown,
            _ => Health::Unhealthy,
        }
    }
}
