//! Suspension: a policy holds delivery back, to every cluster or to some.
//!
//! What a suspended binding wrote before stays as it is: it is not updated, not restored and not moved. Deleting the
//! template still removes its copies. A dependency goes where any workload that is not suspended there needs it (Karmada
//! does not let dependencies inherit a suspension, reference 2.5).

use crate::{
    cache::ResourceState,
    fleet::{Fleet, needs::followers_on},
    object::ResourceId,
    stored_binding::is_held_back_from,
};

/// Whether nothing may be written to a cluster now: everybody who needs the copy there is suspended. Cost: O(referrers).
pub(crate) fn is_suspended(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &str) -> bool {
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
