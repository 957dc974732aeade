//! ConfigMap.

use super::{NativeGvk, NativeKind, Operation, Resource};

/// v1 ConfigMap.
///
/// Retained: nothing. All of it is the user's, and data that another writer added on the member is removed.
pub(super) struct ConfigMap;

impl NativeKind for ConfigMap {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "ConfigMap",
        }
    }

    fn summary(&self) -> &'static str {
        "dependency: configuration"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("configmaps"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[]
    }
}
