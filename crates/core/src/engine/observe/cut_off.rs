//! Members that begin or cease to fail together: see [`crate::memory::cut_off`].

use entourage_api::{cluster::SyncMode, keys::reason};

use super::Dirty;
use crate::{
    cache::Member,
    fleet::{Fleet, identities::objection},
    memory::cut_off::together,
    object::{Str, Time},
    plan::Key,
    readiness::{is_cut_off, is_ready, stored_ready},
};

/// Reasons of a probe that may be the hub's fault.
const OURS: [&str; 2] = [reason::CLUSTER_NOT_REACHABLE, reason::CLUSTER_API_SLOW];

impl Fleet {
    /// Determines the members that stopped responding together; plans those again that begin or cease to belong to them. Cost:
    /// O(members log members).
    pub(crate) fn look_for_a_cut_off(&mut self, now: Time, dirty: &mut Dirty) {
        let counted = self
            .cache
            .members
            .iter()
            .filter(|(name, each)| is_counted(self, name, each));
        let counted: Vec<(&Str, Option<Time>)> = counted.map(|(name, each)| (name, fails(each))).collect();
        let found = together(
            &counted,
            self.memory.cut_off.since,
            self.config.cluster_failure_threshold,
        );
        if found == self.memory.cut_off {
            return;
        }
        let before = std::mem::replace(&mut self.memory.cut_off, found);
        let after = &self.memory.cut_off.together;
        for name in before.together.symmetric_difference(after) {
            dirty.push(Key::Cluster(name.clone()));
        }
        for name in before.together.difference(after) {
            if let Some(member) = self.cache.members.get_mut(name)
                && member.failing_since.is_some()
            {
                member.failing_since = Some(now);
            }
        }
    }
}

/// True if a member was ready, or is: only the failures of such members count.
fn is_counted(fleet: &Fleet, name: &str, member: &Member) -> bool {
    let Some(probe) = &member.probe else {
        return false;
    };
    member.object.spec.sync_mode == SyncMode::Push
        && member.meta.deleting.is_none()
        && (probe.healthy || is_ready(&member.object) || stored_ready(&member.object).is_some_and(is_cut_off))
        && objection(fleet, name).is_none()
}

/// The time since when it fails in a way that may be the hub's fault.
fn fails(member: &Member) -> Option<Time> {
    let probe = member.probe.as_ref()?;
    member
        .failing_since
        .filter(|_| !probe.healthy && OURS.contains(&probe.reason.as_str()))
}
