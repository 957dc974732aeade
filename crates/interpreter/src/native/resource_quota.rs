//! ResourceQuota.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource, whole_status};

/// v1 ResourceQuota.
///
/// It bounds a namespace of its own cluster: a bound holds in each cluster, not over all. It has no generation, and its
/// status changes with each object that counts.
///
/// Retained: nothing. Its controller on the member writes status only.
pub(super) struct ResourceQuota;

impl NativeKind for ResourceQuota {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "ResourceQuota",
        }
    }

    fn summary(&self) -> &'static str {
        "bounds: what a namespace may use, in each cluster for itself"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("resourcequotas").granted(false, false))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Reflect]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }
}
