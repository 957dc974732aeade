//! ResourceDistributions: the spec as read, and the copies, rendered and compared without deciding anything.

pub mod hash;
mod marks;
mod normal;
pub mod observed;
pub mod render;
pub mod targets;
pub mod template;
