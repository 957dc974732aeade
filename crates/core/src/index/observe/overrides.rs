//! Override policies: what they change decides which copies are planned again.

use std::collections::BTreeSet;

use entourage_api::policy::OverridePolicy;

use super::{Deletion, Dirty, named};
use crate::{
    index::{Index, Trouble, is_old, meta_of, override_index::Reach, routes::Changed},
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time},
    observation::ObjectRef,
    overrides::Policy,
    plan::Key,
};

impl Index {
    /// Cost: O(templates that it may apply to × their copies), when what it says changed; see
    /// [`Self::reconsider_reach`]. O(policies of the namespace) when it appears.
    pub(super) fn override_seen(&mut self, policy: &OverridePolicy, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.override_index.meta(&name);
        let which = ObjectRef::Override(name.clone());
        let min_resource_version = self.revisions.of(&which, before.map(Meta::revision));
        let is_echo = min_resource_version > 0 && before.is_some_and(|held| held.is_same_version(&meta));
        if is_echo || is_old(&meta.resource_version, min_resource_version) {
            return;
        }
        let appeared = before.is_none();
        self.revisions.seen(&which);
        let compiled = Policy::new(&name, &meta, &policy.spec);
        let reached = self.override_index.insert(&name, meta, compiled);
        if self.are_overrides_listed() {
            self.override_index.changes(&name, now);
            dirty.push(Key::Override(name.clone()));
        }
        if appeared {
            self.route(Changed::DependentOverride(&name), dirty);
        }
        for reach in &reached {
            self.reconsider_reach(reach, dirty);
        }
    }

    /// Cost: as [`Self::override_seen`].
    pub(super) fn override_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.override_index.meta(name) else {
            return;
        };
        let which = ObjectRef::Override(name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held.revision()));
        if deletion.is_not_of(&held.uid, min_resource_version) {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        let reached = self.override_index.remove(name);
        self.route(Changed::DependentOverride(name), dirty);
        for reach in &reached {
            self.reconsider_reach(reach, dirty);
        }
    }

    /// What applies on this member may have changed. Cost: O(entities), when a Cluster that a rule looks at changes.
    pub(super) fn reconsider_copies_on(&mut self, cluster: &Str, dirty: &mut Dirty) {
        let has = self
            .resources
            .iter()
            .filter(|(_, resource)| resource.copies.contains_key(cluster));
        let ids: Vec<ResourceId> = has.map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.reconsider(id, cluster, dirty);
        }
        self.route(Changed::NamespacesOf(cluster), dirty);
    }

    /// Cost: O(1) where a name and a namespace are given; else O(objects of the kind, in the namespace where one is
    /// given); O(kinds), and O(namespaces × members), more for every kind.
    fn reconsider_reach(&mut self, reach: &Reach, dirty: &mut Dirty) {
        if reach.namespace.is_empty() && reach.gvk.as_ref().is_none_or(Gvk::is_namespace) {
            self.route(Changed::HubNamespaces(&reach.name), dirty);
        }
        let ids: BTreeSet<ResourceId> = self.reached(reach).cloned().collect();
        for id in ids {
            let clusters: Vec<Str> = self.resources[&id].copies.keys().cloned().collect();
            for cluster in clusters {
                self.reconsider(&id, &cluster, dirty);
            }
        }
    }

    /// The objects that a policy of this reach may select. Cost: as [`Self::reconsider_reach`] says of objects.
    pub(crate) fn reached<'a>(&'a self, reach: &'a Reach) -> impl Iterator<Item = &'a ResourceId> {
        let kinds: Vec<&Gvk> = match &reach.gvk {
            Some(gvk) => vec![gvk],
            None => self.kinds.iter().collect(),
        };
        let in_one_place = !reach.namespace.is_empty();
        kinds.into_iter().flat_map(move |gvk| {
            let first = ResourceId::new(gvk.clone(), &reach.namespace, &reach.name);
            self.resources
                .range(first..)
                .map(|(id, _)| id)
                .take_while(move |id| id.gvk == *gvk && (!in_one_place || id.namespace == reach.namespace))
                .take_while(move |id| !in_one_place || reach.name.is_empty() || id.name == reach.name)
                .filter(|id| reach.name.is_empty() || id.name == reach.name)
        })
    }

    /// An object changes that override policies may select, or where it is: they may have another effect now. Cost:
    /// O(log policies + those).
    pub(super) fn dirty_overrides_of(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let names = self.override_index.that_may_apply_to(id).into_iter().cloned();
        self.overrides_may_differ(names.collect(), now, dirty);
    }

    /// The same when the clusters change. Cost: O(override policies).
    pub(super) fn dirty_overrides(&mut self, now: Time, dirty: &mut Dirty) {
        self.overrides_may_differ(self.override_index.names().cloned().collect(), now, dirty);
    }

    fn overrides_may_differ(&mut self, names: Vec<NamespacedName>, now: Time, dirty: &mut Dirty) {
        // What a process reads when it starts is no change.
        if !self.is_base_synced() || !self.are_overrides_listed() {
            return;
        }
        for name in names {
            self.override_index.changes(&name, now);
            dirty.push(Key::Override(name));
        }
    }

    /// A copy may have to look different: what was wrong with its overrides may be over.
    fn reconsider(&mut self, id: &ResourceId, cluster: &Str, dirty: &mut Dirty) {
        let resource = self.resources.get_mut(id);
        let Some(state) = resource.and_then(|resource| resource.copies.get_mut(cluster)) else {
            return;
        };
        let held = state.problem.take_if(|held| held.trouble == Trouble::Override);
        let is_over = held.is_some();
        self.route(Changed::Copy(id, cluster), dirty);
        if is_over {
            self.route(Changed::Trouble(id), dirty);
        }
    }
}
