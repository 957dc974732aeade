//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource, ca_bundle};
use crate::json::items as list;

/// admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration or MutatingWebhookConfiguration; the field is the kind.
///
/// Retained: the CA of each webhook for which the template has none, by the webhook's name.
pub(super) struct WebhookConfiguration(pub(super) &'static str);

impl NativeKind for WebhookConfiguration {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "admissionregistration.k8s.io",
            version: "v1",
            kind: self.0,
        }
    }

    fn summary(&self) -> &'static str {
        "admission: webhooks that each request is shown to"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped(match self.0 {
            "MutatingWebhookConfiguration" => "mutatingwebhookconfigurations",
            _ => "validatingwebhookconfigurations",
        }))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Retain]
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let webhooks = desired.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            let same = list(live, &["webhooks"])
                .iter()
                .find(|live| live["name"] == webhook["name"]);
            if let Some(live) = same {
                ca_bundle::retain(webhook, live, &["clientConfig", "caBundle"]);
            }
        }
    }
}
