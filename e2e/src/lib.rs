//! placeholder
pub mod faults;
pub mod servers;
