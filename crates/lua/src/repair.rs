//! Restores the information that an object loses in Lua, by comparison with the objects that the script was given.
//!
//! An empty table becomes `{}` where one of them has an object at that path, `[]` where one has an array, and is removed where
//! none has a value: a script that wants an empty field omits it. Source: Karmada (`convertEmptySliceToEmptyStructPartly`),
//! which compares empty fields only: there, a map that a script empties is removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::json::{EXACT, Read};

/// The repaired value. `references` are the objects given to the script, reduced to the part that is returned.
pub(crate) fn repaired(read: Read, references: &[&Json]) -> Json {
    let mut value = read.value;
    if read.has_empty {
        let mut shape = Shape::default();
        for reference in references {
            shape.add(reference);
        }
        settle(&mut value, Some(&shape));
    }
    if read.has_large {
        restore(&mut value, references);
    }
    value
}

/// The values at a path and below it in any of the references; all elements of an array are one path.
#[derive(Default)]
struct Shape<'a> {
    is_object: bool,
    is_array: bool,
    fields: BTreeMap<&'a str, Self>,
    elements: Option<Box<Self>>,
}

impl<'a> Shape<'a> {
    fn add(&mut self, value: &'a Json) {
        match value {
            Json::Object(map) => {
                self.is_object = true;
                for (key, each) in map.iter().filter(|(_, each)| each.is_object() || each.is_array()) {
                    self.fields.entry(key).or_default().add(each);
                }
            }
            Json::Array(list) => {
                self.is_array = true;
                let elements = self.elements.get_or_insert_default();
                list.iter().for_each(|each| elements.add(each));
            }
            _ => {}
        }
    }
}

/// Restores the type of each empty array; returns true if the value is kept.
fn settle(value: &mut Json, shape: Option<&Shape<'_>>) -> bool {
    match value {
        Json::Array(list) if list.is_empty() => match shape {
            Some(shape) if shape.is_object => *value = Json::Object(Map::new()),
            Some(shape) if shape.is_array => {}
            _ => return false,
        },
        Json::Array(list) => {
            let elements = shape.and_then(|shape| shape.elements.as_deref());
            list.retain_mut(|each| settle(each, elements));
        }
        Json::Object(map) => {
            let field = |key: &str| shape.and_then(|shape| shape.fields.get(key));
            map.retain(|key, each| settle(each, field(key)));
        }
        _ => {}
    }
    true
}

/// Restores the digits of large integers from the same path.
fn restore(value: &mut Json, references: &[&Json]) {
    match value {
        Json::Number(number) => {
            let held = number.as_f64().unwrap_or_default();
            let was = references
                .iter()
                .find(|was| was.is_number() && was.as_f64() == Some(held));
            if let Some(Json::Number(was)) = was.filter(|_| held.abs() >= EXACT) {
                *number = was.clone();
            }
        }
        Json::Array(list) => {
            for (index, each) in list.iter_mut().enumerate() {
                let below: Vec<_> = references.iter().filter_map(|was| was.get(index)).collect();
                restore(each, &below);
            }
        }
        Json::Object(map) => {
            for (key, each) in map {
                let below: Vec<_> = references.iter().filter_map(|was| was.get(key)).collect();
                restore(each, &below);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Json, references: &[&Json]) -> Json {
        let read = Read {
            value,
            has_empty: true,
            has_large: true,
        };
        repaired(read, references)
    }

    #[test]
    fn an_empty_table_is_what_stood_there_before() {
        let before = json!({"a": {}, "b": [], "c": {"x": 1}, "d": [1], "list": [{"e": {}}, {"f": []}]});
        let after =
            json!({"a": [], "b": [], "c": [], "d": [], "new": [], "list": [{"e": [], "f": []}, {"g": []}]});
        assert_eq!(
            of(after, &[&before]),
            json!({"a": {}, "b": [], "c": {}, "d": [], "list": [{"e": {}, "f": []}, {}]})
        );
    }

    #[test]
    fn a_large_integer_keeps_its_digits_where_it_stays() {
        let before = json!({"a": [9_007_199_254_740_993_i64], "b": 1});
        let after = json!({"a": [9_007_199_254_740_992_i64], "b": 9_007_199_254_740_992_i64});
        assert_eq!(
            of(after, &[&json!({}), &before]),
            json!({"a": [9_007_199_254_740_993_i64], "b": 9_007_199_254_740_992_i64})
        );
    }
}
