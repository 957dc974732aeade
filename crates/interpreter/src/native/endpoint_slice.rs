//! EndpointSlice.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource};
use crate::json::text;

/// discovery.k8s.io/v1 EndpointSlice, and v1beta1 of servers before 1.21; the field is the version.
///
/// Never sent: the label that makes a slice the property of Kubernetes' own controllers, which would delete it on a
/// member as one they did not make.
///
/// Retained: nothing.
pub(super) struct EndpointSlice(pub(super) &'static str);

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

const CONTROLLERS: &[&str] = &[
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

impl NativeKind for EndpointSlice {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "discovery.k8s.io",
            version: self.0,
            kind: "EndpointSlice",
        }
    }

    fn summary(&self) -> &'static str {
        "traffic: addresses of a Service's pods"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("endpointslices"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Prune]
    }

    fn hub_only_labels(&self, template: &Value) -> &'static [&'static str] {
        let manager = text(template, &["metadata", "labels", MANAGED_BY]);
        if CONTROLLERS.contains(&manager) {
            &[MANAGED_BY]
        } else {
            &[]
        }
    }
}
