//! Objects as they are stored, and as a resource shows them.

use bytes::Bytes;
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
    // Kept for long: without room to spare.
    Bytes::from(json::compact_map(&object).into_boxed_slice())
}

/// The same for an object in the form of a resource, whose stored form may differ.
#[must_use]
pub(crate) fn encode_as(resource: &Resource, mut object: Object, revision: u64) -> Bytes {
    resource.rules.to_stored(&mut object);
    if let Some(custom) = &resource.custom {
        custom.writes(revision);
    }
    encode(object, revision)
}

/// A stored object as a map, without apiVersion and kind.
#[must_use]
pub(crate) fn decode(bytes: &[u8]) -> Object {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Whether [`shown`] adds nothing but apiVersion and kind to an entry, so that stored bytes may go out as they are.
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
        custom.show(&mut object);
    }
    object
}
