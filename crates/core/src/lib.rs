//! All decisions of Entourage: pure, synchronous, deterministic.
//!
//! ```text
//! observation ──► Engine::observe ──► dirty keys ──► Engine::plan ──► Plan: changes as data
//! ```
//!
//! Nothing here reads a clock, sends a request or draws a random number; time and facts are arguments. The shell
//! (`entourage-controllers`) fetches objects, executes plans and feeds every response back as an observation.
//!
//! | module | decides |
//! |---|---|
//! | [`detector`] | which policy claims a template |
//! | [`autoscaling`] | the label that leaves replicas to members, and the replicas of a template whose members scale it |
//! | `scheduling` | the placement of a template, and the clusters it is scheduled to |
//! | [`dependencies`] | the clusters where an object is required, and what keeps its copies there |
//! | [`binding`] | the metadata and spec of a binding: the one writer of both |
//! | [`delivery`] | the content of a copy, and when it is written, released or deleted |
//! | [`distribution`] | the target namespaces of a ResourceDistribution, and the end of its copies |
//! | [`quotas`] | the ResourceQuotas that a FederatedResourceQuota makes on members, and its status |
//! | [`services`] | the EndpointSlices and Services of the hub that stand for Services of other clusters |
//! | [`rebalancer`] | the workloads that are rescheduled, and the status of a WorkloadRebalancer |
//! | [`status`] | the status of bindings and templates |
//! | [`failover`] | the clusters that a workload is evicted from, and when its copies there may be deleted |
//! | `eviction` | when an evicted copy may be deleted, and what a first copy waits for because of it |
//! | [`cluster`] | the status of a Cluster, and when it may be deleted |
//! | [`execution_namespaces`] | the namespace on the hub for the Works of a Cluster |
//! | [`works`] | the Work that mirrors a copy, for tools that read Works |
//! | [`agent`] | the objects of a member in Pull mode, and the status of its Works and its Cluster: the decisions of its agent |
//! | [`refusal`] | the object that gets an Event when the hub refuses a write |
//! | [`namespaces`] | the namespaces of member clusters, and their labels |
//! | [`adoption`] | the copies of a former hub that this hub takes over, for `entourage adopt` |
//! | [`registration`] | the CertificateSigningRequests of agents that are approved, and when an agent renews its certificate |
//! | [`cluster_info`] | the signatures by which a hub is discovered with a bootstrap token |
//! | [`promotion`] | the template of an object on a member, for `entourage promote` |
//!
//! [`inspection`] shows the state of a [`Fleet`](fleet::Fleet) to the crates above: `entourage-simulation` runs all of these planners on a
//! model of the API servers, for `entourage plan`. Defaults and validation of objects on write are those of `entourage-admission`.
//!
//! The inputs of these decisions lie in crates below, re-exported here under the names of modules: the vocabulary ([`object`],
//! [`selector`], [`scope`] and others, of `entourage-model`), the interpretation of each kind ([`interpreter`]), the clusters
//! that a placement selects ([`scheduler`]), and the content of a copy ([`render_spec`], [`overrides`], [`distributed`], of
//! `entourage-render`).

pub mod adoption;
pub mod agent;
pub mod apply_task;
pub mod autoscaling;
pub mod binding;
pub mod cache;
pub mod cluster;
pub mod cluster_info;
pub mod config;
pub mod delivery;
pub mod dependencies;
mod descheduling;
pub mod detector;
pub mod distribution;
mod drift;
mod engine;
pub mod event_reasons;
mod eviction;
mod eviction_budget;
pub mod execution_namespaces;
pub mod failover;
pub mod fleet;
pub mod governor;
pub mod graph;
pub mod inspection;
pub mod matching;
mod member_status;
mod memory;
pub mod messages;
pub mod namespaces;
pub mod observation;
pub mod override_effect;
pub mod plan;
pub mod promotion;
pub mod pulled;
pub mod quotas;
mod readiness;
pub mod rebalancer;
pub mod refusal;
pub mod registration;
mod reserved;
mod scheduling;
pub mod services;
pub mod status;
mod storage_protection;
mod stored_binding;
pub mod works;

pub use engine::Engine;
pub use entourage_interpreter::{self as interpreter, rights};
use entourage_model::problem;
pub use entourage_model::{
    allowed_clusters, condition, kinds, marks, member_namespace, object, places, rendered, scope, selector,
    server,
};
pub use entourage_render::{distributed, manifest, overrides, ownership, render_spec};
pub use entourage_scheduler as scheduler;

#[cfg(test)]
use entourage_golden as golden;
