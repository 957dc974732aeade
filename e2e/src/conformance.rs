//! Playing recorded exchanges of a real kube-apiserver 1.36 against a server, and comparing every answer.
//!
//! `e2e/conformance/corpus` and `second` hold one file per scenario: requests and answers in order, with placeholders for what
//! differs from run to run (uids, resourceVersions, times). A placeholder is bound where it is first seen and must
//! stay the same; resourceVersions must keep their order. Events of watches must have come before the next step.

mod bind;
mod compare;
mod corpus;
mod play;
pub mod report;
pub mod transport;
mod wire;

pub use corpus::{Scenario, load, load_all};
pub use play::{Outcome, play, play_embedded};

/// A set of scenarios that were recorded together.
#[derive(Debug)]
pub struct Recording {
    /// The directory in `e2e/conformance`.
    pub dir: &'static str,
    /// Its name on the page.
    pub title: &'static str,
    /// The share of its exchanges that are identical, at least. It only rises.
    pub at_least_per_mille: usize,
}

/// The recording that the server was written by.
pub const FIRST: Recording = Recording {
    dir: "corpus",
    title: "First recording",
    at_least_per_mille: 998,
};

/// Exchanges of other kinds, recorded later.
pub const SECOND: Recording = Recording {
    dir: "second",
    title: "Second recording",
    at_least_per_mille: 990,
};

/// All recordings.
pub const RECORDINGS: [Recording; 2] = [FIRST, SECOND];

/// The admin's token in the recording: some requests carry it as it stands.
pub const TOKEN: &str = "admintoken";
