//! The Leases of the agents of clusters in Pull mode.

use entourage_api::cluster::SyncMode;

use super::Dirty;
use crate::{
    cache::{Deletion, Held, HeldLease, Leases},
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::{Lease, ObjectRef, Watch},
};

impl Fleet {
    /// A Lease was observed. A renewal makes nothing dirty: the agent itself reports that its cluster is ready again, and the time
    /// of the next plan follows from the last one. Cost: O(log Leases).
    pub(super) fn lease_seen(&mut self, name: &Str, lease: Lease, now: Time, dirty: &mut Dirty) {
        let leases = &mut self.cache.leases;
        let before = leases.held.get(name);
        let held = before.map(|held| Held {
            revision: held.lease.revision(),
            is_same: (&held.lease.uid, &held.lease.resource_version) == (&lease.uid, &lease.resource_version),
        });
        let which = ObjectRef::Lease(name.clone());
        if self.cache.revisions.see(&which, held, lease.revision()).is_none() {
            return;
        }
        let is_as_before = |held: &&HeldLease| held.lease.renewed == lease.renewed;
        let since = before.filter(is_as_before).map_or(now, |held| held.since);
        let is_new = before.is_none();
        leases.held.insert(name.clone(), HeldLease { lease, since });
        leases.ended.remove(name);
        if is_new {
            self.route(Changed::Cluster(name), dirty);
        }
    }

    /// A Lease was deleted. Cost: O(log Leases).
    pub(super) fn lease_gone(&mut self, name: &Str, deletion: &Deletion, now: Time, dirty: &mut Dirty) {
        let leases = &mut self.cache.leases;
        let Some(held) = leases.held.get(name) else {
            return;
        };
        let held_as = (&*held.lease.uid, held.lease.revision());
        let which = ObjectRef::Lease(name.clone());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        leases.held.remove(name);
        if self.cache.members.contains_key(name) {
            leases.ended.insert(name.clone(), now);
            self.route(Changed::Cluster(name), dirty);
        }
    }

    /// The Leases are listed. Cost: O(members).
    pub(super) fn leases_listed(&mut self, now: Time, dirty: &mut Dirty) {
        self.cache.leases.listed = Some(now);
        for (name, member) in &self.cache.members {
            if member.object.spec.sync_mode == SyncMode::Pull {
                self.route(Changed::Cluster(name), dirty);
            }
        }
    }

    /// A Cluster began or ceased to be in Pull mode: Leases are watched while there is one in it, and nodes and pods only of those
    /// that are not. Cost: O(members).
    pub(super) fn mode_changed(&mut self, name: &Str) {
        let is_pull = |member: &crate::cache::Member| member.object.spec.sync_mode == SyncMode::Pull;
        if self.cache.members.values().any(is_pull) {
            self.cache.watches.demand(Watch::Leases);
        } else if self.cache.watches.is_demanded(&Watch::Leases) {
            self.cache.watches.forget(&Watch::Leases);
            self.cache.leases = Leases::default();
        }
        let Some(member) = self.cache.members.get(name) else {
            self.cache.leases.ended.remove(name);
            return;
        };
        for watch in [Watch::Nodes(name.clone()), Watch::Pods(name.clone())] {
            if is_pull(member) && self.cache.watches.is_demanded(&watch) {
                self.cache.watches.forget(&watch);
            } else if !is_pull(member) && self.config.model_resources {
                self.cache.watches.demand(watch);
            }
        }
    }
}
