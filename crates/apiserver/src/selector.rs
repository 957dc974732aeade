//! Label and field selectors of a list, a watch or a deletion of a collection.
//!
//! The grammar and the texts of its errors are those of k8s.io/apimachinery (`labels`, `fields`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    object::Object,
    resource::{Resource, stored},
    status::{Result, Status},
    store::Entry,
};

mod fields;
mod labels;
mod tokens;

use fields::Term;
use labels::Requirement;

/// The longest selector that is read, in bytes: many times what a selector of people or programs has.
const LONGEST: usize = 64 << 10;

/// The most requirements that it may have: each is held against each object.
const MOST: usize = 1000;

/// The selectors of a list or watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<Term>,
}

/// As much of a stored object as labels need; the rest is skipped without being kept.
#[derive(Deserialize)]
struct Head {
    metadata: Labels,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Selection {
    /// Parses the two query parameters; absent ones select everything.
    ///
    /// # Errors
    /// 400: bad syntax, or a field that the resource does not know.
    pub fn parse(resource: &Resource, labels: Option<&str>, fields: Option<&str>) -> Result<Self> {
        Self::read(labels, fields)?.known_to(resource)
    }

    /// The syntax alone. O(length).
    pub(crate) fn read(labels: Option<&str>, fields: Option<&str>) -> Result<Self> {
        let (labels, fields) = (labels.unwrap_or_default(), fields.unwrap_or_default());
        if labels.len().max(fields.len()) > LONGEST {
            return Err(Status::bad_request(format!(
                "a selector may not be longer than {LONGEST} bytes"
            )));
        }
        let selection = Self {
            labels: labels::parse(labels).map_err(Status::bad_request)?,
            fields: fields::parse(fields).map_err(Status::bad_request)?,
        };
        if selection.labels.len().max(selection.fields.len()) > MOST {
            return Err(Status::bad_request(format!(
                "a selector may not have more than {MOST} requirements"
            )));
        }
        Ok(selection)
    }

    /// The same, when the resource knows all of its fields.
    pub(crate) fn known_to(mut self, resource: &Resource) -> Result<Self> {
        fields::resolve(resource, &mut self.fields).map_err(Status::bad_request)?;
        Ok(self)
    }

    /// True if everything is selected, so that objects need not be parsed.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that is selected, if there is such.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.fields
            .iter()
            .find(|term| term.field == fields::NAME && !term.negated)
            .map(|term| term.value.as_str())
    }

    /// The field selector of an old watch path that names one object; `fields` is the selector of the query beside it.
    ///
    /// # Errors
    /// 400: bad syntax, or it does not select that name.
    pub(crate) fn of_one(fields: &str, name: &str) -> Result<String> {
        let given = Self::read(None, Some(fields))?;
        if given.fields.is_empty() {
            return Ok(format!("metadata.name={name}"));
        }
        if given.name() == Some(name) {
            return Ok(fields.to_owned());
        }
        Err(Status::bad_request(
            "fieldSelector metadata.name doesn't match requested name",
        ))
    }

    /// True if the object is selected.
    #[must_use]
    pub fn matches(&self, resource: &Resource, object: &Object) -> bool {
        let metadata = object.get("metadata");
        let text = |name: &str| {
            metadata
                .and_then(|metadata| metadata.get(name))
                .and_then(Value::as_str)
        };
        let label = |key: &str| {
            metadata
                .and_then(|metadata| metadata.get("labels"))
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
        };
        let place = (
            text("namespace").unwrap_or_default(),
            text("name").unwrap_or_default(),
        );
        self.labels
            .iter()
            .all(|requirement| requirement.matches(label(&requirement.key)))
            && self.fits(resource, place, || object.clone())
    }

    /// True if a stored object is selected. Reads no more of it than is needed: nothing for names, the labels for labels.
    #[must_use]
    pub fn matches_stored(&self, resource: &Resource, entry: &Entry) -> bool {
        if self.is_everything() {
            return true;
        }
        let place = entry.key.split_once('/').unwrap_or(("", &entry.key));
        if !self.fits(resource, place, || stored::shown(resource, &entry.object)) {
            return false;
        }
        if self.labels.is_empty() {
            return true;
        }
        let labels = serde_json::from_slice(&entry.object)
            .map_or_else(|_| BTreeMap::new(), |head: Head| head.metadata.labels);
        self.labels
            .iter()
            .all(|requirement| requirement.matches(labels.get(&requirement.key).map(String::as_str)))
    }

    /// True if the fields are as selected. `object` is called only when names are not enough.
    fn fits(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        object: impl FnOnce() -> Object,
    ) -> bool {
        let here = |term: &Term| match term.field.as_str() {
            fields::NAME => Some(term.matches(name)),
            fields::NAMESPACE => Some(term.matches(namespace)),
            _ => None,
        };
        if self.fields.iter().any(|term| here(term) == Some(false)) {
            return false;
        }
        let mut own = self.fields.iter().filter(|term| here(term).is_none()).peekable();
        if own.peek().is_none() {
            return true;
        }
        let values = fields::own(resource, &object()).unwrap_or_default();
        own.all(|term| term.matches(values.get(&term.field).map_or("", String::as_str)))
    }
}

#[cfg(test)]
mod tests;
