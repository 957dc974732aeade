//! The request to the scheduler, and its outcome.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::{
    cluster::{Cluster, SyncMode},
    policy::{ClusterAffinity, OverflowAffinity, Placement},
    work::{Component, TargetCluster},
};
use entourage_model::object::{Gvk, Str, StrMap};

use crate::estimate::{Capacity, Demand, Estimate};

/// A cluster that may be scheduled to.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// The labels of its Cluster object.
    pub labels: &'a StrMap,
    /// Its Cluster object; its metadata is not read.
    pub cluster: &'a Cluster,
    /// True if it responds and reports that it is healthy. Otherwise it counts as tainted with
    /// `cluster.karmada.io/not-ready:NoSchedule`, or with `cluster.karmada.io/unreachable:NoSchedule` if its condition Ready is
    /// Unknown.
    pub ready: bool,
    /// True if its Cluster object is being deleted.
    pub deleting: bool,
}

/// A template to schedule.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The policy's placement.
    pub placement: &'a Placement,
    /// The kind of the template.
    pub gvk: &'a Gvk,
    /// The number of replicas of the template; `None` for a kind without replicas.
    pub replicas: Option<i32>,
    /// The components of the template, if they are scheduled as one set: see [`crate::is_set`]. Empty otherwise.
    pub components: &'a [Component],
    /// The uid of the template; it decides between two clusters with the same claim to a replica.
    pub uid: &'a str,
    /// The present targets. Taints and missing APIs do not evict it from them.
    pub current: &'a [TargetCluster],
    /// The placement that the present targets were scheduled by, as JSON; empty if unknown.
    pub applied: &'a str,
    /// The name of the group of `clusterAffinities` in use, empty for none; `None` if that was not recorded yet: then it is the
    /// first one that selects all present targets.
    pub affinity: Option<&'a str>,
    /// True if a user requested scheduling as if there were no present targets.
    pub fresh: bool,
    /// The clusters that it is being evicted from.
    pub evicted: &'a [Str],
    /// The room of the clusters; `None` if it is unknown: then no cluster has any. Read only where replicas are divided by room, and for
    /// a set.
    pub room: Option<Room<'a>>,
    /// The replicas of present targets whose pods no node there can take, sorted by cluster: while the result stands, they
    /// move to other clusters, as far as these have room. The cluster gets no further ones if others have room for them, also by an
    /// entry with 0 replicas. Read only where replicas are divided by room.
    pub stuck: &'a [TargetCluster],
    /// True if the members decide how many replicas each present target has, 0 included. A division gives each chosen cluster at least
    /// one then, even if the sum grows: from none a workload does not come back by itself. Not read where replicas are divided by room,
    /// except for 0.
    pub followed: bool,
    /// The clusters that every other member of its affinity group has, of those that are scheduled; `None` if it has no such group,
    /// or none of them is scheduled.
    pub beside: Option<Group<'a>>,
    /// The clusters that other members of its anti-affinity group use; `None` if it has no such group.
    pub apart: Option<Group<'a>>,
}

/// A group of workloads with the same value of a label.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// Its name: the key and the value of the label.
    pub name: &'a str,
    /// The clusters of its other members.
    pub clusters: &'a BTreeSet<Str>,
}

/// The room of the clusters for the replicas of one workload.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// The demand of one replica, or of a set. A set counts as one replica in the lists below.
    pub demand: &'a Demand,
    /// The capacity of each cluster; one that reports none is missing.
    pub capacities: &'a BTreeMap<Str, Capacity>,
    /// The replicas of the workload whose requests the capacities contain.
    pub accounted: &'a [TargetCluster],
    /// The replicas of the workload that are among the reserved amounts of the capacities.
    pub reserved: &'a [TargetCluster],
    /// The answers of the clusters' estimators; `None` if estimators are not asked.
    pub estimates: Option<Estimates<'a>>,
}

/// The answers of estimators, for the replicas of one workload. The room of a cluster is the least of what its capacity and its estimator
/// leave; a cluster whose estimator does not answer has the room of its capacity.
#[derive(Clone, Copy, Debug)]
pub struct Estimates<'a> {
    /// The answer of the estimator of a cluster; `None` if it does not answer. A cluster that is missing was not asked.
    pub answers: &'a BTreeMap<Str, Option<Estimate>>,
    /// True if estimators of clusters in Pull mode are asked, too.
    pub in_pull_mode: bool,
}

impl<'a> Estimates<'a> {
    /// The answer for a cluster, if there is one.
    pub(crate) fn of(&self, cluster: &str) -> Option<&'a Estimate> {
        self.answers.get(cluster)?.as_ref()
    }

    /// True if the estimator of a cluster was not asked, and may be.
    pub(crate) fn lacks(&self, candidate: &Candidate<'_>) -> bool {
        let is_asked = self.in_pull_mode || candidate.cluster.spec.sync_mode != SyncMode::Pull;
        is_asked && !self.answers.contains_key(candidate.name)
    }
}

impl<'a> Request<'a> {
    /// A request for a template that is not scheduled yet.
    #[must_use]
    pub fn first(placement: &'a Placement, gvk: &'a Gvk, replicas: Option<i32>) -> Self {
        Self {
            placement,
            gvk,
            replicas,
            components: &[],
            uid: "",
            current: &[],
            applied: "",
            affinity: None,
            fresh: false,
            evicted: &[],
            room: None,
            stuck: &[],
            followed: false,
            beside: None,
            apart: None,
        }
    }

    /// True if the cluster is a present target. Cost: as [`TargetCluster::find`].
    pub(crate) fn is_current(&self, cluster: &str) -> bool {
        TargetCluster::find(self.current, cluster).is_some()
    }
}

/// The outcome of scheduling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is at least one target cluster.
    Placed {
        /// The clusters, sorted by name, each with its replicas (0 for a kind without).
        clusters: Vec<TargetCluster>,
        /// The name of the group of `clusterAffinities` that is used; empty without groups.
        affinity: String,
        /// A note for readers: selected clusters that were left out, names that no Cluster has. Empty if there is nothing to
        /// note. It omits clusters that the policy does not select, so that the condition does not change with each cluster
        /// that joins.
        note: String,
    },
    /// There is no target cluster, or the placement has a feature that this version does not support.
    Failed {
        /// The reason for the condition `Scheduled`; of the table `entourage_api::keys::reason`.
        reason: &'static str,
        /// The request, the cause and the remedy.
        message: String,
        /// The present targets, and the clusters that it is being evicted from, that no group selects, sorted by name: it leaves
        /// them all the same. Those that are no candidates are unknown, and are not among them.
        unselected: Vec<Str>,
    },
}

/// The outcome of scheduling, and what would make it more accurate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The outcome by what is known.
    pub outcome: Outcome,
    /// The clusters whose estimators are to be asked first, since the outcome depends on their room. Empty unless
    /// [`Room::estimates`] are given and a cluster gets more replicas than it has.
    pub unestimated: BTreeSet<Str>,
}

/// One group of clusters that is tried.
#[derive(Clone, Debug)]
pub struct Round<'a> {
    /// The request.
    pub request: Request<'a>,
    /// The clusters that are allowed; `None` allows all.
    pub affinity: Option<&'a ClusterAffinity>,
    /// Further clusters that are allowed: each group takes the replicas for which those before it have no room.
    pub overflow: &'a [OverflowAffinity],
    /// The field of the policy that holds the affinity: `clusterAffinity` or `clusterAffinities[1]`.
    pub path: String,
    /// The name of the group; empty for `clusterAffinity`.
    pub name: &'a str,
}
