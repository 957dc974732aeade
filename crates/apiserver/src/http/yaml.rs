//! YAML as the Go library of Kubernetes writes it: sorted keys, plain scalars where they stay strings, lines folded
//! behind column 80.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Behind this column a space becomes a line break.
const WIDTH: usize = 80;

/// A document.
#[must_use]
pub(crate) fn document(value: &Value) -> String {
    let mut out = Out::default();
    match value {
        Value::Object(map) if !map.is_empty() => out.map(map, 0, true),
        Value::Array(items) if !items.is_empty() => out.list(items, 0, true),
        other => out.scalar(other, 0),
    }
    out.text.push('\n');
    out.text
}

#[derive(Default)]
struct Out {
    text: String,
    column: usize,
}

impl Out {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// The entries of a map, each on its line; `here`: the first one goes where the text is now.
    fn map(&mut self, map: &Map<String, Value>, indent: usize, here: bool) {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by(|a, b| natural(a.0, b.0));
        for (at, (key, value)) in entries.into_iter().enumerate() {
            if at > 0 || !here {
                self.line(indent);
            }
            self.string(key, indent, false);
            self.put(":");
            match value {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, false),
                Value::Array(items) if !items.is_empty() => self.list(items, indent, false),
                other => {
                    self.put(" ");
                    self.scalar(other, indent + 2);
                }
            }
        }
    }

    fn list(&mut self, items: &[Value], indent: usize, here: bool) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 || !here {
                self.line(indent);
            }
            self.put("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, true),
                Value::Array(items) if !items.is_empty() => self.list(items, indent + 2, true),
                other => self.scalar(other, indent + 2),
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.string(text, indent, true),
            Value::Object(_) => self.put("{}"),
            Value::Array(_) => self.put("[]"),
            other => {
                let mut text = Vec::new();
                text.extend(crate::json::compact(other));
                self.put(&String::from_utf8_lossy(&text));
            }
        }
    }

    /// A string; `fold`: it is no key, and may go on in the next line.
    fn string(&mut self, text: &str, indent: usize, fold: bool) {
        let printable = text.chars().all(|c| c == '\n' || is_printable(c));
        if text.contains('\n') && fold && printable && !has_trailing_space(text) {
            self.literal(text, indent);
        } else if !printable || text.contains('\n') || !stays_string(text) {
            self.double_quoted(text, indent, fold);
        } else if plain_allowed(text) {
            self.folded(text, indent, fold, false);
        } else {
            self.put("'");
            self.folded(text, indent, fold, true);
            self.put("'");
        }
    }

    fn folded(&mut self, text: &str, indent: usize, fold: bool, quoted: bool) {
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (at, &c) in chars.iter().enumerate() {
            if c == ' ' {
                let inner = !quoted || (at > 0 && at + 1 < chars.len());
                if fold && !spaces && self.column > WIDTH && inner && chars.get(at + 1) != Some(&' ') {
                    self.line(indent);
                } else {
                    self.put(" ");
                }
                spaces = true;
                continue;
            }
            spaces = false;
            if quoted && c == '\'' {
                self.put("'");
            }
            self.put(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        let body = text.strip_suffix('\n');
        match body {
            None => self.put("-"),
            Some(body) if body.is_empty() || body.ends_with('\n') => self.put("+"),
            Some(_) => {}
        }
        for line in body.unwrap_or(text).split('\n') {
            if line.is_empty() {
                self.text.push('\n');
                self.column = 0;
            } else {
                self.line(indent);
                self.put(line);
            }
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        self.put("\"");
        for (at, &c) in chars.iter().enumerate() {
            if c == ' ' && fold && !spaces && self.column > WIDTH && at > 0 && at + 1 < chars.len() {
                self.line(indent);
                if chars.get(at + 1) == Some(&' ') {
                    self.put("\\");
                }
                spaces = true;
                continue;
            }
            spaces = c == ' ';
            match c {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\0' => self.put("\\0"),
                '\u{7}' => self.put("\\a"),
                '\u{8}' => self.put("\\b"),
                '\t' => self.put("\\t"),
                '\n' => self.put("\\n"),
                '\u{b}' => self.put("\\v"),
                '\u{c}' => self.put("\\f"),
                '\r' => self.put("\\r"),
                '\u{1b}' => self.put("\\e"),
                '\u{85}' => self.put("\\N"),
                '\u{a0}' => self.put("\\_"),
                '\u{2028}' => self.put("\\L"),
                '\u{2029}' => self.put("\\P"),
                c if is_printable(c) => self.put(c.encode_utf8(&mut [0; 4])),
                c if u32::from(c) <= 0xff => self.put(&format!("\\x{:02X}", u32::from(c))),
                c if u32::from(c) <= 0xffff => self.put(&format!("\\u{:04X}", u32::from(c))),
                c => self.put(&format!("\\U{:08X}", u32::from(c))),
            }
        }
        self.put("\"");
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn has_trailing_space(text: &str) -> bool {
    text.ends_with(' ') || text.contains(" \n")
}

/// True if a scalar may be written plain inside a block.
fn plain_allowed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    if first == b' ' || last == b' ' || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    if b"#,[]{}&*!|>'\"%@`".contains(&first) {
        return false;
    }
    let spaced = |at: usize| matches!(bytes.get(at), None | Some(b' '));
    if matches!(first, b'?' | b':' | b'-') && spaced(1) {
        return false;
    }
    !bytes.iter().enumerate().any(|(at, &byte)| {
        (byte == b':' && spaced(at + 1)) || (byte == b'#' && at > 0 && bytes[at - 1] == b' ')
    })
}

/// True if a plain scalar is read back as a string, and not as a boolean, a number, null or a time.
fn stays_string(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "true",
        "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF", "<<", ".nan",
        ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
    ];
    !WORDS.contains(&text) && !is_number(text) && !is_time(text)
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let bare = unsigned.replace('_', "");
    let digits = |text: &str, radix: u32| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)] {
        if let Some(rest) = bare.strip_prefix(prefix) {
            return digits(rest, radix);
        }
    }
    // 190:20:30 is a number in base 60 to old readers.
    if let Some((first, rest)) = unsigned.split_once(':') {
        let sixty = |part: &str| digits(part.split('.').next().unwrap_or_default(), 10) && part.len() < 3;
        return digits(&first.replace('_', ""), 10) && rest.split(':').all(sixty);
    }
    let (mantissa, exponent) = bare.split_once(['e', 'E']).unwrap_or((&bare, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let decimal = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    decimal(whole) && decimal(fraction) && !(whole.is_empty() && fraction.is_empty()) && digits(exponent, 10)
}

/// `2006-01-02` and whatever begins so and goes on like a time.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some(year) = bytes.get(..5) else { return false };
    if !year[..4].iter().all(u8::is_ascii_digit) || year[4] != b'-' {
        return false;
    }
    if text.contains('T') {
        return text.parse::<jiff::Timestamp>().is_ok();
    }
    let date = text.split(' ').next().unwrap_or_default();
    let mut parts = date.split('-').skip(1);
    let number = |part: Option<&str>| {
        part.is_some_and(|part| matches!(part.len(), 1 | 2) && part.parse::<u8>().is_ok())
    };
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Numbers inside keys count as numbers, letters come behind everything else.
fn natural(a: &str, b: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut digits = false;
    for (at, (&x, &y)) in left.iter().zip(&right).enumerate() {
        if x == y {
            digits = x.is_numeric();
            continue;
        }
        match (x.is_alphabetic(), y.is_alphabetic()) {
            (true, true) => return x.cmp(&y),
            (true, false) => return if digits { Ordering::Less } else { Ordering::Greater },
            (false, true) => return if digits { Ordering::Greater } else { Ordering::Less },
            (false, false) => {}
        }
        let run =
            |chars: &[char]| -> String { chars[at..].iter().take_while(|c| c.is_ascii_digit()).collect() };
        let (one, two) = (run(&left), run(&right));
        let value = |text: &str| text.trim_start_matches('0').to_owned();
        let (first, second) = (value(&one), value(&two));
        return (first.len(), first)
            .cmp(&(second.len(), second))
            .then(one.len().cmp(&two.len()))
            .then(x.cmp(&y));
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_status_reads_as_the_server_writes_it() {
        let value = json!({"kind": "Status", "code": 406, "details": {}, "message": "406: Not\n\nAvailable: x", "apiVersion": "v1"});
        assert_eq!(
            document(&value),
            "apiVersion: v1\ncode: 406\ndetails: {}\nkind: Status\nmessage: |-\n  406: Not\n\n  Available: x\n"
        );
    }

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        let cases = [
            ("12", "\"12\""),
            ("1.5", "\"1.5\""),
            ("true", "\"true\""),
            ("", "\"\""),
            ("a b", "a b"),
            ("a: b", "'a: b'"),
            ("it's", "it's"),
            ("'x'", "'''x'''"),
            ("2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""),
            ("2026-01-02", "\"2026-01-02\""),
            ("12h", "12h"),
            ("1:20", "\"1:20\""),
            ("- x", "'- x'"),
            ("-x", "-x"),
            ("0x1F", "\"0x1F\""),
            ("1_000", "\"1_000\""),
            ("no", "\"no\""),
            ("x\ty", "\"x\\ty\""),
            ("a #b", "'a #b'"),
            ("2d1f4a", "2d1f4a"),
            ("1e3", "\"1e3\""),
        ];
        for (text, expected) in cases {
            assert_eq!(document(&json!(text)), format!("{expected}\n"));
        }
    }

    #[test]
    fn long_text_is_folded_behind_column_eighty() {
        let text =
            "Name must be unique within a namespace. Is required when creating resources, although some: x";
        assert_eq!(
            document(&json!([{"description": text}])),
            "- description: 'Name must be unique within a namespace. Is required when creating\n    resources, although some: x'\n"
        );
    }

    #[test]
    fn keys_are_sorted_naturally() {
        let value = json!({"f:a": 1, ".": 2, "x10": 3, "x9": 4});
        assert_eq!(document(&value), ".: 2\nf:a: 1\nx9: 4\nx10: 3\n");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(text in "[ -~\n\u{e9}]{0,120}", key in "[a-z:.' -]{1,9}") {
            let value = json!({key: [text, {"b": {"c": []}}]});
            let read: Value = serde_saphyr::from_str(&document(&value)).expect("valid YAML");
            prop_assert_eq!(read, value);
        }
    }
}
