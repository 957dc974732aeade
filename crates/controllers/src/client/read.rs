//! Reads the responses of API servers: each object once, without `metadata.managedFields`.
//!
//! `managedFields` are half of most objects and no decision reads them, so they are skipped while parsing. A list is read item
//! by item: only one item is in memory as JSON at a time, beside the page's bytes. An update without `managedFields` leaves them
//! as they are, so objects read here can be sent back.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// The resourceVersion to watch from.
    pub resource_version: String,
    /// The continue token of the next page; empty on the last one.
    pub next: String,
}

/// Reads one object.
///
/// # Errors
/// The bytes are no JSON object.
pub fn object(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Object.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads a page of a list and passes each item to `each`.
///
/// # Errors
/// The bytes are no list.
pub fn list(bytes: &[u8], each: &mut dyn FnMut(Value)) -> serde_json::Result<ListMeta> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let meta = List(each).deserialize(&mut reader)?;
    reader.end()?;
    Ok(meta)
}

/// Reads one line of a watch: its type (ADDED …) and its object.
///
/// # Errors
/// The bytes are no watch event.
pub fn event(line: &[u8]) -> serde_json::Result<(String, Value)> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let event = Event.deserialize(&mut reader)?;
    reader.end()?;
    Ok(event)
}

struct Object;

impl<'de> DeserializeSeed<'de> for Object {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = if key == "metadata" {
                map.next_value_seed(Metadata)?
            } else {
                map.next_value()?
            };
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

struct Metadata;

impl<'de> DeserializeSeed<'de> for Metadata {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "managedFields" {
                map.next_value::<IgnoredAny>()?;
            } else {
                object.insert(key, map.next_value()?);
            }
        }
        Ok(Value::Object(object))
    }
}

struct List<'a>(&'a mut dyn FnMut(Value));

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ListMeta;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<ListMeta, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ListMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListMeta, A::Error> {
        let mut meta = ListMeta::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => {
                    let value: Value = map.next_value()?;
                    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
                    meta = ListMeta {
                        resource_version: text("resourceVersion"),
                        next: text("continue"),
                    };
                }
                "items" => map.next_value_seed(Items(&mut *self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(meta)
    }
}

struct Items<'a>(&'a mut dyn FnMut(Value));

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(Object)? {
            (self.0)(item);
        }
        Ok(())
    }
}

struct Event;

impl<'de> DeserializeSeed<'de> for Event {
    type Value = (String, Value);

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Event {
    type Value = (String, Value);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (String::new(), Value::Null);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => kind = map.next_value()?,
                "object" => object = map.next_value_seed(Object)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok((kind, object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_skipped_and_everything_else_is_kept() {
        let whole = json!({"metadata": {"name": "a", "managedFields": [{"f": {}}], "labels": {"managedFields": "x"}},
            "data": {"managedFields": "y"}});
        let read = object(whole.to_string().as_bytes()).unwrap();
        assert_eq!(
            read,
            json!({"metadata": {"name": "a", "labels": {"managedFields": "x"}}, "data": {"managedFields": "y"}})
        );
    }

    #[test]
    fn a_list_is_read_item_by_item() {
        let page = json!({"kind": "List", "metadata": {"resourceVersion": "7", "continue": "c"},
            "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]});
        let mut names = Vec::new();
        let meta = list(page.to_string().as_bytes(), &mut |item| {
            names.push(item["metadata"]["name"].clone())
        });
        assert_eq!(
            meta.unwrap(),
            ListMeta {
                resource_version: "7".into(),
                next: "c".into()
            }
        );
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn an_empty_list_may_have_no_items_at_all() {
        for items in ["null", "[]"] {
            let page = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":{items}}}"#);
            assert_eq!(
                list(page.as_bytes(), &mut |_| panic!("no item"))
                    .unwrap()
                    .resource_version,
                "7"
            );
        }
    }

    #[test]
    fn a_watch_event_is_its_type_and_its_object() {
        let (kind, object) =
            event(br#"{"type":"ADDED","object":{"metadata":{"managedFields":[]}}}"#).unwrap();
        assert_eq!((kind.as_str(), object), ("ADDED", json!({"metadata": {}})));
    }

    #[test]
    fn half_an_object_is_an_error() {
        assert!(object(br#"{"metadata":{"#).is_err());
        assert!(event(br#"{"type":"ADDED","obj"#).is_err());
    }
}
