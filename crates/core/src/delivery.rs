//! Delivery: what a copy on a member looks like, whose it is, and when it is written, removed or released.
//!
//! - [`render`](render::render) turns a template into the copy for one cluster.
//! - [`standing`](render::standing) tells whose an object on a member is, by [`Claim`](crate::ownership::Claim).
//! - [`plan`](plan::plan) decides for one (template, cluster).

pub mod plan;
pub(crate) mod volumes;

pub use entourage_render::{
    copy as render,
    ownership::{self, metadata as marks},
};

pub use crate::render_spec::{RENDERER, RenderSpec, overrides_of, source_version};
