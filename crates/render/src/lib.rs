//! Copies: rendered from a template, and compared with the live object on a member.
//!
//! Nothing here decides whether a copy is written, and nothing here sends it.
//!
//! | module | what it knows |
//! |---|---|
//! | [`render_spec`] | how a template becomes a copy, as data, and the version of what comes out |
//! | [`overrides`] | what is changed in copies on some clusters |
//! | [`mod@copy`] | a template and a recipe become a copy; what differs from it; what is left when it is released |
//! | [`ownership`] | whether an object on a member is managed by this hub, and the labels and annotations that say so |
//! | [`distributed`] | the same for the copies of a ResourceDistribution |

pub mod copy;
pub mod distributed;
pub mod overrides;
pub mod ownership;
pub mod render_spec;
