//! The clusters where a copy is wanted, and the bindings that record that or are about to.

use entourage_api::work::TargetCluster;

use crate::{
    cache::{Binding, ResourceState},
    fleet::{
        Fleet,
        activation::applies,
        claims::{claimed_by, is_selected},
        needs::{self, is_required_on},
    },
    object::{ResourceId, Str},
    observation::Template,
};

/// True if a template's copy is wanted on a cluster, also while its binding is being deleted: it is scheduled there if it has a
/// policy of its own, or a live referrer needs it.
pub(crate) fn is_wanted(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    own: bool,
    cluster: &Str,
) -> bool {
    let placed = resource
        .last_binding()
        .is_some_and(|binding| binding.needs_on(cluster));
    (own && placed) || is_required_on(fleet, id, cluster)
}

/// True if the copy is wanted here: the binding is scheduled here, or a live referrer is. What a deleted policy left to a
/// former template of this name does not count for the current one.
pub(crate) fn wants(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let placed = resource.binding.as_ref().is_some_and(|binding| {
        let left = resource.template.as_ref().filter(|each| is_former(binding, each));
        binding.object.spec.placement.is_some()
            && binding.is_placed_on(cluster)
            && left.is_none_or(|template| is_selected(fleet, id, &template.meta))
    });
    placed || is_required_on(fleet, id, cluster)
}

/// True if the binding was created for a former template of this name.
pub(crate) fn is_former(binding: &Binding, template: &Template) -> bool {
    binding.owner().is_some_and(|owner| *owner != *template.meta.uid)
}

/// True if the stored binding accounts for a copy here: no copy is created before (architecture 2.3).
pub(crate) fn is_committed(binding: &Binding, cluster: &str) -> bool {
    binding.is_placed_on(cluster)
        || binding
            .object
            .spec
            .required_by
            .iter()
            .any(|snapshot| TargetCluster::find(&snapshot.clusters, cluster).is_some())
}

/// True if an object without a binding is about to get one: a policy that does not wait for its next change claims or selects
/// it, or it is a dependency. Cost: O(candidate policies + referrers × their clusters).
pub(crate) fn is_coming(fleet: &Fleet, id: &ResourceId) -> bool {
    let Some(resource) = fleet.resource(id).filter(|resource| !resource.is_gone()) else {
        return false;
    };
    let Some(template) = resource
        .template
        .as_ref()
        .filter(|held| held.meta.deleting.is_none())
    else {
        return false;
    };
    let is_claimed = match claimed_by(fleet, id, &template.meta) {
        Some((_, policy)) => applies(policy, resource, &template.meta),
        None => is_selected(fleet, id, &template.meta),
    };
    is_claimed || needs::is_needed(fleet, id, resource)
}
