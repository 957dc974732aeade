//! All decisions of Entourage: pure, synchronous, deterministic.
//!
//! ```text
//! observation ──► Index::observe ──► dirty keys ──► plan(&index, key, now) ──► Plan: changes as data
//! ```
//!
//! Nothing here reads a clock, sends a request or draws a random number; time and facts are passed in. The shell
//! (`entourage-controllers`) fetches, carries out plans and feeds every answer back as an observation.
//!
//! | module | decides |
//! |---|---|
//! | [`detector`] | which policy claims a template |
//! | `scheduling` | by which placement a template is scheduled, and to which clusters |
//! | [`dependencies`] | who needs an object where, and what holds it there |
//! | [`binding`] | what a binding says: the one writer of its metadata and spec |
//! | [`delivery`] | what a copy looks like, when it is written, released or removed |
//! | [`distribution`] | which namespaces a ResourceDistribution means, and what becomes of its copies |
//! | [`rebalancer`] | which workloads are placed afresh, and what is said of it |
//! | [`status`] | what bindings and templates report |
//! | [`failover`] | which clusters a workload leaves, and when its copies there may be deleted |
//! | `eviction` | when a copy that is evicted may be deleted, and what a first copy waits for because of it |
//! | [`cluster`] | what a Cluster reports and when it may go |
//! | [`simulation`] | nothing: it says what the others would, on a model of the servers |
//! | [`refusal`] | who is told when the hub refuses a write |
//! | [`admission`] | what is filled in and what is refused when objects are written |
//! | [`namespaces`] | which namespaces members have, and with which labels |
//!
//! What decisions are made of lies in crates below, which stand here under the names of modules: the vocabulary ([`object`],
//! [`selector`], [`scope`] and others, of `entourage-model`), what is known about each kind ([`interpreter`]), which clusters
//! a placement means ([`scheduler`]), and what a copy looks like ([`render_spec`], [`overrides`], [`distributed`], of
//! `entourage-render`).

pub mod admission;
pub mod binding;
mod cache;
pub mod cluster;
mod config;
pub mod delivery;
pub mod dependencies;
pub mod detector;
pub mod distribution;
mod drift;
mod engine;
mod eviction;
mod eviction_budget;
pub mod failover;
pub mod governor;
pub mod index;
pub mod matching;
pub mod messages;
pub mod namespaces;
pub mod observation;
pub mod override_effect;
pub mod plan;
mod readiness;
pub mod rebalancer;
pub mod refusal;
mod reserved;
mod scheduling;
pub mod simulation;
pub mod status;
mod storage_protection;
mod stored_binding;

pub use engine::plan;
pub use entourage_interpreter::{self as interpreter, rights};
use entourage_model::problem;
pub use entourage_model::{
    condition, kinds, marks, member_namespace, object, places, rendered, scope, selector, server,
};
pub use entourage_render::{distributed, overrides, ownership, render_spec};
pub use entourage_scheduler as scheduler;

#[cfg(test)]
use entourage_golden as golden;
