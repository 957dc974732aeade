//! Checks for content of a JSON or YAML document that would be lost if the document were parsed and serialised again.
//!
//! A parser reads a document as values: text, numbers, lists, maps from text. A document may contain more than that. Errors
//! contain no content of the document.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

const NUMBER: &str = "it holds a number with more digits than can be kept: write that one as a string";
const KEY: &str = "it has a key that is not a string, such as a number or yes: write that one in quotes";
const TAG: &str = "it holds a tag, and tags cannot be kept: take it out";
const DIRECTIVE: &str = "it holds a directive such as %YAML, and directives cannot be kept: take it out";

/// Succeeds if all content of a valid JSON document is kept.
///
/// # Errors
/// The content that is lost. Cost: O(size of the text).
pub(super) fn check_json(text: &str) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[at..];
        let length = if rest.starts_with('"') {
            length_of_string(rest)
        } else {
            let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let number = serde_json::from_str(&rest[..length]).unwrap_or_default();
            if !is_exact(&rest[..length], &number) {
                return Err(NUMBER);
            }
            length
        };
        rest = &rest[length..];
    }
    Ok(())
}

/// Succeeds if all content of a valid YAML document is kept. `read` parses a single scalar.
///
/// # Errors
/// The content that is lost; no error for a text that is not YAML. Cost: O(size of the text).
pub(super) fn check_yaml(text: &str, read: impl Fn(&str) -> Option<Value>) -> Result<(), &'static str> {
    // `None` for each open list; for each open map, true if a key comes next.
    let mut open: Vec<Option<bool>> = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(Ok((event, _))) = parser.next_event() {
        let is_key = event.is_node()
            && match open.last_mut() {
                Some(Some(next_is_key)) => std::mem::replace(next_is_key, !*next_is_key),
                _ => false,
            };
        let tag = match &event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, _, tag)
            | Event::MappingStart(_, _, tag) => tag.as_deref(),
            _ => None,
        };
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
        if tag.is_some() && !is_text {
            return Err(TAG);
        }
        match event {
            Event::DocumentStart(_, Some(_)) => return Err(DIRECTIVE),
            Event::SequenceStart(..) => open.push(None),
            Event::MappingStart(..) => open.push(Some(true)),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
            }
            Event::Scalar(text, ScalarStyle::Plain, ..) if !is_text => check_plain(&text, is_key, &read)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_plain(text: &str, is_key: bool, read: impl Fn(&str) -> Option<Value>) -> Result<(), &'static str> {
    if is_key {
        // A lone y or n is text to the tools of Kubernetes, and is read as such.
        let is_text =
            ["<<", "y", "Y", "n", "N"].contains(&text) || read(text).is_none_or(|value| value.is_string());
        return if is_text { Ok(()) } else { Err(KEY) };
    }
    let may_be_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if may_be_number
        && let Some(number) = read(text)
        && !is_exact(&text.replace('_', ""), &number)
    {
        return Err(NUMBER);
    }
    Ok(())
}

/// The length of the string that a JSON text begins with.
fn length_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// True if a value equals its text, for fractions: whole numbers are exact, or else become fractions.
fn is_exact(text: &str, value: &Value) -> bool {
    let Some(number) = value.as_number().filter(|number| number.is_f64()) else {
        return true;
    };
    decimal(text).is_some_and(|amount| Some(amount) == decimal(&number.to_string()))
}

/// A decimal number as its sign, its digits without zeros at both ends, and the power of ten of the last one.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let negative = text.starts_with('-');
    let (mantissa, exponent) = match text.trim_start_matches(['+', '-']).split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse::<i64>().ok()?),
        None => (text.trim_start_matches(['+', '-']).to_owned(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let shift = i64::try_from(digits.len() - kept.len()).ok()? - i64::try_from(fraction.len()).ok()?;
    match kept.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        kept => Some((negative, kept.to_owned(), exponent.checked_add(shift)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_compared_by_value() {
        for (one, other) in [
            ("1.10", "1.1"),
            ("1e3", "1000.0"),
            ("+.5", "0.5"),
            ("-0", "0.0"),
            ("100", "1E2"),
        ] {
            assert_eq!(decimal(one), decimal(other), "{one}");
            assert!(decimal(one).is_some());
        }
        for (one, other) in [("1.1", "-1.1"), ("1.1", "11"), ("1", "10")] {
            assert_ne!(decimal(one), decimal(other), "{one}");
        }
        for text in ["", ".", "0x1F", "1e", ".inf", "1e99999999999999999999"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
