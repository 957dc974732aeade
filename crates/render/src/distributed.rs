//! ResourceDistributions and their copies: read, rendered and compared, without decisions.

pub mod hash;
mod marks;
mod normal;
pub mod observed;
pub mod render;
pub mod targets;
pub mod template;
