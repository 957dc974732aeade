//! The harness of the end-to-end tests. The tests themselves are in `tests/e2e.rs`.
//!
//! - [`conformance`]: recorded requests and responses of a real API server, replayed and compared.
//! - [`kubectl`]: kubectl commands on either lane, compared with golden transcripts.
//! - [`servers`]: clusters to test on: embedded ones, and real API servers as child processes.
//! - [`faults`]: errors, latency and crashes at the API boundary, by seed.
//! - [`guides`]: the commands of the documentation's guides, run and compared with what the page shows.
//! - [`harness`]: the helpers of the tests, and the runner.

pub mod conformance;
pub mod faults;
pub mod guides;
pub mod harness;
pub mod kubectl;
pub mod servers;
