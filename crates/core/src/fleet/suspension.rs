//! Suspension: a policy suspends delivery to all clusters or to some.
//!
//! Copies that a suspended binding wrote before stay as they are: they are not updated, not restored and not evicted. Deleting
//! the template still removes its copies. A dependency is propagated to the clusters of every workload that needs it and is not
//! suspended there (Karmada does not let dependencies inherit a suspension, reference 2.5).

use crate::{
    cache::ResourceState,
    fleet::{Fleet, needs::followers_on},
    object::ResourceId,
    stored_binding::is_held_back_from,
};

/// True if nothing may be written to a cluster now: every binding that needs the copy there is suspended, or a user suspended the
/// copy by its Work, or may have: Works are not listed yet. Cost: O(referrers).
pub(crate) fn is_suspended(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &str) -> bool {
    fleet.awaits_works()
        || fleet.is_suspended_by_work(id, cluster)
        || is_suspended_by_bindings(fleet, id, resource, cluster)
}

/// True if every binding that needs the copy on a cluster is suspended there. Cost: O(referrers).
pub(crate) fn is_suspended_by_bindings(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &str,
) -> bool {
    let Some(binding) = &resource.binding else {
        return false;
    };
    let spec = &binding.object.spec;
    let own = spec.placement.is_some() && binding.is_placed_on(cluster);
    if own && !is_held_back_from(spec, cluster) {
        return false;
    }
    let mut needed = own;
    for referrer in followers_on(fleet, id, cluster) {
        if !is_held_back_from(&referrer.object.spec, cluster) {
            return false;
        }
        needed = true;
    }
    needed
}
