//! The changes of a Cluster that can change a scheduling result.

use entourage_api::{
    cluster::Cluster,
    policy::{ClusterAffinity, Placement},
};

use crate::{
    affinity,
    cluster::{enablements, ready},
    filter::serves,
    request::Candidate,
    taint,
};
use entourage_model::object::Gvk;

/// True if a change of a Cluster can change where something is placed: its labels, taints, provider, region and
/// zones, its Ready condition, the APIs it serves, and whether it is being deleted. The rest of its status moves often
/// and decides nothing here.
#[must_use]
pub fn relevant_change(old: &Cluster, new: &Cluster) -> bool {
    old.metadata.labels != new.metadata.labels || is_other(old, new) || enablements(old) != enablements(new)
}

/// True if the result for one placement and kind can differ between a cluster before and after a change; `None` where there is no
/// such Cluster. To be asked where the cluster is no target and the last result was not a failure: what a failure reports counts
/// every cluster.
///
/// Cost: O(what the placement lists), and O(groups that both serve) where only the APIs differ.
#[must_use]
pub fn may_change(
    placement: &Placement,
    gvk: &Gvk,
    before: Option<&Candidate<'_>>,
    after: Option<&Candidate<'_>>,
) -> bool {
    let selected = |candidate| affinities(placement).any(|each| is_selected(each, candidate));
    let (Some(before), Some(after)) = (before, after) else {
        let mut one = before.into_iter().chain(after);
        return one.any(|each| selected(each) || is_named(placement, each.name));
    };
    let is_moved = |each| is_selected(each, before) != is_selected(each, after);
    if affinities(placement).any(is_moved) {
        return true;
    }
    if !selected(after) {
        return false;
    }
    let (old, new) = (before.cluster, after.cluster);
    let reads_labels = !placement.spread_constraints.is_empty() || placement.replica_scheduling.is_some();
    is_other(old, new)
        || before.deleting != after.deleting
        || before.ready != after.ready
        || (reads_labels && before.labels != after.labels)
        || (enablements(old) != enablements(new) && serves(old, gvk) != serves(new, gvk))
}

/// True if something else of two Clusters differs than their labels and APIs.
fn is_other(old: &Cluster, new: &Cluster) -> bool {
    old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some()
        || old.spec.provider != new.spec.provider
        || old.spec.region != new.spec.region
        || affinity::zones(old) != affinity::zones(new)
        || !taint::is_same(&old.spec.taints, &new.spec.taints)
        || ready(old) != ready(new)
}

/// The affinities of a placement; `None` selects all clusters.
fn affinities(placement: &Placement) -> impl Iterator<Item = Option<&ClusterAffinity>> {
    let terms = &placement.cluster_affinities;
    let single = terms.is_empty().then_some(placement.cluster_affinity.as_ref());
    single
        .into_iter()
        .chain(terms.iter().map(|term| Some(&term.affinity)))
}

fn is_selected(affinity: Option<&ClusterAffinity>, candidate: &Candidate<'_>) -> bool {
    affinity.is_none_or(|affinity| affinity::selects(affinity, candidate))
}

/// True if the placement names the cluster: a result tells of names that no Cluster has.
fn is_named(placement: &Placement, cluster: &str) -> bool {
    let mut names = affinities(placement)
        .flatten()
        .flat_map(|each| &each.cluster_names);
    names.any(|name| name == cluster)
}
