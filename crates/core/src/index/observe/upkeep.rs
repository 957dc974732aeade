//! Upkeep of the joins: claims, holds, floors, and the end of an entity.

use std::collections::BTreeSet;

use entourage_api::names;

use super::{Dirty, late_writes::is_unseen};
use crate::{
    cache::{AGE, MOST},
    index::{
        CopyState, Index, ResourceState, Tombstone, claim_on, current::is_current, referred, routes::Changed,
        wanted::wants,
    },
    object::{NamespacedName, ResourceId, Str, Time},
    scope::claim_of,
};

impl Index {
    /// A template and its binding may both carry a claim; the policy waits for both to lose it, but not for a binding that
    /// another component keeps.
    pub(super) fn claim_changed(
        &mut self,
        id: &ResourceId,
        before: Option<NamespacedName>,
        after: Option<NamespacedName>,
        dirty: &mut Dirty,
    ) {
        if before == after {
            return;
        }
        let resource = self.resources.get(id);
        let still: Vec<NamespacedName> = resource
            .and_then(|each| each.template.as_ref())
            .and_then(|template| claim_of(&template.meta))
            .into_iter()
            .chain(
                resource
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

    pub(crate) fn copy_state(&mut self, id: &ResourceId, cluster: &Str) -> &mut CopyState {
        self.leaves_a_trace(cluster, &id.gvk);
        self.get_or_create(id).copies.entry(cluster.clone()).or_default()
    }

    /// A member answered for a copy: the status has news.
    pub(super) fn answered(&mut self, id: &ResourceId, now: Time) {
        if let Some(resource) = self.resources.get_mut(id) {
            resource.answers = Some(resource.answers.map_or((now, now), |(first, _)| (first, now)));
        }
    }

    /// Lists that decide its status came only now: what follows from them, for it and for its referrers, is worked out in
    /// a moment. Cost: O(referrers).
    pub(crate) fn lists_came(&mut self, id: &ResourceId, now: Time) {
        let Some(resource) = self.resources.get_mut(id) else {
            return;
        };
        resource.lists_came = Some(now);
        let referrers: Vec<ResourceId> = resource.referrers.iter().cloned().collect();
        for referrer in referrers {
            if let Some(resource) = self.resources.get_mut(&referrer) {
                resource.lists_came = Some(now);
            }
        }
    }

    /// Ends the holds of a template whose copies are all current: none of them needs what it used to refer to.
    /// Cost: O(its copies + former references).
    pub(super) fn release_stale_dependencies(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let Some(resource) = self.resources.get(id) else {
            return;
        };
        if resource.stale_dependencies.is_empty() {
            return;
        }
        // What the leader may be sending is of a version that this process does not know.
        let may_come = |cluster: &Str| !self.leading && is_unseen(resource, cluster);
        let stale = |cluster: &Str| {
            may_come(cluster) || (self.may_exist(id, cluster) && !is_current(self, id, cluster))
        };
        if resource.copies.keys().any(stale) {
            return;
        }
        let stale_dependencies = resource.stale_dependencies.clone();
        let keeping = keeps_on(resource);
        for dependency in stale_dependencies {
            if let Some(resource) = self.resources.get_mut(&dependency) {
                resource.stale_referrers.remove(id);
            }
            for cluster in &keeping {
                self.keep_on(&dependency, cluster);
            }
            self.route(Changed::Template(&dependency), dirty);
            self.forget_if_empty(&dependency, now);
        }
        if let Some(resource) = self.resources.get_mut(id) {
            resource.stale_dependencies.clear();
        }
    }

    /// A workload that was deleted has left a member: what it took along there stays if it asked for that.
    pub(super) fn remember_preserved(&mut self, id: &ResourceId, cluster: &Str) {
        let Some(resource) = self.resources.get_mut(id) else {
            return;
        };
        resource.preserved_on.remove(cluster);
        if !resource.is_gone() || !keeps_on(resource).contains(cluster) {
            return;
        }
        let dependencies: Vec<ResourceId> = resource.references.iter().map(referred).collect();
        for dependency in dependencies {
            self.keep_on(&dependency, cluster);
        }
    }

    /// What was asked to stay on a member stays, unless somebody else needs it there: then that one decides in the end.
    fn keep_on(&mut self, id: &ResourceId, cluster: &Str) {
        let needed = self
            .resources
            .get(id)
            .is_none_or(|resource| wants(self, id, resource, cluster));
        if !needed && let Some(resource) = self.resources.get_mut(id) {
            resource.preserved_on.insert(cluster.clone());
        }
    }

    /// The name of the binding of a template: as stored, or as it would be made. Of two groups that serve a kind of this
    /// name the first holder has Karmada's name, the other one with the group in it (architecture 6); a third one is told apart by all
    /// that it is.
    pub(crate) fn binding_name_of(&self, id: &ResourceId) -> Str {
        if let Some(binding) = self.resources.get(id).and_then(ResourceState::last_binding) {
            return binding.name.name.clone();
        }
        let names = names::binding_names(&id.gvk.group, &id.gvk.kind, &id.name);
        let is_free = |name: &&String| {
            let holder = self.by_binding.get(&NamespacedName::new(&id.namespace, name));
            holder.is_none_or(|holder| holder == id)
        };
        let [.., last] = &names;
        names.iter().find(is_free).unwrap_or(last).as_str().into()
    }

    /// The entity, made if there is none, with its floors as they were when it was forgotten. Entities are made here
    /// only.
    pub(super) fn get_or_create(&mut self, id: &ResourceId) -> &mut ResourceState {
        let tombstones = &self.tombstones;
        self.resources.entry(id.clone()).or_insert_with(|| {
            let Some(known) = tombstones.get(id) else {
                return ResourceState::default();
            };
            let at = |min_resource_version: &u64| CopyState {
                min_resource_version: *min_resource_version,
                ..CopyState::default()
            };
            ResourceState {
                min_resource_version: known.template,
                binding_floor: known.binding,
                copies: known
                    .copies
                    .iter()
                    .map(|(cluster, min_resource_version)| (cluster.clone(), at(min_resource_version)))
                    .collect(),
                ..ResourceState::default()
            }
        })
    }

    fn forget(&mut self, id: &ResourceId, resource: &ResourceState, now: Time) {
        let known = Tombstone {
            template: resource.min_resource_version,
            binding: resource.binding_floor,
            copies: resource
                .copies
                .iter()
                .map(|(cluster, state)| (cluster.clone(), state.min_resource_version))
                .collect(),
        };
        self.tombstones.insert(id.clone(), known);
        self.buried.push_back((now, id.clone()));
        while let Some((time, _)) = self.buried.front() {
            if self.buried.len() <= MOST && now.0 - time.0 < AGE {
                break;
            }
            if let Some((_, id)) = self.buried.pop_front() {
                self.tombstones.remove(&id);
            }
        }
    }

    /// Drops an entity that nothing is known of any more.
    pub(in crate::index) fn forget_if_empty(&mut self, id: &ResourceId, now: Time) {
        let Some(resource) = self.resources.get(id) else {
            return;
        };
        let idle = |state: &CopyState| state.is_absent() && state.copied.is_none();
        let empty = resource.template.is_none()
            && resource.binding.is_none()
            && resource.referrers.is_empty()
            && resource.stale_referrers.is_empty()
            && resource.copies.values().all(idle);
        if !empty {
            return;
        }
        let Some(resource) = self.resources.remove(id) else {
            return;
        };
        self.forget(id, &resource, now);
        for dependency in resource
            .references
            .iter()
            .map(referred)
            .chain(resource.stale_dependencies)
        {
            if let Some(resource) = self.resources.get_mut(&dependency) {
                resource.referrers.remove(id);
                resource.stale_referrers.remove(id);
            }
            self.forget_if_empty(&dependency, now);
        }
    }
}

/// The members where a binding that asks for preservation is placed.
pub(super) fn keeps_on(resource: &ResourceState) -> BTreeSet<Str> {
    let Some(binding) = &resource.binding else {
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
