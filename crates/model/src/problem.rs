//! An error in a field, and the names that Kubernetes accepts: for all readers of user input.

use std::fmt;

/// An error in a field, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path of the field.
    pub field: String,
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
}

impl Problem {
    /// Builds a problem from its parts.
    pub fn new(field: impl Into<String>, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.cause, self.remedy)
    }
}

/// True if a text is a valid label key: a name of at most 63 characters, optionally with a DNS name and a slash before it.
pub fn is_label_key(text: &str) -> bool {
    let name = match text.split_once('/') {
        Some((prefix, name)) if is_subdomain(prefix) => name,
        Some(_) => return false,
        None => text,
    };
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=63).contains(&name.len())
        && ends(name.chars().next())
        && ends(name.chars().last())
        && name.chars().all(inner)
}

/// True if a text is a valid name of most objects, or a valid domain of a label: a DNS-1123 subdomain.
pub fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ends(part.chars().next()) && ends(part.chars().last()) && part.chars().all(inner)
    };
    text.len() <= 253 && text.split('.').all(part)
}
