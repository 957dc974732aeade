//! Changes that the cluster's own controllers make: no request, no validation, but ownership and revisions as for every writer.

use std::sync::Arc;

use super::{TRIES, remove, system};
use crate::{
    admission::Context,
    apply::{self, Manager},
    object::Object,
    resource::{Resource, stored},
    store::{Entry, Expect},
};

/// Field manager of the cluster's own controllers, the name a kube-controller-manager gives itself.
pub(crate) const CONTROLLER: &str = "kube-controller-manager-1.36";

/// Changes the object under `key` by `change` (which returns true if it did) through `subresource`, again when another write
/// was faster. Returns the state after it; `None` when the object is gone, or was removed by this change.
pub(crate) fn rewrite(
    cluster: &dyn Context,
    resource: &Resource,
    key: &str,
    subresource: &str,
    change: &mut dyn FnMut(&mut Object) -> bool,
) -> Option<Arc<Entry>> {
    rewrite_as(CONTROLLER, cluster, resource, key, subresource, change)
}

/// The same by another manager.
pub(crate) fn rewrite_as(
    manager: &str,
    cluster: &dyn Context,
    resource: &Resource,
    key: &str,
    subresource: &str,
    change: &mut dyn FnMut(&mut Object) -> bool,
) -> Option<Arc<Entry>> {
    let now = cluster.now();
    for _ in 0..TRIES {
        let entry = cluster.store().get(&resource.collection, key)?;
        let old = stored::shown(resource, &entry.object);
        let mut new = old.clone();
        if !change(&mut new) {
            return Some(entry);
        }
        let manager = Manager {
            name: manager,
            subresource,
            now: &now,
        };
        apply::track(resource, Some(&old), &mut new, manager);
        if system::is_finished(resource, &new, &old) {
            if remove(cluster.store(), resource, &entry).is_ok() {
                return None;
            }
            continue;
        }
        let written = cluster.store().put(
            &resource.collection,
            key,
            Expect::At(entry.revision),
            |revision| stored::encode_as(resource, new, revision),
        );
        if let Ok(entry) = written {
            return Some(entry);
        }
    }
    tracing::warn!(
        collection = resource.collection,
        key,
        "a controller's change lost every race"
    );
    cluster.store().get(&resource.collection, key)
}
