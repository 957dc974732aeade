//! Responses in protocol buffers: JSON values written by the same table.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResourceList, APIVersions, ListMeta, Status,
};
use serde_json::{Map, Value};

use super::{MAGIC, definition};
use crate::{
    json,
    openapi::protobuf::Message,
    schema::{
        Schema, Type,
        builtin::{Field, Numbers, Root, SCHEMA_PROPS, TABLE, numbers},
    },
};

/// A message behind the prefix.
pub(in crate::http) struct Encoded {
    pub(in crate::http) bytes: Vec<u8>,
    /// False when fields were left out that are newer than the table.
    pub(in crate::http) is_whole: bool,
}

crate::hidden::without_content!(Encoded);

/// A value with apiVersion and kind; `None` when its kind is not in the table.
pub(in crate::http) fn from_json(value: &Value) -> Option<Encoded> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let mut encoder = Encoder { is_whole: true };
    let raw = encoder.kind(api_version, kind, value.as_object()?)?;
    let mut meta = Message::default();
    meta.bytes(1, api_version.as_bytes());
    meta.bytes(2, kind.as_bytes());
    let mut unknown = Message::default();
    unknown.message(1, &meta);
    unknown.message(2, &raw);
    unknown.bytes(3, b"");
    unknown.bytes(4, b"");
    Some(Encoded {
        bytes: [MAGIC, &unknown.into_bytes()].concat(),
        is_whole: encoder.is_whole,
    })
}

/// An event of a watch: its length, then what it says of the object. Source: the length-delimited frames of
/// k8s.io/apimachinery, which hold a WatchEvent without prefix.
pub(in crate::http) fn event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let mut raw = Message::default();
    raw.bytes(1, &from_json(object)?.bytes);
    let mut event = Message::default();
    event.bytes(1, kind.as_bytes());
    event.message(2, &raw);
    let event = event.into_bytes();
    let length = u32::try_from(event.len()).ok()?;
    Some([&length.to_be_bytes()[..], &event].concat())
}

struct Encoder {
    is_whole: bool,
}

impl Encoder {
    /// The message of an object, a list of objects, or metadata alone.
    fn kind(&mut self, api_version: &str, kind: &str, object: &Map<String, Value>) -> Option<Message> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let without_group = match (group, kind) {
            ("", "Status") => Some(Root::of::<Status>()),
            ("", "APIVersions") => Some(Root::of::<APIVersions>()),
            ("", "APIGroupList") => Some(Root::of::<APIGroupList>()),
            ("", "APIGroup") => Some(Root::of::<APIGroup>()),
            ("", "APIResourceList") => Some(Root::of::<APIResourceList>()),
            _ => None,
        };
        if let Some(root) = without_group {
            return self.message(object, &root.schema());
        }
        if (group, kind) == ("meta.k8s.io", "PartialObjectMetadata") {
            let mut partial = Message::default();
            if let Some(Value::Object(metadata)) = object.get("metadata") {
                partial.message(1, &self.message(metadata, &Root::METADATA.schema())?);
            }
            return Some(partial);
        }
        if let Some(schema) = known(&definition(group, version, kind)) {
            return self.message(object, &schema);
        }
        let mut list = Message::default();
        if let Some(Value::Object(metadata)) = object.get("metadata") {
            list.message(1, &self.message(metadata, &Root::of::<ListMeta>().schema())?);
        }
        let kind = kind.strip_suffix("List")?;
        for item in object
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            list.message(2, &self.kind(api_version, kind, item.as_object()?)?);
        }
        Some(list)
    }

    /// The message of a definition.
    fn message(&mut self, object: &Map<String, Value>, schema: &Schema) -> Option<Message> {
        let numbers = numbers(schema.definition.as_deref()?)?;
        let is_known = |name: &str| {
            matches!(name, "apiVersion" | "kind")
                || has(numbers, name)
                || !schema.properties.contains_key(name)
        };
        self.is_whole &= object.keys().all(|name| is_known(name));
        let mut message = Message::default();
        self.fields(object, numbers, schema, &mut message)?;
        Some(message)
    }

    fn fields(
        &mut self,
        object: &Map<String, Value>,
        numbers: &Numbers,
        schema: &Schema,
        into: &mut Message,
    ) -> Option<()> {
        for (number, field) in numbers {
            let number = u32::try_from(*number).ok()?;
            match field {
                Field::Inlined(inner) => {
                    let mut message = Message::default();
                    self.fields(object, TABLE.get(inner)?, schema, &mut message)?;
                    into.message(number, &message);
                }
                Field::Wrapped(name) => {
                    if let (Some(value), Some(node)) = (object.get(*name), schema.properties.get(*name)) {
                        let mut list = Message::default();
                        self.field(1, value, node, &mut list)?;
                        into.message(number, &list);
                    }
                }
                Field::Named(name) => match (object.get(*name), schema.properties.get(*name)) {
                    // Unset fields are absent, and nothing else is null.
                    (None | Some(Value::Null), _) | (_, None) => {}
                    (Some(value), Some(node)) => self.field(number, value, node, into)?,
                },
            }
        }
        Some(())
    }

    fn field(&mut self, number: u32, value: &Value, node: &Schema, into: &mut Message) -> Option<()> {
        match (value, &node.items, &node.additional) {
            (Value::Array(list), Some(items), _) if node.kind == Type::Array => {
                for item in list {
                    self.value(number, item, items, into)?;
                }
            }
            (Value::Object(map), _, Some(values)) if node.properties.is_empty() => {
                for (key, value) in map {
                    let mut entry = Message::default();
                    entry.bytes(1, key.as_bytes());
                    self.value(2, value, values, &mut entry)?;
                    into.message(number, &entry);
                }
            }
            _ => self.value(number, value, node, into)?,
        }
        Some(())
    }

    fn value(&mut self, number: u32, value: &Value, node: &Schema, into: &mut Message) -> Option<()> {
        let leaf = node
            .definition
            .as_deref()
            .and_then(|name| name.rsplit('.').next())
            .unwrap_or_default();
        let message = match (leaf, value) {
            ("Time" | "MicroTime", _) => time(value)?,
            ("Quantity", _) => {
                let mut message = Message::default();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                message.bytes(1, text.as_bytes());
                message
            }
            ("IntOrString", _) => int_or_string(value),
            ("RawExtension" | "FieldsV1" | "JSON", _) => {
                let mut message = Message::default();
                message.bytes(1, &json::compact(value));
                message
            }
            ("JSONSchemaProps", Value::Object(schema)) => self.schema_props(schema)?,
            ("JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray", _) => {
                self.schema_or(leaf, value)?
            }
            _ => return self.plain(number, value, node, into),
        };
        into.message(number, &message);
        Some(())
    }

    fn plain(&mut self, number: u32, value: &Value, node: &Schema, into: &mut Message) -> Option<()> {
        match (node.kind, value) {
            (Type::String, Value::String(text)) if node.format.as_deref() == Some("byte") => {
                into.bytes(number, &STANDARD.decode(text).ok()?);
            }
            (Type::String, Value::String(text)) => into.bytes(number, text.as_bytes()),
            // Negative numbers are written as their two's complement.
            (Type::Integer, Value::Number(value)) => into.number(number, value.as_i64()?.cast_unsigned()),
            (Type::Boolean, Value::Bool(value)) => into.number(number, u64::from(*value)),
            (Type::Number, Value::Number(value)) => into.double(number, value.as_f64()?),
            // A list inside a map has a message of its own around it.
            (Type::Array, Value::Array(list)) => {
                let items = node.items.as_ref()?;
                let mut message = Message::default();
                for item in list {
                    self.value(1, item, items, &mut message)?;
                }
                into.message(number, &message);
            }
            (Type::Object, Value::Object(object)) => {
                let message = self.message(object, node)?;
                into.message(number, &message);
            }
            // An item or an entry without a value.
            (_, Value::Null) => into.bytes(number, b""),
            _ => return None,
        }
        Some(())
    }

    /// A schema of a CRD: its definition is cut where it holds itself.
    fn schema_props(&mut self, schema: &Map<String, Value>) -> Option<Message> {
        self.message(schema, &crate::kinds::definition(SCHEMA_PROPS))
    }

    /// A schema of a CRD, or a boolean, a list of schemas, or a list of texts in its place.
    fn schema_or(&mut self, leaf: &str, value: &Value) -> Option<Message> {
        let mut message = Message::default();
        match (leaf, value) {
            ("JSONSchemaPropsOrBool", Value::Bool(allows)) => message.number(1, u64::from(*allows)),
            ("JSONSchemaPropsOrBool", Value::Object(schema)) => {
                message.number(1, 1);
                message.message(2, &self.schema_props(schema)?);
            }
            (_, Value::Object(schema)) => message.message(1, &self.schema_props(schema)?),
            ("JSONSchemaPropsOrArray", Value::Array(schemas)) => {
                for schema in schemas {
                    message.message(2, &self.schema_props(schema.as_object()?)?);
                }
            }
            (_, Value::Array(texts)) => {
                for text in texts {
                    message.bytes(2, text.as_str()?.as_bytes());
                }
            }
            _ => return None,
        }
        Some(message)
    }
}

/// The schema of a definition that is in the table.
fn known(definition: &str) -> Option<std::sync::Arc<Schema>> {
    numbers(definition)?;
    Some(crate::kinds::definition(definition))
}

/// True if a message has the field, itself or by what is inlined.
pub(super) fn has(numbers: &Numbers, name: &str) -> bool {
    numbers.values().any(|field| match field {
        Field::Named(one) | Field::Wrapped(one) => *one == name,
        Field::Inlined(inner) => TABLE.get(inner).is_some_and(|inner| has(inner, name)),
    })
}

/// Seconds and nanoseconds; no time is nothing at all.
fn time(value: &Value) -> Option<Message> {
    let mut message = Message::default();
    if let Some(text) = value.as_str() {
        let time: jiff::Timestamp = text.parse().ok()?;
        message.number(1, time.as_second().cast_unsigned());
        message.number(2, u64::from(time.subsec_nanosecond().unsigned_abs()));
    }
    Some(message)
}

/// Type, number, text.
fn int_or_string(value: &Value) -> Message {
    let mut message = Message::default();
    message.number(1, u64::from(value.is_string()));
    message.number(2, value.as_i64().unwrap_or_default().cast_unsigned());
    message.bytes(3, value.as_str().unwrap_or_default().as_bytes());
    message
}
