//! The retention of claims that hold data, by templates, policies and referrers together.

use entourage_api::keys::{VOLUME_RETENTION_DELETE, annotation};

use crate::{
    cache::ResourceState,
    fleet::{Fleet, needs::referrer_bindings},
    object::{Meta, ResourceId, Str},
};

/// The retention that an object requests for its claims, or `None`.
pub(crate) fn wish(meta: &Meta) -> Option<&str> {
    meta.annotation(annotation::VOLUME_RETENTION)
}

/// The retention for the binding of a template: that of the template itself, else of its policy, else of all its dependents
/// together; if none of them exists any more, the stored one. Cost: O(referrers).
pub(crate) fn retention(
    fleet: &Fleet,
    (id, resource): (&ResourceId, &ResourceState),
    template: &Meta,
    policy: Option<&Meta>,
    stored: Option<&str>,
) -> Option<Str> {
    if let Some(wish) = wish(template) {
        return Some(wish.into());
    }
    if let Some(policy) = policy {
        return wish(policy).map(Into::into);
    }
    let is_attached = resource
        .last_binding()
        .is_none_or(|binding| binding.object.spec.placement.is_none());
    let mut wishes = referrer_bindings(fleet, id)
        .map(|binding| binding.annotation(annotation::VOLUME_RETENTION))
        .peekable();
    if !is_attached || wishes.peek().is_none() {
        return stored.map(Into::into);
    }
    wishes
        .all(|wish| wish == Some(VOLUME_RETENTION_DELETE))
        .then(|| VOLUME_RETENTION_DELETE.into())
}
