//! The deletions on members: their number, their pauses, and the lists of the hub that they wait for. The consequences are
//! decided by [`crate::governor`].

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::keys::{annotation, condition, reason};

use crate::{
    cache::Member,
    object::{Gvk, ResourceId, Str, Time},
    observation::Watch,
    plan::SyncRequirement,
};

/// The window: a minute, in milliseconds.
pub(crate) const WINDOW: i64 = 60_000;

/// The time for which a release permits unexplained deletions: also those that follow from the ones that waited, and after a
/// restart.
const RELEASE_LASTS: i64 = 600_000;

/// The time for which an edit explains that a copy is no longer wanted.
const EDIT_EXPLAINS: i64 = 3_600_000;

/// The cause of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// More than the budget, and no edit explains them.
    Unexplained,
    /// More copies than the minimum budget are not explained, and none of their templates is on the hub.
    HubLooksEmpty,
    /// The hub's resourceVersions went back.
    HubRolledBack,
    /// More than the configured budget for all deletions.
    Budget,
}

impl Cause {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Unexplained => reason::UNEXPLAINED_REMOVALS,
            Self::HubLooksEmpty => reason::HUB_LOOKS_EMPTY,
            Self::HubRolledBack => reason::HUB_ROLLED_BACK,
            Self::Budget => reason::REMOVAL_BUDGET_EXCEEDED,
        }
    }

    fn of(text: &str) -> Self {
        let all = [Self::HubLooksEmpty, Self::HubRolledBack, Self::Budget];
        let found = all.into_iter().find(|each| each.reason() == text);
        found.unwrap_or(Self::Unexplained)
    }
}

/// A pause of deletions on a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) cause: Cause,
    /// Also its name: whole seconds, as in the condition.
    pub(crate) since: Time,
    /// The time when this process began it; `None` for one that was read from the Cluster.
    pub(crate) began: Option<Time>,
    /// The number of deletions within the minute before.
    pub(crate) deleted: usize,
    /// The limit of that number.
    pub(crate) limit: usize,
    /// The number of waiting deletions when they were counted.
    pub(crate) waiting: Option<usize>,
}

/// Deletions within a minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub(crate) began: Time,
    pub(crate) count: usize,
}

impl Window {
    fn is_open(&self, now: Time) -> bool {
        self.began.0 > 0 && now < self.began.plus(WINDOW)
    }

    pub(crate) fn count(&self, now: Time) -> usize {
        if self.is_open(now) { self.count } else { 0 }
    }

    pub(crate) fn add(&mut self, now: Time) {
        if !self.is_open(now) {
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
    }
}

/// The copies on a member that the limit of its deletions depends on, as last counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) at: Time,
    /// The number of deletions within a minute that may go unexplained.
    pub(crate) limit: usize,
    /// True if the hub looks empty.
    pub(crate) looks_empty: bool,
    /// The list without which nobody knows whether it does; `None` if it does not, whatever the list has.
    pub(crate) missing: Option<SyncRequirement>,
    /// The lists of the kinds in use that were not complete.
    pub(crate) unsynced: BTreeSet<Watch>,
}

/// Counts the deletions on one member, and pauses them.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletionLimiter {
    pub(crate) unexplained: Window,
    pub(crate) measured: Option<Measured>,
    pub(crate) all: Window,
    pub(crate) pause: Option<Pause>,
    pub(crate) released: Option<Time>,
}

impl DeletionLimiter {
    /// True while a release permits unexplained deletions.
    pub(crate) fn is_released(&self, now: Time) -> bool {
        self.released
            .is_some_and(|released| now < released.plus(RELEASE_LASTS))
    }
}

/// The state of all members.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletionPauses {
    pub(crate) members: BTreeMap<Str, DeletionLimiter>,
    /// Clusters whose condition must be planned again.
    pub(crate) raised: BTreeSet<Str>,
    pub(crate) rolled_back: Option<Time>,
    /// The time since when lists of the hub are missing that every deletion needs, and their kinds.
    pub(crate) blind: Option<(Time, Vec<Gvk>)>,
    /// The deletions that wait for these lists, by cluster; no entry if none waits any longer.
    pub(crate) kept_from: BTreeMap<Str, BTreeSet<ResourceId>>,
}

impl DeletionPauses {
    /// The hub's resourceVersions went back.
    pub(crate) fn rolled_back(&mut self, now: Time) {
        self.rolled_back = Some(now);
    }

    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.members.remove(cluster);
        self.kept_from.remove(cluster);
    }

    /// Notes whether the deletion of a copy waits for lists of the hub, as planned last. Cost: O(log) while lists are missing.
    pub(crate) fn keeps_from(&mut self, id: &ResourceId, cluster: &Str, waits: bool) {
        if self.blind.is_none() {
            return;
        }
        if waits {
            let waiting = self.kept_from.entry(cluster.clone()).or_default();
            if waiting.insert(id.clone()) && waiting.len() == 1 {
                self.raised.insert(cluster.clone());
            }
        } else if let Some(waiting) = self.kept_from.get_mut(cluster)
            && waiting.remove(id)
            && waiting.is_empty()
        {
            self.raised.insert(cluster.clone());
        }
    }

    /// Clusters to be planned again. Cost: O(1) when there are none.
    pub(crate) fn take_raised(&mut self) -> BTreeSet<Str> {
        std::mem::take(&mut self.raised)
    }

    /// True if nothing pauses deletions on a member.
    pub(crate) fn is_released(&self, cluster: &str) -> bool {
        self.members
            .get(cluster)
            .is_none_or(|limiter| limiter.pause.is_none())
    }

    /// Notes the report of a Cluster: a recorded pause, or the release of one. Returns true if one was released.
    pub(crate) fn take_in_report(&mut self, member: &Member, name: &Str, now: Time) -> bool {
        let status = member.object.status.iter();
        let mut all = status.flat_map(|status| &status.conditions);
        let stored = all.find(|each| each.type_ == condition::REMOVALS_PAUSED);
        let release = member.meta.annotation(annotation::RESUME_REMOVALS);
        if stored.is_none() && !self.members.contains_key(name) {
            return false;
        }
        let limiter = self.members.entry(name.clone()).or_default();
        if let Some(stored) = stored {
            let since = Time::from_k8s(&stored.last_transition_time);
            // A hub that was not synced is no pause.
            if stored.reason == reason::HUB_NOT_SYNCED {
            } else if stored.status == "True" {
                let is_over = limiter.released.is_some_and(|released| since <= released);
                if limiter.pause.is_none() && !is_over {
                    limiter.pause = Some(Pause {
                        cause: Cause::of(&stored.reason),
                        since,
                        began: None,
                        deleted: 0,
                        limit: 0,
                        waiting: None,
                    });
                }
            } else if limiter.pause.is_none() {
                limiter.released = limiter.released.max(Some(since));
            }
        }
        let names = |pause: &Pause| release == Some(&*pause_name(pause.since));
        if !limiter.pause.as_ref().is_some_and(names) {
            return false;
        }
        (limiter.pause, limiter.released) = (None, Some(now));
        self.raised.insert(name.clone());
        true
    }
}

/// The name of a pause in the annotation that releases it.
#[must_use]
pub fn pause_name(since: Time) -> String {
    since.to_k8s().0.to_string()
}

/// True if an edit at that time explains that a copy is no longer wanted now.
pub(crate) fn explains(edited: Option<Time>, now: Time) -> bool {
    edited.is_some_and(|edited| now < edited.plus(EDIT_EXPLAINS))
}
