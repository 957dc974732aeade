//! The columns that a CRD declares (`additionalPrinterColumns`).

use serde_json::{Number, Value, json};

use super::jsonpath::Path;
use crate::printer::{NAME, View, duration, seconds};

/// Documentation of `metadata.name`, which is that of every kind; custom resources have no schema for it.
const NAME_IS: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// `columnDefinitions`: the name, then the CRD's.
pub(super) fn columns(given: &[Value]) -> Vec<Value> {
    let name = json!({"name": NAME.name, "type": NAME.kind, "format": NAME.format, "description": NAME_IS, "priority": 0});
    let columns = given.iter().map(|column| {
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
            description => description.to_owned(),
        };
        json!({"name": text("name"), "type": text("type"), "format": text("format"), "description": description,
            "priority": column["priority"].as_i64().unwrap_or_default()})
    });
    std::iter::once(name).chain(columns).collect()
}

/// The cells: the name, then the first value of each column's path; null where there is none or it is of another type.
pub(super) fn cells(given: &[Value], object: &View<'_>) -> Vec<Value> {
    let whole = Value::Object(object.object.clone());
    let cells = given.iter().map(|column| {
        let path = column["jsonPath"].as_str().and_then(Path::parse);
        let found = path.and_then(|path| path.first(&whole).cloned());
        found.map_or(Value::Null, |value| {
            cell(column["type"].as_str().unwrap_or_default(), value, object.now)
        })
    });
    std::iter::once(object.name()).chain(cells).collect()
}

fn cell(kind: &str, value: Value, now: i64) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.into(),
        ("string", other) => other.to_string().into(),
        ("boolean", Value::Bool(flag)) => flag.into(),
        ("integer", Value::Number(number)) => whole(&number),
        ("number", Value::Number(number)) => number.into(),
        ("date", Value::String(time)) => seconds(&time)
            .map_or_else(|| "<invalid>".to_owned(), |then| duration(now - then))
            .into(),
        _ => Value::Null,
    }
}

/// A number without its fraction.
fn whole(number: &Number) -> Value {
    let whole = number.as_i64().or_else(|| {
        // A float that is too large becomes the largest whole number.
        #[allow(clippy::cast_possible_truncation)]
        number.as_f64().map(|float| float as i64)
    });
    whole.map_or(Value::Null, Into::into)
}
