//! Problems of fields, and the rules of Kubernetes for names: the words for all that read what users write.

use std::fmt;

/// What is wrong with a field, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path of the field.
    pub field: String,
    /// What is wrong.
    pub cause: String,
    /// What would be right.
    pub remedy: String,
}

impl Problem {
    /// From its parts.
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

/// Whether a text can be the key of a label: a name of at most 63 characters, behind a DNS name and a slash if it has one.
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

/// Whether a text can be the name of most objects, or the domain of a label: a DNS-1123 subdomain.
pub fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ends(part.chars().next()) && ends(part.chars().last()) && part.chars().all(inner)
    };
    text.len() <= 253 && text.split('.').all(part)
}
