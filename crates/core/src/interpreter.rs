//! What is known about the kinds we carry: which objects a workload needs, how its copy is kept valid on a
//! member, what its status means, and when a copy differs from what it should be.
//!
//! Everything here is a pure function over the JSON of one object as an API server serves it. A misshapen
//! object is read as if the misshapen part were absent: nothing here fails and nothing panics.
//!
//! - [`references`](mod@references): the table of paths in a pod spec that name a ConfigMap, Secret, ServiceAccount or claim.
//! - [`mod@native`]: the table of interpreted kinds, one file a kind with all its operations.
//! - [`equal`]: whether a live copy has to be written again.

pub mod equal;
#[cfg(test)]
mod golden;
mod json;
pub mod native;
#[cfg(test)]
mod properties;
mod quantity;
pub mod references;

pub use equal::{difference, differs};
pub use native::{Health, NATIVE, NativeGvk, NativeKind, common_prune, native, never_travels};
pub use references::{DependencyKind, DependencyReference};
