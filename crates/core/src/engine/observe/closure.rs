//! What a template takes along: what it refers to, what that refers to, and so on.
//!
//! Each template has two lists: [`direct`](crate::cache::ResourceState::direct), what it refers to itself, and
//! [`references`](crate::cache::ResourceState::references), the closure of that. Only the second one is ever read by who decides
//! where something goes, so that a `requiredBy` always names the template that a policy placed, whatever lies between.
//! Invariants:
//!
//! - `references` is what can be reached over `direct` in at most [`MOST_STEPS`] steps, without the template itself. A circle is
//!   harmless: it is a set. `referrers` is the other direction of it.
//! - So the referrers of a template are all whose closure can change when what it refers to changes: they are computed again,
//!   and nobody else is.
//! - Each step has consent for itself: what a template names in another namespace counts only if that one lets it
//!   ([`Fleet::may_need`]), whoever takes the template along.
//! - What does not exist adds nothing. It ceases to when a GET has proved that it is gone, and not before; until a kind is
//!   listed that something in the closure is of, nothing is removed anywhere ([`Fleet::is_removal_safe`]): every kind that is
//!   named is in use from then on, and counts there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Dirty;
use crate::{
    cache::referred,
    engine::routes::Changed,
    fleet::Fleet,
    interpreter::references::DependencyReference,
    object::{ResourceId, Time},
};

/// How many steps are followed. Real chains have two or three; a longer one is a mistake, or one of somebody who would have
/// us walk through everything.
pub(super) const MOST_STEPS: usize = 8;

/// How many references are looked at for one template. More are those of somebody who has everything refer to everything,
/// and what one event costs must not grow with that.
const MOST_REFERENCES: usize = 4096;

impl Fleet {
    /// A template refers to this itself, by what is known now.
    ///
    /// Cost: O(its closure); when that differs from before, for each of its referrers O(their closure).
    pub(super) fn refer(
        &mut self,
        id: &ResourceId,
        direct: Vec<DependencyReference>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let resource = self.get_or_create(id);
        let differs = *resource.direct != *direct;
        if differs {
            resource.direct = direct.into();
        }
        self.take_along(id, dirty);
        if differs {
            self.refers_otherwise(id, now, dirty);
        }
    }

    /// A template is gone for certain: who took it along needs nothing more because of it. What it took along itself stays
    /// known, until its copies are gone. Cost: as [`Self::refer`].
    pub(super) fn refers_no_more(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let resource = self.get_or_create(id);
        if !resource.direct.is_empty() {
            resource.direct = Arc::default();
            self.refers_otherwise(id, now, dirty);
        }
    }

    /// Computes again what those take along who take this template along. Cost: O(referrers × their closure).
    fn refers_otherwise(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        for referrer in resource.referrers.clone() {
            // What is gone takes nothing along any more, and what it took along leaves after it.
            let is_held = self
                .cache
                .resources
                .get(&referrer)
                .is_some_and(|resource| resource.template.is_some() || resource.is_orphaned());
            if is_held && self.take_along(&referrer, dirty) {
                self.release_stale_dependencies(&referrer, now, dirty);
                self.route(Changed::Waits(&referrer), dirty);
                self.route(Changed::Needs(&referrer), dirty);
            }
        }
    }

    /// Brings `references`, and the reverse direction, in line with what is reached from a template now. Answers whether that is
    /// a change. Cost: O(its closure).
    fn take_along(&mut self, id: &ResourceId, dirty: &mut Dirty) -> bool {
        let (references, is_cut) = self.closure(id);
        let resource = self.get_or_create(id);
        let references = if is_cut {
            kept(&resource.references, &references)
        } else {
            references
        };
        resource.is_cut = is_cut;
        if *resource.references == *references {
            return false;
        }
        let held = std::mem::replace(&mut resource.references, references.clone());
        let (before, after) = (ids(&held), ids(&references));
        resource
            .stale_dependencies
            .extend(before.iter().filter(|each| !after.contains(each)).cloned());
        resource.stale_dependencies.retain(|each| !after.contains(each));
        for dependency in before.iter().filter(|each| !after.contains(each)) {
            let resource = self.get_or_create(dependency);
            resource.referrers.remove(id);
            resource.stale_referrers.insert(id.clone());
            self.route(Changed::Template(dependency), dirty);
        }
        for dependency in after.iter().filter(|each| !before.contains(each)) {
            self.use_kind(&dependency.gvk);
            let resource = self.get_or_create(dependency);
            resource.stale_referrers.remove(id);
            resource.referrers.insert(id.clone());
            self.route(Changed::Template(dependency), dirty);
        }
        true
    }

    /// What is reached from a template. Optional is what is reached over an optional reference only: without that step the
    /// template can do. Cost: O(references of what is reached); O(direct references) if these refer to nothing.
    /// Whether it was cut short is answered, too.
    fn closure(&self, id: &ResourceId) -> (Arc<[DependencyReference]>, bool) {
        let goes_on = |each: &DependencyReference| each.id == *id || !self.direct(&each.id).is_empty();
        if !self.direct(id).iter().any(goes_on) {
            let resource = self.cache.resources.get(id);
            return (
                resource
                    .map(|resource| resource.direct.clone())
                    .unwrap_or_default(),
                false,
            );
        }
        let mut left = MOST_REFERENCES;
        let mut reached: BTreeMap<&ResourceId, bool> = BTreeMap::new();
        let mut open = BTreeMap::from([(id, false)]);
        for _ in 0..MOST_STEPS {
            let mut next = BTreeMap::new();
            for (at, is_optional) in open {
                for each in self.direct(at).iter().filter(|each| each.id != *id) {
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

    fn direct(&self, id: &ResourceId) -> &[DependencyReference] {
        self.cache
            .resources
            .get(id)
            .map(|resource| &*resource.direct)
            .unwrap_or_default()
    }
}

/// What is not reached because the search was cut short may be needed as before: nothing leaves because of that.
fn kept(before: &[DependencyReference], after: &[DependencyReference]) -> Arc<[DependencyReference]> {
    let reached = ids(after);
    let mut all: Vec<_> = after.to_vec();
    all.extend(before.iter().filter(|each| !reached.contains(&each.id)).cloned());
    all.sort();
    all.into()
}

fn ids(references: &[DependencyReference]) -> BTreeSet<ResourceId> {
    references.iter().map(referred).collect()
}
