//! Bindings: their clusters determine the copies to deliver and the clusters of the dependencies.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{keys::annotation, work::ResourceBinding};

use super::{Dirty, leading::follow, named};
use crate::{
    cache::{Binding, BindingMeta, Deletion, bound},
    engine::routes::Changed,
    fleet::{Fleet, autoscaling::has_followed_shares},
    object::{NamespacedName, ResourceId, Str, Time},
    observation::Copy,
    scope,
    stored_binding::{are_same_clusters, remembers_failovers},
};

impl Fleet {
    /// A binding was observed. Cost: O(its copies), plus O(references × clusters) when its clusters or its references changed.
    pub(super) fn binding_seen(&mut self, object: &Arc<ResourceBinding>, now: Time, dirty: &mut Dirty) {
        let meta = BindingMeta::of(&object.metadata);
        let name = named(&object.metadata);
        let id = bound(object);
        // A user who may write bindings of one namespace must not have objects of another one delivered.
        if *id.namespace != *name.namespace {
            return;
        }
        self.use_kind(&id.gvk);
        let refers = self.graph.interpreter.of(&id.gvk).refers(&id.gvk);
        let resource = self.get_or_create(&id);
        let other_holds = resource.binding.as_ref().is_some_and(|held| held.name != name);
        let first = resource.binding.is_none() && resource.vanished.is_none();
        if other_holds || resource.binding_freshness.is_outdated(&meta.resource_version) {
            return;
        }
        let outdated = resource.binding_freshness.is_unknown();
        if !outdated
            && resource
                .binding
                .as_ref()
                .is_some_and(|held| held.meta.is_same_version(&meta))
        {
            return;
        }
        resource.binding_freshness.set(meta.revision());
        for item in object.status.iter().flat_map(|status| &status.aggregated_status) {
            if item.copy.is_some() || item.applied {
                self.note_records(&item.cluster_name.as_str().into(), &id.gvk);
            }
        }
        let leading = self.leading;
        let places = object
            .spec
            .clusters
            .iter()
            .chain(object.spec.required_by.iter().flat_map(|each| &each.clusters));
        let places: BTreeSet<Str> = places.map(|target| target.name.as_str().into()).collect();
        let known = places
            .iter()
            .filter(|cluster| self.copies_known(cluster, &id.gvk));
        let known: BTreeSet<Str> = known.cloned().collect();
        let resource = self.get_or_create(&id);
        let labels = object.metadata.labels.as_ref();
        let id_label = scope::binding(&name.namespace).id_label;
        if let Some(permanent_id) = labels.and_then(|all| all.get(id_label)) {
            resource.permanent_id = Some(permanent_id.as_str().into());
        }
        if !leading {
            follow(resource, object);
        }
        for item in object.status.iter().flat_map(|status| &status.aggregated_status) {
            // The stored record counts when this process first observes the binding; after that, while it leads, its own writes count.
            let state = resource.copies.get_or_default(item.cluster_name.as_str().into());
            if first && state.record.is_none() {
                state.record.clone_from(&item.copy);
            }
            if first && !state.live.as_ref().is_some_and(Copy::is_known_healthy) {
                let stored = item.unhealthy_since.as_ref().map(Time::from_k8s);
                state.unhealthy_since = stored.or(state.unhealthy_since);
            }
        }
        for (cluster, state) in resource.copies.iter_mut() {
            if !places.contains(cluster) {
                state.wanted_since = None;
            }
        }
        for cluster in places {
            let is_known = known.contains(&cluster);
            let state = resource.copies.get_or_default(cluster);
            // A status that was stored before the copy was removed may have restored its record: a copy that returns is new
            // there, and waits for its dependencies again.
            if !first && state.wanted_since.is_none() && is_known && state.live.is_none() && !state.in_flight
            {
                state.record = None;
            }
            state.wanted_since.get_or_insert(now);
        }
        resource.vanished = None;
        let binding = Binding {
            refers,
            meta,
            name: name.clone(),
            object: object.clone(),
        };
        let evicted = object.spec.graceful_eviction_tasks.iter();
        for cluster in binding
            .former_clusters()
            .chain(evicted.map(|task| task.from_cluster.as_str()))
        {
            resource.copies.get_or_default(cluster.into());
        }
        let before = resource.binding.replace(binding);
        let after = resource.binding.as_ref();
        let spec_changed = before.as_ref().is_none_or(|held| held.object.spec != object.spec);
        let placement_changed = before.as_ref().is_none_or(|held| {
            held.object.spec.graceful_eviction_tasks != object.spec.graceful_eviction_tasks
                || held.object.spec.propagate_deps != object.spec.propagate_deps
                || held.object.spec.placement.is_some() != object.spec.placement.is_some()
                || held.object.spec.conflict_resolution != object.spec.conflict_resolution
                || held.object.spec.suspension != object.spec.suspension
                || held.object.spec.preserve_resources_on_deletion
                    != object.spec.preserve_resources_on_deletion
                || held.meta.deleting.is_some() != object.metadata.deletion_timestamp.is_some()
                || held.annotation(annotation::VOLUME_RETENTION)
                    != after.and_then(|after| after.annotation(annotation::VOLUME_RETENTION))
                || held.owner().is_some() != after.is_some_and(|after| after.owner().is_some())
        });
        let requirement_changed = before
            .as_ref()
            .is_some_and(|held| held.object.spec.required_by != object.spec.required_by);
        let claims = (
            before.as_ref().and_then(Binding::claim),
            after.and_then(Binding::claim),
        );
        if spec_changed {
            resource.spec_written = Some(now);
        }
        if before
            .as_ref()
            .is_some_and(|held| held.object.spec.clusters != object.spec.clusters)
        {
            resource.clusters_chosen = Some(now);
        }
        // The leader has reported when it chose them: that counts after a takeover, too.
        let reported = object
            .status
            .as_ref()
            .map(|status| status.scheduler_observed_generation);
        if !leading && reported.is_some() && reported == object.metadata.generation {
            resource.clusters_chosen = None;
        }
        if before
            .as_ref()
            .is_none_or(|held| held.object.status != object.status)
            && object.status.is_some()
        {
            resource.answers = None;
            resource.status_written = Some(now);
        }
        if self.config.estimators.is_some() {
            let before = before.as_ref().map(|held| &held.object.spec);
            self.memory.placed.stored(&id, before, &object.spec, now);
        }
        let held = before.as_ref().map(|held| held.object.as_ref());
        if leading && let Some(held) = held {
            self.memory.eviction_counts.stored(&held.spec, &object.spec);
        }
        self.room_followed(&id, held, object, now);
        if let Some(other) = self
            .graph
            .by_binding
            .insert(name, id.clone())
            .filter(|other| *other != id)
        {
            // A user edited spec.resource: the object that it named before has no binding any more.
            if let Some(resource) = self.cache.resources.get_mut(&other) {
                resource.vanished = resource.binding.take().map(Box::new);
            }
            self.count_problems(&other);
            self.quota_used(&other, dirty);
            self.grouped(&other, dirty);
            self.route(Changed::Template(&other), dirty);
        }
        self.count_problems(&id);
        self.quota_used(&id, dirty);
        self.grouped(&id, dirty);
        if first {
            self.restore_failed_results_from_binding(&id, now, dirty);
        }
        self.manage_accounted_copies(&id, now, dirty);
        self.refers_as_orphaned(&id, now, dirty);
        self.claim_changed(&id, claims.0, claims.1, dirty);
        // What follows its members concerns no dependency: see `fleet/needs.rs`.
        let is_moved = before.is_some_and(|held| {
            let (was, is) = (&held.object.spec.clusters, &object.spec.clusters);
            was != is && !(are_same_clusters(was, is) && has_followed_shares(self, &id))
        });
        if placement_changed || is_moved {
            self.route(Changed::PropagatedDependencies(&id), dirty);
        }
        if placement_changed || is_moved || requirement_changed {
            self.dirty_overrides_of(&id, now, dirty);
        }
        self.route(Changed::Template(&id), dirty);
        self.settle_on_standby(&id, now, dirty);
        if first {
            self.namespace_writer_changed(&id, dirty);
        }
    }

    pub(super) fn binding_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(id) = self.graph.by_binding.get(name).cloned() else {
            return;
        };
        let Some(resource) = self.cache.resources.get_mut(&id) else {
            return;
        };
        let Some(held) = &resource.binding else { return };
        if !resource.binding_freshness.is_end_of(&held.meta.uid, deletion) {
            return;
        }
        // The restored hub never had it: copies on members are reported as after a restart, not deleted or restored.
        let outdated = resource.binding_freshness.is_unknown();
        let clusters: Vec<Str> = resource.copies.keys().cloned().collect();
        // Copies that may still exist on members must be accounted for.
        let stands = clusters.iter().any(|cluster| self.may_exist(&id, cluster));
        let Some(resource) = self.cache.resources.get_mut(&id) else {
            return;
        };
        resource.binding_freshness.end(deletion);
        let held = resource.binding.take();
        let claim = held.as_ref().and_then(Binding::claim);
        let is_remade = resource.standing().is_some();
        let remembers = |held: &Binding| is_remade && remembers_failovers(&held.object);
        resource.vanished = held
            .filter(|held| (stands || remembers(held)) && !outdated)
            .map(Box::new);
        self.graph.by_binding.remove(name);
        self.count_problems(&id);
        self.quota_used(&id, dirty);
        self.grouped(&id, dirty);
        self.refers_as_orphaned(&id, now, dirty);
        for cluster in &clusters {
            self.route(Changed::Emptied(&id.namespace, cluster), dirty);
        }
        self.claim_changed(&id, claim, None, dirty);
        self.route(Changed::PropagatedDependencies(&id), dirty);
        self.dirty_overrides_of(&id, now, dirty);
        self.route(Changed::Template(&id), dirty);
        self.namespace_writer_changed(&id, dirty);
        self.forget_if_empty(&id, now);
    }

    /// Counts what the binding of a template reports now. Cost: O(its conditions + its copies).
    fn count_problems(&mut self, id: &ResourceId) {
        let resource = self.cache.resources.get(id);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
        let stored = binding.map(|binding| &*binding.object);
        self.memory.problem_counts.binding(id, stored);
    }

    /// A namespace is written by the planner of copies while it has a binding, else by that of namespaces. Cost: O(members) for
    /// a namespace.
    fn namespace_writer_changed(&self, id: &ResourceId, dirty: &mut Dirty) {
        if id.gvk.is_namespace() {
            self.route(Changed::HubNamespace(&id.name), dirty);
        }
    }
}
