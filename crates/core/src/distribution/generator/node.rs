//! A node of a configuration: errors name its field, and never quote its value.

use serde_json::{Map, Value};

use super::{API_VERSIONS, KIND, Wrong};
use crate::selector;

/// The maximum length of a namespace's name.
const LONGEST_LABEL: usize = 63;

/// A value and its field path.
pub(super) struct Node<'a> {
    field: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            field: String::new(),
            value,
        }
    }

    /// The node under a key; a null node if there is no such key.
    pub(super) fn at(&self, key: &str) -> Self {
        let field = match self.field.as_str() {
            "" => key.to_owned(),
            field => format!("{field}.{key}"),
        };
        Self {
            field,
            value: &self.value[key],
        }
    }

    pub(super) fn field(&self) -> &str {
        &self.field
    }

    pub(super) fn is_given(&self) -> bool {
        !self.value.is_null()
    }

    /// True if it is null or an empty list.
    pub(super) fn is_empty(&self) -> bool {
        self.value.is_null() || self.value.as_array().is_some_and(Vec::is_empty)
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> Wrong {
        Wrong {
            field: self.field.clone(),
            why: why.into(),
        }
    }

    /// Its text; empty if it is null. A number or boolean counts as it is written, as in the original. `None` if it is not a
    /// string, which is reported.
    pub(super) fn text(&self, wrong: &mut Vec<Wrong>) -> Option<String> {
        match self.value {
            Value::Null => Some(String::new()),
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Array(_) | Value::Object(_) => {
                wrong.push(self.wrong("must be a text, not a list or a map"));
                None
            }
        }
    }

    /// A boolean; false if it is null.
    pub(super) fn flag(&self, wrong: &mut Vec<Wrong>) -> bool {
        if self.is_given() && !self.value.is_boolean() {
            wrong.push(self.wrong("must be true or false"));
        }
        self.value == true
    }

    /// The name of an object; required.
    pub(super) fn name(&self, wrong: &mut Vec<Wrong>) -> String {
        let Some(name) = self.text(wrong) else {
            return String::new();
        };
        if name.is_empty() {
            wrong.push(self.wrong("is missing; give a name"));
        } else if !selector::is_dns_subdomain(&name) {
            wrong.push(self.wrong(
                "is not an object name: lower-case letters, digits, '-' and '.', at most 253, and a letter or digit \
                 at \
                 both ends",
            ));
        }
        name
    }

    /// The name of a namespace.
    pub(super) fn namespace(&self, wrong: &mut Vec<Wrong>) -> String {
        let Some(name) = self.text(wrong) else {
            return String::new();
        };
        if name.len() > LONGEST_LABEL || name.contains('.') || !selector::is_dns_subdomain(&name) {
            wrong.push(self.wrong(
                "is not a namespace name: lower-case letters, digits and '-', at most 63, and a letter or digit at \
                 both \
                 ends",
            ));
        }
        name
    }

    /// The items of a list; empty if it is null.
    pub(super) fn items(&self, wrong: &mut Vec<Wrong>) -> Vec<Self> {
        let items = match self.value {
            Value::Null => &[],
            Value::Array(items) => items.as_slice(),
            _ => {
                wrong.push(self.wrong("must be a list"));
                &[]
            }
        };
        let at = |(number, value)| Self {
            field: format!("{}[{number}]", self.field),
            value,
        };
        items.iter().enumerate().map(at).collect()
    }

    /// The entries of a map in the order of their keys; empty if it is null.
    pub(super) fn entries(&self, wrong: &mut Vec<Wrong>) -> Vec<(&'a str, Self)> {
        let Some(map) = self.map(wrong) else {
            return Vec::new();
        };
        let entries = map.keys().map(|key| (key.as_str(), self.at(key)));
        entries.collect()
    }

    /// Reports every key except these: a mistyped `excludedNamespaces` would put a Secret where it must not be. False if it is
    /// not a map, which is reported.
    pub(super) fn only(&self, known: &[&str], wrong: &mut Vec<Wrong>) -> bool {
        let Some(map) = self.map(wrong) else {
            return !self.is_given();
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let known = known.join(", ");
            wrong.push(self.at(key).wrong(format!("is unknown; known here: {known}")));
        }
        true
    }

    /// Checks that it is a configuration of this generator at all; if not, no other error is worth reporting.
    pub(super) fn check_kind(&self, wrong: &mut Vec<Wrong>) -> Result<(), Vec<Wrong>> {
        let is =
            |key: &str, known: &[&str]| self.value[key].as_str().is_some_and(|text| known.contains(&text));
        for (key, known) in [
            ("kind", [KIND].as_slice()),
            ("apiVersion", API_VERSIONS.as_slice()),
        ] {
            if !is(key, known) {
                wrong.push(self.at(key).wrong(format!("must be {}", known.join(" or "))));
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(std::mem::take(wrong))
    }

    fn map(&self, wrong: &mut Vec<Wrong>) -> Option<&'a Map<String, Value>> {
        if self.is_given() && !self.value.is_object() {
            wrong.push(self.wrong("must be a map of keys and values"));
        }
        self.value.as_object()
    }
}
