//! The address and CA of a webhook, as configurations give them.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a hook is reached: url or service, one of the two.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WebhookClientConfig {
    /// Its address, such as `https://hooks.example.com/interpret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// The Service that it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceReference>,

    /// The certificates to trust, PEM. Left out: those that the system trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// Names a Service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,

    /// Its name.
    pub name: String,

    /// The path of the hook's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// The port. 443 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}
