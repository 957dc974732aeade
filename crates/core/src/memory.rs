//! The memory: state that planners keep between plans, one module for each such planner.
//!
//! None of it is needed for correctness after a restart: state that must outlive the process is stored in a status or an annotation.

pub(crate) mod cut_off;
pub(crate) mod deletion_pauses;
pub(crate) mod descheduled;
pub(crate) mod distributions;
pub(crate) mod endpoints;
pub(crate) mod estimates;
pub(crate) mod eviction_counts;
pub(crate) mod identities;
mod origin;
pub(crate) mod placed;
pub(crate) mod problem_counts;
pub(crate) mod propagations;
pub(crate) mod quotas;
pub(crate) mod rebalancers;
pub(crate) mod room;
mod waiting;

use std::collections::BTreeSet;

pub(crate) use origin::Origin;
pub(crate) use waiting::Waiting;

use crate::{eviction_budget::Evictions, graph::WorkloadGroups, object::Gvk, plan::Key};

/// State that planners keep between plans.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// True once the former referrers of all stored bindings are known, those from before this process began.
    pub(crate) remembers_former: bool,
    /// The keys that wait for a sync requirement.
    pub(crate) waiting: Waiting,
    /// The deletions on each member, and their pauses.
    pub(crate) deletion_pauses: deletion_pauses::DeletionPauses,
    /// The eviction slots of bindings.
    pub(crate) evictions: Evictions,
    /// The kinds whose templates have a status of another writer; see [`crate::fleet::contests`].
    pub(crate) contested: BTreeSet<Gvk>,
    /// The Clusters of each physical cluster.
    pub(crate) identities: identities::Identities,
    /// The members that stopped responding together.
    pub(crate) cut_off: cut_off::CutOff,
    /// The targets of distributions, and the objects of their names.
    pub(crate) distributions: distributions::Distributions,
    /// The open requests of rebalancers.
    pub(crate) rebalancers: rebalancers::Rebalancers,
    /// The FederatedResourceQuotas, and the use of their namespaces.
    pub(crate) quotas: quotas::Quotas,
    /// The room of members, and who waits for it.
    pub(crate) rooms: room::Rooms,
    /// The results that were stored lately, for the answers of estimators.
    pub(crate) placed: placed::Placed,
    /// The answers of estimators, and who waits for them.
    pub(crate) estimates: estimates::Estimates,
    /// The last writes of EndpointSlices of the hub.
    pub(crate) endpoints: endpoints::EndpointWrites,
    /// The exported Services whose endpoints are not watched.
    pub(crate) unwatched_exports: endpoints::UnwatchedExports,
    /// The stuck replicas that were moved lately.
    pub(crate) descheduled: descheduled::Descheduled,
    /// The members of workload groups, as plans are about to store them: a decision counts from the moment it is made.
    pub(crate) planned_groups: WorkloadGroups,
    /// The problems that conditions report, for metrics.
    pub(crate) problem_counts: problem_counts::ProblemCounts,
    /// The evictions that began, for metrics.
    pub(crate) eviction_counts: eviction_counts::EvictionCounts,
    /// The changes that have not reached all members, for metrics.
    pub(crate) propagations: propagations::Propagations,
    /// The origin of the current observation.
    pub(crate) origin: Origin,
    /// Keys that the plans of others made dirty.
    pub(crate) raised: Vec<Key>,
    /// Messages for the log.
    pub(crate) notices: Vec<String>,
}
