//! Whether a copy is wanted on a cluster, and whether a binding says so or is about to.

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

/// Whether a template's copy is wanted on a cluster, also while its binding is being deleted: placed by the binding if it
/// has an own reason, or needed by a live referrer.
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

/// Whether the copy is wanted here: the binding places it, or a live referrer is placed here. What a policy that is gone
/// left to a former template of this name means nothing for the one that is there now.
pub(crate) fn wants(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let placed = resource.binding.as_ref().is_some_and(|binding| {
        let left = resource.template.as_ref().filter(|each| is_former(binding, each));
        binding.object.spec.placement.is_some()
            && binding.is_placed_on(cluster)
            && left.is_none_or(|template| is_selected(fleet, id, &template.meta))
    });
    placed || is_required_on(fleet, id, cluster)
}

/// Whether the binding was made for a former template of this name.
pub(crate) fn is_former(binding: &Binding, template: &Template) -> bool {
    binding.owner().is_some_and(|owner| *owner != *template.meta.uid)
}

/// Whether the stored binding accounts for a copy here: no copy is made before (architecture 2.3).
pub(crate) fn is_committed(binding: &Binding, cluster: &str) -> bool {
    binding.is_placed_on(cluster)
        || binding
            .object
            .spec
            .required_by
            .iter()
            .any(|snapshot| snapshot.clusters.iter().any(|target| target.name == *cluster))
}

/// Whether an object that has no binding is about to get one: a policy that does not wait for its next change claims or
/// selects it, or something takes it along. Cost: O(candidate policies + referrers × their clusters).
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
