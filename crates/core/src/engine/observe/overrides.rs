//! Override policies: a change of one has the affected copies planned again.

use std::collections::BTreeSet;

use entourage_api::policy::OverridePolicy;

use super::{Dirty, named};
use crate::{
    cache::{Deletion, Held, ProblemKind, meta_of},
    engine::routes::Changed,
    fleet::Fleet,
    graph::Reach,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::ObjectRef,
    overrides::Policy,
    plan::Key,
};

impl Fleet {
    /// An override policy was observed. Cost: O(templates that it may apply to × their copies), when it changed; see
    /// [`Self::reconsider_reach`]. O(policies of the namespace) when it appears.
    pub(super) fn override_seen(&mut self, policy: &OverridePolicy, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.graph.override_index.meta(&name);
        let which = ObjectRef::Override(name.clone());
        let held = before.map(|held| Held::of(held, &meta));
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        let appeared = before.is_none();
        let compiled = Policy::new(&name, &meta, &policy.spec);
        let reached = self.graph.override_index.insert(&name, meta, compiled);
        if self.are_overrides_listed() {
            self.graph.override_index.changes(&name, now);
            dirty.push(Key::Override(name.clone()));
        }
        if appeared {
            self.route(Changed::DependentOverride(&name), dirty);
        }
        for reach in &reached {
            self.reconsider_reach(reach, dirty);
        }
    }

    /// An override policy was deleted. Cost: as [`Self::override_seen`].
    pub(super) fn override_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.graph.override_index.meta(name) else {
            return;
        };
        let which = ObjectRef::Override(name.clone());
        let held_as = (&*held.uid, held.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let reached = self.graph.override_index.remove(name);
        self.route(Changed::DependentOverride(name), dirty);
        for reach in &reached {
            self.reconsider_reach(reach, dirty);
        }
    }

    /// The overrides on this member may have changed. Cost: O(resources), when a Cluster that a rule selects changes.
    pub(super) fn reconsider_copies_on(&mut self, cluster: &Str, dirty: &mut Dirty) {
        let has = self
            .cache
            .resources
            .iter()
            .filter(|(_, resource)| resource.copies.contains_key(cluster));
        let ids: Vec<ResourceId> = has.map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.reconsider(id, cluster, dirty);
        }
        self.route(Changed::NamespacesOf(cluster), dirty);
    }

    /// Plans again the objects that a policy may apply to. Cost: O(1) if a name and a namespace are given; else O(objects of
    /// the kind, in the namespace if one is given); O(kinds), and O(namespaces × members), more for every kind.
    fn reconsider_reach(&mut self, reach: &Reach, dirty: &mut Dirty) {
        if reach.namespace.is_empty() && reach.gvk.as_ref().is_none_or(Gvk::is_namespace) {
            self.route(Changed::HubNamespaces(&reach.name), dirty);
        }
        let ids: BTreeSet<ResourceId> = self.reached(reach).cloned().collect();
        for id in ids {
            let clusters: Vec<Str> = self.cache.resources[&id].copies.keys().cloned().collect();
            for cluster in clusters {
                self.reconsider(&id, &cluster, dirty);
            }
        }
    }

    /// An object that override policies may select has changed, or its clusters have: the policies may have another effect now.
    /// Cost: O(log policies + their number).
    pub(super) fn dirty_overrides_of(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let names = self
            .graph
            .override_index
            .that_may_apply_to(id)
            .into_iter()
            .cloned();
        self.overrides_may_differ(names.collect(), now, dirty);
    }

    /// The same when the clusters change. Cost: O(override policies).
    pub(super) fn dirty_overrides(&mut self, now: Time, dirty: &mut Dirty) {
        self.overrides_may_differ(self.graph.override_index.names().cloned().collect(), now, dirty);
    }

    fn overrides_may_differ(&mut self, names: Vec<NamespacedName>, now: Time, dirty: &mut Dirty) {
        // An object that a process reads when it starts is no change.
        if !self.is_base_synced() || !self.are_overrides_listed() {
            return;
        }
        for name in names {
            self.graph.override_index.changes(&name, now);
            dirty.push(Key::Override(name));
        }
    }

    /// The desired state of a copy may have changed: an error in its overrides may be over.
    fn reconsider(&mut self, id: &ResourceId, cluster: &Str, dirty: &mut Dirty) {
        let resource = self.cache.resources.get_mut(id);
        let Some(state) = resource.and_then(|resource| resource.copies.get_mut(cluster)) else {
            return;
        };
        let held = state.problem.take_if(|held| held.kind == ProblemKind::Override);
        let is_over = held.is_some();
        self.route(Changed::Copy(id, cluster), dirty);
        if is_over {
            self.route(Changed::Problem(id), dirty);
        }
    }
}
