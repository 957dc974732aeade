//! The writes of controllers, by collection and key. When another write was faster, it is seen next.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Context;
use crate::{
    object::Object,
    random, registry,
    resource::stored,
    store::{Entry, Expect, Store},
};

/// Creates an object, unless it is there.
pub(crate) fn create(store: &Store, now: &str, collection: &str, key: &str, mut object: Value) {
    let metadata = &mut object["metadata"];
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata["name"] = json!(name);
    metadata["uid"] = json!(random::new_uid());
    metadata["creationTimestamp"] = json!(now);
    if let Value::Object(object) = object {
        let _ = store.put(collection, key, Expect::Absent, |revision| {
            stored::encode(object, revision)
        });
    }
}

/// Changes an object by `change`, which returns true if it did, through `subresource`. Returns the state after it; `None` when the
/// object is gone or its kind is not served.
pub(super) fn change(
    cluster: &dyn Context,
    collection: &str,
    key: &str,
    subresource: &str,
    mut change: impl FnMut(&mut Object) -> bool,
) -> Option<Arc<Entry>> {
    let resource = cluster.kinds().of_collection(collection)?.clone();
    registry::rewrite(cluster, &resource, key, subresource, &mut change)
}

/// Removes an object at once.
pub(super) fn remove(cluster: &dyn Context, collection: &str, key: &str) {
    let kinds = cluster.kinds();
    let resource = kinds.of_collection(collection);
    if let (Some(resource), Some(entry)) = (resource, cluster.store().get(collection, key)) {
        let _ = registry::remove(cluster.store(), resource, &entry);
    }
}
