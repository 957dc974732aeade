//! Tables as kubectl prints them, and helpers for their cells.

use entourage_core::object::Time;
use serde_json::Value;

use crate::plain::plain;

/// The gap between two columns.
const GAP: &str = "   ";

/// The text of an empty cell.
const NONE: &str = "-";

/// The condition for a column to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Shown {
    Always,
    /// Shown with `-o wide`.
    Wide,
    /// Shown with all namespaces.
    AllNamespaces,
}

/// Rows, and their form as a table.
#[derive(Debug)]
pub(in crate::command) struct View {
    pub(in crate::command) columns: Vec<(&'static str, Shown)>,
    pub(in crate::command) rows: Vec<Row>,
    /// Further tables below it, for people only.
    pub(in crate::command) more: Vec<Self>,
}

/// One row.
#[derive(Debug)]
pub(in crate::command) struct Row {
    /// `kind.group/name`.
    pub(in crate::command) name: String,
    /// A cell for each column.
    pub(in crate::command) cells: Vec<String>,
    /// The same for programs.
    pub(in crate::command) item: Value,
}

impl View {
    /// The rows in order of their cells, under their titles.
    pub(in crate::command) fn table(&self, wide: bool, all_namespaces: bool) -> String {
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|column| match self.columns[*column].1 {
                Shown::Always => true,
                Shown::Wide => wide,
                Shown::AllNamespaces => all_namespaces,
            })
            .collect();
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|(title, _)| (*title).to_owned())
            .collect();
        let lines = || std::iter::once(&titles).chain(self.rows.iter().map(|row| &row.cells));
        let widths: Vec<usize> = shown
            .iter()
            .map(|column| {
                lines()
                    .map(|cells| cell(cells, *column).chars().count())
                    .max()
                    .unwrap_or_default()
            })
            .collect();
        let mut text = String::new();
        for cells in lines() {
            let parts: Vec<String> = shown
                .iter()
                .zip(&widths)
                .map(|(column, width)| format!("{:<width$}", cell(cells, *column)))
                .collect();
            text.push_str(parts.join(GAP).trim_end());
            text.push('\n');
        }
        for view in &self.more {
            text.push('\n');
            text.push_str(&view.table(wide, all_namespaces));
        }
        text
    }
}

/// The text of a cell: one line, whatever a server sent.
fn cell(cells: &[String], column: usize) -> String {
    match cells.get(column).map(String::as_str) {
        None | Some("") => NONE.to_owned(),
        Some(text) => plain(text),
    }
}

/// A text of an object; empty if absent.
pub(in crate::command) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A list of an object; empty if absent.
pub(in crate::command) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A condition of an object; null if absent.
pub(in crate::command) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let all = items(object, "/status/conditions");
    all.iter()
        .find(|each| each["type"] == type_)
        .unwrap_or(&Value::Null)
}

/// Names on one line: all of them, or the first three and the number of the others.
pub(in crate::command) fn names(all: &[String], every: bool) -> String {
    const SHOWN: usize = 3;
    if every || all.len() <= SHOWN {
        return all.join(",");
    }
    format!("{},+{}", all[..SHOWN].join(","), all.len() - SHOWN)
}

/// The time since a time of an object: `5s`, `12m`, `3h`, `9d`.
pub(in crate::command) fn since(time: &str, now: Time) -> String {
    let Ok(time) =
        serde_json::from_value::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>(Value::from(time))
    else {
        return String::new();
    };
    let seconds = (now.0 - Time::from_k8s(&time).0).max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = Time(1_000_000_000_000);
        for (seconds, wanted) in [
            (5, "5s"),
            (119, "119s"),
            (180, "3m"),
            (7_300, "2h"),
            (200_000, "2d"),
            (-4, "0s"),
        ] {
            let then = Time(now.0 - seconds * 1_000).to_k8s();
            let then = serde_json::to_value(then).unwrap();
            assert_eq!(since(then.as_str().unwrap(), now), wanted);
        }
        assert_eq!(since("", now), "");
    }

    #[test]
    fn many_names_are_counted() {
        let all: Vec<String> = (1..=5).map(|n| format!("m{n}")).collect();
        assert_eq!(names(&all, false), "m1,m2,m3,+2");
        assert_eq!(names(&all, true), "m1,m2,m3,m4,m5");
    }
}
