//! The CEL value of a JSON value: typed by the schema, with field names that are identifiers.

use std::{collections::HashMap, sync::Arc, sync::LazyLock};

use kube_cel::cel::{
    Context, Program, Value as Cel,
    objects::{Key, Map},
};
use serde_json::Value;

use super::budget::weight;
use crate::schema::{Schema, Type};

/// `self` and `oldSelf` of a node.
pub(super) struct Variables {
    pub(super) this: Cel,
    pub(super) old: Option<Cel>,
    /// Of both.
    pub(super) weight: u64,
}

impl Variables {
    /// O(value + old).
    pub(super) fn of(value: &Value, old: Option<&Value>, schema: &Schema) -> Self {
        let this = typed(value, schema);
        let old = old.map(|old| typed(old, schema));
        let weight = weight(&this) + old.as_ref().map_or(0, weight);
        Self { this, old, weight }
    }
}

/// Words that are no identifiers in CEL.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A field name as rules write it; `None`: rules cannot reach it. Source: the escaping rules of CRD validation (KEP-2876).
pub(super) fn identifier(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '.';
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if !name.starts_with(starts) || !name.chars().all(goes_on) {
        return None;
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return Some(name.to_owned());
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}

/// A value of a schema.
fn typed(value: &Value, schema: &Schema) -> Cel {
    match value {
        Value::Object(fields) => {
            let is_struct = schema.additional.is_none();
            let mut map = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                let Some(field) = schema.field(name) else {
                    if schema.preserve_unknown || schema.kind == Type::Any {
                        map.insert(key(name.clone()), untyped(value));
                    }
                    continue;
                };
                if schema.embedded && name == "metadata" {
                    map.insert(key(name.clone()), names_of(value));
                    continue;
                }
                let name = if is_struct {
                    identifier(name)
                } else {
                    Some(name.clone())
                };
                if let Some(name) = name {
                    map.insert(key(name), typed(value, field));
                }
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
        Value::Array(items) => match schema.items.as_deref() {
            Some(inner) => Cel::List(Arc::new(items.iter().map(|item| typed(item, inner)).collect())),
            None => untyped(value),
        },
        Value::Number(number) if schema.kind == Type::Number => {
            Cel::Float(number.as_f64().unwrap_or_default())
        }
        Value::String(text) if schema.kind == Type::String => formatted(text, schema.format.as_deref()),
        other => untyped(other),
    }
}

/// Of metadata rules see the names.
fn names_of(metadata: &Value) -> Cel {
    let map = ["name", "generateName"]
        .into_iter()
        .filter_map(|name| Some((key(name.to_owned()), untyped(metadata.get(name)?))))
        .collect();
    Cel::Map(Map { map: Arc::new(map) })
}

fn key(name: String) -> Key {
    Key::String(Arc::new(name))
}

/// A value without a schema.
fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let map = fields
                .iter()
                .map(|(name, value)| (key(name.clone()), untyped(value)))
                .collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

static TIMESTAMP: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("timestamp(text)").ok());
static DURATION: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("duration(text)").ok());

/// Strings of some formats are times, durations and bytes to rules.
fn formatted(text: &str, format: Option<&str>) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    let made = |program: &Option<Program>, text: String| {
        let mut context = Context::default();
        context.add_variable_from_value("text", text);
        program
            .as_ref()
            .and_then(|program| program.execute(&context).ok())
            .unwrap_or_else(plain)
    };
    match format {
        Some("date-time") => made(&TIMESTAMP, text.to_owned()),
        Some("date") => made(&TIMESTAMP, format!("{text}T00:00:00Z")),
        Some("duration") => made(&DURATION, text.to_owned()),
        Some("byte") => bytes(text).map_or_else(plain, |bytes| Cel::Bytes(Arc::new(bytes))),
        _ => plain(),
    }
}

/// Base64 as it is checked by the format `byte`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{bytes, identifier};

    #[test]
    fn names_are_escaped_as_rules_write_them() {
        for (name, escaped) in [
            ("plain", Some("plain")),
            ("my_field", Some("my_field")),
            ("a__b", Some("a__underscores__b")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("1st", None),
            ("a b", None),
        ] {
            assert_eq!(identifier(name).as_deref(), escaped, "{name}");
        }
    }

    #[test]
    fn base64_becomes_bytes() {
        assert_eq!(bytes("aGk="), Some(b"hi".to_vec()));
        assert_eq!(bytes("*"), None);
    }
}
