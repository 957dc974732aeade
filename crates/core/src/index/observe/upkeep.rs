//! Upkeep of the joins: claims, holds, floors, and the end of an entity.

use std::collections::BTreeSet;

use entourage_api::names;

use super::{Dirty, claim_of};
use crate::{
    index::{CopyState, Entity, Index, Tombstone, referred},
    object::{Id, Named, Str, Time},
    plan::Key,
};

/// How many forgotten objects are remembered as gone, and for how long, in milliseconds: longer than any event is late.
const TOMBSTONES: usize = 20_000;
const TOMBSTONE_AGE: i64 = 600_000;

impl Index {
    /// A template and its binding may both carry a claim; the policy keeps both from ending.
    pub(super) fn claim_changed(
        &mut self,
        id: &Id,
        before: Option<Named>,
        after: Option<Named>,
        dirty: &mut Dirty,
    ) {
        if before == after {
            return;
        }
        let entity = self.entities.get(id);
        let still: Vec<Named> = entity
            .and_then(|each| each.template.as_ref())
            .and_then(|template| claim_of(&template.meta))
            .into_iter()
            .chain(
                entity
                    .and_then(|each| each.binding.as_ref())
                    .and_then(|binding| claim_of(&binding.meta)),
            )
            .collect();
        if let Some(policy) = before
            && !still.contains(&policy)
        {
            if let Some(ids) = self.claimed.get_mut(&policy) {
                ids.remove(id);
                if ids.is_empty() {
                    self.claimed.remove(&policy);
                }
            }
            dirty.push(Key::Policy(policy));
        }
        if let Some(policy) = after {
            self.claimed.entry(policy.clone()).or_default().insert(id.clone());
            dirty.push(Key::Policy(policy));
        }
    }

    pub(super) fn copy_state(&mut self, id: &Id, cluster: &Str) -> &mut CopyState {
        self.unbury(id).copies.entry(cluster.clone()).or_default()
    }

    /// A member answered for a copy: the status has news.
    pub(super) fn answered(&mut self, id: &Id, now: Time) {
        if let Some(entity) = self.entities.get_mut(id) {
            entity.answers = Some(entity.answers.map_or((now, now), |(first, _)| (first, now)));
        }
    }

    /// Ends the holds of a template whose copies are all current: none of them needs what it used to refer to.
    /// Cost: O(its copies + former references).
    pub(super) fn settle(&mut self, id: &Id, now: Time, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        if entity.left_behind.is_empty() {
            return;
        }
        let stale = |cluster: &Str| {
            self.may_exist(id, cluster) && !crate::delivery::plan::is_current(self, id, cluster)
        };
        if entity.copies.keys().any(stale) {
            return;
        }
        let left_behind = entity.left_behind.clone();
        let keeping = keeps_on(entity);
        for dependency in left_behind {
            if let Some(entity) = self.entities.get_mut(&dependency) {
                entity.former.remove(id);
            }
            for cluster in &keeping {
                self.keep_on(&dependency, cluster);
            }
            self.dirty_entity(&dependency, dirty);
            self.forget_if_empty(&dependency, now);
        }
        if let Some(entity) = self.entities.get_mut(id) {
            entity.left_behind.clear();
        }
    }

    /// A workload that was deleted has left a member: what it took along there stays if it asked for that.
    pub(super) fn remember_preserved(&mut self, id: &Id, cluster: &Str) {
        let Some(entity) = self.entities.get_mut(id) else {
            return;
        };
        entity.preserved_on.remove(cluster);
        if !entity.is_gone() || !keeps_on(entity).contains(cluster) {
            return;
        }
        let dependencies: Vec<Id> = entity.references.iter().map(referred).collect();
        for dependency in dependencies {
            self.keep_on(&dependency, cluster);
        }
    }

    /// What was asked to stay on a member stays, unless somebody else needs it there: then that one decides in the end.
    fn keep_on(&mut self, id: &Id, cluster: &Str) {
        let needed = self
            .entities
            .get(id)
            .is_none_or(|entity| crate::delivery::plan::wants(self, entity, cluster));
        if !needed && let Some(entity) = self.entities.get_mut(id) {
            entity.preserved_on.insert(cluster.clone());
        }
    }

    /// The name of the binding of a template: as stored, or as it would be made.
    pub(super) fn binding_name_of(&self, id: &Id) -> Str {
        match self.entities.get(id).and_then(Entity::last_binding) {
            Some(binding) => binding.name.name.clone(),
            None => names::binding_name(&id.gvk.kind, &id.name).into(),
        }
    }

    /// The entity, made if there is none, with its floors as they were when it was forgotten. Entities are made here
    /// only.
    pub(super) fn unbury(&mut self, id: &Id) -> &mut Entity {
        let tombstones = &self.tombstones;
        self.entities.entry(id.clone()).or_insert_with(|| {
            let Some(known) = tombstones.get(id) else {
                return Entity::default();
            };
            let at = |floor: &u64| CopyState {
                floor: *floor,
                ..CopyState::default()
            };
            Entity {
                floor: known.template,
                binding_floor: known.binding,
                copies: known
                    .copies
                    .iter()
                    .map(|(cluster, floor)| (cluster.clone(), at(floor)))
                    .collect(),
                ..Entity::default()
            }
        })
    }

    fn bury(&mut self, id: &Id, entity: &Entity, now: Time) {
        let known = Tombstone {
            template: entity.floor,
            binding: entity.binding_floor,
            copies: entity
                .copies
                .iter()
                .map(|(cluster, state)| (cluster.clone(), state.floor))
                .collect(),
        };
        self.tombstones.insert(id.clone(), known);
        self.buried.push_back((now, id.clone()));
        while let Some((time, _)) = self.buried.front() {
            if self.buried.len() <= TOMBSTONES && now.0 - time.0 < TOMBSTONE_AGE {
                break;
            }
            if let Some((_, id)) = self.buried.pop_front() {
                self.tombstones.remove(&id);
            }
        }
    }

    /// Drops an entity that nothing is known of any more.
    pub(super) fn forget_if_empty(&mut self, id: &Id, now: Time) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let idle = |state: &CopyState| state.live.is_none() && !state.in_flight && !state.uncertain;
        let empty = entity.template.is_none()
            && entity.binding.is_none()
            && entity.referrers.is_empty()
            && entity.former.is_empty()
            && entity.copies.values().all(idle);
        if !empty {
            return;
        }
        let Some(entity) = self.entities.remove(id) else {
            return;
        };
        self.bury(id, &entity, now);
        for dependency in entity.references.iter().map(referred).chain(entity.left_behind) {
            if let Some(entity) = self.entities.get_mut(&dependency) {
                entity.referrers.remove(id);
                entity.former.remove(id);
            }
            self.forget_if_empty(&dependency, now);
        }
    }
}

/// The members where a binding that asks for preservation is placed.
pub(super) fn keeps_on(entity: &Entity) -> BTreeSet<Str> {
    let Some(binding) = &entity.binding else {
        return BTreeSet::new();
    };
    if binding.object.spec.preserve_resources_on_deletion != Some(true) {
        return BTreeSet::new();
    }
    binding
        .object
        .spec
        .clusters
        .iter()
        .map(|target| target.name.as_str().into())
        .collect()
}
