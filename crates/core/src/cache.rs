//! The cache: facts as observed, with the times and outcomes that this process saw; nothing derived and nothing decided.
//!
//! A template, its binding and its copies share one [`ResourceId`] and one [`ResourceState`]. After a restart the facts are
//! listed again; times and outcomes begin anew.

mod contest;
mod copies;
mod copy_state;
mod freshness;
mod leases;
pub(crate) mod namespaces;
mod resource_state;
mod revisions;
mod scaling_writes;
mod services;
mod usage;
mod watches;
mod works;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use entourage_api::config::ResourceInterpreterCustomization;

pub use contest::Contest;
pub use copies::Copies;
pub use copy_state::{Attempt, CopyState, PendingWrite, Problem, ProblemKind};
pub use freshness::Freshness;
pub(crate) use freshness::{Deletion, Held};
pub(crate) use leases::{HeldLease, LeaseRead, Leases};
use namespaces::Namespaces;
pub use resource_state::{Binding, BindingMeta, Member, Policy, ResourceState, Tombstone};
pub(crate) use resource_state::{Copied, TaintPolicy, bound, meta_of, referred};
pub(crate) use revisions::{AGE, MOST, Revisions};
pub use scaling_writes::ScalingWrites;
pub(crate) use scaling_writes::{Label, Sent, Written};
pub(crate) use services::Services;
pub(crate) use usage::{MemberUsage, Usage, add as add_amounts, subtract as subtract_amounts};
pub(crate) use watches::WatchTable;
pub(crate) use works::HeldWork;

use crate::{
    interpreter::hook::Contract,
    object::{NamespacedName, ResourceId, Str, Time},
    observation::{Configured, PriorityClass},
};

/// The objects of the hub and the members, and the state of the watches that report them.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// The state of each list-and-watch.
    pub(crate) watches: WatchTable,
    /// Templates, bindings and copies.
    pub(crate) resources: BTreeMap<ResourceId, Box<ResourceState>>,
    /// The revisions of resources that were forgotten: events below them are outdated. Bounded by `forgotten`.
    pub(crate) tombstones: BTreeMap<ResourceId, Tombstone>,
    /// The order in which resources were forgotten.
    pub(crate) forgotten: VecDeque<(Time, ResourceId)>,
    /// The revisions of all other objects: events below them are outdated.
    pub(crate) revisions: Revisions,
    /// The templates that the hub does not let our account claim, with the hub's message for each.
    pub(crate) unclaimed: BTreeMap<ResourceId, String>,
    /// PropagationPolicies and ClusterPropagationPolicies.
    pub(crate) policies: BTreeMap<NamespacedName, Policy>,
    /// Clusters, with the results of the probes of their endpoints.
    pub(crate) members: BTreeMap<Str, Member>,
    /// The nodes and pods of members.
    pub(crate) usage: Usage,
    /// ClusterTaintPolicies.
    pub(crate) taint_policies: BTreeMap<Str, TaintPolicy>,
    /// PriorityClasses of the hub.
    pub(crate) priority_classes: BTreeMap<Str, PriorityClass>,
    /// Namespaces of the hub and of members.
    pub(crate) namespaces: Namespaces,
    /// ResourceInterpreterCustomizations.
    pub(crate) customizations: BTreeMap<Str, Arc<ResourceInterpreterCustomization>>,
    /// Configurations of interpreter webhooks.
    pub(crate) hooks: BTreeMap<(Contract, Str), Arc<Configured>>,
    /// Works, if copies are mirrored.
    pub(crate) works: BTreeMap<NamespacedName, HeldWork>,
    /// The Leases of the agents of clusters in Pull mode.
    pub(crate) leases: Leases,
    /// The parts of Services of other clusters.
    pub(crate) services: Services,
    /// Objects on members that carry our metadata and are not managed.
    pub(crate) copied: BTreeMap<Str, Copied>,
}
