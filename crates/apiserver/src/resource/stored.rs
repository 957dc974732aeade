//! The stored form of objects, and the form in which a resource shows them.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::Resource;
use crate::{json, object::Object, store::Entry};

/// An object as it is stored: without apiVersion and kind (the resource knows them), with its resourceVersion.
#[must_use]
pub(crate) fn encode(mut object: Object, revision: u64) -> Bytes {
    object.remove("apiVersion");
    object.remove("kind");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    // It is kept for long: a copy of its own size, so that room to spare neither stays nor leaves a hole.
    Bytes::copy_from_slice(&json::compact_map(&object))
}

/// The version that a custom resource was stored as, beside its fields, where the CRD has several. No client names a field so.
const STORED_AS: &str = "\u{0}version";

/// The same for an object in the form of a resource, whose stored form may differ.
#[must_use]
pub(crate) fn encode_as(resource: &Resource, mut object: Object, revision: u64) -> Bytes {
    resource.rules.to_stored(&mut object);
    if let Some(custom) = &resource.custom {
        custom.writes(revision);
        if !custom.alone {
            object.insert(STORED_AS.to_owned(), custom.storage.clone().into());
        }
    }
    encode(object, revision)
}

/// A stored object as a map, without apiVersion and kind.
#[must_use]
pub(crate) fn decode(bytes: &[u8]) -> Object {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The same without managedFields, which are often half of an object: for those that look at the rest only.
#[must_use]
pub(crate) fn decode_without_books(bytes: &[u8]) -> Object {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let object = Reader { of_metadata: false }.deserialize(&mut text);
    object.unwrap_or_default()
}

/// Reads an object, or its metadata without managedFields.
struct Reader {
    of_metadata: bool,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<Object, D::Error> {
        text.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Object, A::Error> {
        let mut object = Object::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match (self.of_metadata, name.as_str()) {
                (true, "managedFields") => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                (false, "metadata") => fields.next_value_seed(Self { of_metadata: true })?.into(),
                _ => fields.next_value()?,
            };
            object.insert(name, value);
        }
        Ok(object)
    }
}

/// A stored object with another resourceVersion, without reading the rest of it.
#[must_use]
pub(crate) fn with_revision(bytes: &[u8], revision: u64) -> Bytes {
    const FIELD: &[u8] = b"\"resourceVersion\":\"";
    // The first in the text is that of the metadata: only names and the uid come before it, and quotes in them are escaped.
    let place = bytes
        .starts_with(METADATA)
        .then(|| bytes.windows(FIELD.len()).position(|part| part == FIELD))
        .flatten();
    let Some(place) = place else {
        return encode(decode(bytes), revision);
    };
    let (before, rest) = bytes.split_at(place + FIELD.len());
    let former = rest.iter().position(|byte| *byte == b'"').unwrap_or(0);
    [before, revision.to_string().as_bytes(), &rest[former..]]
        .concat()
        .into()
}

/// The prefix of every stored object.
const METADATA: &[u8] = b"{\"metadata\":";

/// The text of a stored object's metadata, as it is sent; `None` when there is none.
#[must_use]
pub(crate) fn metadata(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(METADATA)?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    rest.get(..values.byte_offset())
}

/// True if [`shown`] adds nothing but apiVersion and kind to an entry, so that stored bytes may be sent as they are.
#[must_use]
pub(crate) fn is_shown_as_stored(resource: &Resource, entry: &Entry) -> bool {
    match &resource.custom {
        Some(custom) => custom.is_as_stored(entry.revision),
        None => resource.rules.is_stored_form(),
    }
}

/// A stored object as the resource shows it: apiVersion and kind in front.
#[must_use]
pub(crate) fn shown(resource: &Resource, bytes: &[u8]) -> Object {
    let mut object = decode(bytes);
    resource.rules.show_stored(&mut object);
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.clone().into());
    if let Some(custom) = &resource.custom {
        let stored_as = object.remove(STORED_AS);
        custom.show(&mut object, stored_as.as_ref().and_then(Value::as_str));
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> (Object, Bytes) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "\"resourceVersion\":\"7\"", "uid": "u", "annotations": {"resourceVersion": "1"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]},
            "data": {"managedFields": "mine"}});
        let Value::Object(object) = object else { panic!() };
        (object.clone(), encode(object, 5))
    }

    #[test]
    fn another_revision_changes_nothing_else() {
        let (object, bytes) = stored();
        assert_eq!(with_revision(&bytes, 1234), encode(object, 1234));
        assert_eq!(with_revision(b"{}", 3), "{}");
    }

    #[test]
    fn what_is_read_without_books_is_all_the_rest() {
        let (_, bytes) = stored();
        let mut whole = decode(&bytes);
        crate::object::metadata_mut(&mut whole).remove("managedFields");
        assert_eq!(decode_without_books(&bytes), whole);
        assert!(decode_without_books(b"[]").is_empty());
    }

    #[test]
    fn metadata_is_cut_out_as_it_is_written() {
        let (_, bytes) = stored();
        let cut = metadata(&bytes).expect("there is some");
        assert_eq!(
            serde_json::from_slice::<Value>(cut).ok(),
            decode(&bytes).remove("metadata")
        );
        assert_eq!(metadata(b"{}"), None);
    }
}
