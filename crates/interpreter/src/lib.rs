//! The interpretation of propagated kinds: the dependencies of a workload, the fields that are retained on a member, the meaning
//! of its status, and the difference between a copy and the desired one.
//!
//! All of it is pure functions over the JSON of one object as an API server serves it. A malformed object is read as if the
//! malformed part were absent: nothing here fails and nothing panics.
//!
//! - [`references`](mod@references): the table of paths in a pod spec that name a ConfigMap, Secret, ServiceAccount or claim.
//! - [`mod@requirements`]: the requirements of one replica of a workload.
//! - [`mod@native`]: the table of interpreted kinds, one file per kind with all its operations.
//! - [`shipped`]: the third-party kinds that are interpreted without configuration, one file of rules per kind.
//! - [`declarative`]: the evaluation of such rules; users may write them, too.
//! - [`hook`]: interpreter webhooks: the choice of the hook, its protocol, and the meaning of its response.
//! - [`operations`]: the operations of each kind.
//! - [`ask`], [`layer_order`]: all layers behind one question, and the list of layers, for users.
//! - [`equal`]: the comparison of a live copy with the desired one.
//! - [`rights`]: the kinds that the controllers may manage by default.

pub mod ask;
pub mod content;
mod counters;
pub mod customized;
pub mod declarative;
pub mod equal;
#[cfg(test)]
mod golden;
mod gvk;
mod health;
pub mod hook;
mod json;
mod kind;
pub mod layer_order;
pub mod layers;
mod mentions;
pub mod native;
pub mod operations;
#[cfg(test)]
mod properties;
pub mod question;
pub mod references;
pub mod requirements;
pub mod rights;
pub mod rule;
pub mod shipped;

pub use content::{content_number, template_meta};
pub use entourage_model::quantity;
pub use equal::{difference, differs};
pub use gvk::NativeGvk;
pub use health::Health;
pub use kind::NativeKind;
pub use layers::{Interpretation, Interpreter};
pub use native::{NATIVE, aggregate_reads, common_prune, native, not_propagatable};
pub use references::DependencyReference;
