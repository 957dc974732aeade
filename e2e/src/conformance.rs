//! Playing recorded exchanges of a real kube-apiserver 1.36 against a server, and comparing every answer.
//!
//! `e2e/conformance/corpus` holds one file per scenario: requests and answers in order, with placeholders for what
//! differs from run to run (uids, resourceVersions, times). A placeholder is bound where it is first seen and must
//! stay the same; resourceVersions must keep their order. Events of watches must have come before the next step.

mod bind;
mod compare;
mod corpus;
mod play;
pub mod report;
pub mod transport;
mod wire;

pub use corpus::{Scenario, load};
pub use play::{Outcome, play};

/// The admin's token in the recording: some requests carry it as it stands.
pub const TOKEN: &str = "admintoken";
