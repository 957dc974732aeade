//! `metadata` of custom resources and of objects embedded in them: read as an ObjectMeta is, unknown fields dropped.

use serde_json::{Map, Value};

use crate::schema::Schema;

/// The type of a field of metadata, as Go names it.
enum Shape {
    Text,
    Whole,
    Flag,
    Time,
    Texts,
    List(&'static Self),
    Struct(&'static [(&'static str, Self)]),
    Raw,
}

const OWNER: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("blockOwnerDeletion", Shape::Flag),
    ("controller", Shape::Flag),
    ("kind", Shape::Text),
    ("name", Shape::Text),
    ("uid", Shape::Text),
];

const MANAGED: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("fieldsType", Shape::Text),
    ("fieldsV1", Shape::Raw),
    ("manager", Shape::Text),
    ("operation", Shape::Text),
    ("subresource", Shape::Text),
    ("time", Shape::Time),
];

/// The fields of ObjectMeta.
const FIELDS: &[(&str, Shape)] = &[
    ("annotations", Shape::Texts),
    ("creationTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Whole),
    ("deletionTimestamp", Shape::Time),
    ("finalizers", Shape::List(&Shape::Text)),
    ("generateName", Shape::Text),
    ("generation", Shape::Whole),
    ("labels", Shape::Texts),
    ("managedFields", Shape::List(&Shape::Struct(MANAGED))),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::List(&Shape::Struct(OWNER))),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

/// The fields that stay even when they are zero: pointers and fields without omitempty.
const KEPT: [&str; 9] = [
    "deletionGracePeriodSeconds",
    "blockOwnerDeletion",
    "controller",
    "apiVersion",
    "kind",
    "name",
    "uid",
    "fieldsV1",
    "time",
];

/// Brings `object.metadata` into shape. Returns the unknown fields that were dropped, below `path`; the error of a wrong type. O(metadata).
pub(crate) fn coerce(object: &mut Map<String, Value>, path: &str) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    let mut unknown = Vec::new();
    match metadata {
        Value::Null => {
            object.remove("metadata");
        }
        Value::Object(fields) => structure(fields, FIELDS, "ObjectMeta", path, &mut unknown, true)?,
        other => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                name_of(other)
            ));
        }
    }
    Ok(unknown)
}

/// The same for the objects embedded in `value`, a value of `schema`; `(path, metadata, error)` of the first that is wrong. O(value).
pub(crate) fn coerce_embedded(
    value: &mut Value,
    schema: &Schema,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), (String, Value, String)> {
    if schema.embedded
        && !path.is_empty()
        && let Value::Object(object) = value
    {
        let here = format!("{path}.metadata");
        let before = object.get("metadata").cloned();
        match coerce(object, &here) {
            Ok(found) => unknown.extend(found),
            Err(error) => return Err((here, before.unwrap_or_default(), error)),
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(_, value)| is_nested(value)) {
                if schema.embedded && crate::schema::prune::is_object_field(name) {
                    continue;
                }
                if let Some(field) = schema.field(name) {
                    let here = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    coerce_embedded(value, field, &here, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for (at, item) in items.iter_mut().enumerate().filter(|(_, item)| is_nested(item)) {
                    coerce_embedded(item, inner, &format!("{path}[{at}]"), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn structure(
    fields: &mut Map<String, Value>,
    shapes: &'static [(&'static str, Shape)],
    go: &str,
    path: &str,
    unknown: &mut Vec<String>,
    top: bool,
) -> Result<(), String> {
    let mut gone = Vec::new();
    for (name, value) in fields.iter_mut() {
        let Some((_, shape)) = shapes.iter().find(|(known, _)| known == name) else {
            unknown.push(format!("{path}.{name}"));
            gone.push(name.clone());
            continue;
        };
        let go = format!("{go}.{name}");
        check(value, shape, &go, &format!("{path}.{name}"), unknown)?;
        let zero = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Bool(flag) => !*flag,
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
        };
        // Of the object itself an empty name or uid is none; of an owner it is written.
        let of_object = top && matches!(name.as_str(), "name" | "uid");
        let kept = KEPT.contains(&name.as_str()) && !value.is_null() && !of_object;
        if zero && !kept {
            gone.push(name.clone());
        }
    }
    for name in gone {
        fields.remove(&name);
    }
    Ok(())
}

fn check(
    value: &mut Value,
    shape: &'static Shape,
    go: &str,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let wrong = |value: &Value, kind: &str| {
        Err(format!(
            "json: cannot unmarshal {} into Go struct field {go} of type {kind}",
            name_of(value)
        ))
    };
    match (shape, &mut *value) {
        (_, Value::Null)
        | (Shape::Raw, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Flag, Value::Bool(_)) => Ok(()),
        (Shape::Text, other) => wrong(other, "string"),
        (Shape::Flag, other) => wrong(other, "bool"),
        (Shape::Whole, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Whole, Value::Number(number)) => Err(format!(
            "json: cannot unmarshal number {number} into Go struct field {go} of type int64"
        )),
        (Shape::Whole, other) => wrong(other, "int64"),
        (Shape::Time, Value::String(text)) => time(text),
        (Shape::Time, other) => Err(format!(
            "json: cannot unmarshal {} into Go value of type string",
            name_of(other)
        )),
        (Shape::Texts, Value::Object(fields)) => {
            for value in fields.values_mut() {
                match value {
                    Value::String(_) => {}
                    Value::Null => *value = Value::String(String::new()),
                    other => return wrong(other, "string"),
                }
            }
            Ok(())
        }
        (Shape::Texts, other) => wrong(other, "map[string]string"),
        (Shape::List(inner), Value::Array(items)) => {
            for (at, item) in items.iter_mut().enumerate() {
                check(item, inner, go, &format!("{path}[{at}]"), unknown)?;
            }
            Ok(())
        }
        (Shape::List(inner), other) => wrong(other, &format!("[]{}", go_name(inner))),
        (Shape::Struct(shapes), Value::Object(fields)) => structure(fields, shapes, go, path, unknown, false),
        (Shape::Struct(_), other) => wrong(other, go_name(shape)),
    }
}

fn go_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Struct(fields) if fields.len() == OWNER.len() => "v1.OwnerReference",
        Shape::Struct(_) => "v1.ManagedFieldsEntry",
        _ => "string",
    }
}

/// Times are RFC 3339; they are kept as written.
fn time(text: &str) -> Result<(), String> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Ok(());
    }
    Err(format!(
        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
    ))
}

/// Go's name of a JSON value.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
