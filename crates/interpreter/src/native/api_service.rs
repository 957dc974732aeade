//! APIService.

use serde_json::Value;

use super::{Health, NativeGvk, NativeKind, Operation, Resource, ca_bundle, whole_status};
use crate::json::{at, items as list};

/// apiregistration.k8s.io/v1 APIService.
///
/// Retained: its CA, if the template has none and requests one.
pub(super) struct ApiService;

impl NativeKind for ApiService {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apiregistration.k8s.io",
            version: "v1",
            kind: "APIService",
        }
    }

    fn summary(&self) -> &'static str {
        "API: a group that another server answers for"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("apiservices"))
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
        if *at(desired, &["spec", "insecureSkipTLSVerify"]) != true {
            ca_bundle::retain(desired, live, &["spec", "caBundle"]);
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// Healthy: its server is available.
    fn health(&self, live: &Value) -> Health {
        let answers = |each: &Value| each["type"] == "Available" && each["status"] == "True";
        if !live["status"].is_object() {
            Health::Unknown
        } else if list(live, &["status", "conditions"]).iter().any(answers) {
            Health::Healthy
        } else {
            Health::Unhealthy
        }
    }
}
