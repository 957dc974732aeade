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
//! | [`dependencies`] | who needs an object where, and what holds it there |
//! | [`binding`] | what a binding says: the one writer of its metadata and spec |
//! | [`delivery`] | what a copy looks like, when it is written, released or removed |
//! | [`distribution`] | which namespaces a ResourceDistribution means, and what becomes of its copies |
//! | [`rebalancer`] | which workloads are placed afresh, and what is said of it |
//! | [`status`] | what bindings and templates report |
//! | [`failover`] | which clusters a workload leaves, and when its copies there may be deleted |
//! | [`cluster`] | what a Cluster reports and when it may go |
//! | [`rehearsal`] | nothing: it says what the others would, on a model of the servers |
//! | [`refusal`] | who is told when the hub refuses a write |
//! | [`admission`] | what is filled in and what is refused when objects are written |
//! | [`namespaces`] | which namespaces members have, and with which labels |
//!
//! What decisions are made of lies in crates below, which stand here under the names of modules: the vocabulary ([`object`],
//! [`selector`], [`twin`] and others, of `entourage-model`), what is known about each kind ([`interpreter`]), which clusters
//! a placement means ([`scheduler`]), and what a copy looks like ([`recipe`], [`overrides`], [`distributed`], of
//! `entourage-render`).

pub mod admission;
pub mod binding;
pub mod cluster;
pub mod delivery;
pub mod dependencies;
pub mod detector;
pub mod distribution;
pub mod failover;
pub mod governor;
pub mod index;
pub mod namespaces;
pub mod observation;
pub mod override_effect;
pub mod plan;
pub mod rebalancer;
pub mod refusal;
pub mod rehearsal;
pub mod status;
mod storage_protection;

pub use entourage_interpreter::{self as interpreter, rights};
use entourage_model::problem;
pub use entourage_model::{
    condition, kinds, marks, member_namespace, object, places, rendered, selector, server, twin,
};
pub use entourage_render::{distributed, overrides, recipe};
pub use entourage_scheduler as scheduler;

#[cfg(test)]
use entourage_golden as golden;
use index::Index;
use object::Time;
use plan::{Key, Plan};

/// Decides what is to be done for a key now. Cost: named at each planner; never O(everything).
#[must_use]
pub fn plan(index: &Index, key: &Key, now: Time) -> Plan {
    // Whatever version a key was made with, its plan is made for the one that is watched.
    let plan = match &index.in_use(key) {
        Key::Policy(name) => detector::plan_policy(index, name, now),
        Key::Template(id) => detector::plan_template(index, id, now),
        Key::TemplateStatus(id) => status::template::plan(index, id, now),
        Key::Binding(id) => binding::plan(index, id, now),
        Key::BindingStatus(id) => status::plan_binding(index, id, now),
        Key::Copy(id, cluster) => delivery::plan::plan(index, id, cluster, now),
        Key::Cluster(name) => cluster::plan(index, name, now),
        Key::Namespace(name, cluster) => namespaces::plan(index, name, cluster, now),
        Key::Distribution(name) => distribution::plan_end(index, name),
        Key::DistributionStatus(name) => distribution::plan_status(index, name, now),
        Key::Distributed(name, place) => distribution::plan_copy(index, name, place, now),
        Key::Override(name) => override_effect::plan(index, name, now),
        Key::Rebalancer(name) => rebalancer::plan(index, name, now),
    };
    cluster::identity::gate(index, key, plan)
}
