//! The largest and the smallest values of a schema, by the size of a request. Source: the declared types of CEL in
//! k8s.io/apiserver.

use super::types::is_free;
use crate::schema::{Schema, Type};

/// The maximum size of a request, in bytes: it bounds strings and lists without a limit of their own.
const REQUEST: u64 = 3 << 20;

/// Bytes of the longest duration and date-time as JSON.
const LONGEST_TIME: u64 = 32;

/// Bytes of a date as JSON.
const DATE: u64 = 12;

/// The number of values of a schema in an object whose lists and maps have no limit.
pub(super) fn most(schema: &Schema) -> u64 {
    REQUEST / (smallest(schema) + 1)
}

/// Characters, items or entries of the largest value; 0 for what has none.
pub(super) fn largest(schema: &Schema) -> u64 {
    let rules = schema.rules.as_deref();
    match schema.kind {
        Type::String => {
            let limit = rules.and_then(|rules| rules.max_length);
            let format = schema.format.as_deref().unwrap_or_default();
            match (format, limit) {
                ("duration" | "date-time", _) => LONGEST_TIME,
                ("date", _) => DATE,
                ("byte", Some(limit)) => limit,
                // A character has up to four bytes.
                (_, Some(limit)) => limit.saturating_mul(4),
                _ => {
                    let words = rules.map(|rules| &rules.one_of_values).into_iter().flatten();
                    let longest = words
                        .filter_map(|word| word.as_str())
                        .map(|word| word.len() as u64)
                        .max();
                    longest.unwrap_or(REQUEST - 2)
                }
            }
        }
        Type::Array => rules.and_then(|rules| rules.max_items).unwrap_or_else(|| {
            let least = schema.items.as_deref().map_or(1, smallest);
            (REQUEST - 2) / (least + 1)
        }),
        Type::Object => match schema.additional.as_ref().filter(|values| !is_free(values)) {
            // A name, its quotes, a colon and a comma.
            Some(values) => rules
                .and_then(|rules| rules.max_properties)
                .unwrap_or_else(|| (REQUEST - 2) / (smallest(values) + 6)),
            None => 0,
        },
        Type::IntOrString => REQUEST - 2,
        Type::Any | Type::Integer | Type::Number | Type::Boolean => 0,
    }
}

/// Bytes that the smallest value of a schema has as JSON.
fn smallest(schema: &Schema) -> u64 {
    match schema.kind {
        Type::Boolean => 4,
        Type::String => match schema.format.as_deref() {
            Some("duration") => 3,
            Some("date") => DATE,
            Some("date-time") => 21,
            _ => 2,
        },
        Type::Array => 2,
        Type::Object if schema.additional.is_some() => 2,
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
