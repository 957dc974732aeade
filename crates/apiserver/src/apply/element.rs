//! One step of a path to an owned field, as `FieldsV1` writes it: `f:name`, `k:{"name":"app"}`, `v:"x"`, `i:0`.

use std::fmt;

use serde_json::{Map, Number, Value};

/// A step. Keys and values are kept as their JSON text, which is the same for equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A field of an object, a key of a map.
    Field(Box<str>),
    /// The item of a list that has these values in its key fields; JSON object.
    Key(Box<str>),
    /// The item of a set; JSON.
    Value(Box<str>),
    /// The item at this place.
    Index(i64),
}

impl Element {
    /// The step to a field.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The step to a list item with these key fields.
    #[must_use]
    pub fn key(fields: Map<String, Value>) -> Self {
        let fields: Map<String, Value> = fields
            .into_iter()
            .map(|(name, value)| (name, canonical(value)))
            .collect();
        Self::Key(Value::Object(fields).to_string().into())
    }

    /// The step to a set's item.
    #[must_use]
    pub fn value(value: &Value) -> Self {
        Self::Value(canonical(value.clone()).to_string().into())
    }

    /// Reads a key of `FieldsV1`; `Some(None)` for an unknown kind of step, which is skipped; `None` when it is invalid.
    pub fn parse(text: &str) -> Option<Option<Self>> {
        let (kind, rest) = text.split_once(':')?;
        Some(Some(match kind {
            "f" => Self::field(rest),
            "k" => match serde_json::from_str(rest) {
                Ok(Value::Object(fields)) => Self::key(fields),
                _ => return None,
            },
            "v" => Self::value(&serde_json::from_str(rest).ok()?),
            "i" => Self::Index(rest.parse().ok()?),
            _ => return Some(None),
        }))
    }

    /// The key of `FieldsV1`.
    #[must_use]
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(fields) => ["k:", fields].concat(),
            Self::Value(value) => ["v:", value].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// As conflicts and errors write it: `.spec`, `[name="app"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// `2.0` is `2`: numbers that are equal are written alike.
fn canonical(value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                Value::Number(Number::from(float as i64))
            }
            _ => Value::Number(number),
        },
        other => other,
    }
}
