//! Access to the fields of objects: an absent field reads as empty, as in the server's own types.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::{
    object::Object,
    status::{FieldError, Problem},
};

static EMPTY: LazyLock<Object> = LazyLock::new(Map::new);

/// A string; empty when absent.
pub(crate) fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number.
pub(crate) fn number(object: &Object, key: &str) -> Option<i64> {
    object.get(key).and_then(Value::as_i64)
}

/// A whole number; zero when absent.
pub(crate) fn count(object: &Object, key: &str) -> i64 {
    number(object, key).unwrap_or(0)
}

/// A boolean; false when absent.
pub(crate) fn flag(object: &Object, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// An object; `None` when absent.
pub(crate) fn object<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key).and_then(Value::as_object)
}

/// An object; empty when absent.
pub(crate) fn below<'a>(parent: &'a Object, key: &str) -> &'a Object {
    object(parent, key).unwrap_or(&EMPTY)
}

/// An object some keys down; empty when absent.
pub(crate) fn at<'a>(object: &'a Object, path: &[&str]) -> &'a Object {
    path.iter().fold(object, |object, key| below(object, key))
}

/// A list; empty when absent.
pub(crate) fn list<'a>(object: &'a Object, key: &str) -> &'a [Value] {
    object
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The objects of a list, each with its path.
pub(crate) fn items<'a>(
    parent: &'a Object,
    key: &'a str,
    path: &'a str,
) -> impl Iterator<Item = (String, &'a Object)> {
    list(parent, key)
        .iter()
        .enumerate()
        .map(move |(at, item)| (format!("{path}.{key}[{at}]"), item.as_object().unwrap_or(&EMPTY)))
}

/// Fills in what is absent, null or the empty string.
pub(crate) fn default(object: &mut Object, key: &str, value: impl Into<Value>) {
    match object.get(key) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(_) => return,
    }
    object.insert(key.to_owned(), value.into());
}

/// An object to change; `None` when absent.
pub(crate) fn object_mut<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

/// An object to change, made when absent.
pub(crate) fn made<'a>(object: &'a mut Object, key: &str) -> &'a mut Object {
    let slot = object
        .entry(key)
        .and_modify(|value| {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
        })
        .or_insert_with(|| Value::Object(Map::new()));
    match slot {
        Value::Object(map) => map,
        // Made an object just above.
        _ => unreachable!("not an object"),
    }
}

/// Changes every object of a list.
pub(crate) fn each(object: &mut Object, key: &str, mut change: impl FnMut(&mut Object)) {
    if let Some(Value::Array(items)) = object.get_mut(key) {
        items
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(&mut change);
    }
}

/// Changes an object below, when it is there.
pub(crate) fn within(object: &mut Object, key: &str, change: impl FnOnce(&mut Object)) {
    if let Some(below) = object_mut(object, key) {
        change(below);
    }
}

/// The value for a comparison: null, empty objects and lists count as absent.
pub(crate) fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    fn given(value: Option<&Value>) -> Option<&Value> {
        value.filter(|value| match value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        })
    }
    given(one) == given(other)
}

/// Errors of one field, gathered in the order in which they are found.
#[derive(Debug, Default)]
pub(crate) struct Errors(pub(crate) Vec<FieldError>);

impl Errors {
    /// An error that is built already.
    pub(crate) fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Errors that were gathered elsewhere.
    pub(crate) fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.0.extend(errors);
    }

    /// A field that must be there.
    pub(crate) fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.push(FieldError::required(field, detail));
    }

    /// A value that is not acceptable.
    pub(crate) fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, detail: &str) {
        self.push(FieldError::invalid(field, value, detail));
    }

    /// Each message about one value.
    pub(crate) fn all_invalid(&mut self, field: &str, value: impl Into<Value>, messages: Vec<String>) {
        let value = value.into();
        for message in messages {
            self.invalid(field, value.clone(), &message);
        }
    }

    /// A field that may not be set.
    pub(crate) fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.push(FieldError::forbidden(field, detail));
    }

    /// A value that is there twice.
    pub(crate) fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(FieldError::duplicate(field, value));
    }

    /// A value that names what is not there.
    pub(crate) fn not_found(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(FieldError::new(field, Problem::NotFound(value.into()), ""));
    }

    /// A value of more than `most` bytes.
    pub(crate) fn too_long(&mut self, field: impl Into<String>, most: usize) {
        let detail = format!("may not be more than {most} bytes");
        self.push(FieldError::new(field, Problem::TooLong(Value::Null), detail));
    }

    /// A value that is quoted as the server writes it.
    pub(crate) fn invalid_text(&mut self, field: impl Into<String>, written: String, detail: &str) {
        self.push(FieldError::new(field, Problem::InvalidText(written), detail));
    }

    /// A value that must be one of `possible`.
    pub(crate) fn one_of(&mut self, field: impl Into<String>, value: &str, possible: &[&str]) {
        if !possible.contains(&value) {
            self.push(FieldError::not_supported(field, value, possible));
        }
    }

    /// The same, with a Required error for an empty value.
    pub(crate) fn required_one_of(&mut self, field: impl Into<String>, value: &str, possible: &[&str]) {
        if value.is_empty() {
            self.required(field, "");
        } else {
            self.one_of(field, value, possible);
        }
    }

    /// A number that may not be negative; absent is fine.
    pub(crate) fn nonnegative(&mut self, parent: &Object, path: &str, key: &str) {
        if let Some(value) = number(parent, key).filter(|value| *value < 0) {
            self.invalid(format!("{path}.{key}"), value, NOT_NEGATIVE);
        }
    }

    /// A string that may not be empty.
    pub(crate) fn needs(&mut self, parent: &Object, path: &str, key: &str) {
        if text(parent, key).is_empty() {
            self.required(format!("{path}.{key}"), "");
        }
    }

    /// A field that may not change.
    pub(crate) fn immutable(&mut self, new: &Object, old: &Object, path: &str, key: &str) {
        if !same(new.get(key), old.get(key)) {
            let value = new.get(key).cloned().unwrap_or(Value::Null);
            self.invalid(format!("{path}.{key}"), value, IMMUTABLE);
        }
    }
}

/// The message about a changed immutable field.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The message about a negative number.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
