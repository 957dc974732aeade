//! Access to JSON without panics: a path that does not exist, or leads through a value that is not an object, is absent.

use serde_json::{Map, Value};

/// The string at `path`, or "".
pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// The integer at `path`; `None` if there is none or it is not an integer.
pub(super) fn int(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).as_i64()
}

/// The elements at `path`; empty if it is not an array.
pub(super) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The value at `path`; `Value::Null` if absent.
pub(super) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, key| &value[*key])
}

/// The mutable value at `path`; `None` if absent.
pub(super) fn at_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, key| value.get_mut(*key))
}

/// Sets the value at `path`, and creates missing objects on the way. A path through a value that is not an object changes
/// nothing.
pub(super) fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut parent = object;
    for key in parents {
        let Some(map) = or_object(parent) else { return };
        parent = map.entry(*key).or_insert(Value::Null);
    }
    if let Some(map) = or_object(parent) {
        map.insert((*last).to_owned(), value);
    }
}

/// Removes the value at `path` and returns it.
pub(super) fn remove(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    at_mut(object, parents)?.as_object_mut()?.remove(*last)
}

/// Removes the keys from the map at `path`, and the map itself if it is then empty.
pub(super) fn remove_keys(object: &mut Value, path: &[&str], keys: &[&str]) {
    let Some(map) = at_mut(object, path).and_then(Value::as_object_mut) else {
        return;
    };
    let before = map.len();
    map.retain(|key, _| !keys.contains(&key.as_str()));
    if map.is_empty() && before > 0 {
        remove(object, path);
    }
}

/// True if two values are equal to an API server that omits empty values: null, `{}` and `[]` count as absent, at any depth of
/// objects.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.into_iter().all(|key| same(&left[key], &right[key]))
        }
        (Value::Array(a), Value::Array(b)) if !a.is_empty() && !b.is_empty() => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(map), Value::Null) | (Value::Null, Value::Object(map)) => {
            map.values().all(|value| same(value, &Value::Null))
        }
        (Value::Array(list), Value::Null) | (Value::Null, Value::Array(list)) => list.is_empty(),
        _ => left == right,
    }
}

fn or_object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn setting_makes_the_objects_on_the_way_but_never_replaces_what_is_there() {
        let mut value = json!({"list": []});
        set(&mut value, &["a", "b"], json!(1));
        set(&mut value, &["list", "b"], json!(1));
        assert_eq!(value, json!({"a": {"b": 1}, "list": []}));
    }

    #[test]
    fn what_an_api_server_leaves_out_is_the_same_as_absent() {
        assert!(same(
            &json!({"a": 1, "b": {}, "c": [], "d": null, "e": {"f": {}}}),
            &json!({"a": 1})
        ));
        assert!(same(&json!([{"a": {}}]), &json!([{}])));
        assert!(!same(&json!({"a": 0}), &json!({})));
        assert!(!same(&json!([1]), &json!([])));
        assert!(!same(&json!([{}]), &json!([])));
    }

    #[test]
    fn a_map_emptied_by_removing_keys_goes_too() {
        let mut value = json!({"m": {"annotations": {"a": "1"}, "labels": {}}});
        remove_keys(&mut value, &["m", "annotations"], &["a"]);
        remove_keys(&mut value, &["m", "labels"], &["a"]);
        assert_eq!(value, json!({"m": {"labels": {}}}));
    }
}
