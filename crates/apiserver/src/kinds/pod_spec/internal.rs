//! The server's own form of pod specs, which some messages quote: other names, a fixed order, and every field.

use std::fmt::Write as _;

use serde_json::Value;

use crate::object::{Object, tree::below};

mod diff;
mod scheduling;
mod storage;
mod types;

use diff::unified;
use types::{Form, TYPES};

/// A value in a fixed order.
enum Node {
    Leaf(Value),
    List(Vec<Self>),
    Fields(Vec<(String, Self)>),
}

/// A pod template, on one line.
pub(crate) fn template(template: &Object) -> String {
    let metadata = below(template, "metadata");
    let mut fields: Vec<(String, Node)> = metadata
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), Node::Leaf(value.clone())))
        .collect();
    fields.push(("Spec".to_owned(), typed("PodSpec", below(template, "spec"))));
    let mut text = String::new();
    write(&Node::Fields(fields), None, &mut text);
    text
}

/// A value of a type of the table, on one line.
pub(crate) fn shown(name: &str, object: &Object) -> String {
    let mut text = String::new();
    write(&typed(name, object), None, &mut text);
    text
}

/// The differences between two values of a type, as a unified diff.
pub(crate) fn difference(name: &str, old: &Object, new: &Object) -> String {
    let lines = |spec: &Object| {
        let mut text = String::new();
        write(&typed(name, spec), Some(0), &mut text);
        text
    };
    unified(&lines(old), &lines(new))
}

fn typed(name: &str, object: &Object) -> Node {
    let mut types = [TYPES, scheduling::TYPES, storage::TYPES].into_iter().flatten();
    let Some((_, fields)) = types.find(|(known, _)| *known == name) else {
        return untyped(object);
    };
    let mut nodes: Vec<(String, Node)> = fields
        .iter()
        .map(|(own, key, form)| ((*own).to_owned(), node(*form, object, key)))
        .collect();
    if name == "EphemeralContainer" {
        nodes.push((
            "TargetContainerName".to_owned(),
            node(Form::Text, object, "targetContainerName"),
        ));
    }
    Node::Fields(nodes)
}

/// A type that is not in the table: its fields in their order, the first letter raised.
fn untyped(object: &Object) -> Node {
    let raised = |key: &str| {
        let mut letters = key.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().collect::<String>() + letters.as_str()
        })
    };
    let nodes = object.iter().map(|(key, value)| {
        let node = match value {
            Value::Object(inner) => untyped(inner),
            Value::Array(items) => Node::List(items.iter().map(item).collect()),
            other => Node::Leaf(other.clone()),
        };
        (raised(key), node)
    });
    Node::Fields(nodes.collect())
}

fn item(value: &Value) -> Node {
    value
        .as_object()
        .map_or_else(|| Node::Leaf(value.clone()), untyped)
}

fn node(form: Form, object: &Object, key: &str) -> Node {
    let value = object.get(key).filter(|value| !value.is_null());
    let or = |zero: Value| Node::Leaf(value.cloned().unwrap_or(zero));
    match form {
        Form::Text => or(Value::from("")),
        Form::Number => or(Value::from(0)),
        Form::Flag => or(Value::from(false)),
        Form::Plain => or(Value::Null),
        Form::Maybe(name) => match value.and_then(Value::as_object) {
            Some(inner) => typed(name, inner),
            None => Node::Leaf(Value::Null),
        },
        Form::Always(name) => typed(name, below(object, key)),
        Form::Many(name) => match value.and_then(Value::as_array) {
            Some(list) if !list.is_empty() => Node::List(
                list.iter()
                    .map(|one| match one.as_object() {
                        Some(inner) => typed(name, inner),
                        None => Node::Leaf(one.clone()),
                    })
                    .collect(),
            ),
            _ => Node::Leaf(Value::Null),
        },
        Form::Context => {
            let mut context = below(object, key).clone();
            for moved in [
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "shareProcessNamespace",
                "hostUsers",
            ] {
                if let Some(value) = object.get(moved) {
                    context.insert(moved.to_owned(), value.clone());
                }
            }
            typed("PodContext", &context)
        }
    }
}

/// Writes a node: on one line, or with one blank per level beginning at `level`.
fn write(node: &Node, level: Option<usize>, out: &mut String) {
    let (open, close, count) = match node {
        Node::Leaf(value) => return write_leaf(value, level, out),
        Node::List(items) => ('[', ']', items.len()),
        Node::Fields(fields) => ('{', '}', fields.len()),
    };
    out.push(open);
    let deeper = level.map(|level| level + 1);
    let line = |level: Option<usize>, out: &mut String| {
        if let Some(level) = level {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', level));
        }
    };
    for at in 0..count {
        if at > 0 {
            out.push(',');
        }
        line(deeper, out);
        match node {
            Node::List(items) => write(&items[at], deeper, out),
            Node::Fields(fields) => {
                let space = if level.is_some() { " " } else { "" };
                let _ = write!(out, "\"{}\":{space}", fields[at].0);
                write(&fields[at].1, deeper, out);
            }
            Node::Leaf(_) => {}
        }
    }
    if count > 0 {
        line(level, out);
    }
    out.push(close);
}

fn write_leaf(value: &Value, level: Option<usize>, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let fields = map
                .iter()
                .map(|(key, value)| (key.clone(), Node::Leaf(value.clone())));
            write(&Node::Fields(fields.collect()), level, out);
        }
        Value::Array(list) if !list.is_empty() => {
            write(
                &Node::List(list.iter().cloned().map(Node::Leaf).collect()),
                level,
                out,
            );
        }
        other => out.push_str(&other.to_string()),
    }
}
