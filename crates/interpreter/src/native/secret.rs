//! Secret.

use super::{NativeGvk, NativeKind, Operation, Resource};

/// v1 Secret.
///
/// Retained: nothing. All of it is the user's; a Secret that a member's controller fills, a service-account token,
/// is never propagated ([`not_propagatable`](super::not_propagatable)).
pub(super) struct Secret;

impl NativeKind for Secret {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "Secret",
        }
    }

    fn summary(&self) -> &'static str {
        "dependency: confidential data"
    }

    /// On the hub Secrets are those of every tenant: `config/hub` grants them by a line that can be left out.
    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("secrets").granted(false, true))
    }

    fn operations(&self) -> &'static [Operation] {
        &[]
    }
}
