//! What the end-to-end tests stand on. The tests themselves are in `tests/e2e.rs`.
//!
//! - [`conformance`]: recorded exchanges of a real API server, played and compared.
//! - [`kubectl`]: what people type, on either lane, against golden transcripts.
//! - [`servers`]: clusters to test on: embedded ones, and real API servers as child processes.
//! - [`faults`]: errors, latency and crashes at the API boundary, by seed.
//! - [`harness`]: the words that tests are written with, and the runner.

pub mod conformance;
pub mod faults;
pub mod harness;
pub mod kubectl;
pub mod servers;
