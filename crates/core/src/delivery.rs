//! Delivery: the content of a copy on a member, its owner, and when it is written, deleted or released.
//!
//! - [`render`](render::render) turns a template into the copy for one cluster.
//! - [`standing`](render::standing) determines the owner of an object on a member, by [`Claim`](crate::ownership::Claim).
//! - [`plan`](plan::plan) plans one (template, cluster).

pub mod apply_task;
mod awaited;
pub mod plan;
pub mod removal_task;
pub(crate) mod volumes;
mod withheld;

pub use entourage_render::{
    copy as render,
    ownership::{self, metadata as marks},
};

pub use crate::render_spec::{RENDERER, RenderSpec, overrides_of, source_version};
