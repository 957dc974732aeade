//! A whole object inside another one: a manifest of a Work, the resource of a ResourceDistribution.
//!
//! It may be a Secret, so its content is never printed: `Debug` prints only what identifies it.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object of any kind, as JSON.
#[derive(Serialize, Deserialize, Clone, Default, PartialEq)]
#[serde(transparent)]
pub struct EmbeddedObject(pub Value);

impl EmbeddedObject {
    /// Group and version; empty if absent.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// Kind; empty if absent.
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// Name; empty if absent.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    fn text(&self, pointer: &str) -> &str {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl fmt::Debug for EmbeddedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = (self.namespace(), self.name());
        write!(
            f,
            "{} {} {namespace}/{name} (content not shown)",
            self.api_version(),
            self.kind()
        )
    }
}

impl JsonSchema for EmbeddedObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EmbeddedObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_embedded_secret_is_named_and_not_shown() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "token", "namespace": "shop", "annotations": { "a": "hunter2" } },
            "data": { "password": "hunter2" },
        });
        let shown = format!("{:?}", EmbeddedObject(secret));
        assert_eq!(shown, "v1 Secret shop/token (content not shown)");
        assert_eq!(
            format!("{:?}", EmbeddedObject(json!("hunter2"))),
            "  / (content not shown)"
        );
    }
}
