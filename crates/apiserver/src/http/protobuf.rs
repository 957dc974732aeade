//! Bodies in protocol buffers, as the typed clients of Go send and read them: converted to JSON before any other processing.
//!
//! The schemas define the type of a field; `schema/builtin/fields.txt` its number. Module `encode` is the way back.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::{
    decode::envelope,
    openapi::protobuf::MEDIA,
    read,
    resource::Resource,
    schema::{
        Schema, Type,
        builtin::{AGGREGATOR, EXTENSIONS, Field, Numbers, SCHEMA_PROPS, TABLE, numbers},
    },
    status::Status,
};

mod encode;
#[cfg(test)]
mod tests;

pub(super) use encode::{event, from_json};

/// The prefix of such a body.
const MAGIC: &[u8] = b"k8s\0";

/// The maximum nesting depth of messages: a level of a CRD's schema is up to two of them.
const DEEPEST: usize = 128;

/// True if a Content-Type is this one.
pub(super) fn is(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim() == MEDIA
}

/// The error of a body that is no such message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It shows no kind.
    Envelope(String),
    /// The message inside is broken: its apiVersion and kind.
    Object(String, String),
}

/// The words for bytes that end too early, also for others that make no sense.
const UNEXPECTED: &str = "unexpected EOF";

impl Unread {
    /// The error about an object of a resource, or about the options of a deletion.
    pub(super) fn status(self, resource: &Resource, body: &[u8], deletes: bool) -> Box<Status> {
        match self {
            Self::Envelope(why) if deletes => Status::bad_request(why),
            Self::Envelope(why) => envelope::unrecognized(resource, body, &why),
            Self::Object(..) if deletes => Status::bad_request(UNEXPECTED),
            Self::Object(api_version, kind) => {
                let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
                let gvk = envelope::Gvk {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind,
                };
                envelope::unhandled(&gvk, resource, UNEXPECTED)
            }
        }
    }
}

/// The body as JSON; `None` when its kind is not in the table or it holds fields that are newer than the table.
///
/// # Errors
/// The body is not such a message.
pub(super) fn to_json(body: &[u8]) -> std::result::Result<Option<Value>, Unread> {
    let bad = || Unread::Envelope(UNEXPECTED.to_owned());
    let message_of = body.strip_prefix(MAGIC).ok_or_else(|| {
        Unread::Envelope(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                .to_owned(),
        )
    })?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(message_of) {
        match field.ok_or_else(bad)? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields(meta) {
                    match field.ok_or_else(bad)? {
                        (1, Wire::Bytes(text)) => api_version = text_of(text).ok_or_else(bad)?,
                        (2, Wire::Bytes(text)) => kind = text_of(text).ok_or_else(bad)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let definition = definition(group, version, &kind);
    let Some(numbers) = numbers(&definition) else {
        return Ok(None);
    };
    let mut object = Map::new();
    match message(
        raw,
        numbers,
        &crate::kinds::definition(&definition),
        &mut object,
        DEEPEST,
    ) {
        Ok(()) => {}
        Err(DecodeError::Unknown) => return Ok(None),
        Err(DecodeError::Malformed) => return Err(Unread::Object(api_version, kind)),
    }
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Some(Value::Object(object)))
}

/// The definition of a kind.
fn definition(group: &str, version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions".to_owned();
    }
    match group.split('.').next().unwrap_or_default() {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions" => format!("{EXTENSIONS}apiextensions.{version}.{kind}"),
        "apiregistration" => format!("{AGGREGATOR}apiregistration.{version}.{kind}"),
        package => format!("io.k8s.api.{package}.{version}.{kind}"),
    }
}

/// The reason why a message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecodeError {
    Malformed,
    Unknown,
}

fn message(
    bytes: &[u8],
    numbers: &Numbers,
    schema: &Schema,
    into: &mut Map<String, Value>,
    depth: usize,
) -> std::result::Result<(), DecodeError> {
    if depth == 0 {
        return Err(DecodeError::Malformed);
    }
    for field in Fields(bytes) {
        let (number, wire) = field.ok_or(DecodeError::Malformed)?;
        let name = match numbers.get(&number) {
            Some(Field::Named(name)) => *name,
            Some(Field::Inlined(inner)) => {
                let inner = TABLE.get(inner).ok_or(DecodeError::Unknown)?;
                message(wire.bytes()?, inner, schema, into, depth - 1)?;
                continue;
            }
            // A newer client sends newer fields even when they are empty.
            None if wire.is_zero() => continue,
            None | Some(Field::Wrapped(_)) => return Err(DecodeError::Unknown),
        };
        let node = schema.properties.get(name).ok_or(DecodeError::Unknown)?;
        if node.kind == Type::Array {
            let list = into.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let (Value::Array(list), Some(items)) = (list, &node.items) else {
                return Err(DecodeError::Unknown);
            };
            list.push(value(wire, items, depth - 1)?);
        } else if let Some(values) = node.additional.as_ref().filter(|_| node.properties.is_empty()) {
            let map = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                let (key, value) = entry(wire.bytes()?, values, depth - 1)?;
                map.insert(key, value);
            }
        } else {
            into.insert(name.to_owned(), value(wire, node, depth - 1)?);
        }
    }
    Ok(())
}

/// An entry of a map: key and value.
fn entry(bytes: &[u8], node: &Schema, depth: usize) -> std::result::Result<(String, Value), DecodeError> {
    let (mut key, mut found) = (String::new(), None);
    for field in Fields(bytes) {
        match field.ok_or(DecodeError::Malformed)? {
            (1, Wire::Bytes(text)) => key = text_of(text).ok_or(DecodeError::Malformed)?,
            (2, wire) => found = Some(value(wire, node, depth)?),
            _ => {}
        }
    }
    let found = found.unwrap_or_else(|| match node.kind {
        Type::String => Value::from(""),
        _ => Value::Null,
    });
    Ok((key, found))
}

fn value(wire: Wire<'_>, node: &Schema, depth: usize) -> std::result::Result<Value, DecodeError> {
    let leaf = node
        .definition
        .as_deref()
        .and_then(|name| name.rsplit('.').next());
    match leaf {
        Some("Time" | "MicroTime") => return time(wire.bytes()?, leaf == Some("MicroTime")),
        Some("Quantity") => return Ok(inner(wire.bytes()?, 1)?.map_or(Value::Null, Value::from)),
        Some("IntOrString") => return int_or_string(wire.bytes()?),
        Some("RawExtension" | "FieldsV1" | "JSON") => {
            let raw = inner(wire.bytes()?, 1)?.unwrap_or_default();
            if raw.is_empty() {
                return Ok(Value::Null);
            }
            return read::json::Node::parse(raw.as_bytes())
                .map(read::json::Node::into_value)
                .map_err(|_| DecodeError::Malformed);
        }
        Some("JSONSchemaProps") => return schema_props(wire.bytes()?, depth),
        Some("JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray") => {
            return schema_or(wire.bytes()?, leaf.unwrap_or_default(), depth);
        }
        _ => {}
    }
    match (node.kind, wire) {
        (Type::String, Wire::Bytes(bytes)) if node.format.as_deref() == Some("byte") => {
            Ok(STANDARD.encode(bytes).into())
        }
        (Type::String, Wire::Bytes(bytes)) => text_of(bytes).map(Value::from).ok_or(DecodeError::Malformed),
        // Negative numbers come as their two's complement.
        (Type::Integer, Wire::Number(number)) => Ok(number.cast_signed().into()),
        (Type::Boolean, Wire::Number(number)) => Ok((number != 0).into()),
        (Type::Number, Wire::Double(number)) => Ok(read::json::number(&number.to_string())),
        // A list inside a map has a message of its own around it.
        (Type::Array, Wire::Bytes(bytes)) => {
            let items = node.items.as_ref().ok_or(DecodeError::Unknown)?;
            let mut list = Vec::new();
            for field in Fields(bytes) {
                let (_, wire) = field.ok_or(DecodeError::Malformed)?;
                list.push(value(
                    wire,
                    items,
                    depth.checked_sub(1).ok_or(DecodeError::Malformed)?,
                )?);
            }
            Ok(list.into())
        }
        (Type::Object, Wire::Bytes(bytes)) => {
            let numbers = node
                .definition
                .as_deref()
                .and_then(numbers)
                .ok_or(DecodeError::Unknown)?;
            let mut map = Map::new();
            message(bytes, numbers, node, &mut map, depth)?;
            Ok(Value::Object(map))
        }
        _ => Err(DecodeError::Malformed),
    }
}

/// A schema of a CRD: its definition is cut where it holds itself.
fn schema_props(bytes: &[u8], depth: usize) -> std::result::Result<Value, DecodeError> {
    let numbers = numbers(SCHEMA_PROPS).ok_or(DecodeError::Unknown)?;
    let mut map = Map::new();
    let schema = crate::kinds::definition(SCHEMA_PROPS);
    message(bytes, numbers, &schema, &mut map, depth)?;
    Ok(Value::Object(map))
}

/// A schema of a CRD or, in its place, a boolean, a list of schemas, or a list of texts. Sources: the types'
/// `MarshalJSON`.
fn schema_or(bytes: &[u8], leaf: &str, depth: usize) -> std::result::Result<Value, DecodeError> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Malformed)?;
    let (mut schema, mut allows, mut list) = (None, false, Vec::new());
    for field in Fields(bytes) {
        match (leaf, field.ok_or(DecodeError::Malformed)?) {
            ("JSONSchemaPropsOrBool", (1, Wire::Number(number))) => allows = number != 0,
            ("JSONSchemaPropsOrBool", (2, Wire::Bytes(bytes))) | (_, (1, Wire::Bytes(bytes))) => {
                schema = Some(schema_props(bytes, depth)?);
            }
            ("JSONSchemaPropsOrArray", (2, Wire::Bytes(bytes))) => list.push(schema_props(bytes, depth)?),
            (_, (2, Wire::Bytes(bytes))) => list.push(text_of(bytes).ok_or(DecodeError::Malformed)?.into()),
            (_, (_, wire)) if wire.is_zero() => {}
            _ => return Err(DecodeError::Unknown),
        }
    }
    Ok(match (schema, leaf) {
        (None, "JSONSchemaPropsOrBool") => allows.into(),
        (Some(schema), "JSONSchemaPropsOrBool") => schema,
        (Some(schema), _) if list.is_empty() => schema,
        (None, "JSONSchemaPropsOrArray") if list.is_empty() => Value::Null,
        _ => list.into(),
    })
}

/// The text of one field of a message.
fn inner(bytes: &[u8], wanted: u64) -> std::result::Result<Option<String>, DecodeError> {
    for field in Fields(bytes) {
        if let (number, Wire::Bytes(text)) = field.ok_or(DecodeError::Malformed)?
            && number == wanted
        {
            return text_of(text).map(Some).ok_or(DecodeError::Malformed);
        }
    }
    Ok(None)
}

/// Seconds and nanoseconds; nothing at all is no time.
fn time(bytes: &[u8], micro: bool) -> std::result::Result<Value, DecodeError> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field.ok_or(DecodeError::Malformed)? {
            (1, Wire::Number(number)) => seconds = number.cast_signed(),
            (2, Wire::Number(number)) => nanos = i32::try_from(number).map_err(|_| DecodeError::Malformed)?,
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| DecodeError::Malformed)?;
    let format = if micro {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(time.strftime(format).to_string().into())
}

/// Type, number, text.
fn int_or_string(bytes: &[u8]) -> std::result::Result<Value, DecodeError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field.ok_or(DecodeError::Malformed)? {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = text_of(bytes).ok_or(DecodeError::Malformed)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// A value on the wire.
#[derive(Clone, Copy, PartialEq)]
enum Wire<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

crate::hidden::without_content!(Wire<'_>);

impl<'a> Wire<'a> {
    const fn bytes(self) -> std::result::Result<&'a [u8], DecodeError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(DecodeError::Malformed),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::Number(number) => number == 0,
            Self::Double(number) => number == 0.0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

/// The fields of a message: number and value, `None` once where the bytes make no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Double(f64::from(f32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((key >> 3, wire))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}
