//! Upkeep of derived state: claims, stale dependencies, and the end of a resource.

use std::collections::BTreeSet;

use super::{Dirty, late_writes::is_unseen};
use crate::{
    cache::{AGE, Binding, CopyState, Freshness, MOST, ResourceState, Tombstone, referred},
    engine::routes::Changed,
    fleet::{Fleet, current::is_current, wanted::wants},
    object::{NamespacedName, ResourceId, Str, Time},
    scope::claim_of,
};

impl Fleet {
    /// A template and its binding may both carry a claim; the policy waits for both to lose it, but not for a binding that
    /// another component manages.
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
        let resource = self.cache.resources.get(id);
        let still: Vec<NamespacedName> = resource
            .and_then(|each| each.template.as_ref())
            .and_then(|template| claim_of(&template.meta))
            .into_iter()
            .chain(
                resource
                    .and_then(|each| each.binding.as_ref())
                    .and_then(Binding::claim),
            )
            .collect();
        if let Some(policy) = before
            && !still.contains(&policy)
        {
            if let Some(ids) = self.graph.claimed.get_mut(&policy) {
                ids.remove(id);
                if ids.is_empty() {
                    self.graph.claimed.remove(&policy);
                }
            }
            self.route(Changed::Policy(&policy), dirty);
        }
        if let Some(policy) = after {
            self.graph
                .claimed
                .entry(policy.clone())
                .or_default()
                .insert(id.clone());
            self.route(Changed::Policy(&policy), dirty);
        }
    }

    pub(crate) fn copy_state(&mut self, id: &ResourceId, cluster: &Str) -> &mut CopyState {
        self.note_records(cluster, &id.gvk);
        self.get_or_create(id).copies.get_or_default(cluster.clone())
    }

    /// A member responded for a copy: the status has news.
    pub(super) fn answered(&mut self, id: &ResourceId, now: Time) {
        if let Some(resource) = self.cache.resources.get_mut(id) {
            resource.answers = Some(resource.answers.map_or((now, now), |(first, _)| (first, now)));
        }
    }

    /// Lists that determine its status were synced only now: the consequences for it and for its referrers are computed soon.
    /// Cost: O(referrers).
    pub(crate) fn lists_came(&mut self, id: &ResourceId, now: Time) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        resource.lists_came = Some(now);
        for referrer in &self.graph.links.of(id).referrers {
            if let Some(resource) = self.cache.resources.get_mut(referrer) {
                resource.lists_came = Some(now);
            }
        }
    }

    /// Releases the stale dependencies of a template whose copies are all current: none of them needs its former references.
    /// Cost: O(its copies + former references).
    pub(super) fn release_stale_dependencies(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        if self.graph.links.of(id).stale_dependencies.is_empty() {
            return;
        }
        // The leader may be sending a copy of a version that this process does not know.
        let may_come = |cluster: &Str| !self.leading && is_unseen(resource, cluster);
        let stale = |cluster: &Str| {
            may_come(cluster) || (self.may_exist(id, cluster) && !is_current(self, id, cluster))
        };
        if resource.copies.keys().any(stale) {
            return;
        }
        let keeping = keeps_on(resource);
        for dependency in self.graph.links.release(id) {
            for cluster in &keeping {
                self.keep_on(&dependency, cluster);
            }
            self.route(Changed::Template(&dependency), dirty);
            self.forget_if_empty(&dependency, now);
        }
    }

    /// A deleted workload was removed from a member: its dependencies there are kept if it requested that.
    pub(super) fn remember_preserved(&mut self, id: &ResourceId, cluster: &Str) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        resource.preserved_on.remove(cluster);
        if !resource.is_gone() || !keeps_on(resource).contains(cluster) {
            return;
        }
        let references = &self.graph.links.of(id).references;
        let dependencies: Vec<ResourceId> = references.iter().map(referred).collect();
        for dependency in dependencies {
            self.keep_on(&dependency, cluster);
        }
    }

    /// A copy that was requested to be kept on a member is kept, unless another referrer needs it there: then that one decides
    /// in the end.
    fn keep_on(&mut self, id: &ResourceId, cluster: &Str) {
        let needed = self
            .cache
            .resources
            .get(id)
            .is_none_or(|resource| wants(self, id, resource, cluster));
        if !needed && let Some(resource) = self.cache.resources.get_mut(id) {
            resource.preserved_on.insert(cluster.clone());
        }
    }

    /// The resource, created if there is none, with the freshness that it had when it was forgotten. Resources are created only here.
    pub(super) fn get_or_create(&mut self, id: &ResourceId) -> &mut ResourceState {
        let tombstones = &self.cache.tombstones;
        self.cache.resources.entry(id.clone()).or_insert_with(|| {
            let Some(known) = tombstones.get(id) else {
                return Box::default();
            };
            let at = |freshness: &Freshness| CopyState {
                freshness: *freshness,
                ..CopyState::default()
            };
            Box::new(ResourceState {
                freshness: known.template,
                binding_freshness: known.binding,
                copies: known
                    .copies
                    .iter()
                    .map(|(cluster, freshness)| (cluster.clone(), at(freshness)))
                    .collect(),
                ..ResourceState::default()
            })
        })
    }

    fn forget(&mut self, id: &ResourceId, resource: &ResourceState, now: Time) {
        let known = Tombstone {
            template: resource.freshness,
            binding: resource.binding_freshness,
            copies: resource
                .copies
                .iter()
                .map(|(cluster, state)| (cluster.clone(), state.freshness))
                .collect(),
        };
        self.cache.tombstones.insert(id.clone(), known);
        self.cache.forgotten.push_back((now, id.clone()));
        while let Some((time, _)) = self.cache.forgotten.front() {
            if self.cache.forgotten.len() <= MOST && now.0 - time.0 < AGE {
                break;
            }
            if let Some((_, id)) = self.cache.forgotten.pop_front() {
                self.cache.tombstones.remove(&id);
            }
        }
    }

    /// Drops a resource without any state.
    pub(crate) fn forget_if_empty(&mut self, id: &ResourceId, now: Time) {
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        if resource.binding.is_some() || !resource.has_nothing_left() {
            return;
        }
        let mut raised = std::mem::take(&mut self.memory.raised);
        self.grouped(id, &mut raised);
        self.memory.raised = raised;
        if self.graph.links.of(id).is_held() {
            return;
        }
        let Some(resource) = self.cache.resources.remove(id) else {
            return;
        };
        self.memory.propagations.forget(id);
        self.forget(id, &resource, now);
        for dependency in self.graph.links.forget(id) {
            self.forget_if_empty(&dependency, now);
        }
    }
}

/// The members to which a binding that requests preservation is scheduled.
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
