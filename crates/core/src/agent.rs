//! The decisions of the agent of one cluster in Pull mode: which Works of its execution namespace are applied on the cluster,
//! which objects are removed or released, and what the Works and the Cluster report.
//!
//! As the engine, without its graph: [`Agent::observe`] takes in a fact and returns the keys to plan again, [`Agent::plan`]
//! returns the next step of a key, [`Agent::ended`] takes in the outcome of a step. Works are kept without their manifests: a step
//! names the Work and its generation, the shell fetches it, applies it and wipes it. Invariants:
//!
//! - Nothing is written to or removed from a cluster that is not the one that the Cluster object describes, or while that is in
//!   Push mode.
//! - An object is removed only if its Work is being deleted and its metadata names this very Work. A Work that vanishes without
//!   the agent's finalizer removes nothing.
//! - Status is written on transition only, and never from less than what is known: after a restart a Work is compared first. So are
//!   Events recorded, when the status that they are about was accepted.
//!
//! Source: Karmada reference 1.4 to 1.6.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    manifest::WorkOwner,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::{Copy, ObjectRef, Observation, Subject, Watch, Work},
    plan::Event,
};

pub mod apply_task;
mod cluster;
mod events;
mod observe;
mod outcome;
mod plan;
pub mod removal_task;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub use outcome::{Applied, Outcome, Removed};
pub use plan::{ApplyOrder, HubWrite, ObjectOrder, Plan, RemovalObject, RemovalOrder, Sent, Step};

pub use state::Source;

use cluster::ClusterState;
use state::WorkState;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster.
    pub cluster: Str,
    /// The namespace of its Works on the hub.
    pub namespace: Str,
    /// True if nodes and pods are read for the capacity of the Cluster.
    pub collects_capacity: bool,
    /// The time that the cluster must fail its probes before it is not ready, in milliseconds.
    pub failure_threshold: i64,
    /// The time that a cluster that was not ready must pass its probes before it is ready, in milliseconds.
    pub success_threshold: i64,
}

/// The subject of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The status of the Cluster.
    Cluster,
    /// A Work, by its name.
    Work(Str),
}

/// The version of a Work's spec, of a whole Work.
#[must_use]
pub fn source_of(work: &serde_json::Value) -> Source {
    Source::of(&crate::object::Meta::of(work))
}

/// The consequence of an observation.
#[derive(Debug, Default)]
pub struct Observed {
    /// The keys to plan again.
    pub dirty: BTreeSet<Key>,
    /// Messages for the log.
    pub notes: Vec<String>,
    /// Events to record on the hub. Losing one is no error.
    pub events: Vec<Event>,
}

/// The state of an agent.
pub struct Agent {
    config: Config,
    cluster: ClusterState,
    works: BTreeMap<Str, WorkState>,
    /// The Works that carry an object.
    carriers: BTreeMap<ResourceId, BTreeSet<Str>>,
    /// The number of such objects of each kind.
    kinds: BTreeMap<Gvk, usize>,
    /// The objects on the cluster that some control plane manages, of the kinds that Works carry.
    copies: BTreeMap<ResourceId, Copy>,
    /// The watches that list, and the revision that each has reached.
    synced: BTreeMap<Watch, u64>,
    /// The revision that watches had reached before they were lost.
    reached: BTreeMap<Watch, u64>,
}

impl Agent {
    /// Creates an agent that knows nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            cluster: ClusterState::default(),
            config,
            works: BTreeMap::new(),
            carriers: BTreeMap::new(),
            kinds: BTreeMap::new(),
            copies: BTreeMap::new(),
            synced: BTreeMap::new(),
            reached: BTreeMap::new(),
        }
    }

    /// The watches that it needs. Cost: O(kinds).
    #[must_use]
    pub fn demand(&self) -> BTreeSet<Watch> {
        let cluster = &self.config.cluster;
        let mut all = BTreeSet::from([Watch::Works, Watch::Clusters]);
        if self.config.collects_capacity {
            all.extend([Watch::Nodes(cluster.clone()), Watch::Pods(cluster.clone())]);
        }
        all.extend(self.kinds.keys().map(|gvk| self.copies_of(gvk)));
        all
    }

    /// True if the Works and the Cluster are known.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        [Watch::Works, Watch::Clusters]
            .iter()
            .all(|watch| self.synced.contains_key(watch))
    }

    /// The number of known Works.
    #[must_use]
    pub fn count(&self) -> usize {
        self.works.len()
    }

    /// The reason why nothing is written to the cluster now; `None`: it is.
    #[must_use]
    pub fn objection(&self) -> Option<String> {
        self.cluster.objection(&self.config.cluster, self.is_synced())
    }

    /// True while the first response is awaited that an objection is made of: the lists of the Works and of the Cluster, and which
    /// cluster responds. Until then an objection is nothing to report.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        !self.is_synced() || (self.cluster.identity.is_none() && self.cluster.probe.is_none())
    }

    /// The next step of a key. Cost: O(objects of the Work); of the Cluster O(nodes + kinds).
    #[must_use]
    pub fn plan(&self, key: &Key, now: Time) -> Plan {
        match key {
            Key::Cluster => self.plan_cluster(now),
            Key::Work(name) => self.plan_work(name, now),
        }
    }

    fn copies_of(&self, gvk: &Gvk) -> Watch {
        Watch::Copies(self.config.cluster.clone(), gvk.clone())
    }

    fn owner(&self, work: &str) -> WorkOwner {
        WorkOwner {
            work: NamespacedName::new(&self.config.namespace, work),
            cluster: self.config.cluster.clone(),
        }
    }
}
