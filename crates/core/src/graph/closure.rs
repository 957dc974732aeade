//! What a template takes along: what it refers to, what that refers to, and so on.
//!
//! Each template has two lists: [`direct`](super::Links::direct), what it refers to itself, and
//! [`references`](super::Links::references), the closure of that. Only the second one is ever read by who decides
//! where something goes, so that a `requiredBy` always names the template that a policy placed, whatever lies between.
//! Invariants:
//!
//! - `references` is what can be reached over `direct` in at most [`MOST_STEPS`] steps, without the template itself. A circle is
//!   harmless: it is a set. `referrers` is the other direction of it.
//! - So the referrers of a template are all whose closure can change when what it refers to changes: they are computed again,
//!   and nobody else is.
//! - Each step has consent for itself: what a template names in another namespace counts only if that one lets it
//!   ([`crate::fleet::Fleet::may_need`]), whoever takes the template along.
//! - What does not exist adds nothing. It ceases to when a GET has proved that it is gone, and not before; until a kind is
//!   listed that something in the closure is of, nothing is removed anywhere ([`crate::fleet::Fleet::is_removal_safe`]): every kind that is
//!   named is in use from then on, and counts there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::links::LinkTable;
use crate::{interpreter::references::DependencyReference, object::ResourceId};

/// How many steps are followed. Real chains have two or three; a longer one is a mistake, or one of somebody who would have
/// us walk through everything.
const MOST_STEPS: usize = 8;

/// How many references are looked at for one template. More are those of somebody who has everything refer to everything,
/// and what one event costs must not grow with that.
const MOST_REFERENCES: usize = 4096;

impl LinkTable {
    /// What is reached from a template. Optional is what is reached over an optional reference only: without that step the
    /// template can do. Cost: O(references of what is reached); O(direct references) if these refer to nothing.
    /// True is returned, too, if it was cut short.
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
                    // What the template names itself always counts.
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

/// What is not reached because the search was cut short may be needed as before: nothing leaves because of that.
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
