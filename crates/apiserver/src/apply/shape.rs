//! The division of a value into fields: the schema distinguishes a field from a value with fields of its own.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::element::Element;
use crate::schema::{
    ListKind, Schema, Type,
    builtin::{self, Root},
};

/// The declaration of a value.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A node of the schema; `object`: with apiVersion, kind and metadata, whatever the schema declares.
    Node {
        /// The node.
        schema: Arc<Schema>,
        /// True if it is a whole object.
        object: bool,
    },
    /// Nothing is declared, and everything may be there: maps have fields, lists are one field.
    Free,
    /// Nothing is declared, and the value is one field.
    Opaque,
    /// A plain string.
    Text,
}

/// The form of a value for ownership.
#[derive(Clone, Debug)]
pub enum Form {
    /// A scalar.
    Scalar,
    /// A list that is one field.
    AtomicList,
    /// A map that is one field.
    AtomicMap,
    /// A list whose items are fields: scalars without `keys`, objects with.
    List {
        /// Shape of the items.
        items: Shape,
        /// The fields that identify items.
        keys: Arc<[String]>,
    },
    /// A map whose entries are fields.
    Map,
}

impl Form {
    /// True if two values are of one form: then they are merged, otherwise replaced.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The schema of metadata, the same for all kinds.
static METADATA: LazyLock<Arc<Schema>> = LazyLock::new(|| Root::METADATA.schema());

impl Shape {
    /// The shape of whole objects of a kind.
    #[must_use]
    pub fn object(schema: &Arc<Schema>) -> Self {
        Self::Node {
            schema: Arc::clone(schema),
            object: true,
        }
    }

    fn node(schema: &Arc<Schema>) -> Self {
        let schema = builtin::resolve(schema);
        Self::Node {
            object: schema.embedded,
            schema,
        }
    }

    /// The shape of an entry, and whether it is a declared field (not just a key of a map); `None`: no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<(Self, bool)> {
        let Self::Node { schema, object } = self else {
            return match self {
                Self::Free => Some((Self::Free, false)),
                Self::Opaque => Some((Self::Opaque, false)),
                _ => None,
            };
        };
        match name {
            "metadata" if *object => {
                return Some((Self::node(&METADATA), true));
            }
            "apiVersion" | "kind" if *object => return Some((Self::Text, true)),
            _ => {}
        }
        if let Some(field) = schema.properties.get(name) {
            return Some((Self::node(field), true));
        }
        if let Some(values) = &schema.additional {
            return Some((Self::node(values), false));
        }
        let open = schema.preserve_unknown || schema.properties.is_empty();
        open.then_some((Self::Free, false))
    }

    /// The form of a value of this shape.
    #[must_use]
    pub fn form(&self, value: &Value) -> Form {
        match self {
            Self::Text => Form::Scalar,
            Self::Opaque => undeclared(value, false),
            Self::Free => undeclared(value, true),
            Self::Node { schema, object } => match schema.kind {
                // Free-form values of built-in kinds are one field, those of custom resources are not.
                Type::Any => undeclared(
                    value,
                    *object || schema.preserve_unknown && schema.definition.is_none(),
                ),
                Type::Object if schema.atomic => Form::AtomicMap,
                Type::Object => Form::Map,
                Type::Array => match (&schema.list, &schema.items) {
                    (ListKind::Map(keys), Some(items)) => Form::List {
                        items: Self::node(items),
                        keys: keys.as_slice().into(),
                    },
                    (ListKind::Set, Some(items)) => Form::List {
                        items: Self::node(items),
                        keys: Arc::default(),
                    },
                    _ => Form::AtomicList,
                },
                _ => Form::Scalar,
            },
        }
    }

    /// The shape of the items of an atomic list.
    #[must_use]
    pub fn items(&self) -> Self {
        match self {
            Self::Node { schema, .. } => schema.items.as_ref().map_or(Self::Opaque, Self::node),
            _ => Self::Opaque,
        }
    }

    /// The shape behind a step of a path, and whether the step is a declared field.
    #[must_use]
    pub fn step(&self, element: &Element) -> (bool, Self) {
        match element {
            Element::Field(name) => match self.field(name) {
                Some((shape, declared)) => (declared, shape),
                None => (false, Self::Opaque),
            },
            _ => (false, self.items()),
        }
    }

    /// The step to an item of a list with `keys`, or the reason why there is none. Absent keys have their default, or are left
    /// out: validation reports the missing ones.
    pub fn element(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        if keys.is_empty() {
            return match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(Element::value(scalar)),
            };
        }
        let item = match item {
            Value::Object(item) => item,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut fields = Map::new();
        for key in keys {
            let value = match item.get(key) {
                Some(value) => Some(value.clone()),
                None => match self {
                    Self::Node { schema, .. } => {
                        schema.properties.get(key).and_then(|field| field.default.clone())
                    }
                    _ => None,
                },
            };
            if let Some(value) = value {
                fields.insert(key.clone(), value);
            }
        }
        Ok(Element::key(fields))
    }

    /// An object of this shape before anything is set: the parts that Go sends even when they are empty.
    #[must_use]
    pub fn zero(&self) -> Map<String, Value> {
        let Self::Node { schema, .. } = self else {
            return Map::new();
        };
        let parts = schema.properties.iter().filter(|(_, part)| part.always);
        parts
            .map(|(name, part)| (name.clone(), Self::zero_value(part)))
            .collect()
    }

    fn zero_value(schema: &Arc<Schema>) -> Value {
        if schema.pointer {
            return Value::Null;
        }
        match schema.kind {
            Type::Object if schema.additional.is_none() => Value::Object(Self::node(schema).zero()),
            Type::String if schema.format.is_none() => "".into(),
            Type::Integer | Type::Number => 0.into(),
            Type::Boolean => false.into(),
            _ => Value::Null,
        }
    }
}

/// The form of an undeclared value.
fn undeclared(value: &Value, maps_have_fields: bool) -> Form {
    match value {
        Value::Array(_) => Form::AtomicList,
        Value::Object(_) | Value::Null if maps_have_fields => Form::Map,
        Value::Object(_) | Value::Null => Form::AtomicMap,
        _ => Form::Scalar,
    }
}

/// The entries of a map; none for anything else.
#[must_use]
pub fn entries(value: Option<&Value>) -> &Map<String, Value> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.and_then(Value::as_object).unwrap_or(&NONE)
}

/// The items of a list; none for anything else.
#[must_use]
pub fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}
