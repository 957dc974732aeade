//! The answers of commands that explain one object: their formats, and their exit codes.

use std::{io::Write, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use super::get::table::{Row, Shown, View};
use crate::plain::plain;

/// The version of the output for programs: it grows when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

/// The exit code of errors: 1 means that the object is not there.
const ERROR: u8 = 2;

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object
    Json,
    /// The same as YAML
    Yaml,
}

/// The output for programs: the fields of `answer`, the version of the schema, and the remarks.
///
/// # Errors
/// It cannot be written.
pub fn data_of(format: Output, answer: &impl Serialize, remarks: &[String]) -> Result<String> {
    formatted(format, &value(answer, remarks)?)
}

/// As [`data_of`], before it has a format.
///
/// # Errors
/// It cannot be written.
pub(super) fn value(answer: &impl Serialize, remarks: &[String]) -> Result<Value> {
    let mut value = serde_json::to_value(answer).context("cannot write the answer as JSON")?;
    value["schema"] = json!(SCHEMA);
    value["remarks"] = json!(remarks);
    Ok(value)
}

/// A value as JSON or YAML.
///
/// # Errors
/// It cannot be written.
pub(in crate::command) fn formatted(format: Output, value: &Value) -> Result<String> {
    match format {
        Output::Yaml => serde_saphyr::to_string(value).context("cannot write YAML"),
        Output::Text | Output::Json => Ok(serde_json::to_string_pretty(value)? + "\n"),
    }
}

/// A table of these columns; empty without rows.
pub(super) fn table<const N: usize>(columns: [&'static str; N], rows: Vec<[String; N]>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let row = |cells: [String; N]| Row {
        name: String::new(),
        cells: cells.into(),
        item: Value::Null,
    };
    let view = View {
        columns: columns.map(|title| (title, Shown::Always)).into(),
        rows: rows.into_iter().map(row).collect(),
        more: Vec::new(),
    };
    view.table(false, false)
}

/// Prints an answer, and the remarks to `err`, where they are not part of it.
///
/// # Errors
/// It cannot be written.
pub fn print(
    text: &str,
    (output, remarks): (Output, &[String]),
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<()> {
    if output == Output::Text {
        for remark in remarks {
            let _ = writeln!(err, "note: {}", plain(remark));
        }
    }
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The exit code of a command: 0 if the object is there, 1 if it is not, 2 after an error, which is printed.
///
/// # Errors
/// The output was closed by its reader.
pub fn ended(done: Result<bool>, err: &mut (dyn Write + Send)) -> Result<ExitCode> {
    match done {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(error) if is_closed(&error) => Err(error),
        Err(error) => {
            // Whoever closed standard error does not want it.
            let _ = writeln!(err, "error: {}", plain(&format!("{error:#}")));
            Ok(ExitCode::from(ERROR))
        }
    }
}

/// True if the reader of the output closed it.
fn is_closed(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_no_absence() {
        let code = |done: Result<bool>| format!("{:?}", ended(done, &mut Vec::<u8>::new()).unwrap());
        let of = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(Ok(true)), of(0));
        assert_eq!(code(Ok(false)), of(1));
        assert_eq!(code(Err(anyhow::anyhow!("no hub"))), of(2));
    }
}
