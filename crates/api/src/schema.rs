//! Schemas that a derive cannot express, and the predicates that keep serialised output minimal.
//!
//! The derive describes Rust types; the wire schema is Karmada's, written by Go tools. Where the two differ by type, a field
//! names one of these functions; where they differ for all types (`nullable`, formats that only Rust has), `crds` adapts the
//! finished schema.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Quantities by resource name, such as cpu.
pub type Resources = BTreeMap<String, Quantity>;

/// The pattern of a quantity that Go accepts, as every Kubernetes CRD has it.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The pattern of a condition's reason.
pub(crate) const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The pattern of a condition's type.
const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// True for the zero value, which is left out of the output.
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// True for the zero value, which is left out of the output.
pub(crate) fn is_zero(value: &i32) -> bool {
    *value == 0
}

/// An integer of no declared size (Go's `int`).
pub(crate) fn plain_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// An object whose content is not validated.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Any value.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// Bytes, base64 in JSON.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

/// A quantity: a number, or a string with a suffix.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true
    })
}

/// Quantities by resource name.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity(generator) })
}

/// The purge modes that a failing cluster allows: no user can confirm a deletion there, so there is no `Never`.
pub(crate) fn cluster_purge_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["Directly", "Gracefully"] })
}

/// A list that server-side apply replaces as a whole.
pub(crate) fn atomic_strings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "atomic" })
}

/// A label selector, replaced as a whole by server-side apply.
pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = LabelSelector::json_schema(generator);
    mark(&mut schema, "", "x-kubernetes-map-type");
    mark(
        &mut schema,
        "/properties/matchExpressions",
        "x-kubernetes-list-type",
    );
    mark(
        &mut schema,
        "/properties/matchExpressions/items/properties/values",
        "x-kubernetes-list-type",
    );
    schema
}

/// A node selector, replaced as a whole by server-side apply.
pub(crate) fn node_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = NodeSelector::json_schema(generator);
    mark(&mut schema, "", "x-kubernetes-map-type");
    mark(
        &mut schema,
        "/properties/nodeSelectorTerms",
        "x-kubernetes-list-type",
    );
    let term = "/properties/nodeSelectorTerms/items";
    mark(&mut schema, term, "x-kubernetes-map-type");
    for list in ["matchExpressions", "matchFields"] {
        let list = format!("{term}/properties/{list}");
        mark(&mut schema, &list, "x-kubernetes-list-type");
        mark(
            &mut schema,
            &format!("{list}/items/properties/values"),
            "x-kubernetes-list-type",
        );
    }
    schema
}

/// Conditions with the limits that Kubernetes sets on them.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut condition = Condition::json_schema(generator).to_value();
    let limits = [
        ("message", json!({ "maxLength": 32768 })),
        ("observedGeneration", json!({ "minimum": 0 })),
        (
            "reason",
            json!({ "minLength": 1, "maxLength": 1024, "pattern": REASON }),
        ),
        ("status", json!({ "enum": ["True", "False", "Unknown"] })),
        ("type", json!({ "maxLength": 316, "pattern": CONDITION_TYPE })),
    ];
    for (field, limit) in limits {
        if let (Some(Value::Object(schema)), Value::Object(limit)) =
            (condition.pointer_mut(&format!("/properties/{field}")), limit)
        {
            schema.extend(limit);
        }
    }
    json_schema!({ "type": "array", "items": condition })
}

/// Sets `key: atomic` on the subschema at `pointer`. Inlined subschemas only: a pointer that does not resolve changes nothing,
/// and the comparison with the reference schema fails.
fn mark(schema: &mut Schema, pointer: &str, key: &str) {
    if let Some(Value::Object(at)) = schema.pointer_mut(pointer) {
        at.insert(key.into(), "atomic".into());
    } else if pointer.is_empty() {
        schema.insert(key.into(), "atomic".into());
    }
}
