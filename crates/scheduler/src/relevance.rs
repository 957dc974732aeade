//! The changes of a Cluster that can change a scheduling result.

use entourage_api::{
    cluster::Cluster,
    policy::{ClusterAffinity, Placement},
};

use crate::{
    affinity,
    cluster::{enablements, ready, resource_summary},
    divide::weight,
    filter::serves,
    request::Candidate,
    spread, taint,
};
use entourage_model::object::Gvk;

/// True if a change of a Cluster can change where something is placed: its labels, taints, provider, region and
/// zones, its Ready condition, the APIs it serves, and whether it is being deleted. The rest of its status moves often
/// and decides nothing here.
#[must_use]
pub fn relevant_change(old: &Cluster, new: &Cluster) -> bool {
    old.metadata.labels != new.metadata.labels || is_other(old, new) || enablements(old) != enablements(new)
}

/// True if two states of a Cluster report different capacities. What is placed stays where it is; only what waits for room may be
/// placed.
#[must_use]
pub fn reports_other_room(old: &Cluster, new: &Cluster) -> bool {
    old.spec.resource_models != new.spec.resource_models || resource_summary(old) != resource_summary(new)
}

/// A change of one Cluster, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct ClusterChange<'a> {
    /// `None` where there was no such Cluster.
    before: Option<Candidate<'a>>,
    /// `None` where there is none any more.
    after: Option<Candidate<'a>>,
    /// Both are there, and more than labels and APIs differs.
    is_other: bool,
    /// Both are there, and their APIs differ.
    are_apis_other: bool,
}

impl<'a> ClusterChange<'a> {
    /// Compares the two. Cost: O(labels + taints + APIs).
    #[must_use]
    pub fn new(before: Option<Candidate<'a>>, after: Option<Candidate<'a>>) -> Self {
        let differs = |is: fn(&Candidate<'_>, &Candidate<'_>) -> bool| {
            before
                .zip(after)
                .is_some_and(|(before, after)| is(&before, &after))
        };
        Self {
            is_other: differs(|before, after| {
                is_other(before.cluster, after.cluster)
                    || (before.deleting, before.ready) != (after.deleting, after.ready)
            }),
            are_apis_other: differs(|before, after| {
                enablements(before.cluster) != enablements(after.cluster)
            }),
            before,
            after,
        }
    }

    /// True if the Cluster is new, or gone: what a failed result reports counts every Cluster.
    #[must_use]
    pub const fn is_count_changed(&self) -> bool {
        self.before.is_some() != self.after.is_some()
    }

    /// True if the result for one placement and kind can differ. `is_target`: the cluster is a target, or was evicted or is still to
    /// be left: then its taints matter although the placement may not select it any more. A failed result can differ also
    /// where [`Self::is_count_changed`].
    ///
    /// Cost: O(what the placement lists), and O(groups that both serve) where only the APIs differ.
    #[must_use]
    pub fn may_change(&self, placement: &Placement, gvk: &Gvk, is_target: bool) -> bool {
        let selected = |candidate| affinities(placement).any(|each| is_selected(each, candidate));
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            let mut one = self.before.iter().chain(&self.after);
            return is_target || one.any(|each| selected(each) || is_named(placement, each.name));
        };
        let is_moved = |each| is_selected(each, before) != is_selected(each, after);
        if affinities(placement).any(is_moved) {
            return true;
        }
        if !is_target && !selected(after) {
            return false;
        }
        let mut constraints = placement.spread_constraints.iter();
        self.is_other
            || constraints.any(|each| spread::groups(each, before) != spread::groups(each, after))
            || weight(placement, before) != weight(placement, after)
            || (self.are_apis_other && serves(before.cluster, gvk) != serves(after.cluster, gvk))
    }
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
    single.into_iter().chain(terms.iter().flat_map(|term| {
        let overflow = term.overflow_affinities.iter().map(|each| &each.affinity);
        std::iter::once(&term.affinity).chain(overflow).map(Some)
    }))
}

fn is_selected(affinity: Option<&ClusterAffinity>, candidate: &Candidate<'_>) -> bool {
    affinity.is_none_or(|affinity| affinity::selects(affinity, candidate))
}

/// True if the placement names the cluster: a result reports names that no Cluster has.
fn is_named(placement: &Placement, cluster: &str) -> bool {
    let mut names = affinities(placement)
        .flatten()
        .flat_map(|each| &each.cluster_names);
    names.any(|name| name == cluster)
}
