//! Columns: names, types and descriptions.

use serde_json::{Value, json};

use super::View;
use crate::schema::Schema;

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) format: &'static str,
    /// 0: always printed; 1: with `-o wide`.
    pub(crate) priority: u8,
    /// The description; with a dot in front the path of the field whose documentation it is.
    pub(crate) about: &'static str,
    /// The path of the field that is shown; that of the description if empty.
    pub(crate) path: &'static str,
    /// The text of a field that is not there.
    pub(crate) absent: &'static str,
    /// The cell, where it is not one field.
    pub(crate) cell: Option<fn(&View<'_>) -> Value>,
}

impl Column {
    /// The same of the field at this path.
    pub(crate) const fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    /// The same with this text where the field is not there.
    pub(crate) const fn or(self, absent: &'static str) -> Self {
        Self { absent, ..self }
    }

    /// The same with this cell.
    pub(crate) const fn shows(self, cell: fn(&View<'_>) -> Value) -> Self {
        Self {
            cell: Some(cell),
            ..self
        }
    }

    /// The cell of an object.
    pub(super) fn cell(&self, object: &View<'_>) -> Value {
        if let Some(cell) = self.cell {
            return cell(object);
        }
        let path = match self.path {
            "" => self.about.trim_start_matches('.'),
            path => path,
        };
        match self.kind {
            "integer" => object.number(path).into(),
            "boolean" => object.flag(path).into(),
            _ => object.or(path, self.absent),
        }
    }
}

/// The name of the object.
pub(crate) const NAME: Column = Column {
    format: "name",
    ..words("Name", ".metadata.name")
};

/// The age of the object.
pub(crate) const AGE: Column = words("Age", ".metadata.creationTimestamp").shows(|object| object.age());

/// Names of containers.
pub(crate) const CONTAINERS: Column = wide("Containers", "Names of each container in the template.")
    .shows(|object| object.joined("spec.template.spec.containers", "name"));

/// Images of containers.
pub(crate) const IMAGES: Column = wide("Images", "Images referenced by each container in the template.")
    .shows(|object| object.joined("spec.template.spec.containers", "image"));

/// A column of words.
pub(crate) const fn words(name: &'static str, about: &'static str) -> Column {
    Column {
        name,
        kind: "string",
        format: "",
        priority: 0,
        about,
        path: "",
        absent: "",
        cell: None,
    }
}

/// A column of words for `-o wide`.
pub(crate) const fn wide(name: &'static str, about: &'static str) -> Column {
    Column {
        priority: 1,
        ..words(name, about)
    }
}

/// A column of whole numbers.
pub(crate) const fn integer(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "integer",
        ..words(name, about)
    }
}

/// A column of yes and no.
pub(crate) const fn boolean(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "boolean",
        ..words(name, about)
    }
}

/// A column of times.
pub(crate) const fn date(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "date",
        ..words(name, about)
    }
}

/// `columnDefinitions`. O(columns).
pub(crate) fn definitions(columns: &[Column], schema: &Schema) -> Vec<Value> {
    columns
        .iter()
        .map(|column| {
            json!({"name": column.name, "type": column.kind, "format": column.format,
                "description": described(column.about, schema), "priority": column.priority})
        })
        .collect()
}

fn described(about: &str, schema: &Schema) -> String {
    let Some(path) = about.strip_prefix('.') else {
        return about.to_owned();
    };
    let mut at = schema;
    for step in path.split('.') {
        if let Some(items) = &at.items {
            at = items;
        }
        match at.field(step) {
            Some(field) => at = field,
            None => return String::new(),
        }
    }
    at.description.clone().unwrap_or_default()
}
