//! Distributions as they come, change and go, and what watches and members tell of them: each changes verdicts.

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
    /// Cost: O(namespaces + copies) when what it says changed, else O(1).
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
        // Another object of the name: nothing of what was known is its.
        if before
            .as_ref()
            .is_some_and(|held| held.meta.uid != object.meta.uid)
        {
            self.forget_distribution(name);
        }
        // What only lists members, or is the first one, delays no report.
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
                let places = held.spots.keys();
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
        // A watch that is still wanted goes on: nobody would list it again.
        let before = self.wheres(name);
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
        let wanted = self.wheres(name);
        self.look_away(name, before.iter().filter(|at| !wanted.contains(at)));
        // Else whoever was left keeps its copy for a while, as it would have.
        if is_retargeted {
            self.count_workloads(name);
        }
        self.route(Changed::Distribution(name), dirty);
        self.judge_all(name, None, now, dirty);
    }

    /// Its copies are the garbage collector's, or were taken away before its finalizer was. Cost: O(copies).
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
        let at: BTreeSet<DistributionServer> = self.wheres(name).into_iter().collect();
        self.forget_distribution(name);
        // What stood in the way of others may go with it.
        let others: BTreeSet<Str> = at
            .iter()
            .filter_map(|at| self.memory.distributions.looked.get(at))
            .flat_map(|looked| looked.by.iter().cloned())
            .collect();
        for other in others {
            self.judge_all(&other, None, now, dirty);
        }
    }

    /// What a watch tells is known now, or is not any more: who waited for it is judged and planned again.
    /// Cost: O(distributions concerned × their places), when a watch lists or breaks off.
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
            self.judge_all(&name, None, now, dirty);
        }
    }

    /// A member came, changed or went: distributions that mean members look there, or not any more.
    /// Cost: O(distributions that mean members × their places there).
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
            self.judge_all(&name, Some(cluster), now, dirty);
        }
    }

    /// A member was first probed, or begins or ceases to answer: reports wait for the first, and what failed is tried again
    /// when it answers. Cost: O(distributions that mean members + what failed).
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
            let failed = held.by_verdict.iter().filter(|_| answers);
            let failed = failed.filter(|(target_status, _)| matches!(target_status, TargetStatus::Failed(_)));
            let of_it = failed.flat_map(|(_, places)| places);
            for place in of_it.filter(|place| place.cluster.as_ref() == Some(cluster)) {
                if let Some(failure) = held.spots.get_mut(place).and_then(|spot| spot.failure.as_mut()) {
                    failure.retry_at = now;
                    dirty.push(Key::Distributed(name.clone(), place.clone()));
                }
            }
        }
    }

    fn forget_distribution(&mut self, name: &Str) {
        let looked = self.wheres(name);
        self.deselect(name);
        self.look_away(name, looked.iter());
        if let Some(held) = self.memory.distributions.held.remove(name) {
            for place in held.spots.keys() {
                self.leave(name, place);
            }
        }
    }
}

/// What a watch of distributed objects is about.
fn watched(cluster: &Option<Str>, gvk: &Gvk, name: &Str) -> DistributionServer {
    DistributionServer {
        cluster: cluster.clone(),
        gvk: gvk.clone(),
        name: name.clone(),
    }
}
