//! The printer of a kind: columns, and the cells of an object.

use serde_json::Value;

use crate::schema::builtin::Root;

mod column;
mod view;

pub(crate) use column::{
    AGE, CONTAINERS, Column, IMAGES, NAME, boolean, date, definitions, integer, wide, words,
};
pub(crate) use view::{NONE, SHOWN, UNKNOWN, UNSET, View, duration, or_none, seconds, some_of};

/// The output of `kubectl get` for a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) columns: &'static [Column],
    /// The cells of an object, one for each column.
    pub(crate) cells: fn(&View<'_>) -> Vec<Value>,
    /// Conditions of the row of an object.
    pub(crate) conditions: fn(&View<'_>) -> Option<Value>,
    /// The type that documents the columns, where it is not that of the kind.
    pub(crate) documented: Option<Root>,
}

impl Printer {
    /// A kind without columns of its own: when it was created.
    pub(crate) const DEFAULT: Self = Self::new(&[NAME, date("Created At", AGE.about)], |object| {
        vec![object.name(), object.text("metadata.creationTimestamp").into()]
    });

    /// Columns, and what fills them.
    pub(crate) const fn new(columns: &'static [Column], cells: fn(&View<'_>) -> Vec<Value>) -> Self {
        Self {
            columns,
            cells,
            conditions: |_| None,
            documented: None,
        }
    }
}
