//! The governor: how many copies may be deleted on a member for no reason that this process saw.
//!
//! A deletion is *explained* if an edit that a watch told ended the reason for the copy: its template or what referred to
//! it was changed or deleted, or a policy, a Cluster's labels, taints or spec, a namespace's consent, an interpreter. It is
//! explained, too, by what the hub still says: a Cluster, a template or a distribution with a deletionTimestamp. Everything
//! else is not: what a list shows to be gone or changed (after a restart, a gap, or a restore), and what follows from a
//! defect. Invariants:
//!
//! - Unexplained deletions have a budget per member and minute: [`LEAST`], or a tenth of the member's copies. The first one
//!   beyond it pauses all of them on that member, until a person releases the pause.
//! - No unexplained deletion is made where the hub looks empty ([`Cause::HubLooksEmpty`]) or was restored under this process
//!   ([`Cause::HubRolledBack`]) before a person releases it.
//! - A pause is recorded as a condition of the Cluster, and holds over restarts. A release names the pause, so it releases no
//!   later one.
//! - Explained deletions resumed, unless [`crate::index::Config::removal_budget`] limits them, too.
//! - While a list of the hub that every deletion needs cannot be had, nothing is deleted at all. Where a deletion waits for
//!   it, the condition says that (`HubNotSynced`): no pause, so there is nothing to release.
//! - Who waits for a release waits under [`crate::plan::Proof::Removals`], and is planned again when it comes.

mod words;

use entourage_api::keys::{annotation, condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use words::{lacks, message};

use crate::{
    condition as conditions,
    index::{Index, Member},
    object::{Gvk, Id, Str, Time},
    observation::Watch,
    plan::{Event, Key, Plan, Proof, Regarding},
};

/// So many unexplained deletions a minute are always allowed on a member.
pub const LEAST: usize = 20;

/// One of so many copies of a member may be deleted unexplained in a minute.
const SHARE: usize = 10;

/// The minute.
const WINDOW: i64 = 60_000;

/// How long an edit explains that a copy is not wanted any more.
const EDIT_EXPLAINS: i64 = 3_600_000;

/// How long after a restore of the hub an unexplained deletion is taken for its consequence.
const ROLLBACK_LASTS: i64 = 3_600_000;

/// How long a release lets unexplained deletions through: what follows from those that waited, also after a restart.
const RELEASE_LASTS: i64 = 600_000;

/// After how long a pause says how many deletions wait.
const COUNTED_AFTER: i64 = 5_000;

/// After how long it is told that a list of the hub lacks: lists are late at a start, and break for moments.
const BLIND_AFTER: i64 = 60_000;

/// Why deletions pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// More than the budget, and no edit explains them.
    Unexplained,
    /// More copies than the least budget are not explained, and none of their templates is on the hub.
    HubLooksEmpty,
    /// The hub's resourceVersions went back.
    HubRolledBack,
    /// More than the budget that was configured for all deletions.
    Budget,
}

impl Cause {
    const fn reason(self) -> &'static str {
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

/// A pause of a member's deletions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    cause: Cause,
    /// Its name, too: whole seconds, as the condition has it.
    since: Time,
    /// When this process began it; `None` for one that the Cluster told.
    began: Option<Time>,
    /// How many were deleted within the minute before.
    deleted: usize,
    /// How many may be.
    limit: usize,
    /// How many waited when that was counted.
    waiting: Option<usize>,
}

/// Deletions within a minute.
#[derive(Clone, Debug, Default)]
struct Window {
    began: Time,
    count: usize,
}

impl Window {
    fn is_open(&self, now: Time) -> bool {
        self.began.0 > 0 && now < self.began.plus(WINDOW)
    }

    fn count(&self, now: Time) -> usize {
        if self.is_open(now) { self.count } else { 0 }
    }

    fn add(&mut self, now: Time) {
        if !self.is_open(now) {
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
    }
}

/// What is held of one member.
#[derive(Clone, Debug, Default)]
struct Brake {
    unexplained: Window,
    /// When the member's copies were last counted, how many may go unexplained, and whether the hub looks empty.
    surveyed: Option<(Time, usize, bool)>,
    all: Window,
    pause: Option<Pause>,
    released: Option<Time>,
}

/// What is held of all members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Governor {
    brakes: std::collections::BTreeMap<Str, Brake>,
    /// Clusters whose condition must be planned again.
    raised: std::collections::BTreeSet<Str>,
    rolled_back: Option<Time>,
    /// Since when lists of the hub lack that every deletion needs, and of which kinds.
    blind: Option<(Time, Vec<Gvk>)>,
    /// The deletions that wait for them on each cluster; none where they do not wait any longer.
    kept_from: std::collections::BTreeMap<Str, std::collections::BTreeSet<Id>>,
}

impl Governor {
    /// The hub's resourceVersions went back.
    pub(crate) fn rolled_back(&mut self, now: Time) {
        self.rolled_back = Some(now);
    }

    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.brakes.remove(cluster);
        self.kept_from.remove(cluster);
    }

    /// Whether the deletion of a copy waits for lists of the hub, as it was planned last. Cost: O(log) while lists lack.
    pub(crate) fn keeps_from(&mut self, id: &Id, cluster: &Str, waits: bool) {
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
    pub(crate) fn take_raised(&mut self) -> std::collections::BTreeSet<Str> {
        std::mem::take(&mut self.raised)
    }

    /// Whether nothing keeps deletions on a member from going on.
    pub(crate) fn is_released(&self, cluster: &str) -> bool {
        self.brakes.get(cluster).is_none_or(|brake| brake.pause.is_none())
    }

    /// Takes in what a Cluster says: a pause that was recorded, or the release of one. Answers whether one was released.
    pub(crate) fn told(&mut self, member: &Member, name: &Str, now: Time) -> bool {
        let status = member.object.status.iter();
        let mut all = status.flat_map(|status| &status.conditions);
        let stored = all.find(|each| each.type_ == condition::REMOVALS_PAUSED);
        let release = member.meta.annotation(annotation::RESUME_REMOVALS);
        if stored.is_none() && !self.brakes.contains_key(name) {
            return false;
        }
        let brake = self.brakes.entry(name.clone()).or_default();
        if let Some(stored) = stored {
            let since = Time::from_k8s(&stored.last_transition_time);
            // That the hub was not known is no pause.
            if stored.reason == reason::HUB_NOT_SYNCED {
            } else if stored.status == "True" {
                let is_over = brake.released.is_some_and(|released| since <= released);
                if brake.pause.is_none() && !is_over {
                    brake.pause = Some(Pause {
                        cause: Cause::of(&stored.reason),
                        since,
                        began: None,
                        deleted: 0,
                        limit: 0,
                        waiting: None,
                    });
                }
            } else if brake.pause.is_none() {
                brake.released = brake.released.max(Some(since));
            }
        }
        let names = |pause: &Pause| release == Some(&*pause_name(pause.since));
        if !brake.pause.as_ref().is_some_and(names) {
            return false;
        }
        (brake.pause, brake.released) = (None, Some(now));
        self.raised.insert(name.clone());
        true
    }
}

/// How the annotation that releases a pause names it.
#[must_use]
pub fn pause_name(since: Time) -> String {
    since.to_k8s().0.to_string()
}

/// Whether an edit at that time explains what is not wanted now.
pub(crate) fn explains(edited: Option<Time>, now: Time) -> bool {
    edited.is_some_and(|edited| now < edited.plus(EDIT_EXPLAINS))
}

/// Whether something that is to be deleted on a member must wait: then the plan to do so. `counted` is one that was begun
/// before. Cost: O(log members).
pub(crate) fn hold(
    index: &Index,
    cluster: &Str,
    (explained, counted): (bool, bool),
    now: Time,
) -> Option<Plan> {
    let paused = index
        .governor
        .brakes
        .get(cluster)
        .and_then(|brake| brake.pause.as_ref())
        .is_some_and(|pause| !explained || pause.cause == Cause::Budget);
    let due = || {
        !counted
            && index
                .governor
                .cause(index.config.removal_budget, cluster, explained, now)
                .is_some()
    };
    (index.config.brake && (paused || due())).then(|| {
        Plan::wait_for(
            Proof::Removals(cluster.clone()),
            format!("deletions on {cluster} are paused"),
        )
    })
}

impl Governor {
    /// Why one more deletion would be too many now.
    fn cause(&self, budget: Option<u32>, cluster: &str, explained: bool, now: Time) -> Option<Cause> {
        let brake = self.brakes.get(cluster)?;
        let released = brake.released;
        if released.is_some_and(|released| now < released.plus(RELEASE_LASTS)) {
            return None;
        }
        let all = brake.all.count(now);
        if budget.is_some_and(|budget| all >= budget as usize) {
            return Some(Cause::Budget);
        }
        if explained {
            return None;
        }
        let rolled_back = self.rolled_back.filter(|at| now < at.plus(ROLLBACK_LASTS));
        if rolled_back.is_some_and(|at| released.is_none_or(|released| released < at)) {
            return Some(Cause::HubRolledBack);
        }
        let (_, limit, looks_empty) = brake.surveyed?;
        if looks_empty {
            return Some(Cause::HubLooksEmpty);
        }
        (brake.unexplained.count(now) >= limit).then_some(Cause::Unexplained)
    }
}

impl Index {
    /// After what is told of a watch of the hub: whether lists lack that every deletion needs. Cost: O(kinds); O(members) when
    /// that begins, changes or ends.
    pub(crate) fn mind_the_hub(&mut self, now: Time, dirty: &mut Vec<Key>) {
        let lacking = self.lacking();
        let was = self.governor.blind.take();
        if lacking.is_empty() {
            self.governor.kept_from.clear();
        }
        let is_same = was
            .as_ref()
            .map_or(lacking.is_empty(), |(_, kinds)| *kinds == lacking);
        let since = was.map_or(now, |(since, _)| since);
        self.governor.blind = (!lacking.is_empty()).then_some((since, lacking));
        if !is_same {
            dirty.extend(self.members.keys().cloned().map(Key::Cluster));
        }
    }

    /// Before an unexplained deletion is planned: counts what it is measured by, once a minute for each member. Cost: O(1);
    /// O(entities) when that is due.
    pub(crate) fn survey(&mut self, cluster: &Str, now: Time) {
        let brake = self.governor.brakes.entry(cluster.clone()).or_default();
        if brake.surveyed.is_some_and(|(at, ..)| now < at.plus(WINDOW)) {
            return;
        }
        let (mut copies, mut unexplained, mut standing) = (0, 0, false);
        for entity in self.entities.values() {
            let Some(state) = entity.copies.get(cluster) else {
                continue;
            };
            if state.live.is_none() {
                continue;
            }
            copies += 1;
            if entity.last_binding().is_some() && !state.explained {
                unexplained += 1;
                standing |= entity.standing().is_some();
            }
        }
        let limit = LEAST.max(copies / SHARE);
        brake.surveyed = Some((now, limit, unexplained > LEAST && !standing));
    }

    /// A deletion on a member is about to be carried out.
    pub(crate) fn charge(&mut self, cluster: &Str, explained: bool, now: Time) {
        let brake = self.governor.brakes.entry(cluster.clone()).or_default();
        brake.all.add(now);
        if !explained {
            brake.unexplained.add(now);
        }
    }

    /// A deletion waits for a release: the pause begins, if it has not.
    pub(crate) fn pause(&mut self, cluster: &Str, explained: bool, now: Time) {
        let cause = self
            .governor
            .cause(self.config.removal_budget, cluster, explained, now);
        let release = self
            .members
            .get(cluster)
            .and_then(|member| member.meta.annotation(annotation::RESUME_REMOVALS));
        let Some(brake) = self.governor.brakes.get_mut(cluster) else {
            return;
        };
        let Some(cause) = cause.filter(|_| brake.pause.is_none()) else {
            return;
        };
        let mut since = Time(now.0 - now.0.rem_euclid(1_000));
        // What releases an earlier one must not release this one.
        if release == Some(&*pause_name(since)) || brake.released.is_some_and(|released| since <= released) {
            since = since.plus(1_000);
        }
        let (deleted, limit) = match cause {
            Cause::Budget => (
                brake.all.count(now),
                self.config.removal_budget.unwrap_or_default() as usize,
            ),
            _ => (
                brake.unexplained.count(now),
                brake.surveyed.map_or(LEAST, |(_, limit, _)| limit),
            ),
        };
        brake.pause = Some(Pause {
            cause,
            since,
            began: Some(now),
            deleted,
            limit,
            waiting: None,
        });
        self.governor.raised.insert(cluster.clone());
    }

    /// Counts once how many deletions wait, when most of them are known.
    pub(crate) fn count_waiting(&mut self, cluster: &Str, now: Time) {
        let waiting = self.waiting_for(&Proof::Removals(cluster.clone()));
        let pause = self
            .governor
            .brakes
            .get_mut(cluster)
            .and_then(|brake| brake.pause.as_mut());
        if let Some(pause) = pause
            && pause.waiting.is_none()
            && pause.began.is_some_and(|began| now >= began.plus(COUNTED_AFTER))
        {
            pause.waiting = Some(waiting);
        }
    }
}

/// Says on a Cluster whether its deletions are paused. Answers with the event of a pause that begins, and when to say how
/// many wait. A pause that was recorded before this process began is left as it is told.
pub(crate) fn say(
    index: &Index,
    name: &Str,
    member: &Member,
    all: &mut Vec<Condition>,
    now: Time,
) -> (Option<Event>, Option<Time>) {
    let pause = index
        .governor
        .brakes
        .get(name)
        .and_then(|brake| brake.pause.as_ref());
    let is_told = conditions::status(all, condition::REMOVALS_PAUSED) == Some("True");
    let told = |status: &str, reason: &str, message: String, at: Time| Condition {
        type_: condition::REMOVALS_PAUSED.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        observed_generation: member.meta.generation,
        last_transition_time: at.to_k8s(),
    };
    let is_blind =
        |each: &&Condition| each.type_ == condition::REMOVALS_PAUSED && each.reason == reason::HUB_NOT_SYNCED;
    let was_blind = all.iter().any(|each| is_blind(&each));
    let Some(pause) = pause else {
        if let Some((since, lacking)) = index.governor.blind.as_ref().filter(|_| index.config.brake) {
            let due = since.plus(BLIND_AFTER);
            if now < due {
                return (None, Some(due));
            }
            // What is told now is not known, so it cannot be changed.
            if !index.synced.contains(&Watch::Clusters) {
                return (None, None);
            }
            // Who has not seen the deletions yet, after a restart, goes by what is told.
            let waiting = index.governor.kept_from.get(name).map(|all| !all.is_empty());
            if waiting.unwrap_or(was_blind) {
                let message = lacks(lacking, name);
                conditions::set(all, told("True", reason::HUB_NOT_SYNCED, message, *since));
            } else if was_blind {
                conditions::remove(all, condition::REMOVALS_PAUSED);
            }
        } else if was_blind {
            conditions::remove(all, condition::REMOVALS_PAUSED);
        } else if is_told {
            let message = format!(
                "Deletions on {name} continue: they were released with the annotation {}.",
                annotation::RESUME_REMOVALS
            );
            conditions::set(all, told("False", reason::REMOVALS_RESUMED, message, now));
        }
        return (None, None);
    };
    let Some(began) = pause.began else {
        return (None, None);
    };
    let message = message(name, pause);
    let event = (!is_told).then(|| Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: name.clone(),
            uid: member.meta.uid.clone(),
        },
        warning: true,
        reason: event::REMOVALS_PAUSED,
        message: message.clone(),
    });
    conditions::set(all, told("True", pause.cause.reason(), message, pause.since));
    let again_at = pause
        .waiting
        .is_none()
        .then(|| began.plus(COUNTED_AFTER).max(now.plus(1)));
    (event, again_at)
}
