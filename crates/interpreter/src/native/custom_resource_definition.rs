//! CustomResourceDefinition.

use serde_json::Value;

use super::{Health, NativeGvk, NativeKind, Operation, Resource, ca_bundle, whole_status};
use crate::json::items as list;

/// apiextensions.k8s.io/v1 CustomResourceDefinition.
///
/// Retained: the CA of its conversion webhook, if the template has none.
pub(super) struct CustomResourceDefinition;

impl NativeKind for CustomResourceDefinition {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apiextensions.k8s.io",
            version: "v1",
            kind: "CustomResourceDefinition",
        }
    }

    fn summary(&self) -> &'static str {
        "API: a kind of object"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("customresourcedefinitions"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Retain, Operation::Reflect, Operation::Health]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        ca_bundle::retain(desired, live, &path);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// Healthy: its objects are served.
    fn health(&self, live: &Value) -> Health {
        let is_served = |each: &Value| each["type"] == "Established" && each["status"] == "True";
        if !live["status"].is_object() {
            Health::Unknown
        } else if list(live, &["status", "conditions"]).iter().any(is_served) {
            Health::Healthy
        } else {
            Health::Unhealthy
        }
    }
}
