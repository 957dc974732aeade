//! An error in one field, in the server's words.

use std::fmt;

use serde_json::{Value, json};

/// The type of the error. Each has its reason in a cause and its words in the message.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The field must be there.
    Required,
    /// The value has the right type and is not acceptable.
    Invalid(Value),
    /// The same with a value that is written already, in the server's order of its fields.
    InvalidText(String),
    /// The value is of the wrong type; also every type error of a schema.
    TypeInvalid(Value),
    /// The value is none of the possible ones.
    NotSupported(Value),
    /// The same with a value that is written already.
    NotSupportedText(String),
    /// Invalid without showing the value: it is an object or a list.
    InvalidUnshown,
    /// The value is there twice; it is an object or a list and not shown.
    DuplicateUnshown,
    /// The field may not be set, or not changed.
    Forbidden,
    /// The text is longer than so many bytes.
    TooLong(Value),
    /// More than so many items.
    TooMany(Value),
    /// The value is there twice.
    Duplicate(Value),
    /// The same, with the value as the server writes it.
    DuplicateText(String),
    /// The value names something that is not there.
    NotFound(Value),
    /// The server could not check it.
    Internal,
}

/// A field, what is wrong with it, and the words that follow.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Path as the server writes it: `spec.template.spec.containers[0].name`; `<nil>` for none.
    pub field: String,
    /// The type of the error.
    pub problem: Problem,
    /// The text behind the value in the message.
    pub detail: String,
}

impl FieldError {
    /// A problem of `field`, with `detail`.
    pub fn new(field: impl Into<String>, problem: Problem, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem,
            detail: detail.into(),
        }
    }

    /// A field that must be there.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Required, detail)
    }

    /// A value that is not acceptable.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Invalid(value.into()), detail)
    }

    /// A field that may not be set.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Forbidden, detail)
    }

    /// A value that is none of `possible`, which are quoted and sorted as given.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, possible: &[&str]) -> Self {
        let quoted: Vec<String> = possible.iter().map(|one| format!("{one:?}")).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(field, Problem::NotSupported(value.into()), detail)
    }

    /// A value that is there twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(field, Problem::Duplicate(value.into()), "")
    }

    /// The words and the value, without the field: the message of a cause.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = match &self.problem {
            Problem::Required => "Required value".to_owned(),
            Problem::Forbidden => "Forbidden".to_owned(),
            Problem::InvalidUnshown => "Invalid value".to_owned(),
            Problem::DuplicateUnshown => "Duplicate value".to_owned(),
            Problem::Internal => "Internal error".to_owned(),
            Problem::Invalid(value) | Problem::TypeInvalid(value) => {
                format!("Invalid value: {}", shown(value))
            }
            Problem::InvalidText(value) => format!("Invalid value: {value}"),
            Problem::NotSupported(value) => format!("Unsupported value: {}", shown(value)),
            Problem::NotSupportedText(value) => format!("Unsupported value: {value}"),
            Problem::Duplicate(value) => format!("Duplicate value: {}", shown(value)),
            Problem::DuplicateText(value) => format!("Duplicate value: {value}"),
            Problem::NotFound(value) => format!("Not found: {}", shown(value)),
            Problem::TooLong(_) => "Too long".to_owned(),
            Problem::TooMany(value) => format!("Too many: {}", shown(value)),
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    /// The entry of `details.causes`.
    #[must_use]
    pub fn cause(&self) -> Value {
        let reason = match &self.problem {
            Problem::Required => "FieldValueRequired",
            Problem::Invalid(_) | Problem::InvalidUnshown | Problem::InvalidText(_) => "FieldValueInvalid",
            Problem::TypeInvalid(_) => "FieldValueTypeInvalid",
            Problem::NotSupported(_) | Problem::NotSupportedText(_) => "FieldValueNotSupported",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong(_) => "FieldValueTooLong",
            Problem::TooMany(_) => "FieldValueTooMany",
            Problem::Duplicate(_) | Problem::DuplicateUnshown | Problem::DuplicateText(_) => {
                "FieldValueDuplicate"
            }
            Problem::NotFound(_) => "FieldValueNotFound",
            Problem::Internal => "InternalError",
        };
        json!({"reason": reason, "message": self.body(), "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Strings quoted as Go does, numbers and booleans bare, objects and lists as JSON, nothing as `null`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text in quotes, as Go writes it (`%q`).
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            ' ' => quoted.push(' '),
            hidden if hidden.is_control() || hidden.is_whitespace() => {
                quoted.push_str(&match u32::from(hidden) {
                    code @ 0..0x80 => format!("\\x{code:02x}"),
                    code @ 0x80..0x1_0000 => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                })
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// All errors in one text: one alone as it is, several in brackets; equal ones once.
#[must_use]
pub fn summary(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, expected) in [
            ("a \"b\" \\", r#""a \"b\" \\""#),
            ("a\u{1}b\n\u{7f}", r#""a\x01b\n\x7f""#),
            ("\u{85}\u{2028}é☃'", "\"\\u0085\\u2028é☃'\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
