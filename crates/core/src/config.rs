//! The settings of the decisions.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    eviction_budget::Budget,
    interpreter::customized::Engine,
    object::{ResourceId, Str},
    places::is_system,
    reserved::{is_skipped_kind, is_skipped_namespace},
};

/// The default number of kinds outside Kubernetes itself that the policies of a namespace may name.
pub const KINDS_PER_NAMESPACE: usize = 100;

/// The number of endpoints of a member that are collected by default. Slices and ports count, too.
pub const ENDPOINTS_PER_MEMBER: usize = 20_000;

/// The number of Services of a member whose endpoints are watched: each is a watch, and so a connection, of its own.
pub const EXPORTS_PER_MEMBER: usize = 500;

/// The settings of the decisions. Durations are milliseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The id of this hub: the uid of its kube-system namespace.
    pub hub: Str,
    /// The feature gate PropagateDeps (docs/concepts.md, "The feature gates").
    pub propagate_deps: bool,
    /// The time that the copies of a dependency outlive its binding's deletionTimestamp, if it was deleted on the hub while
    /// referenced. Default 5,000.
    pub deletion_grace: i64,
    /// The time that a workload's first delivery to a cluster waits for its dependencies there. Default 30,000.
    pub dependency_wait: i64,
    /// The time for which concurrent changes of dependents are collected before the attached binding is written. Default 50.
    pub coalesce: i64,
    /// The time that a status waits for members that have not reported yet. Default 200.
    pub status_delay: i64,
    /// The minimum time between two status writes of one binding. Default 1,000.
    pub status_interval: i64,
    /// The time that a member must fail its probes before its Ready condition turns False. Default 30,000.
    pub cluster_failure_threshold: i64,
    /// The time that a member whose Ready condition is False must pass its probes before it turns True. Default 0.
    pub cluster_success_threshold: i64,
    /// The time that the agent of a cluster in Pull mode may fail to renew its Lease before its Ready condition turns Unknown.
    /// Default 40,000.
    pub cluster_monitor_grace: i64,
    /// The same for the first Lease of a new Cluster. Default 60,000.
    pub cluster_startup_grace: i64,
    /// The feature gate ResourceDistributionGate (docs/concepts.md, "The feature gates"). Default: off.
    pub distribute: bool,
    /// The namespaces reserved for the system besides `kube-*` and Karmada's own: those of the clusters and of the Lease.
    /// Default: none.
    pub reserved: BTreeSet<Str>,
    /// True if objects may be in namespaces that were not observed, as in a model of a hub: such a namespace has no allow-list of
    /// Secrets. On an API server it is about to be observed, and its Secrets wait for that. Default: false.
    pub implied_namespaces: bool,
    /// True if the hub has Nodes: then it runs workload controllers, and they own the status of templates. Default: false.
    pub hub_has_nodes: bool,
    /// True if deletions that no edit explains have a budget; see [`crate::governor`]. Default: true.
    pub limit_deletions: bool,
    /// The number of copies that may be deleted on a member in a minute, whatever explains it. Default: no limit.
    pub removal_budget: Option<u32>,
    /// The number of kinds outside Kubernetes itself that the policies of a namespace may put in use. Default 100.
    pub kinds_per_namespace: usize,
    /// True if the capacity of members is collected from their nodes and pods. Default: false.
    pub model_resources: bool,
    /// The time that pods must not be scheduled to a node before their replicas move to other clusters; see `crate::descheduling`. It
    /// needs `model_resources`. Default: never.
    pub deschedule_after: Option<i64>,
    /// The estimators of members that are asked for the room of their nodes. Default: none.
    pub estimators: Option<Estimators>,
    /// The feature gate FederatedQuotaEnforcement (docs/concepts.md, "The feature gates"). Default: off.
    pub enforce_quotas: bool,
    /// The feature gate MultiplePodTemplatesScheduling (docs/concepts.md, "The feature gates"). Default: off.
    pub multiple_pod_templates: bool,
    /// True if each copy on a member in Push mode has a Work as a view; see [`crate::works`]. Default: false.
    pub mirror_works: bool,
    /// True if the templates that propagated HorizontalPodAutoscalers scale are labelled; see [`crate::autoscaling`]. Default:
    /// false.
    pub mark_scale_targets: bool,
    /// True if the replicas of templates follow the autoscalers of members; see [`crate::autoscaling`]. Default: false.
    pub sync_replicas: bool,
    /// True if endpoints of exported Services are collected, and ServiceImports get Services; see [`crate::services`]. Default: false.
    pub share_services: bool,
    /// The number of endpoints that are collected of one member; each slice, port and address counts one. Default 20,000.
    pub endpoints_per_member: usize,
    /// The number of Services of one member whose endpoints are watched. Default 500.
    pub exports_per_member: usize,
    /// True if the successes of a workload are also recorded on its binding; see [`crate::event_reasons`]. Default: false.
    pub events_on_bindings: bool,
    /// The feature gate Failover (docs/concepts.md, "The feature gates"). Default: on.
    pub failover: bool,
    /// The rate limit for evictions of bindings from clusters. Default: no limit.
    pub eviction_budget: Budget,
    /// The time that a gracefully evicted copy waits for its replacement, if its task does not set one. Default 600,000.
    pub eviction_timeout: i64,
    /// The engine that compiles the scripts of customizations. Default: none; their operations then have no result.
    pub scripts: Option<Arc<dyn Engine>>,
}

/// The use of `karmada-scheduler-estimator`, one of which may run for each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimators {
    /// The time that one is given for an answer, in milliseconds.
    pub timeout: i64,
    /// True if those of clusters in Pull mode are asked, too.
    pub in_pull_mode: bool,
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
            cluster_monitor_grace: 40_000,
            cluster_startup_grace: 60_000,
            distribute: false,
            reserved: BTreeSet::new(),
            implied_namespaces: false,
            hub_has_nodes: false,
            limit_deletions: true,
            removal_budget: None,
            kinds_per_namespace: KINDS_PER_NAMESPACE,
            model_resources: false,
            deschedule_after: None,
            estimators: None,
            enforce_quotas: false,
            multiple_pod_templates: false,
            mirror_works: false,
            mark_scale_targets: false,
            sync_replicas: false,
            share_services: false,
            endpoints_per_member: ENDPOINTS_PER_MEMBER,
            exports_per_member: EXPORTS_PER_MEMBER,
            events_on_bindings: false,
            failover: true,
            eviction_budget: Budget::default(),
            eviction_timeout: 600_000,
            scripts: None,
        }
    }

    /// True if the namespace belongs to the system: it is not created on members, and no object in it is propagated.
    #[must_use]
    pub fn is_reserved(&self, namespace: &str) -> bool {
        is_skipped_namespace(namespace) || self.reserved.contains(namespace)
    }
    /// True if a template is ignored whatever selects it: it is in a namespace of the system, or is one.
    #[must_use]
    pub fn is_skipped(&self, id: &ResourceId) -> bool {
        is_skipped_kind(&id.gvk)
            || self.is_reserved(&id.namespace)
            || (id.gvk.is_namespace() && self.is_reserved(&id.name))
    }

    /// True if no object is ever distributed into a namespace, because it belongs to the system. Source: seed 000, "targets will
    /// always ignore the kube-system and kube-public namespaces"; the control plane's own, reference 6.3.
    #[must_use]
    pub fn is_protected(&self, namespace: &str) -> bool {
        is_system(namespace) || self.reserved.contains(namespace)
    }
}
