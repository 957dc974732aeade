//! What is to become of claims that hold data, as templates, policies and referrers say it together.

use entourage_api::keys::{VOLUME_RETENTION_DELETE, annotation};

use crate::{
    index::{Index, ResourceState, needs::referrer_bindings},
    object::{Meta, Str},
};

/// What an object says of the claims that it concerns.
pub(crate) fn wish(meta: &Meta) -> Option<&str> {
    meta.annotation(annotation::VOLUME_RETENTION)
}

/// What the binding of a template is to say: what the template itself wishes, else its policy, else all who require it
/// together; where none of them can be asked any more, what was stored. Cost: O(referrers).
pub(crate) fn retention(
    index: &Index,
    resource: &ResourceState,
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
    let mut wishes = referrer_bindings(index, resource)
        .map(|binding| wish(&binding.meta))
        .peekable();
    if !is_attached || wishes.peek().is_none() {
        return stored.map(Into::into);
    }
    wishes
        .all(|wish| wish == Some(VOLUME_RETENTION_DELETE))
        .then(|| VOLUME_RETENTION_DELETE.into())
}
