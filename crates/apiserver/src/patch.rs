//! The three patches that are not apply: JSON patch (RFC 6902), merge patch (RFC 7396), strategic merge.

use serde_json::{Map, Value};

use crate::{
    read::Node,
    schema::Schema,
    status::{Result, Status},
};

mod json;
mod strategic;

/// The kinds of patch, by their media types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`; built-in kinds only.
    Strategic,
}

/// The patched value. Cost: O(target + patch) for merges; operations × depth for JSON patches, which are limited in
/// number and in the work that they may make.
///
/// # Errors
///
/// 400 for a body that is no patch, 413 for too many operations, 422 for an operation that fails, 500 for a strategic
/// merge that contradicts itself.
pub fn patched(kind: PatchKind, schema: &Schema, mut target: Value, body: &[u8]) -> Result<Value> {
    let prefix = match kind {
        PatchKind::Json | PatchKind::Merge => "error decoding patch: ",
        PatchKind::Strategic => "",
    };
    let wanted = match kind {
        PatchKind::Json => "[]handlers.jsonPatchOp",
        PatchKind::Merge | PatchKind::Strategic => "map[string]interface {}",
    };
    let broken = |why: &str| Status::bad_request(format!("{prefix}{why}"));
    let patch = Node::parse(body).map_err(|why| broken(&why))?;
    let other = format!(
        "json: cannot unmarshal {} into Go value of type {wanted}",
        patch.type_name()
    );
    match (kind, patch.into_value()) {
        (PatchKind::Json, Value::Array(operations)) => json::apply(target, &operations),
        (PatchKind::Json | PatchKind::Strategic, Value::Null) => Ok(target),
        (PatchKind::Merge, Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
        (PatchKind::Merge, Value::Object(patch)) => {
            match &mut target {
                Value::Object(target) => merge(target, patch),
                other => *other = Value::Object(patch),
            }
            Ok(target)
        }
        (PatchKind::Strategic, Value::Object(patch)) => {
            let target = match target {
                Value::Object(target) => target,
                _ => Map::new(),
            };
            strategic::merge(Some(schema), target, patch).map(Value::Object)
        }
        _ => Err(broken(&other)),
    }
}

/// Merges as RFC 7396 has it; null takes out, also from maps that are new, and from those in new lists.
fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut value) in patch {
        if value.is_null() {
            target.remove(&name);
            continue;
        }
        match (target.get_mut(&name), value) {
            (Some(Value::Object(here)), Value::Object(patch)) => merge(here, patch),
            (Some(here @ Value::Object(_)), other) => *here = other,
            (_, new) => {
                value = new;
                without_nulls(&mut value);
                target.insert(name, value);
            }
        }
    }
}

/// Takes the entries out that are null, at any depth.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
