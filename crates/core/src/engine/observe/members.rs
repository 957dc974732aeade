//! Member clusters and their probes.

use std::sync::Arc;

use entourage_api::cluster::{Cluster, SyncMode};

use super::Dirty;
use crate::{
    cache::{Deletion, Held, Member, ResourceState, meta_of},
    descheduling,
    engine::routes::Changed,
    fleet::{Fleet, identities::objection},
    memory::identities,
    object::{ResourceId, Str, Time},
    observation::{Node, ObjectRef, Pod, Probe},
    readiness::may_serve,
    scheduler::{self, estimate::Capacity},
};

impl Fleet {
    /// A Cluster was observed. Cost: O(policies + bindings × what their placements list) when an input of scheduling changed, else O(1).
    pub(super) fn cluster_seen(&mut self, cluster: Arc<Cluster>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&cluster.metadata);
        let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
        let before = self.cache.members.get(&name);
        let which = ObjectRef::Cluster(name.clone());
        let held = before.map(|held| Held::of(&held.meta, &meta));
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        let changed = before.is_none_or(|held| {
            scheduler::relevant_change(&held.object, &cluster)
                || held.meta.deleting.is_some() != meta.deleting.is_some()
        });
        let is_export_changed = before.is_none_or(|held| {
            may_serve(&held.object) != may_serve(&cluster)
                || held.object.spec.sync_mode != cluster.spec.sync_mode
                || held.meta.deleting.is_some() != meta.deleting.is_some()
        });
        let is_room_changed = before.is_none_or(|held| scheduler::reports_other_room(&held.object, &cluster));
        let going = meta.deleting.is_some();
        let (id, probe) = before
            .map(|held| (held.id.clone(), held.probe.clone()))
            .unwrap_or_default();
        let (failing_since, answering_since) = before
            .map(|held| (held.failing_since, held.answering_since))
            .unwrap_or_default();
        let was_used = self.is_used(&name);
        for gvk in super::copied::reported_kinds(&meta) {
            self.use_kind(&gvk);
        }
        let before = self.cache.members.insert(
            name.clone(),
            Member {
                meta,
                object: cluster,
                id,
                probe,
                failing_since,
                answering_since,
            },
        );
        if let Some(member) = self.cache.members.get(&name) {
            self.memory.problem_counts.member(&name, Some(&member.object));
            if self.memory.deletion_pauses.take_in_report(member, &name, now) {
                self.wake_removals(&name, dirty);
            }
        }
        if is_room_changed {
            self.room_reported(&name, now, dirty);
        }
        self.use_member(&name);
        if let Some(before) = &before {
            self.labels_of_cluster_changed(&name, &before.meta.labels, dirty);
        }
        let is_pull = |member: &Member| member.object.spec.sync_mode == SyncMode::Pull;
        let was_pull = before.as_ref().is_some_and(is_pull);
        if was_pull != self.cache.members.get(&name).is_some_and(is_pull) {
            self.mode_changed(&name);
        } else if was_pull {
            self.agent_reported(&name, before.as_ref(), now);
        }
        self.identify(&name, was_used, now, dirty);
        self.route(Changed::Cluster(&name), dirty);
        self.route(Changed::ExecutionNamespace(&name), dirty);
        if is_export_changed {
            if going {
                self.exporter_leaves(&name, now);
            }
            self.services_on(&name, dirty);
        }
        if changed {
            self.distributions_on(&name, now, dirty);
            self.quotas_on(&name, dirty);
            self.route(Changed::Clusters(&name, before.as_ref()), dirty);
            self.dirty_overrides(now, dirty);
            if going {
                self.route(Changed::CopiesOf(&name), dirty);
                self.route(Changed::NamespacesOf(&name), dirty);
            } else if self.graph.override_index.look_at_clusters() {
                self.reconsider_copies_on(&name, dirty);
            }
        }
    }

    /// A node of a member was observed. The next plan of its Cluster, as after each probe, computes its capacity. Cost: O(log nodes).
    pub(super) fn node_seen(&mut self, cluster: &Str, name: &Str, node: Node) {
        if self.cache.members.contains_key(cluster) {
            self.cache.usage.node_seen(cluster, name, node);
        }
    }

    /// A pod of a member was observed, as [`Self::node_seen`]. One that no node can take may have its workload scheduled again. Cost:
    /// O(log pods + its resources).
    pub(super) fn pod_seen(&mut self, cluster: &Str, number: u64, pod: Pod, now: Time, dirty: &mut Dirty) {
        if !self.cache.members.contains_key(cluster) {
            return;
        }
        let waits = self.cache.usage.pod_seen(cluster, number, pod, now);
        if let Some(id) = waits.filter(|id| descheduling::may_move(self, id)) {
            self.route(Changed::Binding(&id), dirty);
        }
    }

    /// A Cluster reports another capacity: bindings that wait for room may find it there. What is placed stays. Cost: O(recent
    /// results there + waiting bindings).
    fn room_reported(&mut self, name: &Str, now: Time, dirty: &mut Dirty) {
        let capacity = self
            .cache
            .members
            .get(name)
            .and_then(|member| Capacity::of(&member.object));
        for id in self.memory.rooms.reported(name, capacity, now) {
            self.route(Changed::Binding(&id), dirty);
        }
    }

    /// A Cluster was deleted. Cost: O(resources): every copy on the member is dropped.
    pub(super) fn cluster_gone(&mut self, name: &Str, deletion: &Deletion, now: Time, dirty: &mut Dirty) {
        let Some(held) = self.cache.members.get(name) else {
            return;
        };
        let held_in_pull_mode = held.object.spec.sync_mode == SyncMode::Pull;
        let which = ObjectRef::Cluster(name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let before = self.cache.members.remove(name);
        self.memory.problem_counts.member(name, None);
        if held_in_pull_mode {
            self.mode_changed(name);
        }
        self.cache.copied.remove(name);
        self.identify(name, true, now, dirty);
        self.look_for_a_cut_off(now, dirty);
        self.cache.namespaces.forget_member(name);
        self.cache.watches.forget_member(name);
        self.distributions_on(name, now, dirty);
        self.quotas_on(name, dirty);
        self.memory.quotas.forget_member(name);
        self.cache.revisions.forget_member(name);
        self.memory.deletion_pauses.forget_member(name);
        self.memory.evictions.forget_member(name);
        self.memory.rooms.forget_member(name);
        self.memory.placed.forget_member(name);
        self.memory.estimates.forget_member(name);
        self.memory.descheduled.forget_member(name);
        self.memory.propagations.forget_member(name, self.leading, now);
        self.cache.usage.forget_member(name);
        self.cache.services.forget_member(name);
        self.memory.endpoints.forget_member(name);
        self.memory.unwatched_exports.forget_member(name);
        self.exporter_leaves(name, now);
        self.services_on(name, dirty);
        self.dirty_works_of(name, dirty);
        let held = self.cache.resources.iter_mut();
        let ended = held.filter_map(|(id, resource)| resource.copies.remove(name).map(|_| id.clone()));
        for id in ended.collect::<Vec<_>>() {
            self.route(Changed::Needs(&id), dirty);
        }
        self.route(Changed::Clusters(name, before.as_ref()), dirty);
        self.dirty_overrides(now, dirty);
        self.route(Changed::Cluster(name), dirty);
    }

    /// A probe of a member ended. Cost: O(1); O(members) when it does not respond; O(resources) when the member was first
    /// probed, or begins or ceases to respond.
    pub(super) fn probed(&mut self, cluster: &Str, probe: Probe, now: Time, dirty: &mut Dirty) {
        let Some(member) = self.cache.members.get_mut(cluster) else {
            return;
        };
        let answered = member.probe.as_ref().map(|held| held.healthy);
        let answers = probe.healthy;
        (member.failing_since, member.answering_since) = if answers {
            (None, member.answering_since.or(Some(now)))
        } else {
            (member.failing_since.or(Some(now)), None)
        };
        member.probe = Some(probe);
        self.route(Changed::Cluster(cluster), dirty);
        if !answers || answered != Some(true) {
            self.look_for_a_cut_off(now, dirty);
        }
        // The first probe counts whatever its result: statuses wait for it.
        if answered != Some(answers) {
            // A watch that does not list on a member that does not respond is no news; its time begins anew when the member responds.
            self.cache.watches.give_time(cluster, now);
            self.answering_changed(cluster, answers, now, dirty);
        }
    }

    /// A member was first probed, or begins or ceases to respond or to be used. Cost: O(resources).
    fn answering_changed(&mut self, cluster: &Str, answers: bool, now: Time, dirty: &mut Dirty) {
        self.distributions_answered(cluster, answers, now, dirty);
        self.memory.quotas.try_again(cluster);
        self.quotas_on(cluster, dirty);
        let of_it = |(_, resource): &(&ResourceId, &ResourceState)| resource.copies.contains_key(cluster);
        let ids: Vec<ResourceId> = self.resources().filter(of_it).map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.route(Changed::Health(id), dirty);
        }
        for id in &ids {
            let resource = self.cache.resources.get_mut(id);
            let state = resource.and_then(|resource| resource.copies.get_mut(cluster));
            let problem = state.and_then(|state| state.problem.as_mut());
            if let Some(problem) = problem.filter(|held| held.kind.is_passing()) {
                problem.retry_at = now;
                self.route(Changed::Copy(id, cluster), dirty);
            }
            self.route(Changed::Report(id), dirty);
            self.route(Changed::Scaled(id), dirty);
        }
    }

    /// The physical cluster that responds is identified. Cost: O(1); as [`Self::identify`] when it is another one than before.
    pub(super) fn identified(&mut self, cluster: &Str, id: Str, now: Time, dirty: &mut Dirty) {
        let was_used = self.is_used(cluster);
        let Some(member) = self.cache.members.get_mut(cluster) else {
            return;
        };
        if member.id.as_ref() == Some(&id) {
            return;
        }
        member.id = Some(id);
        self.route(Changed::Cluster(cluster), dirty);
        self.identify(cluster, was_used, now, dirty);
    }

    fn is_used(&self, cluster: &Str) -> bool {
        objection(self, cluster).is_none()
    }

    /// The identity of a Cluster may have changed, or the Cluster was deleted: of all Clusters of one physical cluster the
    /// oldest is used. Cost: O(log Clusters); O(resources) for each that begins or ceases to be used.
    fn identify(&mut self, name: &Str, was_used: bool, now: Time, dirty: &mut Dirty) {
        let member = self.cache.members.get(name);
        let created = member.and_then(|member| member.meta.created).unwrap_or(Time(0));
        let id = member.and_then(identities::of);
        let mut changed = self.memory.identities.set(name, id, created);
        changed.remove(name);
        if self.cache.members.contains_key(name) && self.is_used(name) != was_used {
            changed.insert(name.clone());
        }
        for cluster in changed
            .into_iter()
            .filter(|each| self.cache.members.contains_key(each))
            .collect::<Vec<_>>()
        {
            let answers = self.answers(&cluster);
            self.route(Changed::Cluster(&cluster), dirty);
            self.answering_changed(&cluster, answers, now, dirty);
            self.route(Changed::CopiesOf(&cluster), dirty);
            self.distributions_on(&cluster, now, dirty);
            self.route(Changed::NamespacesOf(&cluster), dirty);
            self.services_on(&cluster, dirty);
        }
    }
}
