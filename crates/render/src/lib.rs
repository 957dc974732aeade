//! What copies on members look like, without deciding whether they are written.
//!
//! | module | what it knows |
//! |---|---|
//! | [`recipe`] | how a template becomes a copy, as data, and the version of what comes out |
//! | [`overrides`] | what is changed in copies on some clusters |
//! | [`distributed`] | what a ResourceDistribution says, and what a copy of it looks like |

pub mod distributed;
pub mod overrides;
pub mod recipe;
