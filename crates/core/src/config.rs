//! What the decisions can be tuned by.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    eviction_budget::Budget,
    interpreter::customized::Engine,
    object::{ResourceId, Str},
    places::is_system,
    reserved::{is_skipped_kind, is_skipped_namespace},
};

/// So many kinds that Kubernetes itself does not know the policies of a namespace may name, by default.
pub const KINDS_PER_NAMESPACE: usize = 100;

/// What the decisions can be tuned by. Durations are milliseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our hub's id: the uid of its kube-system namespace.
    pub hub: Str,
    /// The feature gate PropagateDeps (docs/concepts.md, "The feature gates").
    pub propagate_deps: bool,
    /// How long the copies of a dependency that was deleted on the hub while referenced outlive its binding's
    /// deletionTimestamp. Default 5,000.
    pub deletion_grace: i64,
    /// How long a workload's first release to a cluster waits for its dependencies there. Default 30,000.
    pub dependency_wait: i64,
    /// How long referrers that arrive together are collected before the attached binding is written. Default 50.
    pub coalesce: i64,
    /// How long a status waits for the members that have not answered yet. Default 200.
    pub status_delay: i64,
    /// The least time between two status writes of one binding. Default 1,000.
    pub status_interval: i64,
    /// How long a member must fail its probes before its Ready condition turns False. Default 30,000.
    pub cluster_failure_threshold: i64,
    /// How long a member whose Ready condition is False must answer its probes before that turns True. Default 0.
    pub cluster_success_threshold: i64,
    /// The feature gate ResourceDistributionGate (docs/concepts.md, "The feature gates"). Default: off.
    pub distribute: bool,
    /// Namespaces that belong to the system besides `kube-*` and Karmada's own: the clusters' and the Lease's. Default: none.
    pub reserved: BTreeSet<Str>,
    /// Whether the hub has Nodes: then it runs workload controllers, and the status of templates is theirs. Default: no.
    pub hub_has_nodes: bool,
    /// Whether deletions that no edit explains have a budget; see [`crate::governor`]. Default: yes.
    pub brake: bool,
    /// How many copies may be deleted on a member in a minute, whatever explains it. Default: as many as there are.
    pub removal_budget: Option<u32>,
    /// So many kinds that Kubernetes itself does not know the policies of a namespace put in use. Default 100.
    pub kinds_per_namespace: usize,
    /// The feature gate Failover (docs/concepts.md, "The feature gates"). Default: on.
    pub failover: bool,
    /// How fast bindings are evicted from clusters. Default: without a limit.
    pub eviction_budget: Budget,
    /// How long a copy that is evicted gracefully waits for its replacement, where its task says nothing else. Default 600,000.
    pub eviction_timeout: i64,
    /// What compiles the scripts of customizations. Default: none, and they answer nothing.
    pub scripts: Option<Arc<dyn Engine>>,
}

impl Config {
    /// The defaults, for a hub.
    #[must_use]
    pub fn new(hub: &str) -> Self {
        Self {
            hub: hub.into(),
            propagate_deps: true,
            deletion_grace: 5_000,
            dependency_wait: 30_000,
            coalesce: 50,
            status_delay: 200,
            status_interval: 1_000,
            cluster_failure_threshold: 30_000,
            cluster_success_threshold: 0,
            distribute: false,
            reserved: BTreeSet::new(),
            hub_has_nodes: false,
            brake: true,
            removal_budget: None,
            kinds_per_namespace: KINDS_PER_NAMESPACE,
            failover: true,
            eviction_budget: Budget::default(),
            eviction_timeout: 600_000,
            scripts: None,
        }
    }

    /// Whether nothing is propagated out of a namespace, and it is not made on members: it belongs to the system.
    #[must_use]
    pub fn is_reserved(&self, namespace: &str) -> bool {
        is_skipped_namespace(namespace) || self.reserved.contains(namespace)
    }
    /// Whether a template is left alone whatever selects it: it lies in a namespace of the system, or is one.
    #[must_use]
    pub fn is_skipped(&self, id: &ResourceId) -> bool {
        is_skipped_kind(&id.gvk)
            || self.is_reserved(&id.namespace)
            || (id.gvk.is_namespace() && self.is_reserved(&id.name))
    }

    /// Whether nothing is ever distributed into a namespace: it belongs to the system. Source: seed 000, "targets will always
    /// ignore the kube-system and kube-public namespaces"; the control plane's own, reference 6.3.
    #[must_use]
    pub fn is_protected(&self, namespace: &str) -> bool {
        is_system(namespace) || self.reserved.contains(namespace)
    }
}
