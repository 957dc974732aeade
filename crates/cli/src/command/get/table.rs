//! Tables as kubectl prints them, and helpers for their cells.

use anyhow::Result;
use entourage_core::object::Time;
use serde_json::{Value, json};

use crate::{
    output::{Output, OutputArgs, for_programs},
    plain::plain,
    style::Style,
};

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

/// The columns whose words for states have colours.
const STATES: [&str; 5] = ["STATE", "HEALTH", "READY", "SCHEDULED", "DEPENDENCIES"];

/// The form of a table.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct Look {
    pub(in crate::command) wide: bool,
    pub(in crate::command) all_namespaces: bool,
    pub(in crate::command) headers: bool,
    pub(in crate::command) style: Style,
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
        let look = Look {
            wide,
            all_namespaces,
            headers: true,
            style: Style::default(),
        };
        self.lines(look, &mut Vec::new())
    }

    /// The rows in the format that is asked for.
    ///
    /// # Errors
    /// A template cannot be evaluated.
    pub(in crate::command) fn printed(
        &self,
        output: &OutputArgs,
        all_namespaces: bool,
        style: Style,
    ) -> Result<String> {
        let format = match &output.output {
            None | Some(Output::Wide) => {
                let look = Look {
                    wide: output.output.is_some(),
                    all_namespaces,
                    headers: !output.no_headers,
                    style,
                };
                return Ok(self.lines(look, &mut Vec::new()));
            }
            Some(format) => format,
        };
        let items: Vec<&Value> = self.rows.iter().map(|row| &row.item).collect();
        let rows: Vec<(&str, &Value)> = self
            .rows
            .iter()
            .map(|row| (row.name.as_str(), &row.item))
            .collect();
        for_programs(format, &json!({ "items": items }), &rows, !output.no_headers)
    }

    /// The rows as a table of this form; `widths` are the least widths of the columns, and grow with the cells.
    pub(in crate::command) fn lines(&self, look: Look, widths: &mut Vec<usize>) -> String {
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|column| match self.columns[*column].1 {
                Shown::Always => true,
                Shown::Wide => look.wide,
                Shown::AllNamespaces => look.all_namespaces,
            })
            .collect();
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|(title, _)| (*title).to_owned())
            .collect();
        let titles = look.headers.then_some(&titles);
        let lines = || titles.into_iter().chain(self.rows.iter().map(|row| &row.cells));
        widths.resize(shown.len(), 0);
        for (width, column) in widths.iter_mut().zip(&shown) {
            let cells = lines().map(|cells| cell(cells, *column).chars().count());
            *width = cells.max().unwrap_or_default().max(*width);
        }
        let mut text = String::new();
        for (number, cells) in lines().enumerate() {
            let is_title = look.headers && number == 0;
            let parts = shown
                .iter()
                .zip(&*widths)
                .enumerate()
                .map(|(at, (column, width))| {
                    let word = cell(cells, *column);
                    let padded = if at + 1 == shown.len() {
                        word.clone()
                    } else {
                        format!("{word:<width$}")
                    };
                    if STATES.contains(&self.columns[*column].0) && !is_title {
                        look.style.state(&word, &padded)
                    } else {
                        padded
                    }
                });
            text.push_str(parts.collect::<Vec<_>>().join(GAP).trim_end());
            text.push('\n');
        }
        for view in &self.more {
            text.push('\n');
            text.push_str(&view.lines(look, &mut Vec::new()));
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
