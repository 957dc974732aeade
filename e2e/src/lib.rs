//! What the end-to-end tests stand on. The tests themselves are in `tests/e2e.rs`.
//!
//! - [`servers`]: real API servers as child processes.
//! - [`faults`]: errors, latency and crashes at the API boundary, by seed.
//! - [`harness`]: the words that tests are written with, and the runner.

pub mod faults;
pub mod harness;
pub mod servers;
