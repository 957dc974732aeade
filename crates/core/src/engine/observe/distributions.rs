//! Changes of distributions, and events of their watches and members: each changes target statuses.

use std::{collections::BTreeSet, sync::Arc};

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    distributed::observed::Distribution,
    engine::routes::Changed,
    fleet::Fleet,
    memory::distributions::{DistributionServer, DistributionState, workload_kinds},
    object::{Gvk, Str, Time},
    observation::{ObjectRef, Watch},
    places::TargetStatus,
    plan::Key,
};

impl Fleet {
    /// A distribution was observed. Cost: O(namespaces + copies) when its spec changed, else O(1).
    pub(super) fn distribution_seen(
        &mut self,
        name: &Str,
        object: Arc<Distribution>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let before = self
            .memory
            .distributions
            .held
            .get(name)
            .map(|held| held.object.clone());
        let which = ObjectRef::Distribution(name.clone());
        let held = before.as_ref().map(|held| Held::of(&held.meta, &object.meta));
        if self
            .cache
            .revisions
            .see(&which, held, object.meta.revision())
            .is_none()
        {
            return;
        }
        // Another object of the same name: none of the earlier state applies to it.
        if before
            .as_ref()
            .is_some_and(|held| held.meta.uid != object.meta.uid)
        {
            self.forget_distribution(name);
        }
        // A report that only lists members, or is the first one, does not delay the next.
        let wrote_status = before
            .as_ref()
            .is_some_and(|held| !held.status.is_null() && !held.reports_as(&object));
        let is_same = before.as_ref().is_some_and(|held| {
            held.spec == object.spec
                && held.meta.uid == object.meta.uid
                && held.meta.generation == object.meta.generation
                && held.meta.deleting.is_some() == object.meta.deleting.is_some()
                && held.meta.labels == object.meta.labels
                && held.meta.annotations == object.meta.annotations
                && held.meta.finalizers == object.meta.finalizers
                && held.was_reported_on() == object.was_reported_on()
        });
        if is_same {
            if let Some(held) = self.memory.distributions.held.get_mut(name) {
                let waited = |cluster: &Str| !held.object.reported_on(cluster) && object.reported_on(cluster);
                let places = held.target_states.keys();
                let of_it = places.filter(|place| place.cluster.as_ref().is_some_and(waited));
                dirty.extend(of_it.map(|place| Key::Distributed(name.clone(), place.clone())));
                held.object = object;
                if wrote_status {
                    held.status_written = Some(now);
                }
            }
            dirty.push(Key::DistributionStatus(name.clone()));
            return;
        }
        let targets = |object: &Distribution| object.spec.as_ref().ok().map(|spec| spec.targets.clone());
        let is_retargeted = before
            .as_ref()
            .is_none_or(|held| targets(held) != targets(&object));
        // A watch that is still needed continues: it would not be listed again.
        let before = self.distribution_servers(name);
        self.deselect(name);
        match self.memory.distributions.held.get_mut(name) {
            Some(held) => held.object = object,
            None => {
                self.memory
                    .distributions
                    .held
                    .insert(name.clone(), DistributionState::new(object));
            }
        }
        self.look(name);
        let wanted = self.distribution_servers(name);
        self.end_watches(name, before.iter().filter(|at| !wanted.contains(at)));
        // Otherwise the copy in a namespace that was left is kept for a while, as before.
        if is_retargeted {
            self.count_workloads(name);
        }
        self.route(Changed::Distribution(name), dirty);
        self.evaluate_all(name, None, now, dirty);
    }

    /// Its copies belong to the garbage collector, or were deleted before its finalizer was removed. Cost: O(copies).
    pub(super) fn distribution_gone(
        &mut self,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.memory.distributions.held.get(name) else {
            return;
        };
        let which = ObjectRef::Distribution(name.clone());
        let held_as = (&*held.object.meta.uid, held.object.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let at: BTreeSet<DistributionServer> = self.distribution_servers(name).into_iter().collect();
        self.forget_distribution(name);
        // Conflicts of other distributions may end with it.
        let others: BTreeSet<Str> = at
            .iter()
            .filter_map(|at| self.memory.distributions.looked.get(at))
            .flat_map(|looked| looked.by.iter().cloned())
            .collect();
        for other in others {
            self.evaluate_all(&other, None, now, dirty);
        }
    }

    /// A watch is synced, or no longer: the distributions that waited for it are evaluated and planned again. Cost:
    /// O(distributions concerned × their places), when a watch lists or breaks off.
    pub(super) fn distributions_reported(&mut self, watch: &Watch, now: Time, dirty: &mut Dirty) {
        if self.memory.distributions.held.is_empty() {
            return;
        }
        let names: Vec<Str> = match watch {
            Watch::Distributed(cluster, gvk, name) => {
                let looked = self.memory.distributions.looked.get(&watched(cluster, gvk, name));
                looked
                    .into_iter()
                    .flat_map(|looked| looked.by.iter().cloned())
                    .collect()
            }
            Watch::Templates(gvk) if workload_kinds().contains(gvk) => {
                self.memory.distributions.by_workload.iter().cloned().collect()
            }
            Watch::Namespaces | Watch::Distributions | Watch::Clusters => {
                self.memory.distributions.held.keys().cloned().collect()
            }
            Watch::MemberNamespaces(cluster) => return self.distributions_on(cluster, now, dirty),
            _ => return,
        };
        for name in names {
            self.route(Changed::Distribution(&name), dirty);
            self.evaluate_all(&name, None, now, dirty);
        }
    }

    /// A member was added, changed or removed: distributions that select members watch there, or no longer do. Cost:
    /// O(distributions that select members × their places there).
    pub(super) fn distributions_on(&mut self, cluster: &Str, now: Time, dirty: &mut Dirty) {
        let exists = self.cache.members.contains_key(cluster);
        let names: Vec<Str> = self
            .memory
            .distributions
            .held
            .iter()
            .filter(|(_, held)| held.object.looks_at_members())
            .map(|(name, _)| name.clone())
            .collect();
        if !exists {
            self.memory
                .distributions
                .looked
                .retain(|at, _| at.cluster.as_ref() != Some(cluster));
        }
        for name in names {
            self.look(&name);
            self.route(Changed::Distribution(&name), dirty);
            self.evaluate_all(&name, Some(cluster), now, dirty);
        }
    }

    /// A member was first probed, or begins or ceases to respond: reports wait for the first probe, and failed writes are
    /// retried when it responds. Cost: O(distributions that select members + failures).
    pub(super) fn distributions_answered(
        &mut self,
        cluster: &Str,
        answers: bool,
        now: Time,
        dirty: &mut Dirty,
    ) {
        for (name, held) in &mut self.memory.distributions.held {
            if !held.object.looks_at_members() {
                continue;
            }
            dirty.push(Key::DistributionStatus(name.clone()));
            let failed = held.by_target_status.iter().filter(|_| answers);
            let failed = failed.filter(|(target_status, _)| matches!(target_status, TargetStatus::Failed(_)));
            let of_it = failed.flat_map(|(_, places)| places);
            for place in of_it.filter(|place| place.cluster.as_ref() == Some(cluster)) {
                if let Some(failure) = held
                    .target_states
                    .get_mut(place)
                    .and_then(|target_state| target_state.failure.as_mut())
                {
                    failure.retry_at = now;
                    dirty.push(Key::Distributed(name.clone(), place.clone()));
                }
            }
        }
    }

    fn forget_distribution(&mut self, name: &Str) {
        let looked = self.distribution_servers(name);
        self.deselect(name);
        self.end_watches(name, looked.iter());
        if let Some(held) = self.memory.distributions.held.remove(name) {
            for place in held.target_states.keys() {
                self.leave(name, place);
            }
        }
    }
}

/// The scope of a watch of distributed objects.
fn watched(cluster: &Option<Str>, gvk: &Gvk, name: &Str) -> DistributionServer {
    DistributionServer {
        cluster: cluster.clone(),
        gvk: gvk.clone(),
        name: name.clone(),
    }
}
