//! The reason why a template has a binding of its own: a policy that claims it, or claimed it once.

use crate::{
    cache::{Binding, Policy, ResourceState},
    fleet::{
        Fleet, activation,
        claims::{claimed_by, missing_overrides},
    },
    object::{NamespacedName, ResourceId},
    observation::Template,
};

/// The reason why the binding exists apart from its referrers.
#[derive(Clone, Copy)]
pub(crate) enum Own<'a> {
    /// A policy claims the template.
    Claimed(&'a NamespacedName, &'a Policy),
    /// A policy claims it and waits: it is lazy and waits for the template's next change, or for an override policy. The binding
    /// stays as it is.
    Held(&'a NamespacedName, &'a Policy),
    /// The policy that claimed it is gone: the binding stays as it is.
    Orphaned,
}

/// The reason why a template has a binding of its own, or `None` if only its dependents require it. `binding` is the stored one,
/// or the one that was deleted. Cost: O(candidate policies).
pub(crate) fn own_part<'a>(
    fleet: &'a Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    binding: Option<&Binding>,
) -> Option<Own<'a>> {
    let claim = claimed_by(fleet, id, &template.meta);
    if let Some((name, policy)) = claim
        && activation::applies(policy, resource, &template.meta)
        && missing_overrides(fleet, name, policy).is_empty()
    {
        return Some(Own::Claimed(name, policy));
    }
    binding
        .filter(|stored| stored.object.spec.placement.is_some())
        .filter(|stored| stored.owner().is_none_or(|owner| *owner == *template.meta.uid))
        .map(|_| claim.map_or(Own::Orphaned, |(name, policy)| Own::Held(name, policy)))
}
