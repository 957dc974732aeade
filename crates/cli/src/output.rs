//! Output formats of commands that list: kubectl's `-o`, `--no-headers` and colours.

use std::{ffi::OsStr, fmt::Write as _, path::Path};

use anyhow::{Context as _, Result, anyhow};
use clap::{
    Args, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use serde_json::Value;

pub mod columns;
pub mod jsonpath;

use columns::Columns;
use jsonpath::JsonPath;

/// The flags for the output of a list.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// Output format (default: a table)
    #[arg(short = 'o', long, value_name = "FORMAT", value_parser = FormatParser)]
    pub output: Option<Output>,

    /// Print a table without its first line
    #[arg(long)]
    pub no_headers: bool,
}

/// An output format.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A table with further columns.
    Wide,
    /// The rows as JSON.
    Json,
    /// The rows as YAML.
    Yaml,
    /// Only names.
    Name,
    /// A template on the rows.
    JsonPath(JsonPath),
    /// The results of a template as a JSON list.
    JsonPathAsJson(JsonPath),
    /// A table of paths.
    Columns(Columns),
}

/// Each format: its word, and its help.
const FORMATS: &[(&str, &str)] = &[
    ("wide", "A table with further columns"),
    ("json", "The rows as JSON"),
    ("yaml", "The rows as YAML"),
    ("name", "Only names"),
    (
        "jsonpath=",
        "A template of kubectl's JSONPath on the rows: '{.items[*].name}'",
    ),
    ("jsonpath-file=", "The same, from a file"),
    ("jsonpath-as-json=", "The results of a template as a JSON list"),
    ("custom-columns=", "A table of paths: NAME:.name,STATE:.state"),
];

impl Output {
    /// Reads a format.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (format, template) = text.split_once('=').unwrap_or((text, ""));
        let path =
            |template: &str| JsonPath::parse(template).map_err(|why| format!("jsonpath {template}: {why}"));
        if template.is_empty() && FORMATS.iter().any(|(word, _)| *word == format!("{format}=")) {
            return Err(format!("{format} needs a template: {format}=…"));
        }
        Ok(match format {
            "jsonpath" => Self::JsonPath(path(template)?),
            "jsonpath-as-json" => Self::JsonPathAsJson(path(template)?),
            "jsonpath-file" => {
                let text = std::fs::read_to_string(Path::new(template));
                Self::JsonPath(path(
                    &text.map_err(|why| format!("cannot read {template}: {why}"))?,
                )?)
            }
            "custom-columns" => Self::Columns(Columns::parse(template)?),
            "wide" if text == format => Self::Wide,
            "json" if text == format => Self::Json,
            "yaml" if text == format => Self::Yaml,
            "name" if text == format => Self::Name,
            _ => {
                let words: Vec<&str> = FORMATS.iter().map(|(word, _)| *word).collect();
                let near = crate::suggest::hint(format, words.iter().map(|word| word.trim_end_matches('=')));
                return Err(format!("unknown format{near}; one of {}", words.join(", ")));
            }
        })
    }
}

/// A list in a format for programs: `root` is the document, `items` its parts with their names.
///
/// # Errors
/// The template cannot be evaluated.
pub fn for_programs(
    output: &Output,
    root: &Value,
    items: &[(&str, &Value)],
    headers: bool,
) -> Result<String> {
    let failed = |why: String| anyhow!("the template of -o cannot be evaluated: {why}");
    Ok(match output {
        Output::Wide | Output::Name => items.iter().fold(String::new(), |mut text, (name, _)| {
            let _ = writeln!(text, "{name}");
            text
        }),
        Output::Json => serde_json::to_string_pretty(root)? + "\n",
        Output::Yaml => serde_saphyr::to_string(root).context("cannot write YAML")?,
        Output::JsonPath(path) => path.text(root).map_err(failed)?,
        Output::JsonPathAsJson(path) => {
            let results = path.results(root).map_err(failed)?.concat();
            serde_json::to_string_pretty(&results)? + "\n"
        }
        Output::Columns(columns) => columns
            .table(items.iter().map(|(_, item)| *item), headers)
            .map_err(failed)?,
    })
}

/// The parser of `-o`, which names the formats in the help and for completion.
#[derive(Clone, Copy, Debug)]
pub struct FormatParser;

impl TypedValueParser for FormatParser {
    type Value = Output;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Output, clap::Error> {
        let parser = StringValueParser::new().try_map(|text: String| Output::parse(&text));
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = FORMATS
            .iter()
            .map(|(word, help)| PossibleValue::new(*word).help(*help));
        Some(Box::new(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_kubectl_reads_them() {
        assert_eq!(Output::parse("wide"), Ok(Output::Wide));
        assert_eq!(Output::parse("yaml"), Ok(Output::Yaml));
        assert!(matches!(Output::parse("jsonpath={.a}"), Ok(Output::JsonPath(_))));
        assert!(matches!(
            Output::parse("custom-columns=A:.a"),
            Ok(Output::Columns(_))
        ));
        for (wrong, part) in [
            ("jsn", "did you mean \"json\"?"),
            ("jsonpath", "needs a template"),
            ("jsonpath=", "needs a template"),
            ("jsonpath={.a", "unclosed action"),
            ("jsonpath-file=/nonexistent/x", "cannot read /nonexistent/x"),
            ("custom-columns=A", "\"A\" is not HEADER:.path"),
            ("json=x", "one of"),
            ("go-template={{.}}", "one of wide, json"),
        ] {
            let error = Output::parse(wrong).expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_jsonpath_as_json_is_a_list_of_its_results() {
        let output = Output::parse("jsonpath-as-json={.items[*].n}").unwrap();
        let root = serde_json::json!({"items": [{"n": 1}, {"n": "b"}]});
        let text = for_programs(&output, &root, &[], true).unwrap();
        assert_eq!(text, "[\n  1,\n  \"b\"\n]\n");
    }
}
