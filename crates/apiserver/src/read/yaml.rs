//! YAML bodies, read as the server reads them: YAML 1.1 scalars, the first document, fields sorted as in the JSON made of it.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::json::{MAX_DEPTH, MOST_DUPLICATES, Node};

/// Values that aliases may add to a document: a document of a few lines could unfold to terabytes.
const MAX_ALIASED: usize = 100_000;

/// A document and what was there twice.
#[derive(PartialEq)]
pub(crate) struct Document {
    /// The value; of fields that are there several times only the last one.
    pub node: Node,
    /// One text per field that is there again: `line 5: key "name" already set in map`.
    pub duplicates: Vec<String>,
}

crate::hidden::without_content!(Document);

/// Reads the first document. O(text + what aliases add).
///
/// # Errors
/// The syntax error, as Go's parser reports it: `yaml: line 2: mapping values are not allowed in this context`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Document, String> {
    // JSON is YAML, and what machines send; only where it is odd do the words of a YAML parser matter.
    if bytes.starts_with(b"{")
        && let Ok(mut node) = Node::parse(bytes)
        && node.duplicates().is_empty()
    {
        sort(&mut node);
        return Ok(Document {
            node,
            duplicates: Vec::new(),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        aliased: 0,
        duplicates: Vec::new(),
    };
    let mut node = reader.document()?;
    sort(&mut node);
    Ok(Document {
        node,
        duplicates: reader.duplicates,
    })
}

fn sort(node: &mut Node) {
    match node {
        Node::Object(fields) => {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.iter_mut().for_each(|(_, node)| sort(node));
        }
        Node::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    /// Finished anchored values by id; one that is not finished holds itself.
    anchors: BTreeMap<usize, Node>,
    aliased: usize,
    duplicates: Vec<String>,
}

/// A key of a mapping.
enum Key {
    /// A name, with its line.
    Name(String, usize),
    /// `<<`.
    Merge,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(reported(&error, self.text)),
            None => Err("yaml: unexpected end of stream".to_owned()),
        }
    }

    fn document(&mut self) -> Result<Node, String> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(Node::Null),
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::DocumentEnd => return Ok(Node::Null),
                event if event.is_node() => return self.node(event, span, 0),
                _ => {}
            }
        }
    }

    /// The next event that is part of the value.
    fn part(&mut self) -> Result<(Event<'a>, Span), String> {
        loop {
            let (event, span) = self.next()?;
            if event.is_node() || matches!(event, Event::SequenceEnd | Event::MappingEnd) {
                return Ok((event, span));
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err(format!("yaml: exceeded max depth of {MAX_DEPTH}"));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().map(|tag| tag.suffix().to_owned());
                let node = scalar(&text, style, tag.as_deref());
                Ok(self.keep(anchor, node))
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.part()?;
                    if event == Event::SequenceEnd {
                        return Ok(self.keep(anchor, Node::Array(items)));
                    }
                    items.push(self.node(event, span, depth + 1)?);
                }
            }
            Event::MappingStart(_, anchor, _) => {
                let fields = self.mapping(depth)?;
                Ok(self.keep(anchor, Node::Object(fields)))
            }
            Event::Alias(id) => {
                let Some(node) = self.anchors.get(&id) else {
                    return Err("yaml: anchor value contains itself".to_owned());
                };
                self.aliased += size(node);
                if self.aliased > MAX_ALIASED || depth + height(node) > MAX_DEPTH {
                    return Err("yaml: document contains excessive aliasing".to_owned());
                }
                Ok(node.clone())
            }
            _ => Err(format!(
                "yaml: line {}: did not find expected node content",
                span.start.line()
            )),
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Vec<(String, Node)>, String> {
        let mut fields: Vec<(String, Node)> = Vec::new();
        // Index of each name in `fields`, and whether it was written here rather than merged in.
        let mut places: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        loop {
            let (event, span) = self.part()?;
            if event == Event::MappingEnd {
                return Ok(fields);
            }
            let key = self.key(event, span, depth)?;
            let (event, span) = self.part()?;
            let value = self.node(event, span, depth + 1)?;
            let added = match key {
                Key::Name(name, line) => {
                    if self.duplicates.len() < MOST_DUPLICATES
                        && places.get(&name).is_some_and(|(_, written)| *written)
                    {
                        self.duplicates
                            .push(format!("line {line}: key {name:?} already set in map"));
                    }
                    vec![(name, value, true)]
                }
                Key::Merge => merged(value)?
                    .into_iter()
                    .map(|(name, value)| (name, value, false))
                    .collect(),
            };
            for (name, value, written) in added {
                if let Some((place, was_written)) = places.get_mut(&name) {
                    fields[*place].1 = value;
                    *was_written |= written;
                } else {
                    places.insert(name.clone(), (fields.len(), written));
                    fields.push((name, value));
                }
            }
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Key, String> {
        let line = span.start.line();
        if let Event::Scalar(text, ScalarStyle::Plain, _, None) = &event
            && text == "<<"
        {
            return Ok(Key::Merge);
        }
        match self.node(event, span, depth + 1)? {
            Node::String(name) | Node::Number(name) => Ok(Key::Name(name, line)),
            Node::Bool(value) => Ok(Key::Name(value.to_string(), line)),
            _ => Err(format!("yaml: line {line}: invalid map key")),
        }
    }

    fn keep(&mut self, anchor: usize, node: Node) -> Node {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        node
    }
}

fn merged(value: Node) -> Result<Vec<(String, Node)>, String> {
    match value {
        Node::Object(fields) => Ok(fields),
        Node::Array(items) => {
            let mut all = Vec::new();
            // The first of several wins.
            for item in items.into_iter().rev() {
                all.extend(merged(item)?);
            }
            Ok(all)
        }
        _ => Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
    }
}

fn size(node: &Node) -> usize {
    1 + match node {
        Node::Array(items) => items.iter().map(size).sum(),
        Node::Object(fields) => fields.iter().map(|(_, node)| size(node)).sum(),
        // Long texts count too.
        Node::String(text) => text.len() / 64,
        _ => 0,
    }
}

fn height(node: &Node) -> usize {
    1 + match node {
        Node::Array(items) => items.iter().map(height).max().unwrap_or(0),
        Node::Object(fields) => fields.iter().map(|(_, node)| height(node)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Errors of Go's scanner name the line, those of its parser the line before; at the end of a text both name the next line.
fn reported(error: &ScanError, text: &str) -> String {
    let at_end = error
        .marker()
        .byte_offset()
        .and_then(|offset| text.get(offset..))
        .is_none_or(|rest| rest.trim().is_empty())
        || error.kind().to_string().contains("unclosed bracket");
    let (line, what) = match error.kind().to_string() {
        what if what.contains("unclosed bracket") || (at_end && what.contains("unexpected EOF")) => (
            text.lines().count(),
            "did not find expected node content".to_owned(),
        ),
        what if what.starts_with("tab") => (
            error.marker().line(),
            "found character that cannot start any token".to_owned(),
        ),
        what => match what.split_once(", ") {
            Some((context, what)) if context.starts_with("while parsing a") => {
                (error.marker().line() - usize::from(!at_end), what.to_owned())
            }
            Some((context, what)) if context.starts_with("while ") => {
                (error.marker().line(), what.to_owned())
            }
            _ => (error.marker().line(), what),
        },
    };
    if line == 0 || (line == 1 && !at_end) {
        format!("yaml: {what}")
    } else {
        format!("yaml: line {line}: {what}")
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&str>) -> Node {
    let plain = style == ScalarStyle::Plain;
    match tag {
        Some("str") => Node::String(text.to_owned()),
        Some("binary") => Node::String(decoded(text)),
        None if !plain => Node::String(text.to_owned()),
        _ => resolved(text),
    }
}

/// The bytes that a binary scalar stands for, as text; what is no base64 stays as it is.
fn decoded(text: &str) -> String {
    let letters: String = text.split_whitespace().collect();
    let bytes = STANDARD.decode(letters).ok();
    bytes.map_or_else(
        || text.to_owned(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// The value of a plain scalar in YAML 1.1 as Go reads it.
fn resolved(text: &str) -> Node {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Node::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Node::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Node::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(['+', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return Node::String(text.to_owned());
    }
    let plain = text.replace('_', "");
    if let Some(whole) = whole(&plain) {
        return Node::Number(whole.to_string());
    }
    if is_float(&plain)
        && let Ok(value) = plain.parse::<f64>()
        && value.is_finite()
    {
        let number = serde_json::Number::from_f64(value).map(|number| number.to_string());
        let number = number.unwrap_or_default();
        return Node::Number(number.strip_suffix(".0").map_or(number.clone(), str::to_owned));
    }
    Node::String(text.to_owned())
}

/// A whole number of any base that Go knows: 0x1F, 0b1, 0o7, and 017, which is octal.
fn whole(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &*lower),
    };
    let value = i128::from_str_radix(digits, base).ok()?;
    let value = if negative { -value } else { value };
    (i128::from(i64::MIN)..=i128::from(u64::MAX))
        .contains(&value)
        .then_some(value)
}

fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(before) && digits(after) && !(before.is_empty() && after.is_empty()) && exponent_is_fine
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_are_those_of_yaml_1_1() {
        for (text, value) in [
            ("0777", json!(511)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("1_000", json!(1000)),
            ("-5", json!(-5)),
            ("1.0", json!(1)),
            ("1.5", json!(1.5)),
            ("yes", json!(true)),
            ("off", json!(false)),
            ("~", json!(null)),
            ("0.5Gi", json!("0.5Gi")),
            ("2020-01-02T03:04:05Z", json!("2020-01-02T03:04:05Z")),
            ("\"yes\"", json!("yes")),
            ("'1'", json!("1")),
            ("08", json!(8)),
            ("1.2.3", json!("1.2.3")),
            ("!!binary aGVsbG8=", json!("hello")),
        ] {
            let document = parse(format!("k: {text}\n").as_bytes()).unwrap();
            assert_eq!(document.node.into_value(), json!({"k": value}), "{text}");
        }
    }

    #[test]
    fn a_field_that_is_there_again_is_reported_with_its_line() {
        let document = parse(b"metadata:\n  name: t\n  name: u\n").unwrap();
        assert_eq!(document.duplicates, ["line 3: key \"name\" already set in map"]);
        assert_eq!(document.node.into_value(), json!({"metadata": {"name": "u"}}));
    }

    #[test]
    fn anchors_and_merges_unfold() {
        let document = parse(b"a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3\nc: *x\n").unwrap();
        assert_eq!(
            document.node.into_value(),
            json!({"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}, "c": {"k": 1, "l": 2}})
        );
    }

    #[test]
    fn a_bomb_of_aliases_does_not_go_off() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert_eq!(
            parse(text.as_bytes()),
            Err("yaml: document contains excessive aliasing".to_owned())
        );
    }

    #[test]
    fn errors_tell_the_line_as_the_server_does() {
        assert_eq!(
            parse(b"apiVersion: v1\n  kind: ["),
            Err("yaml: line 2: mapping values are not allowed in this context".to_owned())
        );
        assert_eq!(
            parse(b"{a: ["),
            Err("yaml: line 1: did not find expected node content".to_owned())
        );
        assert_eq!(
            parse(b"apiVersion: v1\nmetadata:\n\tname: a\n"),
            Err("yaml: line 3: found character that cannot start any token".to_owned())
        );
    }

    #[test]
    fn the_first_of_several_documents_is_taken() {
        assert_eq!(
            parse(b"a: 1\n---\nb: 2\n").unwrap().node.into_value(),
            json!({"a": 1})
        );
        assert_eq!(parse(b"").unwrap().node, Node::Null);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert!(parse("[".repeat(50_000).as_bytes()).is_err());
        assert!(parse(("a: ".to_owned() + &"[".repeat(500) + &"]".repeat(500)).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-:&*<>\\[\\]{}|!'\"a0 \n#,]{0,40}") {
            let _ = parse(text.as_bytes());
        }
    }
}
