//! ServiceImport.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource, whole_status};
use crate::json::{at, set};

/// multicluster.x-k8s.io/v1alpha1 ServiceImport.
///
/// Its dependencies are the Service that represents it in a cluster, and that Service's EndpointSlices.
///
/// Retained: `spec.ips`, if the template has none: the addresses that the member's implementation gave it.
pub(super) struct ServiceImport;

const IPS: &[&str] = &["spec", "ips"];

impl NativeKind for ServiceImport {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "multicluster.x-k8s.io",
            version: "v1alpha1",
            kind: "ServiceImport",
        }
    }

    fn summary(&self) -> &'static str {
        "traffic: a Service of other clusters"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("serviceimports"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::References, Operation::Retain, Operation::Reflect]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let is_empty = at(desired, IPS).as_array().is_none_or(Vec::is_empty);
        if desired["spec"].is_object() && is_empty && at(live, IPS).is_array() {
            set(desired, IPS, at(live, IPS).clone());
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }
}
