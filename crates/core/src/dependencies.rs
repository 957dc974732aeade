//! Dependencies: the clusters where an object is required, what keeps its copies there, and the fields of the binding that show
//! it.
//!
//! The source of truth is each referrer's references (architecture 2.2); `requiredBy` and the depended-by labels are a view that
//! is computed here as a whole and written by [`crate::binding`]. It is read back in one place, to keep what it names after a
//! restart: `fleet/needs.rs`.

pub mod drawing;
pub mod graph;
pub(crate) mod retention;

use std::collections::BTreeSet;

use entourage_api::{
    names,
    policy::ConflictResolution,
    work::{BindingSnapshot, TargetCluster},
};

use crate::{
    cache::{Binding, ResourceState},
    fleet::{
        Fleet,
        needs::{followers, holds_as_former, is_anywhere, needed_by},
        wanted::{is_coming, wants},
    },
    graph::Links,
    object::{Gvk, NamespacedName, ResourceId, Str},
};

/// One referrer as shown in the binding of its dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Required {
    /// The entry of `requiredBy`.
    pub snapshot: BindingSnapshot,
    /// The value of the depended-by label: the permanent id of the referrer's binding.
    pub permanent_id: Str,
}

/// The `requiredBy` snapshots and depended-by labels: the committed and evicting clusters of every live referrer, and for a
/// stale referrer the clusters where its copy still requires the object. Sorted by namespace and name.
///
/// Cost: O(referrers × clusters).
#[must_use]
pub fn snapshots(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> Vec<Required> {
    if !fleet.config.propagate_deps {
        return frozen(resource);
    }
    let mut all: Vec<Required> = needed_by(fleet, id, resource)
        .map(|(binding, clusters)| snapshot(binding, clusters))
        .collect();
    all.sort();
    let name = |each: &Required| (each.snapshot.namespace.clone(), each.snapshot.name.clone());
    all.dedup_by_key(|each| name(each));
    cap(all)
}

/// The number of live referrers that a binding does not show, because `shown` are all that fit. Cost: O(referrers).
#[must_use]
pub fn left_out(fleet: &Fleet, id: &ResourceId, shown: usize) -> usize {
    let placed = followers(fleet, id).filter(|(_, _, binding)| is_anywhere(binding));
    placed.count().saturating_sub(shown)
}

/// The maximum number of (referrer, cluster) pairs in a binding: far below the size limit of an object (about 43,000 pairs fill
/// 1.5 MiB, karmada reference 2.5).
const MOST_PAIRS: usize = 5_000;

/// Keeps the view within [`MOST_PAIRS`]. Omitted referrers are omitted from the view alone; a referrer past the limit is still
/// shown with those of its clusters that no referrer before it names, so that every cluster stays recorded.
fn cap(all: Vec<Required>) -> Vec<Required> {
    let mut pairs = 0;
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut kept = Vec::with_capacity(all.len().min(MOST_PAIRS));
    for mut each in all {
        if pairs + each.snapshot.clusters.len() > MOST_PAIRS {
            each.snapshot
                .clusters
                .retain(|target| !shown.contains(&target.name));
        }
        pairs += each.snapshot.clusters.len();
        shown.extend(each.snapshot.clusters.iter().map(|target| target.name.clone()));
        if !each.snapshot.clusters.is_empty() {
            kept.push(each);
        }
    }
    kept
}

/// With the feature gate off no new dependency is propagated, and existing ones stay as they are: the view is kept as stored.
fn frozen(resource: &ResourceState) -> Vec<Required> {
    let Some(binding) = &resource.binding else {
        return Vec::new();
    };
    let stored = binding.object.spec.required_by.iter();
    let permanent_id = |each: &BindingSnapshot| {
        let key = names::depended_by_key(&each.namespace, &each.name);
        binding.label(&key).unwrap_or_default().into()
    };
    stored
        .map(|each| Required {
            snapshot: each.clone(),
            permanent_id: permanent_id(each),
        })
        .collect()
}

fn snapshot(binding: &Binding, clusters: Vec<TargetCluster>) -> Required {
    let snapshot = BindingSnapshot {
        namespace: binding.name.namespace.to_string(),
        name: binding.name.name.to_string(),
        clusters,
    };
    Required {
        snapshot,
        permanent_id: binding.permanent_id().into(),
    }
}

/// The settings of all referrers merged: any Overwrite is Overwrite, any preserve is preserve (karmada reference 2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The merged conflictResolution.
    pub conflict_resolution: ConflictResolution,
    /// The merged preserveResourcesOnDeletion. The removal itself is decided per cluster, see [`preserves`].
    pub preserve: bool,
}

/// The conflict between the policies of the live referrers, in Karmada's words (reference 2.5); `None` if they agree, or if a
/// policy claims the object itself. Cost: O(referrers).
#[must_use]
pub fn policy_conflict(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> Option<String> {
    if resource
        .binding
        .as_ref()
        .is_none_or(|binding| binding.object.spec.placement.is_some())
    {
        return None;
    }
    let (mut overwrite, mut preserve) = (BTreeSet::new(), BTreeSet::new());
    for (_, _, binding) in followers(fleet, id) {
        let spec = &binding.object.spec;
        overwrite.insert(spec.conflict_resolution == ConflictResolution::Overwrite);
        preserve.insert(spec.preserve_resources_on_deletion == Some(true));
    }
    let mut all = Vec::new();
    if overwrite.len() > 1 {
        all.push("ConflictResolution conflicted (Overwrite vs Abort)");
    }
    if preserve.len() > 1 {
        all.push("PreserveResourcesOnDeletion conflicted (true vs false)");
    }
    (!all.is_empty()).then(|| format!("Dependency policy conflict detected: {}.", all.join("; ")))
}

/// Merges the settings of the live referrers; an orphaned one keeps its dependencies when its binding is deleted. Cost:
/// O(referrers).
#[must_use]
pub fn merged(fleet: &Fleet, id: &ResourceId) -> Merged {
    let mut merged = Merged::default();
    for (_, referrer, binding) in followers(fleet, id) {
        if binding.object.spec.conflict_resolution == ConflictResolution::Overwrite {
            merged.conflict_resolution = ConflictResolution::Overwrite;
        }
        merged.preserve |= binding.is_preserving() || referrer.may_be_orphaned();
    }
    merged
}

/// The workloads that may hold an object on a cluster: those that refer to it now, and those that did. One that is named in the
/// stored `requiredBy` and is neither has released it: what was stored before this process started is read before anything is
/// removed ([`Fleet::is_removal_safe`]).
fn holders(links: &Links) -> impl Iterator<Item = &ResourceId> {
    links.referrers.iter().chain(&links.stale_referrers)
}

/// Returns the workload that keeps a copy which is no longer scheduled to the cluster: it requires the copy and may still exist
/// there (removal runs backwards, architecture 2.9; I2).
///
/// Cost: O(referrers); for a referrer that is there only as a dependency itself, plus O(its referrers).
#[must_use]
pub fn held_by(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
) -> Option<ResourceId> {
    let links = fleet.links(id);
    let found = holders(links).find(|holder| {
        let holder = *holder;
        if holder == id || !fleet.may_exist(holder, cluster) {
            return false;
        }
        let Some(referrer) = fleet.resource(holder) else {
            return false;
        };
        let names_it = links.referrers.contains(holder);
        // Of two objects that refer to each other one is removed first: else they would wait for each other for ever.
        let names_holder = links.references.iter().any(|each| each.id == *holder);
        if names_holder && !(names_it && rank(fleet, holder, referrer) < rank(fleet, id, resource)) {
            return false;
        }
        // An orphaned workload goes on running there: it has the same dependencies as a live one.
        let is_live = referrer.standing().is_some() || referrer.is_orphaned();
        match (is_live, resource.standing()) {
            // The workload is gone from the hub and still exists on the member: it is removed first.
            (false, _) => true,
            // The object itself was deleted on the hub: a live workload does not keep it (a revoked Secret must go).
            (true, None) => false,
            // A live workload that refers to it: it is being evicted, or its owner turned propagateDeps off. A workload that is
            // there only as a dependency is removed before its own dependencies, if it is removed: an orphaned copy is not.
            (true, Some(_)) if names_it => {
                let leaves = || !wants(fleet, holder, referrer, cluster);
                fleet.is_following(referrer) || (referrer.last_binding().is_some() && leaves())
            }
            // A live workload that no longer refers to it: until its copies no longer do either. Once they do not, it is
            // dropped from the stale referrers, whatever happens to its copies later and whatever the binding still records.
            (true, Some(_)) => {
                links.stale_referrers.contains(holder) && holds_as_former(fleet, holder, cluster)
            }
        }
    });
    found
        .cloned()
        .or_else(|| held_by_left(fleet, id, resource, cluster))
}

/// Returns a workload that requires the object on the cluster and whose copy there is orphaned, or `None`. It is unknown when
/// that copy is removed, so nothing else may wait for it. Cost: O(referrers).
#[must_use]
pub fn held_by_left(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
) -> Option<ResourceId> {
    let mut holders = fleet.links(id).referrers.iter();
    let is_left = |id: &ResourceId| {
        fleet
            .resource(id)
            .is_some_and(|holder| holder.is_left_on(cluster))
    };
    let found = holders.find(|holder| is_left(holder) && takes_along(fleet, holder, resource));
    found.cloned()
}

/// True if a referrer of the object propagates it to all its clusters, by its template and its binding, or by the binding it is about
/// to get: then an orphaned copy of it requires the object, too. There can be one after a crash between the deletion of a
/// binding and its new creation, or after a restore. Cost: O(log n), more while it has no binding, see [`is_coming`].
fn takes_along(fleet: &Fleet, holder: &ResourceId, resource: &ResourceState) -> bool {
    fleet.resource(holder).is_some_and(|referrer| {
        resource.standing().is_some()
            && referrer.standing().is_some()
            && match referrer.last_binding() {
                Some(_) => fleet.is_following(referrer),
                None => is_coming(fleet, holder),
            }
    })
}

/// Returns a kind whose copies may exist on the cluster and require the object, while the member's list of that kind is not
/// synced: orphaned copies are known from that list alone. Cost: O(referrers).
#[must_use]
pub fn unheard(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> Option<Gvk> {
    let referrers = &fleet.links(id).referrers;
    let mut kinds: Vec<&Gvk> = referrers.iter().map(|holder| &holder.gvk).collect();
    kinds.dedup();
    kinds.retain(|gvk| !fleet.are_copies_observed(cluster, gvk));
    let of_kind = |gvk: &Gvk| {
        let mut holders = referrers.iter().filter(|holder| holder.gvk == *gvk);
        holders.any(|holder| takes_along(fleet, holder, resource))
    };
    kinds.into_iter().find(|gvk| of_kind(gvk)).cloned()
}

/// The order in which objects that refer to each other are removed from a cluster.
fn rank<'a>(fleet: &Fleet, id: &'a ResourceId, resource: &ResourceState) -> (bool, &'a ResourceId) {
    (!fleet.is_following(resource), id)
}

/// True if a copy that a user's action removes is released instead of deleted (architecture 2.14): the binding itself asks for
/// it, where a policy made it, or a referrer does. Cost: O(referrers).
#[must_use]
pub fn preserves(fleet: &Fleet, resource: &ResourceState, cluster: &str) -> bool {
    let own = resource
        .last_binding()
        .filter(|binding| binding.needs_on(cluster));
    match own {
        Some(binding) => binding.object.spec.preserve_resources_on_deletion == Some(true),
        None => referrers_preserve(fleet, resource, cluster),
    }
}

/// True if a referrer that was scheduled to the cluster, and was not rescheduled, asked to preserve the copy there.
///
/// For a referrer that no longer exists the binding's merged field counts: if it is unknown, the copy is kept. Cost:
/// O(referrers).
#[must_use]
pub fn referrers_preserve(fleet: &Fleet, resource: &ResourceState, cluster: &str) -> bool {
    let Some(binding) = resource.last_binding() else {
        return true;
    };
    if resource.preserved_on.contains(cluster) {
        return true;
    }
    let spec = &binding.object.spec;
    let on_cluster = |snapshot: &&BindingSnapshot| TargetCluster::find(&snapshot.clusters, cluster).is_some();
    spec.required_by.iter().filter(on_cluster).any(|snapshot| {
        let referrer = fleet.by_binding(&NamespacedName::new(&snapshot.namespace, &snapshot.name));
        let referrer = referrer
            .and_then(|id| fleet.resource(id))
            .and_then(|each| each.last_binding());
        referrer.map_or(spec.preserve_resources_on_deletion == Some(true), |referrer| {
            referrer.needs_on(cluster) && referrer.is_preserving()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn referrer(name: usize, clusters: &[usize]) -> Required {
        let target = |cluster: &usize| TargetCluster {
            name: format!("member{cluster}"),
            ..TargetCluster::default()
        };
        let clusters = clusters.iter().map(target).collect();
        let snapshot = BindingSnapshot {
            namespace: "default".into(),
            name: format!("app{name:05}"),
            clusters,
        };
        Required {
            snapshot,
            permanent_id: "id".into(),
        }
    }

    #[test]
    fn a_view_that_fits_is_shown_whole() {
        let all: Vec<Required> = (0..100).map(|name| referrer(name, &[1, 2, 3])).collect();
        assert_eq!(cap(all.clone()), all);
    }

    #[test]
    fn past_the_limit_every_cluster_is_still_shown() {
        let mut all: Vec<Required> = (0..MOST_PAIRS).map(|name| referrer(name, &[1])).collect();
        all.push(referrer(MOST_PAIRS, &[1, 2]));
        let shown = cap(all);
        assert_eq!(shown.len(), MOST_PAIRS + 1);
        let last = shown
            .last()
            .map(|each| each.snapshot.clusters.clone())
            .unwrap_or_default();
        assert_eq!(last, referrer(0, &[2]).snapshot.clusters);
        assert!(cap((0..2 * MOST_PAIRS).map(|name| referrer(name, &[1])).collect()).len() == MOST_PAIRS);
    }
}
