//! Objects as JSON, and access to their metadata.

use serde_json::{Map, Value};

use tree::{below, list, made};

pub(crate) mod tree;

/// A JSON object.
pub type Object = Map<String, Value>;

/// The metadata of an object; empty when there is none.
pub(crate) fn metadata(object: &Object) -> &Object {
    static NONE: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&NONE)
}

/// The metadata of an object, made when there is none.
pub(crate) fn metadata_mut(object: &mut Object) -> &mut Object {
    made(object, "metadata")
}

/// A copy without managedFields, which are often half of an object.
pub(crate) fn without_books(object: &Object) -> Object {
    let lean = |(name, value): (&String, &Value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
            let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
            (name.clone(), Value::Object(kept.collect()))
        }
        _ => (name.clone(), value.clone()),
    };
    object.iter().map(lean).collect()
}

/// A string of the metadata; empty when absent.
pub(crate) fn field<'a>(object: &'a Object, name: &str) -> &'a str {
    metadata(object)
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// True if an object is being deleted.
pub(crate) fn is_leaving(object: &Object) -> bool {
    !field(object, "deletionTimestamp").is_empty()
}

/// True if a condition of an object's status holds.
pub(crate) fn holds(object: &Object, condition: &str) -> bool {
    list(below(object, "status"), "conditions")
        .iter()
        .any(|one| one["type"] == condition && one["status"] == "True")
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Object) -> impl Iterator<Item = &str> {
    let list = metadata(object).get("finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// A string field of a value; empty when absent.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
