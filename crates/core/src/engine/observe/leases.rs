//! The Leases of the agents of clusters in Pull mode.

use entourage_api::cluster::SyncMode;

use super::Dirty;
use crate::{
    cache::{Deletion, Held, HeldLease, LeaseRead, Leases, Member},
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::{Lease, LeaseAnswer, ObjectRef, Watch},
    readiness::stored_ready,
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

    /// A Lease was read: what the response shows counts as if it was watched. Cost: O(log Leases).
    pub(super) fn lease_read(&mut self, name: &Str, answer: LeaseAnswer, now: Time, dirty: &mut Dirty) {
        if !self.cache.members.get(name).is_some_and(is_pull) {
            return;
        }
        let refused = match answer {
            LeaseAnswer::Found(lease) => {
                self.lease_seen(name, lease, now, dirty);
                None
            }
            LeaseAnswer::Absent => {
                self.lease_gone(name, &Deletion::default(), now, dirty);
                None
            }
            LeaseAnswer::Refused(why) => Some(why),
        };
        let read = LeaseRead { at: now, refused };
        self.cache.leases.read.insert(name.clone(), read);
        self.route(Changed::Cluster(name), dirty);
    }

    /// A Cluster in Pull mode was observed after another version of it, or after another one of this name: what the agent of that
    /// one did proves nothing. Cost: O(log members).
    pub(super) fn agent_reported(&mut self, name: &Str, before: Option<&Member>, now: Time) {
        let uid = |member: &Member| member.meta.uid.clone();
        if before.map(uid) != self.cache.members.get(name).map(uid) {
            self.cache.leases.forget(name);
            self.cache.leases.returned.insert(name.clone(), now);
            return;
        }
        let is_unknown =
            |member: &Member| stored_ready(&member.object).is_some_and(|ready| ready.status == "Unknown");
        let is_another = |member: &Member| stored_ready(&member.object).is_some() && !is_unknown(member);
        if before.is_some_and(is_unknown) && self.cache.members.get(name).is_some_and(is_another) {
            self.cache.leases.returned.insert(name.clone(), now);
        }
    }

    /// The Leases are listed. Cost: O(members).
    pub(super) fn leases_listed(&mut self, now: Time, dirty: &mut Dirty) {
        self.cache.leases.listed = Some(now);
        self.leases_changed(dirty);
    }

    /// The watch of the Leases may have begun or ended. Cost: O(members).
    pub(super) fn leases_changed(&self, dirty: &mut Dirty) {
        for (name, _) in self.cache.members.iter().filter(|(_, member)| is_pull(member)) {
            self.route(Changed::Cluster(name), dirty);
        }
    }

    /// A Cluster began or ceased to be in Pull mode: Leases are watched while there is one in it, and nodes and pods only of those
    /// that are not. Cost: O(members).
    pub(super) fn mode_changed(&mut self, name: &Str) {
        if self.cache.members.values().any(is_pull) {
            self.cache.watches.demand(Watch::Leases);
        } else if self.cache.watches.is_demanded(&Watch::Leases) {
            self.cache.watches.forget(&Watch::Leases);
            self.cache.leases = Leases::default();
        }
        if !self.cache.members.get(name).is_some_and(is_pull) {
            self.cache.leases.forget(name);
        }
        let Some(member) = self.cache.members.get(name) else {
            return;
        };
        for watch in [Watch::Nodes(name.clone()), Watch::Pods(name.clone())] {
            if is_pull(member) && self.cache.watches.is_demanded(&watch) {
                self.cache.watches.forget(&watch);
                self.cache.usage.forget(name, &watch);
            } else if !is_pull(member) && self.config.model_resources {
                self.cache.watches.demand(watch);
            }
        }
    }
}

fn is_pull(member: &Member) -> bool {
    member.object.spec.sync_mode == SyncMode::Pull
}
