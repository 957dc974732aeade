//! FederatedResourceQuotas, their ResourceQuotas on members, and the bindings that use them.

use std::sync::Arc;

use entourage_api::policy::FederatedResourceQuota;

use super::{Dirty, named};
use crate::{
    cache::{Deletion, Held, meta_of},
    drift::DriftBackoff,
    engine::routes::Changed,
    fleet::{Fleet, quotas::used_by},
    object::{NamespacedName, ResourceId, Str, Time},
    observation::{AssignedQuota, ObjectRef, QuotaOutcome, Watch},
    plan::Key,
};

/// The first pause after an attempt that failed, in milliseconds; each is twice the one before.
const FIRST_PAUSE: i64 = 1_000;
/// The longest such pause, in milliseconds.
const LONGEST_PAUSE: i64 = 300_000;

impl Fleet {
    /// A quota was observed. Cost: O(its clusters + bindings that wait for it); O(bindings of the namespace) for the first one
    /// there, and O(members) for the first one with assignments.
    pub(super) fn quota_seen(&mut self, object: Arc<FederatedResourceQuota>, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name = named(&object.metadata);
        let held = self.memory.quotas.get(&name).map(|held| &held.meta);
        let held = held.map(|held| Held::of(held, &meta));
        let which = ObjectRef::Quota(name.clone());
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        self.dirty_quota(&name, dirty);
        let looked = self.memory.quotas.looks_at_members();
        if self.memory.quotas.insert(&name, object) {
            let first = NamespacedName::new(&name.namespace, "");
            let bindings = self.graph.by_binding.range(first..);
            let ids = bindings.take_while(|(binding, _)| binding.namespace == name.namespace);
            for id in ids.map(|(_, id)| id.clone()).collect::<Vec<_>>() {
                self.quota_used(&id, dirty);
            }
        }
        if !looked && self.memory.quotas.looks_at_members() {
            let members: Vec<Str> = self.cache.members.keys().cloned().collect();
            for cluster in members {
                self.cache.watches.demand(Watch::QuotaCopies(cluster));
            }
        }
        self.dirty_quota(&name, dirty);
    }

    /// A quota was deleted: it limits nothing any more. What it left on members because its finalizer was taken off stays there.
    /// Cost: O(bindings that wait for it).
    pub(super) fn quota_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.memory.quotas.get(name) else {
            return;
        };
        let which = ObjectRef::Quota(name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.memory.quotas.remove(name);
        self.dirty_quota(name, dirty);
        self.memory.quotas.forget_waiting(&name.namespace);
    }

    /// A ResourceQuota was observed on a member. Cost: O(log quotas).
    pub(super) fn quota_copy_seen(
        &mut self,
        cluster: &Str,
        name: &NamespacedName,
        copy: AssignedQuota,
        dirty: &mut Dirty,
    ) {
        let held = self.memory.quotas.copy(cluster, name).map(|held| Held {
            revision: held.revision(),
            is_same: *held == copy,
        });
        let which = ObjectRef::QuotaCopy(cluster.clone(), name.clone());
        if self.cache.revisions.see(&which, held, copy.revision()).is_none() {
            return;
        }
        self.memory.quotas.insert_copy(cluster, name, copy);
        self.dirty_assignment(name, cluster, dirty);
    }

    /// A ResourceQuota was deleted on a member. Cost: O(log quotas).
    pub(super) fn quota_copy_gone(
        &mut self,
        cluster: &Str,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.memory.quotas.copy(cluster, name) else {
            return;
        };
        let which = ObjectRef::QuotaCopy(cluster.clone(), name.clone());
        let held_as = (&*held.uid, held.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.memory.quotas.remove_copy(cluster, name);
        self.dirty_assignment(name, cluster, dirty);
        self.route(Changed::Cluster(cluster), dirty);
    }

    /// An attempt to write or delete a ResourceQuota on a member ended. Cost: O(log quotas).
    pub(super) fn quota_assigned(
        &mut self,
        name: &NamespacedName,
        cluster: &Str,
        outcome: QuotaOutcome,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.memory.quotas.get_mut(name) else {
            return;
        };
        let hard = held.assigned(cluster).cloned().unwrap_or_default();
        let target = held.targets.entry(cluster.clone()).or_default();
        let failed = match outcome {
            QuotaOutcome::Applied(copy, differed) => {
                let differed = differed.filter(|_| target.written);
                let before = target.drift_backoff.take();
                target.drift_backoff = DriftBackoff::compared(before, differed, now);
                (target.written, target.attempts) = (true, 0);
                (target.failure, target.not_before) = (None, None);
                self.quota_copy_seen(cluster, name, copy, dirty);
                None
            }
            QuotaOutcome::Gone(uid) => {
                (target.written, target.attempts, target.failure) = (false, 0, None);
                let deletion = Deletion {
                    uid: Some(uid),
                    revision: None,
                };
                self.quota_copy_gone(cluster, name, &deletion, now, dirty);
                None
            }
            QuotaOutcome::Foreign => Some(format!(
                "ResourceQuota {name} already exists on {cluster} and is not managed by this hub"
            )),
            QuotaOutcome::Failed(why) => Some(format!("ResourceQuota {name} on {cluster}: {why}")),
            QuotaOutcome::Abandoned => {
                target.not_before = Some(now.plus(FIRST_PAUSE));
                None
            }
        };
        if let Some(why) = failed
            && let Some(target) = self
                .memory
                .quotas
                .get_mut(name)
                .and_then(|held| held.targets.get_mut(cluster))
        {
            let pause = (FIRST_PAUSE << target.attempts.min(20)).min(LONGEST_PAUSE);
            target.attempts = target.attempts.saturating_add(1);
            target.not_before = Some(now.plus(pause));
            target.failure = Some((hard, why));
        }
        self.dirty_assignment(name, cluster, dirty);
    }

    /// The quota usage of a binding may have changed. Cost: O(resources + quotas of its namespace), and O(waiting bindings)
    /// where it uses less; O(log namespaces) without a quota.
    pub(super) fn quota_used(&mut self, id: &ResourceId, dirty: &mut Dirty) {
        if !self.memory.quotas.is_limited(&id.namespace) {
            return;
        }
        let binding = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.binding.as_ref());
        let used = binding.map(|binding| used_by(&binding.object.spec));
        let (is_changed, waiting) = self.memory.quotas.stored(id, used);
        if is_changed {
            let quotas = self.memory.quotas.of_namespace(&id.namespace);
            dirty.extend(quotas.map(|(name, _)| Key::Quota(name.clone())));
        }
        dirty_waiting(waiting, dirty);
    }

    /// A member, or what is known of it, changed. Cost: O(quotas).
    pub(super) fn quotas_on(&self, cluster: &Str, dirty: &mut Dirty) {
        let quotas = self.memory.quotas.names();
        let looking = quotas.filter(|name| {
            let held = self.memory.quotas.get(name);
            held.is_some_and(|held| held.looks_at_members())
        });
        for name in looking {
            self.dirty_assignment(name, cluster, dirty);
        }
    }

    /// A namespace of a member was observed. Cost: O(quotas of the namespace).
    pub(super) fn quotas_in(&self, cluster: &Str, namespace: &Str, dirty: &mut Dirty) {
        let quotas = self.memory.quotas.of_namespace(namespace);
        dirty.extend(quotas.map(|(name, _)| Key::QuotaCopy(name.clone(), cluster.clone())));
    }

    /// Everything of every quota is planned again. Cost: O(quotas × their clusters).
    pub(super) fn quotas_listed(&self, dirty: &mut Dirty) {
        for name in self.memory.quotas.names() {
            self.dirty_quota(name, dirty);
        }
    }

    fn dirty_quota(&self, name: &NamespacedName, dirty: &mut Dirty) {
        dirty.push(Key::Quota(name.clone()));
        let clusters = self.memory.quotas.get(name).map(|held| held.clusters());
        let clusters = clusters.into_iter().flatten();
        dirty.extend(clusters.map(|cluster| Key::QuotaCopy(name.clone(), cluster)));
        dirty_waiting(self.memory.quotas.waiting(&name.namespace), dirty);
    }

    fn dirty_assignment(&self, name: &NamespacedName, cluster: &Str, dirty: &mut Dirty) {
        dirty.push(Key::Quota(name.clone()));
        dirty.push(Key::QuotaCopy(name.clone(), cluster.clone()));
    }
}

fn dirty_waiting(waiting: Vec<ResourceId>, dirty: &mut Dirty) {
    for id in waiting {
        dirty.push(Key::BindingStatus(id.clone()));
        dirty.push(Key::Binding(id));
    }
}
