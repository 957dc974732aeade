//! The reader of JSON: it keeps the order of fields, and duplicates.
//!
//! Errors read as those of Go's encoding/json, since clients see them. Nesting is bounded, so that no later walk of a
//! value can exhaust the stack.

use serde_json::{Map, Number, Value};

#[cfg(test)]
mod tests;

/// The maximum nesting depth of lists and objects. A list of objects adds two, and clients stop at 128.
pub(crate) const MAX_DEPTH: usize = 120;

/// The number of repeated fields that are reported.
pub(crate) const MOST_DUPLICATES: usize = 100;

/// A JSON value with everything that was in the text.
#[derive(Clone, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Self>),
    /// Fields in their order; a name may come several times.
    Object(Vec<(String, Self)>),
}

crate::hidden::without_content!(Node);

impl Node {
    /// Reads a text that is one JSON value. O(text).
    ///
    /// # Errors
    /// The syntax error, in Go's words.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let node = reader.value(0)?;
        reader.blanks();
        match reader.peek() {
            None => Ok(node),
            Some(_) => Err(reader.invalid("after top-level value")),
        }
    }

    /// Go's name of the type of this value, for errors.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The last field of this name, when this is an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields
                .iter()
                .rev()
                .find(|(key, _)| key == name)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// The value; of fields that are there several times the last one.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(text) => number(&text),
            Self::String(text) => Value::String(text),
            Self::Array(items) => Value::Array(items.into_iter().map(Self::into_value).collect()),
            Self::Object(fields) => {
                let fields = fields.into_iter().map(|(key, node)| (key, node.into_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Paths of fields that are there more than once, in the order of the text: `spec.list[0].name`; at most
    /// [`MOST_DUPLICATES`]. O(value).
    #[must_use]
    pub fn duplicates(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(self, &mut String::new(), &mut found);
        found
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => Self::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

fn collect(node: &Node, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match node {
        Node::Object(fields) => {
            let mut seen = std::collections::BTreeSet::new();
            for (name, node) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                if !seen.insert(name) && found.len() < MOST_DUPLICATES && !found.contains(path) {
                    found.push(path.clone());
                }
                collect(node, path, found);
                path.truncate(length);
            }
        }
        Node::Array(items) => {
            for (index, node) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                collect(node, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// A number: whole when it is written so and fits, otherwise the nearest that there is.
pub(crate) fn number(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    if let Ok(whole) = text.parse::<u64>() {
        return whole.into();
    }
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .map_or(Value::Null, Value::Number)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

type Outcome<T> = Result<T, String>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// An unexpected character, or the end of the text.
    fn invalid(&self, place: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(_) => format!("invalid character {} {place}", self.quoted()),
        }
    }

    /// The character here as Go quotes it.
    fn quoted(&self) -> String {
        let rest = &self.text[self.at..(self.at + 4).min(self.text.len())];
        let char =
            (1..=rest.len()).find_map(|length| std::str::from_utf8(&rest[..length]).ok()?.chars().next());
        match char {
            None => format!("'\\x{:02x}'", rest[0]),
            Some('\'') => r"'\''".to_owned(),
            Some('"') => "'\"'".to_owned(),
            Some(char) if char.is_ascii_control() && !matches!(char, '\t' | '\n' | '\r') => {
                format!("'\\x{:02x}'", u32::from(char))
            }
            Some(char) => match char.escape_debug().to_string() {
                text if text.starts_with("\\u") => format!("'\\u{:04x}'", u32::from(char)),
                text => format!("'{text}'"),
            },
        }
    }

    fn value(&mut self, depth: usize) -> Outcome<Node> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Node::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, node: Node) -> Outcome<Node> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.invalid(&format!(
                    "in literal {word} (expecting '{}')",
                    char::from(expected)
                )));
            }
            self.at += 1;
        }
        Ok(node)
    }

    fn deeper(depth: usize) -> Outcome<()> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Outcome<Node> {
        Self::deeper(depth)?;
        self.at += 1;
        let mut fields = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(fields));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let name = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            fields.push((name, self.value(depth)?));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Node::Object(fields));
                }
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Outcome<Node> {
        Self::deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Node::Array(items));
                }
                _ => return Err(self.invalid("after array element")),
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Outcome<Node> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => {
                self.digits();
            }
            _ => return Err(self.invalid("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.invalid("after decimal point in numeric literal"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.invalid("in exponent of numeric literal"));
            }
        }
        let text = &self.text[start..self.at];
        Ok(Node::Number(String::from_utf8_lossy(text).into_owned()))
    }

    fn string(&mut self) -> Outcome<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            push_lossy(&mut text, &self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                _ => return Err(self.invalid("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Outcome<char> {
        let char = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.invalid("in string escape code")),
        };
        self.at += 1;
        Ok(char)
    }

    /// `\uXXXX`; halves of pairs that are alone become U+FFFD.
    fn unicode(&mut self) -> Outcome<char> {
        let first = self.four()?;
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.four()?;
            if (0xDC00..0xE000).contains(&second) {
                let pair = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four(&mut self) -> Outcome<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.invalid("in \\u hexadecimal character escape"));
            };
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}

/// Adds bytes; each one that is no UTF-8 becomes U+FFFD.
fn push_lossy(text: &mut String, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                return;
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[1..];
            }
        }
    }
}
