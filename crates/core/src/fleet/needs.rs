//! The referrers of an object: those with which it is propagated, their clusters, and their merged requirements there.

use entourage_api::{policy::ConflictResolution, work::TargetCluster};

use crate::{
    cache::{Binding, ResourceState},
    fleet::{Fleet, autoscaling::has_followed_shares, current::is_current, exports::is_provided_by},
    object::{ResourceId, Str, Time},
    stored_binding::are_same_clusters,
};

/// A referrer with which the object is propagated: the object is among its template's references, and its binding propagates
/// dependencies.
pub(crate) fn followers<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
) -> impl Iterator<Item = (&'a ResourceId, &'a ResourceState, &'a Binding)> {
    fleet.links(id).referrers.iter().filter_map(move |id| {
        let referrer = fleet.resource(id)?;
        let binding = referrer.last_binding()?;
        (referrer.is_in_use() && fleet.is_following(referrer)).then_some((id, referrer, binding))
    })
}

/// The bindings of the live referrers. Cost: O(referrers).
pub(crate) fn referrer_bindings<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
) -> impl Iterator<Item = &'a Binding> {
    followers(fleet, id).map(|(_, _, binding)| binding)
}

/// The bindings of the live referrers that are scheduled to a cluster. Cost: O(referrers).
pub(crate) fn followers_on<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
    cluster: &'a str,
) -> impl Iterator<Item = &'a Binding> {
    followers(fleet, id)
        .map(|(_, _, binding)| binding)
        .filter(move |binding| fleet.config.propagate_deps && binding.needs_on(cluster))
        .filter(move |_| !is_provided_by(fleet, id, cluster))
}

/// True if a live referrer needs the object anywhere. Cost: O(referrers), usually O(1).
pub(crate) fn is_required(fleet: &Fleet, id: &ResourceId) -> bool {
    followers(fleet, id).any(|(_, _, binding)| is_anywhere(binding))
}

pub(crate) fn is_anywhere(binding: &Binding) -> bool {
    let spec = &binding.object.spec;
    !spec.clusters.is_empty() || !spec.graceful_eviction_tasks.is_empty()
}

/// True if a live referrer is scheduled to the cluster, or is being evicted from there (I1). Cost: O(referrers), usually O(1).
pub(crate) fn is_required_on(fleet: &Fleet, id: &ResourceId, cluster: &str) -> bool {
    if !fleet.config.propagate_deps {
        let stored = fleet
            .resource(id)
            .into_iter()
            .flat_map(|resource| &resource.binding)
            .flat_map(|binding| &binding.object.spec.required_by);
        return { stored }.any(|snapshot| TargetCluster::find(&snapshot.clusters, cluster).is_some());
    }
    followers(fleet, id).any(|(_, _, binding)| binding.needs_on(cluster))
        && !is_provided_by(fleet, id, cluster)
}

/// The end of the grace period of a dependency that was deleted while live workloads need it.
pub(crate) fn grace(fleet: &Fleet, id: &ResourceId, deleted: Time, now: Time) -> Option<Time> {
    // API servers cut deletionTimestamp to whole seconds: the deletion may have been at the end of that second.
    let until = deleted.plus(fleet.config.deletion_grace + 999);
    (now < until && is_required(fleet, id)).then_some(until)
}

/// The referrers that need an object, with their clusters: each live referrer on its own and those that it is being evicted
/// from, and a former one on those where its copy still needs the object. A copy of a former one that was not observed only keeps
/// what the stored binding names: it delays a removal, and adds no cluster. Cost: O(referrers × clusters), and
/// O(clusters² + snapshots) for each former one.
pub(crate) fn needed_by<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
    resource: &'a ResourceState,
) -> impl Iterator<Item = (&'a Binding, Vec<TargetCluster>)> {
    let live = followers(fleet, id)
        .filter(|(_, _, binding)| is_anywhere(binding))
        .map(move |(referrer, _, binding)| {
            let mut clusters = shown(fleet, referrer, binding, resource);
            clusters.retain(|target| !is_provided_by(fleet, id, &target.name));
            (binding, clusters)
        })
        .filter(|(_, clusters)| !clusters.is_empty());
    let former = fleet
        .links(id)
        .stale_referrers
        .iter()
        .filter_map(move |referrer_id| {
            let referrer = fleet.resource(referrer_id)?;
            let binding = referrer.last_binding().filter(|_| fleet.is_following(referrer))?;
            let stored = snapshot_clusters(resource, binding);
            let is_held = |target: &TargetCluster| {
                let cluster = target.name.as_str().into();
                resource.standing().is_some()
                    && holds_as_former(fleet, referrer_id, &cluster)
                    && (is_observed(referrer, &cluster)
                        || TargetCluster::find(stored, &target.name).is_some())
            };
            let held: Vec<TargetCluster> = binding.needed_on().into_iter().filter(is_held).collect();
            (!held.is_empty() && referrer_id != id).then_some((binding, held))
        });
    live.chain(former)
}

/// The clusters of a live referrer. Where its shares follow its members, its replicas are shown as they were when its clusters last
/// changed: no step of an autoscaler rewrites the bindings of its dependencies.
fn shown(
    fleet: &Fleet,
    referrer: &ResourceId,
    binding: &Binding,
    resource: &ResourceState,
) -> Vec<TargetCluster> {
    let needed = binding.needed_on();
    if !has_followed_shares(fleet, referrer) {
        return needed;
    }
    let stored = snapshot_clusters(resource, binding);
    match are_same_clusters(stored, &needed) {
        true => stored.to_vec(),
        false => needed,
    }
}

fn is_observed(referrer: &ResourceState, cluster: &Str) -> bool {
    let copy = referrer.copies.get(cluster);
    copy.is_some_and(|copy| copy.live.is_some())
}

/// The clusters on which the stored binding of an object names a referrer. The snapshots are read back only to keep what they
/// name; nothing is deleted because of them. Those of Karmada are in any order. Cost: O(snapshots).
fn snapshot_clusters<'a>(resource: &'a ResourceState, referrer: &Binding) -> &'a [TargetCluster] {
    let Some(stored) = resource.last_binding() else {
        return &[];
    };
    let name = (&*referrer.name.namespace, &*referrer.name.name);
    let mut snapshots = stored.object.spec.required_by.iter();
    let found = snapshots.find(|snapshot| (&*snapshot.namespace, &*snapshot.name) == name);
    found.map_or(&[], |snapshot| &snapshot.clusters)
}

/// True if an object is propagated as a dependency anywhere. With the feature gate off, a dependency that was propagated before
/// still is. Cost: as [`needed_by`].
pub(crate) fn is_needed(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> bool {
    if !fleet.config.propagate_deps {
        let binding = resource.binding.as_ref();
        return binding.is_some_and(|binding| !binding.object.spec.required_by.is_empty());
    }
    needed_by(fleet, id, resource).next().is_some()
}

/// True if a copy of a former referrer still needs the object, or may.
pub(crate) fn holds_as_former(fleet: &Fleet, referrer: &ResourceId, cluster: &Str) -> bool {
    fleet.may_exist(referrer, cluster) && !is_current(fleet, referrer, cluster)
}

/// The conflict resolution for an unmanaged object on a cluster: that of the object's own policy if it is scheduled there, else
/// Overwrite if any referrer that is scheduled there has it. Per cluster: referrers elsewhere do not count (in Karmada they do,
/// reference 2.5). Cost: O(referrers).
pub(crate) fn conflict_resolution(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &str,
) -> ConflictResolution {
    let Some(binding) = &resource.binding else {
        return ConflictResolution::Abort;
    };
    let spec = &binding.object.spec;
    if !fleet.config.propagate_deps || (spec.placement.is_some() && binding.is_placed_on(cluster)) {
        return spec.conflict_resolution;
    }
    let overwrites = followers_on(fleet, id, cluster)
        .any(|referrer| referrer.object.spec.conflict_resolution == ConflictResolution::Overwrite);
    if overwrites {
        ConflictResolution::Overwrite
    } else {
        ConflictResolution::Abort
    }
}
