//! The types of expressions, as far as a schema and the common functions define them. An unknown one is `Dyn`,
//! which fits everywhere.

use std::sync::Arc;

use crate::schema::{Schema, Type};

/// The maximum size of a request, in bytes: it bounds strings and lists without a limit of their own.
pub(super) const REQUEST: u64 = 3 << 20;

/// A type. Strings, lists and maps know how large they may be.
#[derive(Clone, Debug)]
pub(super) enum Ty {
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    Null,
    Bytes,
    Duration,
    Timestamp,
    String(u64),
    List(Box<Self>, u64),
    Map(Box<Self>, u64),
    Object(Arc<Schema>),
}

impl Ty {
    /// The type of a value of a schema.
    pub(super) fn of(schema: &Arc<Schema>) -> Self {
        let rules = schema.rules.as_deref();
        match schema.kind {
            Type::Boolean => Self::Bool,
            Type::Integer => Self::Int,
            Type::Number => Self::Double,
            Type::String => match schema.format.as_deref() {
                Some("date" | "date-time") => Self::Timestamp,
                Some("duration") => Self::Duration,
                Some("byte") => Self::Bytes,
                _ => {
                    let limit = rules.and_then(|rules| rules.max_length);
                    let longest = rules
                        .map(|rules| &rules.one_of_values)
                        .filter(|values| !values.is_empty())
                        .and_then(|values| {
                            values
                                .iter()
                                .filter_map(|value| value.as_str())
                                .map(str::len)
                                .max()
                        });
                    Self::String(
                        longest.map_or_else(|| limit.unwrap_or(REQUEST - 2), |longest| longest as u64),
                    )
                }
            },
            Type::Array => match &schema.items {
                Some(items) => Self::List(Box::new(Self::of(items)), longest_list(schema)),
                None => Self::Dyn,
            },
            Type::Object => match &schema.additional {
                Some(values) => Self::Map(Box::new(Self::of(values)), longest_map(schema)),
                None if schema.preserve_unknown => Self::Dyn,
                None => Self::Object(schema.clone()),
            },
            Type::Any | Type::IntOrString => Self::Dyn,
        }
    }

    /// The checker's name of it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Dyn => "dyn".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Uint => "uint".to_owned(),
            Self::Double => "double".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::String(_) => "string".to_owned(),
            Self::List(items, _) => format!("list({})", items.name()),
            Self::Map(values, _) => format!("map(string, {})", values.name()),
            Self::Object(_) => "object".to_owned(),
        }
    }

    /// The limit of its loop steps or characters.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::String(most) | Self::List(_, most) | Self::Map(_, most) => *most,
            _ => 1,
        }
    }

    /// True if a value of one can be compared with or taken for one of the other.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) | (Self::Null, _) | (_, Self::Null) => true,
            (Self::List(a, _), Self::List(b, _)) | (Self::Map(a, _), Self::Map(b, _)) => a.fits(b),
            (Self::Object(_), Self::Map(..)) | (Self::Map(..), Self::Object(_)) => true,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }
}

/// Items that a list may have: its limit, or how many fit into a request.
pub(crate) fn longest_list(schema: &Schema) -> u64 {
    let limit = schema.rules.as_deref().and_then(|rules| rules.max_items);
    limit.unwrap_or_else(|| {
        let least = schema.items.as_deref().map_or(1, smallest);
        (REQUEST - 2) / (least + 1)
    })
}

/// Entries that a map may have.
pub(crate) fn longest_map(schema: &Schema) -> u64 {
    let limit = schema.rules.as_deref().and_then(|rules| rules.max_properties);
    limit.unwrap_or_else(|| {
        let least = schema.additional.as_deref().map_or(1, smallest);
        // A name, its quotes, a colon and a comma.
        (REQUEST - 2) / (least + 6)
    })
}

/// Bytes that the smallest value of a schema has as JSON.
fn smallest(schema: &Schema) -> u64 {
    match schema.kind {
        Type::Boolean => 4,
        Type::String | Type::Array => 2,
        Type::Object => {
            2 + schema
                .required
                .iter()
                .filter_map(|name| Some((name, schema.properties.get(name)?)))
                .filter(|(_, field)| field.default.is_none())
                .map(|(name, field)| name.len() as u64 + 4 + smallest(field))
                .sum::<u64>()
        }
        Type::Any | Type::Integer | Type::Number | Type::IntOrString => 1,
    }
}
