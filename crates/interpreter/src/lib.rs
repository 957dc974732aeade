//! The interpretation of kinds: what a template refers to, what is retained on a member, what a status means, and when a
//! copy differs.
//!
//! Everything here is a pure function over the JSON of one object as an API server serves it. A misshapen
//! object is read as if the misshapen part were absent: nothing here fails and nothing panics.
//!
//! - [`references`](mod@references): the table of paths in a pod spec that name a ConfigMap, Secret, ServiceAccount or claim.
//! - [`mod@requirements`]: what one replica of a workload needs from a cluster.
//! - [`mod@native`]: the table of interpreted kinds, one file a kind with all its operations.
//! - [`shipped`]: the third-party kinds that are known without configuration, one file of rules a kind.
//! - [`declarative`]: how such rules are read; users may write them, too.
//! - [`hook`]: webhooks that people name for kinds: which one is asked, in which words, and what its answer means.
//! - [`operations`]: which kind has which operation.
//! - [`ask`], [`who`]: all layers behind one question, and which of them there are, for people.
//! - [`equal`]: whether a live copy has to be written again.
//! - [`rights`]: which of these kinds the controllers may manage by default.

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
pub mod layers;
mod mentions;
pub mod native;
pub mod operations;
#[cfg(test)]
mod properties;
pub mod quantity;
pub mod question;
pub mod references;
pub mod requirements;
pub mod rights;
pub mod rule;
pub mod shipped;
pub mod who;

pub use content::{content_number, template_meta};
pub use equal::{difference, differs};
pub use gvk::NativeGvk;
pub use health::Health;
pub use kind::NativeKind;
pub use layers::{Interpretation, Interpreter};
pub use native::{NATIVE, aggregate_reads, common_prune, native, never_travels};
pub use references::DependencyReference;
