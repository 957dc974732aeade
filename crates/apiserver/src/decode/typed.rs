//! Decoding of a value by the schema of a built-in kind: types checked, unknown fields dropped and reported, the rest in the
//! form in which Go would write it: nulls dropped, empty values left out, times and quantities normalised.
//!
//! Faults are of three kinds, as in Go's decoder: a wrong type is recorded and the first one reported at the end; a value
//! that a type's own reader refuses (times, quantities) is reported at once; unknown and repeated fields are collected.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use serde_json::{Map, Value};

use super::{go, time};
use crate::{
    object::Object,
    quantity::Quantity,
    read::json::{self, Node},
    schema::{Schema, Type, builtin},
};

/// The number of unknown and repeated fields that are reported.
const MOST_PROBLEMS: usize = 100;

/// An object as its type has it, and the fields it had too many.
pub(super) struct Typed {
    pub(super) object: Object,
    /// `unknown field "spec.foo"`, `duplicate field "data.a"`, in the order of the text.
    pub(super) problems: Vec<String>,
}

crate::hidden::without_content!(Typed);

/// The decoder whose wording the errors have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Voice {
    /// The JSON decoder's.
    #[default]
    Json,
    /// The converter that reads the results of strategic merges, which stops at the first error.
    Converter,
}

/// Reads an object. O(text).
///
/// # Errors
/// The problems that the decoder found.
pub(super) fn decode(schema: &Arc<Schema>, node: Node, voice: Voice) -> Result<Typed, String> {
    let mut walk = Walk {
        voice,
        ..Walk::default()
    };
    let value = walk.value(schema, node)?;
    if let Some(error) = walk.first_error {
        return Err(error);
    }
    let object = match value {
        Some(Value::Object(object)) => object,
        _ => match zero(schema) {
            Value::Object(object) => object,
            _ => Map::new(),
        },
    };
    Ok(Typed {
        object,
        problems: walk.problems,
    })
}

#[derive(Default)]
struct Walk {
    voice: Voice,
    /// Path of the value for problems: `spec.containers[0]`.
    path: String,
    /// The path of the enclosing fields, for type errors: `spec.template`.
    fields: Vec<Range<usize>>,
    /// The struct that is being read.
    inside: Option<Arc<Schema>>,
    first_error: Option<String>,
    problems: Vec<String>,
    reported: BTreeSet<String>,
    /// Within types with a reader of their own, which report no unknown fields.
    quiet: usize,
}

/// The value to keep; `None` for nothing: null, or a wrong type.
type Kept = Result<Option<Value>, String>;

impl Walk {
    fn value(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        if schema.preserve_unknown {
            return self.free(schema, node);
        }
        if matches!(node, Node::Null) {
            return Ok(None);
        }
        match schema.kind {
            Type::Object if schema.additional.is_some() => self.map(schema, node),
            Type::Object => self.fields(schema, node),
            Type::Array => self.list(schema, node),
            Type::String => self.text(schema, node),
            Type::Boolean => match node {
                Node::Bool(value) => Ok(Some(value.into())),
                other => self.wrong(schema, other.type_name()),
            },
            Type::Integer | Type::Number => self.number(schema, node),
            Type::IntOrString => self.int_or_string(schema, node),
            Type::Any => Ok(Some(node.into_value())),
        }
    }

    fn wrong(&mut self, schema: &Schema, value: &str) -> Kept {
        if self.voice == Voice::Converter {
            return Err(go::unconvertible(schema, value));
        }
        if self.first_error.is_none() {
            let inside = self.inside.as_deref().and_then(go::struct_of).unwrap_or_default();
            let place = if inside.is_empty() && self.fields.is_empty() {
                "value".to_owned()
            } else {
                let fields: Vec<&str> = self.fields.iter().map(|at| &self.path[at.clone()]).collect();
                format!("struct field {inside}.{}", fields.join("."))
            };
            let kind = go::type_of(schema);
            self.first_error = Some(format!(
                "json: cannot unmarshal {value} into Go {place} of type {kind}"
            ));
        }
        Ok(None)
    }

    fn problem(&mut self, what: &str, name: &str) {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let text = format!("{what} field {path:?}");
        if self.quiet == 0 && self.problems.len() < MOST_PROBLEMS && self.reported.insert(text.clone()) {
            self.problems.push(text);
        }
    }

    /// Runs `read` one step down the path.
    fn below<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 && !step.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(step);
        let result = read(self);
        self.path.truncate(length);
        result
    }

    fn fields(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let Node::Object(fields) = node else {
            return self.wrong(schema, node.type_name());
        };
        let outer = self.inside.replace(schema.clone());
        let mut object = Map::new();
        let mut seen: Vec<&String> = Vec::with_capacity(fields.len().min(schema.properties.len()));
        for (name, node) in fields {
            let Some((known, field)) = schema.properties.get_key_value(&name) else {
                self.problem("unknown", &name);
                continue;
            };
            if seen.iter().any(|one| std::ptr::eq(*one, known)) {
                self.problem("duplicate", &name);
            } else {
                seen.push(known);
            }
            let value = self.below(&name, |walk| {
                walk.fields.push(walk.path.len() - name.len()..walk.path.len());
                let value = walk.value(field, node);
                walk.fields.pop();
                value
            });
            match value?.filter(|value| is_sent(field, value)) {
                Some(value) => object.insert(name, value),
                None => object.remove(&name),
            };
        }
        fill(schema, &mut object);
        self.inside = outer;
        Ok(Some(Value::Object(object)))
    }

    fn map(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let Node::Object(fields) = node else {
            return self.wrong(schema, node.type_name());
        };
        let Some(values) = schema.additional.clone() else {
            return Ok(None);
        };
        let mut object = Map::new();
        for (name, node) in fields {
            if object.contains_key(&name) {
                self.problem("duplicate", &name);
            }
            let value = self.below(&name, |walk| walk.value(&values, node))?;
            object.insert(name, value.unwrap_or_else(|| zero(&values)));
        }
        Ok(Some(Value::Object(object)))
    }

    fn list(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let Node::Array(nodes) = node else {
            return self.wrong(schema, node.type_name());
        };
        let Some(items) = schema.items.clone() else {
            return Ok(None);
        };
        let mut list = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.into_iter().enumerate() {
            let value = self.below(&format!("[{index}]"), |walk| walk.value(&items, node))?;
            list.push(value.unwrap_or_else(|| zero(&items)));
        }
        Ok(Some(Value::Array(list)))
    }

    fn text(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let is_time = schema.format.as_deref() == Some("date-time");
        let text = match node {
            Node::String(text) => text,
            other if is_time => {
                let kind = other.type_name();
                return Err(format!(
                    "json: cannot unmarshal {kind} into Go value of type string"
                ));
            }
            other => return self.wrong(schema, other.type_name()),
        };
        if is_time {
            let micro = go::struct_of(schema) == Some("MicroTime");
            return Ok(time::read(&text, micro)?.map(Value::from));
        }
        if schema.format.as_deref() == Some("byte") {
            return match go::base64(&text) {
                Ok(text) => Ok(Some(text.into())),
                Err(error) if self.voice == Voice::Converter => {
                    Err(format!("error decoding from json: {error}"))
                }
                Err(error) => {
                    self.first_error.get_or_insert(error);
                    Ok(None)
                }
            };
        }
        Ok(Some(text.into()))
    }

    fn number(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let Node::Number(text) = node else {
            return self.wrong(schema, node.type_name());
        };
        if schema.kind == Type::Number {
            let value = json::number(&text);
            return if value.is_null() {
                self.wrong(schema, &format!("number {text}"))
            } else {
                Ok(Some(value))
            };
        }
        match text.parse::<i64>() {
            Ok(value) if schema.format.as_deref() != Some("int32") || i32::try_from(value).is_ok() => {
                Ok(Some(value.into()))
            }
            _ => self.wrong(schema, &format!("number {text}")),
        }
    }

    fn int_or_string(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        if schema.format.as_deref() == Some("quantity") {
            let text = match node {
                Node::String(text) | Node::Number(text) => text,
                // Anything else is read as its text, which is no quantity.
                _ => "?".to_owned(),
            };
            return Ok(Some(Quantity::parse(text.trim())?.to_string().into()));
        }
        match node {
            Node::String(text) => Ok(Some(text.into())),
            Node::Number(text) => match text.parse::<i32>() {
                Ok(value) => Ok(Some(value.into())),
                Err(_) => Err(format!(
                    "json: cannot unmarshal number {text} into Go value of type int32"
                )),
            },
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type int32",
                other.type_name()
            )),
        }
    }

    /// The types that are kept as they are, and the parts of a CRD's schema that are a schema or something else.
    fn free(&mut self, schema: &Arc<Schema>, node: Node) -> Kept {
        let whole = builtin::resolve(schema);
        if !whole.preserve_unknown {
            return self.value(&whole, node);
        }
        if matches!(node, Node::Null) {
            return Ok(None);
        }
        let name = go::struct_of(schema).unwrap_or_default();
        if !name.starts_with("JSONSchemaPropsOr") {
            return Ok(Some(node.into_value()));
        }
        let inner = builtin::definition(builtin::SCHEMA_PROPS, Vec::new);
        self.quiet += 1;
        let value = match node {
            Node::Object(_) => self.value(&inner, node),
            Node::Array(nodes) => nodes
                .into_iter()
                .map(|node| match node {
                    Node::Object(_) => Ok(self.value(&inner, node)?.unwrap_or_default()),
                    other => Ok(other.into_value()),
                })
                .collect::<Result<Vec<_>, String>>()
                .map(|items| Some(Value::Array(items))),
            other => Ok(Some(other.into_value())),
        };
        self.quiet -= 1;
        value
    }
}

/// True if Go writes a value of this field.
fn is_sent(field: &Schema, value: &Value) -> bool {
    match value {
        Value::Null => field.always,
        Value::Bool(value) => *value || !field.omit_zero,
        Value::Number(number) => number.as_f64() != Some(0.0) || !field.omit_zero,
        Value::String(text) => !text.is_empty() || !field.omit_zero,
        // A list that is sent although it is empty is null once it is stored; until then it counts as set.
        Value::Array(list) => !list.is_empty() || field.kind == Type::Any || counts_when_empty(field),
        Value::Object(object) => !object.is_empty() || field.additional.is_none(),
    }
}

/// True if an empty list differs from an absent one: it can be owned, it resets ownership, or it gets no default.
fn counts_when_empty(field: &Schema) -> bool {
    let items = field.items.as_ref().and_then(|items| items.definition.as_deref());
    let is = |name: &str| {
        [".ManagedFieldsEntry", ".HPAScalingPolicy"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    field.always || items.is_some_and(is)
}

/// Makes empty lists null where they are sent even when empty, and takes them out elsewhere: as they come back from
/// the store. O(value).
pub(super) fn without_empty_lists(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.field(name) {
                    without_empty_lists(field, value);
                    if field.always && value.as_array().is_some_and(Vec::is_empty) {
                        *value = Value::Null;
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items
                    .iter_mut()
                    .for_each(|item| without_empty_lists(schema, item));
            }
        }
        _ => {}
    }
}

/// Adds what is sent even when empty.
fn fill(schema: &Schema, object: &mut Object) {
    for (name, field) in &schema.properties {
        if field.always && !field.pointer && !object.contains_key(name) {
            object.insert(name.clone(), zero(field));
        }
    }
}

/// The value that Go writes for an unset field.
fn zero(schema: &Arc<Schema>) -> Value {
    if schema.preserve_unknown || schema.pointer {
        return Value::Null;
    }
    match schema.kind {
        Type::Object if schema.additional.is_none() => {
            let mut object = Map::new();
            fill(schema, &mut object);
            Value::Object(object)
        }
        Type::String => match schema.format.as_deref() {
            Some("date-time") => Value::Null,
            _ => "".into(),
        },
        Type::Boolean => false.into(),
        Type::Integer | Type::Number => 0.into(),
        Type::IntOrString if schema.format.as_deref() == Some("quantity") => "0".into(),
        Type::IntOrString => 0.into(),
        Type::Object | Type::Array | Type::Any => Value::Null,
    }
}
