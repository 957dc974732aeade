//! Suspension: a policy holds delivery back, to every cluster or to some.
//!
//! What a suspended binding wrote before stays as it is: it is not updated, not restored and not moved. Deleting the
//! template still removes its copies. A dependency goes where any workload that is not suspended there needs it (Karmada
//! does not let dependencies inherit a suspension, reference 2.5).

use entourage_api::work::ResourceBindingSpec;

use crate::{
    dependencies,
    index::{Entity, Index},
};

/// Whether a binding's own suspension holds a cluster back. Cost: O(clusters named).
#[must_use]
pub fn holds(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    let Some(suspension) = &spec.suspension else {
        return false;
    };
    let named = suspension.dispatch.dispatching_on_clusters.iter();
    suspension.dispatch.dispatching == Some(true)
        || named
            .flat_map(|clusters| &clusters.cluster_names)
            .any(|name| name == cluster)
}

/// Whether nothing may be written to a cluster now: everybody who needs the copy there is suspended. Cost: O(referrers).
#[must_use]
pub fn is_suspended(index: &Index, entity: &Entity, cluster: &str) -> bool {
    let Some(binding) = &entity.binding else {
        return false;
    };
    let spec = &binding.object.spec;
    let own = spec.placement.is_some() && binding.is_placed_on(cluster);
    if own && !holds(spec, cluster) {
        return false;
    }
    let mut needed = own;
    for referrer in dependencies::followers_on(index, entity, cluster) {
        if !holds(&referrer.object.spec, cluster) {
            return false;
        }
        needed = true;
    }
    needed
}
