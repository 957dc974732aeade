//! Columns: names, types and what they are about.

use serde_json::{Value, json};

use crate::schema::Schema;

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) format: &'static str,
    /// 0: always printed; 1: with `-o wide`.
    pub(super) priority: u8,
    /// The description; with a dot in front the path of the field whose documentation it is.
    pub(super) about: &'static str,
}

/// The name of the object.
pub(super) const NAME: Column = Column {
    format: "name",
    ..text("Name", ".metadata.name")
};

/// How long it has been there.
pub(super) const AGE: Column = text("Age", ".metadata.creationTimestamp");

/// Names of containers.
pub(super) const CONTAINERS: Column = wide("Containers", "Names of each container in the template.");

/// Images of containers.
pub(super) const IMAGES: Column = wide("Images", "Images referenced by each container in the template.");

/// A column of words.
pub(super) const fn text(name: &'static str, about: &'static str) -> Column {
    Column {
        name,
        kind: "string",
        format: "",
        priority: 0,
        about,
    }
}

/// A column of words for `-o wide`.
pub(super) const fn wide(name: &'static str, about: &'static str) -> Column {
    Column {
        priority: 1,
        ..text(name, about)
    }
}

/// A column of whole numbers.
pub(super) const fn number(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "integer",
        ..text(name, about)
    }
}

/// A column of yes and no.
pub(super) const fn boolean(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "boolean",
        ..text(name, about)
    }
}

/// A column of times.
pub(super) const fn date(name: &'static str, about: &'static str) -> Column {
    Column {
        kind: "date",
        ..text(name, about)
    }
}

/// `columnDefinitions`. O(columns).
pub(super) fn definitions(columns: &[Column], schema: &Schema) -> Vec<Value> {
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
