//! Copies on members: rendered from a template and a [`RenderSpec`](render_spec::RenderSpec), and compared with the live
//! object.
//!
//! The crate does not decide whether a copy is written, and sends no request.
//!
//! | module | content |
//! |---|---|
//! | [`render_spec`] | the parameters of rendering, as data, and the version of the result |
//! | [`overrides`] | the changes of copies on some clusters |
//! | [`mod@copy`] | rendering of a copy; its difference from the live object; the released object |
//! | [`manifest`] | the same for the manifest of a Work, as its agent applies it |
//! | [`ownership`] | the ownership test of an object on a member, and the labels and annotations that prove ownership |
//! | [`distributed`] | the same for the copies of a ResourceDistribution |

pub mod copy;
pub mod distributed;
pub mod manifest;
pub mod overrides;
pub mod ownership;
pub mod render_spec;
