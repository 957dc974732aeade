//! The request to the scheduler, and its result.

use std::collections::BTreeMap;

use entourage_api::{
    cluster::Cluster,
    policy::{ClusterAffinity, Placement},
    work::TargetCluster,
};
use entourage_model::object::{Gvk, Str};

/// A cluster that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// The labels of its Cluster object.
    pub labels: &'a BTreeMap<Str, Str>,
    /// Its Cluster object; of its metadata nothing is read.
    pub cluster: &'a Cluster,
    /// Whether it answers and says that it is healthy. One that is not counts as tainted with
    /// `cluster.karmada.io/not-ready:NoSchedule`, or with `cluster.karmada.io/unreachable:NoSchedule` when its condition
    /// Ready is Unknown.
    pub ready: bool,
    /// Whether its Cluster object is being deleted.
    pub deleting: bool,
}

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The policy's placement.
    pub placement: &'a Placement,
    /// The kind of the template.
    pub gvk: &'a Gvk,
    /// How many replicas the template asks for; `None` for a kind without replicas.
    pub replicas: Option<i32>,
    /// The uid of the template; it decides who gets a replica that two clusters have the same claim to.
    pub uid: &'a str,
    /// Where it is placed now. Taints and missing APIs do not drive it away from there.
    pub current: &'a [TargetCluster],
    /// The placement that the present targets were chosen by, as JSON; empty if that is not known.
    pub applied: &'a str,
    /// The name of the group of `clusterAffinities` in use, empty for none; `None` if that was not recorded yet: then it
    /// is the first one that selects all present targets.
    pub affinity: Option<&'a str>,
    /// Whether a user asked for a choice as if nothing were placed.
    pub fresh: bool,
    /// The clusters that it is being evicted from.
    pub evicted: &'a [Str],
}

impl<'a> Request<'a> {
    /// Something of which nothing is placed yet.
    #[must_use]
    pub fn first(placement: &'a Placement, gvk: &'a Gvk, replicas: Option<i32>) -> Self {
        Self {
            placement,
            gvk,
            replicas,
            uid: "",
            current: &[],
            applied: "",
            affinity: None,
            fresh: false,
            evicted: &[],
        }
    }

    /// Whether the cluster is a target already.
    pub(crate) fn is_current(&self, cluster: &str) -> bool {
        self.current.iter().any(|target| target.name == cluster)
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is at least one cluster.
    Placed {
        /// The clusters, sorted by name, each with its replicas (0 for a kind without).
        clusters: Vec<TargetCluster>,
        /// The name of the group of `clusterAffinities` that is used; empty without groups.
        affinity: String,
        /// What a reader should know all the same: selected clusters that were left out, names that no Cluster has.
        /// Empty if there is nothing. It says nothing about clusters that the policy does not select, so that the
        /// condition does not change with each cluster that joins.
        note: String,
    },
    /// There is none, or the placement asks for something that this version does not do.
    Failed {
        /// The reason for the condition `Scheduled`; of the table `entourage_api::keys::reason`.
        reason: &'static str,
        /// What was asked for, why it failed and what to do.
        message: String,
    },
}

/// One group of clusters that is tried.
#[derive(Clone, Debug)]
pub struct Round<'a> {
    /// What is to be placed.
    pub request: Request<'a>,
    /// The clusters that are allowed; `None` allows all.
    pub affinity: Option<&'a ClusterAffinity>,
    /// How the policy calls the affinity: `clusterAffinity` or `clusterAffinities[1]`.
    pub path: String,
    /// The name of the group; empty for `clusterAffinity`.
    pub name: &'a str,
}
