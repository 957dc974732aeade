//! The simulation of a hub and its members: model API servers, and the planners of `entourage-core` working on them.
//!
//! | module | content |
//! |---|---|
//! | [`objects`] | the objects of an API server: ids, versions, merges, finalizers |
//! | [`servers`] | the API servers of a run |
//! | [`process`] | a process: its engine, watches, queue and timers |
//! | [`environment`] | servers and process together, with the faults, hooks and checks of a run |
//! | [`notifications`] | what a process observes of the servers: lists and events |
//! | [`writes`] | what POST, PUT and DELETE make of the objects of a server |
//! | [`executor`] | carries out changes on the servers |
//! | [`run`] | the run: every dirty key is planned, each change is carried out |
//! | [`simulation`] | the run of `entourage plan`: objects are applied, missing facts are requested, the result is reported |
//! | [`overlay`] | the result of `kubectl apply` without a server |
//! | [`shown`] | objects for output |
//! | [`watches`] | what a watch covers and serves |

pub mod environment;
pub mod executor;
pub mod notifications;
pub mod objects;
pub mod overlay;
pub mod process;
pub mod run;
pub mod servers;
pub mod shown;
pub mod simulation;
pub mod watches;
pub mod writes;

pub use simulation::{
    Answer, Progress, Question, Simulation, named_namespaces,
    outcome::{Fate, Note, Outcome, Place, Report},
};
