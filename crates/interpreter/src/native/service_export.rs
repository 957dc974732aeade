//! ServiceExport.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource, whole_status};

/// multicluster.x-k8s.io/v1alpha1 ServiceExport.
///
/// Retained: nothing.
pub(super) struct ServiceExport;

impl NativeKind for ServiceExport {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "multicluster.x-k8s.io",
            version: "v1alpha1",
            kind: "ServiceExport",
        }
    }

    fn summary(&self) -> &'static str {
        "traffic: a Service that other clusters use"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("serviceexports"))
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
