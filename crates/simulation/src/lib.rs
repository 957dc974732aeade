//! The simulation of a hub and its members: model API servers, and the planners of `entourage-core` working on them.
//!
//! | module | content |
//! |---|---|
//! | [`simulation`] | a run: objects are applied, every dirty key is planned, each change is carried out |
//! | [`objects`] | the objects of an API server: ids, versions, merges, finalizers |
//! | [`environment`] | the servers of a run, with its faults, hooks and checks |
//! | [`executor`] | carries out changes on them |
//! | [`overlay`] | the result of `kubectl apply` without a server |
//! | [`shown`] | objects for output |
//! | [`watches`] | what a watch covers, lists and tells |

pub mod environment;
pub mod executor;
pub mod objects;
pub mod overlay;
pub mod shown;
pub mod simulation;
pub mod watches;

pub use simulation::{
    Answer, Progress, Question, Simulation, named_namespaces,
    outcome::{Fate, Note, Outcome, Place, Report},
};
