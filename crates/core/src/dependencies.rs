//! Dependencies: who needs an object where, what holds it there, and what the binding says about it.
//!
//! The truth is each referrer's references (architecture 2.2); `requiredBy` and the depended-by labels are a view that
//! is computed here as a whole and written by [`crate::binding`].

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
    index::{
        Binding, Index, ResourceState,
        needs::{followers, holds_as_former, is_anywhere, needed_by},
        wanted::{is_coming, wants},
    },
    object::{Gvk, NamespacedName, ResourceId, Str},
};

/// One referrer as the binding of what it needs shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Required {
    /// The entry of `requiredBy`.
    pub snapshot: BindingSnapshot,
    /// The value of the depended-by label: the permanent id of the referrer's binding.
    pub permanent_id: Str,
}

/// The `requiredBy` snapshots and depended-by labels: committed and evicting clusters of every live referrer, and of a former one
/// those where its copy still is the one that needs the object. Sorted by namespace and name.
///
/// Cost: O(referrers × clusters).
#[must_use]
pub fn snapshots(index: &Index, id: &ResourceId, resource: &ResourceState) -> Vec<Required> {
    if !index.config.propagate_deps {
        return frozen(resource);
    }
    let mut all: Vec<Required> = needed_by(index, id, resource)
        .map(|(binding, clusters)| snapshot(binding, clusters))
        .collect();
    all.sort();
    let name = |each: &Required| (each.snapshot.namespace.clone(), each.snapshot.name.clone());
    all.dedup_by_key(|each| name(each));
    cap(all)
}

/// How many live referrers a binding does not show, because `shown` are all that fit. Cost: O(referrers).
#[must_use]
pub fn left_out(index: &Index, resource: &ResourceState, shown: usize) -> usize {
    let placed = followers(index, resource).filter(|(_, _, binding)| is_anywhere(binding));
    placed.count().saturating_sub(shown)
}

/// How many (referrer, cluster) pairs a binding shows at most: far below what an API server stores in one object
/// (about 43,000 pairs fill 1.5 MiB, karmada reference 2.5).
const MOST_PAIRS: usize = 5_000;

/// Keeps the view within [`MOST_PAIRS`]. What is left out is left out of the view alone; a referrer past the limit is
/// still shown with those of its clusters that nobody before it names, so that every place stays recorded.
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

/// With the feature gate off nothing new follows, and what was taken along stays as it is: the view is kept as stored.
fn frozen(resource: &ResourceState) -> Vec<Required> {
    let Some(binding) = &resource.binding else {
        return Vec::new();
    };
    let stored = binding.object.spec.required_by.iter();
    let permanent_id = |each: &BindingSnapshot| {
        let key = names::depended_by_key(&each.namespace, &each.name);
        binding.meta.label(&key).unwrap_or_default().into()
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

/// What the referrers ask for together: any Overwrite is Overwrite, any preserve is preserve (karmada reference 2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The merged conflictResolution.
    pub conflict_resolution: ConflictResolution,
    /// The merged preserveResourcesOnDeletion. What happens is decided per cluster, see [`preserves`].
    pub preserve: bool,
}

/// Where the policies of the live referrers contradict each other, in Karmada's words (reference 2.5); `None` where they
/// agree, and where a policy of the object's own decides. Cost: O(referrers).
#[must_use]
pub fn policy_conflict(index: &Index, resource: &ResourceState) -> Option<String> {
    if resource
        .binding
        .as_ref()
        .is_none_or(|binding| binding.object.spec.placement.is_some())
    {
        return None;
    }
    let (mut overwrite, mut preserve) = (BTreeSet::new(), BTreeSet::new());
    for (_, _, binding) in followers(index, resource) {
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

/// Merges what the live referrers ask for; one that is orphaned keeps what it needs when its binding is deleted.
/// Cost: O(referrers).
#[must_use]
pub fn merged(index: &Index, resource: &ResourceState) -> Merged {
    let mut merged = Merged::default();
    for (_, referrer, binding) in followers(index, resource) {
        if binding.object.spec.conflict_resolution == ConflictResolution::Overwrite {
            merged.conflict_resolution = ConflictResolution::Overwrite;
        }
        merged.preserve |= binding.is_preserving() || referrer.may_be_orphaned();
    }
    merged
}

/// Who may hold an object on a cluster: everyone who names it, and who named it. Who is named in the stored `requiredBy` and
/// in neither of them let it go: what was stored before this process began is remembered before anything is removed
/// ([`Index::is_removal_safe`]).
fn holders(resource: &ResourceState) -> impl Iterator<Item = &ResourceId> {
    resource.referrers.iter().chain(&resource.stale_referrers)
}

/// What keeps a copy that nobody is placed with any more where it is: a workload that needs it and may still be there
/// (removal runs backwards, architecture 2.9; I2). Answers with the holder.
///
/// Cost: O(referrers); for a referrer that was only taken along there itself, plus O(its referrers).
#[must_use]
pub fn held_by(
    index: &Index,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
) -> Option<ResourceId> {
    let found = holders(resource).find(|holder| {
        let holder = *holder;
        if holder == id || !index.may_exist(holder, cluster) {
            return false;
        }
        let Some(referrer) = index.resource(holder) else {
            return false;
        };
        let names_it = resource.referrers.contains(holder);
        // Of two that need each other one goes first: they would wait for each other for ever.
        let names_holder = resource.references.iter().any(|each| each.id == *holder);
        if names_holder && !(names_it && rank(index, holder, referrer) < rank(index, id, resource)) {
            return false;
        }
        // An orphaned workload goes on running there: it needs what a live one does.
        let is_live = referrer.standing().is_some() || referrer.is_orphaned();
        match (is_live, resource.standing()) {
            // The workload is gone from the hub and still stands on the member: it goes first.
            (false, _) => true,
            // The object itself was deleted on the hub: a live workload does not keep it (a revoked Secret must go).
            (true, None) => false,
            // A live workload that names it: it is moving away, or its owner turned following off. What was only taken along
            // for others leaves before what it needs itself, if it leaves: a copy that nobody accounts for does not.
            (true, Some(_)) if names_it => {
                let leaves = || !wants(index, holder, referrer, cluster);
                index.is_following(referrer) || (referrer.last_binding().is_some() && leaves())
            }
            // A live workload that no longer names it: until its copies no longer do either. Once they did not, it is
            // forgotten as a former one, whatever becomes of its copies later and whatever the binding still says.
            (true, Some(_)) => {
                resource.stale_referrers.contains(holder) && holds_as_former(index, holder, cluster)
            }
        }
    });
    found.cloned().or_else(|| held_by_left(index, resource, cluster))
}

/// A workload of which the cluster holds a copy that nothing accounts for, and that needs the object there. Nobody knows when
/// that one goes, so nothing else may wait for it. Cost: O(referrers).
#[must_use]
pub fn held_by_left(index: &Index, resource: &ResourceState, cluster: &Str) -> Option<ResourceId> {
    let mut holders = resource.referrers.iter();
    let is_left = |id: &ResourceId| {
        index
            .resource(id)
            .is_some_and(|holder| holder.is_left_on(cluster))
    };
    let found = holders.find(|holder| is_left(holder) && takes_along(index, holder, resource));
    found.cloned()
}

/// Whether a workload takes the object along wherever it stands, by its template and its binding, or the one that it is about to
/// get: then a copy of it that nothing accounts for needs it, too. After a crash between the end of a binding and its making
/// again, or a restore, there can be one. Cost: O(log n), more while it has no binding, see [`is_coming`].
fn takes_along(index: &Index, holder: &ResourceId, resource: &ResourceState) -> bool {
    index.resource(holder).is_some_and(|referrer| {
        resource.standing().is_some()
            && referrer.standing().is_some()
            && resource.referrers.contains(holder)
            && match referrer.last_binding() {
                Some(_) => index.is_following(referrer),
                None => is_coming(index, holder),
            }
    })
}

/// A kind of which copies may stand on the cluster and need the object, while nobody has heard yet which do: copies that
/// nothing accounts for are known from the member's list alone. Cost: O(referrers).
#[must_use]
pub fn unheard(index: &Index, resource: &ResourceState, cluster: &Str) -> Option<Gvk> {
    let mut kinds: Vec<&Gvk> = resource.referrers.iter().map(|holder| &holder.gvk).collect();
    kinds.dedup();
    kinds.retain(|gvk| !index.are_copies_heard(cluster, gvk));
    let of_kind = |gvk: &Gvk| {
        let mut holders = resource.referrers.iter().filter(|holder| holder.gvk == *gvk);
        holders.any(|holder| takes_along(index, holder, resource))
    };
    kinds.into_iter().find(|gvk| of_kind(gvk)).cloned()
}

/// The order in which what needs each other leaves a cluster.
fn rank<'a>(index: &Index, id: &'a ResourceId, resource: &ResourceState) -> (bool, &'a ResourceId) {
    (!index.is_following(resource), id)
}

/// Whether a copy that a user's act ended stays, without our marks (architecture 2.14): the binding itself asks for it,
/// where a policy made it, or a referrer does. Cost: O(referrers).
#[must_use]
pub fn preserves(index: &Index, resource: &ResourceState, cluster: &str) -> bool {
    let own = resource
        .last_binding()
        .filter(|binding| binding.needs_on(cluster));
    match own {
        Some(binding) => binding.object.spec.preserve_resources_on_deletion == Some(true),
        None => referrers_preserve(index, resource, cluster),
    }
}

/// Whether a referrer that was placed on the cluster, and did not move away, asked for the copy there to stay.
///
/// A referrer that can no longer be asked is answered for by the binding's merged field: in doubt a copy is kept.
/// Cost: O(referrers).
#[must_use]
pub fn referrers_preserve(index: &Index, resource: &ResourceState, cluster: &str) -> bool {
    let Some(binding) = resource.last_binding() else {
        return true;
    };
    if resource.preserved_on.contains(cluster) {
        return true;
    }
    let spec = &binding.object.spec;
    let on_cluster =
        |snapshot: &&BindingSnapshot| snapshot.clusters.iter().any(|target| target.name == cluster);
    spec.required_by.iter().filter(on_cluster).any(|snapshot| {
        let referrer = index.by_binding(&NamespacedName::new(&snapshot.namespace, &snapshot.name));
        let referrer = referrer
            .and_then(|id| index.resource(id))
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
