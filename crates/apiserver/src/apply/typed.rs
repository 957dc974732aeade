//! Type errors of an applied object, in the words of the real server, which quotes Go values.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    element::Element,
    shape::{Form, Shape},
};
use crate::{json::printed, schema::Type};

/// More problems are not reported: the message stays readable, and in bounds.
const MOST: usize = 100;

/// Bytes of one problem, at most.
const LONGEST: usize = 4 << 10;

/// The problems of an object, one a line after `errors:` when there are several; `None` when it is fine.
#[must_use]
pub(super) fn problems(shape: &Shape, value: &Value) -> Option<String> {
    let mut found = Vec::new();
    check(shape, value, &mut String::new(), &mut found);
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

fn check(shape: &Shape, value: &Value, path: &mut String, found: &mut Vec<String>) {
    if value.is_null() || found.len() >= MOST {
        return;
    }
    let form = shape.form(value);
    match (&form, value) {
        (Form::Map | Form::AtomicMap, Value::Object(map)) => {
            for (name, value) in map {
                let length = path.len();
                path.push('.');
                path.push_str(name);
                match shape.field(name) {
                    Some((inner, _)) => check(&inner, value, path, found),
                    None => tell(path, "field not declared in schema", found),
                }
                path.truncate(length);
                if found.len() >= MOST {
                    return;
                }
            }
        }
        (Form::Map | Form::AtomicMap, other) => {
            tell(path, &format!("expected map, got {}", plain(other)), found)
        }
        (Form::List { items: inner, keys }, Value::Array(list)) => {
            let mut seen = BTreeSet::new();
            for (at, item) in list.iter().enumerate() {
                if found.len() >= MOST {
                    return;
                }
                match inner.element(keys, item) {
                    Err(why) => {
                        tell(path, &format!("element {at}: {why}"), found);
                        return;
                    }
                    Ok(element) => {
                        let step = element.to_string();
                        if !seen.insert(element) {
                            tell(path, &format!("duplicate entries for key {step}"), found);
                        }
                        below(inner, item, &step, path, found);
                    }
                }
            }
        }
        (Form::AtomicList, Value::Array(list)) => {
            let inner = shape.items();
            for (at, item) in list.iter().enumerate() {
                below(&inner, item, &Element::Index(at as i64).to_string(), path, found);
            }
        }
        (Form::List { .. } | Form::AtomicList, other) => {
            tell(path, &format!("expected list, got {}", plain(other)), found);
        }
        (Form::Scalar, value) => {
            if let Some(problem) = scalar(shape, value) {
                tell(path, &problem, found);
            }
        }
    }
}

fn below(shape: &Shape, value: &Value, step: &str, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    path.push_str(step);
    check(shape, value, path, found);
    path.truncate(length);
}

fn tell(path: &str, problem: &str, found: &mut Vec<String>) {
    if found.len() >= MOST {
        return;
    }
    let mut line = match path {
        "" => problem.to_owned(),
        path => format!("{path}: {problem}"),
    };
    if line.len() > LONGEST {
        line.truncate(line.floor_char_boundary(LONGEST));
        line.push_str("...");
    }
    found.push(line);
}

fn scalar(shape: &Shape, value: &Value) -> Option<String> {
    let (kind, format) = match shape {
        Shape::Text => (Type::String, None),
        Shape::Node { schema, .. } => (schema.kind, schema.format.as_deref()),
        _ => (Type::Any, None),
    };
    let plain_scalar = matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_));
    match kind {
        // Quantities are written as numbers, too.
        Type::String if format == Some("quantity") && plain_scalar => None,
        Type::String if !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            syntax(value)
        )),
        Type::Integer | Type::Number if !value.is_number() => Some(format!(
            "expected numeric (int or float), got {}",
            type_name(value)
        )),
        Type::Boolean if !value.is_boolean() => Some(format!("expected boolean, got {}", plain(value))),
        Type::Any | Type::IntOrString if !plain_scalar => {
            Some(format!("expected any scalar, got {}", plain(value)))
        }
        _ => None,
    }
}

/// The Go type of a decoded value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The same of a pointer to the value.
fn plain(value: &Value) -> String {
    format!("&{{{}}}", printed(value))
}

/// The value as Go code.
fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", all.join(", "))
        }
        Value::Object(map) => {
            let all: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name:?}:{}", syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", all.join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
