//! Changes of labels and annotations.

use entourage_api::policy::{LabelAnnotationOverrider, OverriderOperator};
use serde_json::{Map, Value, json};

/// Changes `field` (labels or annotations) of an object's metadata: `add` sets, `replace` sets existing keys, `remove` removes
/// existing keys, whatever their value. Keys that do not exist are skipped by replace and remove, as in Karmada.
///
/// # Errors
/// The field exists and is not a map.
pub(super) fn revise(
    object: &mut Value,
    field: &str,
    change: &LabelAnnotationOverrider,
) -> Result<(), String> {
    let map = &mut object["metadata"][field];
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    let Some(map) = map.as_object_mut() else {
        return Err(format!("metadata.{field} is not a map"));
    };
    for (key, value) in &change.value {
        match change.operator {
            OverriderOperator::Add => {
                map.insert(key.clone(), json!(value));
            }
            OverriderOperator::Replace => {
                if let Some(present) = map.get_mut(key) {
                    *present = json!(value);
                }
            }
            OverriderOperator::Remove => {
                map.remove(key);
            }
        }
    }
    Ok(())
}
