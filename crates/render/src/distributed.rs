//! What a ResourceDistribution says, and what a copy of it looks like: read, rendered and compared, without deciding anything.

pub mod hash;
mod marks;
mod normal;
pub mod observed;
pub mod render;
pub mod targets;
pub mod template;
