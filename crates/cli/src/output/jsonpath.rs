//! kubectl's dialect of JSONPath: text, actions in braces, `range` and `end`, filters, slices, unions, recursive descent.
//!
//! The behaviour is that of `kubectl -o jsonpath`, where fields that are missing print nothing. Two things are looser: a filter
//! compares whole numbers with fractions, and fields of an object come in the order of their names.

use serde_json::Value;

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

/// A template that was parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// The text between actions, and the actions.
    actions: Vec<Vec<Node>>,
}

/// A step of an action.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    Number(serde_json::Number),
    Bool(bool),
    /// A field; a backslash before a dot was removed.
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Filter(Filter),
    Union(Vec<Vec<Self>>),
    /// A word, such as `range` or `end`.
    Word(String),
}

/// `[start:end:step]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// True if the end follows from a single index.
    is_index: bool,
    step: Option<i64>,
}

/// `[?(left operator right)]`; without an operator, elements that have `left`.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Node>,
    comparison: Option<(String, Vec<Node>)>,
}

impl JsonPath {
    /// Reads a template: text, and actions in braces.
    ///
    /// # Errors
    /// The cause, in kubectl's words.
    pub fn parse(template: &str) -> Result<Self, String> {
        let actions = parse::template(template)?;
        Ok(Self { actions })
    }

    /// The template applied to a document, as text: scalars as they are, objects and lists as JSON.
    ///
    /// # Errors
    /// The cause, in kubectl's words.
    pub fn text(&self, document: &Value) -> Result<String, String> {
        let mut text = String::new();
        for results in self.results(document)? {
            let shown: Vec<String> = results.iter().map(shown).collect();
            text.push_str(&shown.join(" "));
        }
        Ok(text)
    }

    /// The results of each action, and the texts between them.
    ///
    /// # Errors
    /// The cause, in kubectl's words.
    pub fn results(&self, document: &Value) -> Result<Vec<Vec<Value>>, String> {
        evaluate::template(&self.actions, document)
    }
}

/// A result as kubectl prints it: `null` as nothing, objects and lists as Go writes JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => {
            // These letters are in strings alone.
            let json = value.to_string();
            json.replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
        }
    }
}
