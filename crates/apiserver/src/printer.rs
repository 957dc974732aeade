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
    /// The cells of an object, one for each column, where the columns do not say them.
    pub(crate) cells: Option<fn(&View<'_>) -> Vec<Value>>,
    /// Conditions of the row of an object.
    pub(crate) conditions: fn(&View<'_>) -> Option<Value>,
    /// The type that documents the columns, where it is not that of the kind.
    pub(crate) documented: Option<Root>,
    /// Annotations that stand for fields which the version lacks: the server's own form has none, nor do answers of metadata.
    pub(crate) standing_in: &'static [&'static str],
}

impl Printer {
    /// A kind without columns of its own: when it was created.
    pub(crate) const DEFAULT: Self = Self::of(&[NAME, date("Created At", AGE.about)]);

    /// Columns.
    pub(crate) const fn of(columns: &'static [Column]) -> Self {
        Self {
            columns,
            cells: None,
            conditions: |_| None,
            documented: None,
            standing_in: &[],
        }
    }

    /// Columns whose cells are made together.
    pub(crate) const fn new(columns: &'static [Column], cells: fn(&View<'_>) -> Vec<Value>) -> Self {
        Self {
            cells: Some(cells),
            ..Self::of(columns)
        }
    }

    /// The cells of an object, one for each column.
    pub(crate) fn cells(&self, object: &View<'_>) -> Vec<Value> {
        match self.cells {
            Some(cells) => cells(object),
            None => self.columns.iter().map(|column| column.cell(object)).collect(),
        }
    }
}
