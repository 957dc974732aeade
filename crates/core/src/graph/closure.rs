//! The closure of a template: its dependencies, their dependencies, and so on.
//!
//! Each template has two lists: [`direct`](super::Links::direct), its own references, and
//! [`references`](super::Links::references), their closure. Only the closure is used to decide where an object is propagated,
//! so that a `requiredBy` always names the template that is scheduled by a policy, whatever lies between.
//! Invariants:
//!
//! - `references` is what can be reached over `direct` in at most [`MOST_STEPS`] steps, without the template itself. A cycle is
//!   harmless: it is a set. `referrers` is the reverse direction.
//! - So the referrers of a template are all templates whose closure can change when its references change: only they are computed again.
//! - Consent is required for each step: a reference to another namespace counts only if that namespace allows it
//!   ([`crate::fleet::Fleet::may_need`]), whichever template the chain begins with.
//! - An object that does not exist adds nothing. Its references count until a GET has proved its absence, and not after; until
//!   every kind in the closure is listed, nothing is removed anywhere ([`crate::fleet::Fleet::is_removal_safe`]): a kind that
//!   is referred to is in use from then on, and counts there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::links::LinkTable;
use crate::{interpreter::references::DependencyReference, object::ResourceId};

/// The maximum number of steps. Real chains have two or three; a longer one is a mistake, or an attempt to make us walk through
/// everything.
const MOST_STEPS: usize = 8;

/// The maximum number of references that are followed for one template, so that the cost of an event is bounded even if every
/// object refers to every other one.
const MOST_REFERENCES: usize = 4096;

impl LinkTable {
    /// The closure of a template. Optional is what is reached only over an optional reference: the template works without it.
    /// Also returns true if the search was cut short. Cost: O(references of what is reached); O(direct references) if these
    /// refer to nothing.
    pub(super) fn closure(&self, id: &ResourceId) -> (Arc<[DependencyReference]>, bool) {
        let goes_on = |each: &DependencyReference| each.id == *id || !self.of(&each.id).direct.is_empty();
        if !self.of(id).direct.iter().any(goes_on) {
            return (self.of(id).direct.clone(), false);
        }
        let mut left = MOST_REFERENCES;
        let mut reached: BTreeMap<&ResourceId, bool> = BTreeMap::new();
        let mut open = BTreeMap::from([(id, false)]);
        for _ in 0..MOST_STEPS {
            let mut next = BTreeMap::new();
            for (at, is_optional) in open {
                for each in self.of(at).direct.iter().filter(|each| each.id != *id) {
                    // The template's own references always count.
                    if left == 0 && at != id {
                        break;
                    }
                    left = left.saturating_sub(1);
                    let is_optional = is_optional || each.optional;
                    // Reached before, and no less optional: nothing new.
                    if reached.get(&each.id).is_some_and(|held| !held || is_optional) {
                        continue;
                    }
                    reached.insert(&each.id, is_optional);
                    next.insert(&each.id, is_optional);
                }
            }
            open = next;
        }
        let reference = |(id, optional): (&ResourceId, bool)| DependencyReference {
            id: id.clone(),
            optional,
        };
        (reached.into_iter().map(reference).collect(), left == 0)
    }
}

/// The earlier dependencies that a search that was cut short did not reach may still be needed: they are kept.
pub(super) fn kept(
    before: &[DependencyReference],
    after: &[DependencyReference],
) -> Arc<[DependencyReference]> {
    let reached = ids(after);
    let mut all: Vec<_> = after.to_vec();
    all.extend(before.iter().filter(|each| !reached.contains(&each.id)).cloned());
    all.sort();
    all.into()
}

/// The ids of references.
pub(super) fn ids(references: &[DependencyReference]) -> BTreeSet<ResourceId> {
    references.iter().map(|each| each.id.clone()).collect()
}
