//! Upkeep of the joins: claims, holds, floors, and the end of an entity.

use std::collections::BTreeSet;

use entourage_api::names;

use super::{Dirty, late_writes::is_unseen};
use crate::{
    index::{
        CopyState, Entity, Index, Tombstone, claim_on, current::is_current, floors, referred,
        routes::Changed, wanted::wants,
    },
    object::{Id, Named, Str, Time},
    twin::claim_of,
};

impl Index {
    /// A template and its binding may both carry a claim; the policy waits for both to lose it, but not for a binding that
    /// another component keeps.
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
                    .and_then(|binding| claim_on(&binding.meta)),
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
            self.route(Changed::Policy(&policy), dirty);
        }
        if let Some(policy) = after {
            self.claimed.entry(policy.clone()).or_default().insert(id.clone());
            self.route(Changed::Policy(&policy), dirty);
        }
    }

    pub(crate) fn copy_state(&mut self, id: &Id, cluster: &Str) -> &mut CopyState {
        self.leaves_a_trace(cluster, &id.gvk);
        self.unbury(id).copies.entry(cluster.clone()).or_default()
    }

    /// A member answered for a copy: the status has news.
    pub(super) fn answered(&mut self, id: &Id, now: Time) {
        if let Some(entity) = self.entities.get_mut(id) {
            entity.answers = Some(entity.answers.map_or((now, now), |(first, _)| (first, now)));
        }
    }

    /// Lists that decide its status came only now: what follows from them, for it and for its referrers, is worked out in
    /// a moment. Cost: O(referrers).
    pub(crate) fn lists_came(&mut self, id: &Id, now: Time) {
        let Some(entity) = self.entities.get_mut(id) else {
            return;
        };
        entity.lists_came = Some(now);
        let referrers: Vec<Id> = entity.referrers.iter().cloned().collect();
        for referrer in referrers {
            if let Some(entity) = self.entities.get_mut(&referrer) {
                entity.lists_came = Some(now);
            }
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
        // What the leader may be sending is of a version that this process does not know.
        let may_come = |cluster: &Str| !self.leading && is_unseen(entity, cluster);
        let stale = |cluster: &Str| {
            may_come(cluster) || (self.may_exist(id, cluster) && !is_current(self, id, cluster))
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
            self.route(Changed::Template(&dependency), dirty);
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
            .is_none_or(|entity| wants(self, id, entity, cluster));
        if !needed && let Some(entity) = self.entities.get_mut(id) {
            entity.preserved_on.insert(cluster.clone());
        }
    }

    /// The name of the binding of a template: as stored, or as it would be made. Of two groups that serve a kind of this
    /// name the first holder has Karmada's name, the other one with the group in it (architecture 6); a third one is told apart by all
    /// that it is.
    pub(crate) fn binding_name_of(&self, id: &Id) -> Str {
        if let Some(binding) = self.entities.get(id).and_then(Entity::last_binding) {
            return binding.name.name.clone();
        }
        let names = names::binding_names(&id.gvk.group, &id.gvk.kind, &id.name);
        let is_free = |name: &&String| {
            let holder = self.by_binding.get(&Named::new(&id.namespace, name));
            holder.is_none_or(|holder| holder == id)
        };
        let [.., last] = &names;
        names.iter().find(is_free).unwrap_or(last).as_str().into()
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
            if self.buried.len() <= floors::MOST && now.0 - time.0 < floors::AGE {
                break;
            }
            if let Some((_, id)) = self.buried.pop_front() {
                self.tombstones.remove(&id);
            }
        }
    }

    /// Drops an entity that nothing is known of any more.
    pub(in crate::index) fn forget_if_empty(&mut self, id: &Id, now: Time) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let idle = |state: &CopyState| state.is_absent() && state.copied.is_none();
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
    if !binding.is_preserving() {
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
