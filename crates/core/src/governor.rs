//! The governor: a limit on the number of copies deleted on a member without an observed reason.
//!
//! A deletion is *explained* if an edit reported by a watch ended the reason for the copy: its template or a dependent was
//! changed or deleted, or a policy, a Cluster's labels, taints or spec, a namespace's consent or list of clusters, an interpreter. It is explained,
//! too, by the current state of the hub: a Cluster, a template or a distribution with a deletionTimestamp. All others are
//! unexplained: objects that a list shows to be gone or changed (after a restart, a gap, or a restore), and the consequences of
//! a defect. Invariants:
//!
//! - Unexplained deletions have a budget per member and minute: [`LEAST`], or a tenth of the member's copies. The first one
//!   beyond it pauses all of them on that member, until a user releases the pause.
//! - No unexplained deletion is made if the hub looks empty (`HubLooksEmpty`) or was restored under this process
//!   (`HubRolledBack`) before a user releases it.
//! - Whether it looks empty is decided when the objects with copies on the member and these copies are listed, or it is certain
//!   that they cannot be; until then unexplained deletions wait for these lists, unless some object is known to be there.
//! - A pause is recorded as a condition of the Cluster, and outlives restarts. A release names the pause, so it releases no
//!   later one.
//! - Explained deletions are not paused, unless [`crate::config::Config::removal_budget`] limits them, too.
//! - While a list of the hub that every deletion needs fails, nothing is deleted at all. If a deletion waits for it, the
//!   condition reports that (`HubNotSynced`): it is no pause, so there is nothing to release.
//! - A key that waits for a release waits for [`crate::plan::SyncRequirement::Removals`], and is planned again when it comes.

mod account;
mod words;

use entourage_api::keys::{annotation, condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub(crate) use account::{account, explain};
use words::{lacks, message};

pub use crate::memory::deletion_pauses::pause_name;
use crate::{
    cache::Member,
    condition as conditions,
    fleet::Fleet,
    memory::deletion_pauses::Cause,
    object::{Str, Time},
    observation::Watch,
    plan::{Event, Plan, Regarding, SyncRequirement},
};

/// The number of unexplained deletions a minute that are always allowed on a member.
pub const LEAST: usize = 20;

/// One in this number of a member's copies may be deleted unexplained in a minute.
const SHARE: usize = 10;

/// The time after a restore of the hub for which unexplained deletions are attributed to it.
const ROLLBACK_LASTS: i64 = 3_600_000;

/// The time after which a pause reports the number of waiting deletions.
const COUNTED_AFTER: i64 = 5_000;

/// The time after which the copies are counted again once the list that was missing has arrived.
const COUNTED_AGAIN: i64 = 1_000;

/// The time after which a missing list of the hub is reported: lists are late at a start, and fail for moments.
const BLIND_AFTER: i64 = 60_000;

/// Returns the plan to wait if a deletion on a member must wait, or `None`. `counted`: it was started and counted before. Cost:
/// O(log members).
pub(crate) fn hold(
    fleet: &Fleet,
    cluster: &Str,
    (explained, counted): (bool, bool),
    now: Time,
) -> Option<Plan> {
    let paused = fleet
        .memory
        .deletion_pauses
        .members
        .get(cluster)
        .and_then(|limiter| limiter.pause.as_ref())
        .is_some_and(|pause| !explained || pause.cause == Cause::Budget);
    if !fleet.config.limit_deletions {
        return None;
    }
    if paused || (!counted && cause(fleet, cluster, explained, now).is_some()) {
        return Some(Plan::wait_for(
            SyncRequirement::Removals(cluster.clone()),
            format!("deletions on {cluster} are paused"),
        ));
    }
    if explained || counted {
        return None;
    }
    let limiter = fleet.memory.deletion_pauses.members.get(cluster)?;
    let missing = limiter.measured.as_ref()?.missing.as_ref()?;
    let why = "it is not known yet whether the hub looks empty: its objects or their copies are not listed";
    match limiter.is_released(now) {
        true => None,
        false if fleet.has(missing) => Some(Plan::wait_until(now.plus(COUNTED_AGAIN), why)),
        false => Some(Plan::wait_for(missing.clone(), why)),
    }
}

/// The reason why one more deletion would exceed a limit now, or `None`.
fn cause(fleet: &Fleet, cluster: &str, explained: bool, now: Time) -> Option<Cause> {
    let limiter = fleet.memory.deletion_pauses.members.get(cluster)?;
    if limiter.is_released(now) {
        return None;
    }
    let released = limiter.released;
    let (all, budget) = (limiter.all.count(now), fleet.config.removal_budget);
    if budget.is_some_and(|budget| all >= budget as usize) {
        return Some(Cause::Budget);
    }
    if explained {
        return None;
    }
    let rolled_back = fleet
        .memory
        .deletion_pauses
        .rolled_back
        .filter(|at| now < at.plus(ROLLBACK_LASTS));
    if rolled_back.is_some_and(|at| released.is_none_or(|released| released < at)) {
        return Some(Cause::HubRolledBack);
    }
    let measured = limiter.measured.as_ref()?;
    if measured.looks_empty {
        return Some(Cause::HubLooksEmpty);
    }
    (limiter.unexplained.count(now) >= measured.limit).then_some(Cause::Unexplained)
}

/// Sets the condition of a Cluster that reports whether its deletions are paused. Returns the event of a pause that begins, and
/// the time to report the number of waiting deletions. A pause that was recorded before this process started is left as
/// reported.
pub(crate) fn say(
    fleet: &Fleet,
    name: &Str,
    member: &Member,
    all: &mut Vec<Condition>,
    now: Time,
) -> (Option<Event>, Option<Time>) {
    let pause = fleet
        .memory
        .deletion_pauses
        .members
        .get(name)
        .and_then(|limiter| limiter.pause.as_ref());
    let is_reported = conditions::status(all, condition::REMOVALS_PAUSED) == Some("True");
    let reported = |status: &str, reason: &str, message: String, at: Time| Condition {
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
        if let Some((since, lacking)) = fleet
            .memory
            .deletion_pauses
            .blind
            .as_ref()
            .filter(|_| fleet.config.limit_deletions)
        {
            let due = since.plus(BLIND_AFTER);
            if now < due {
                return (None, Some(due));
            }
            // The current condition is not known, so it cannot be changed.
            if !fleet.cache.watches.is_synced(&Watch::Clusters) {
                return (None, None);
            }
            // Before the deletions are observed again after a restart, the stored condition counts.
            let waiting = fleet
                .memory
                .deletion_pauses
                .kept_from
                .get(name)
                .map(|all| !all.is_empty());
            if waiting.unwrap_or(was_blind) {
                let message = lacks(lacking, name);
                conditions::set(all, reported("True", reason::HUB_NOT_SYNCED, message, *since));
            } else if was_blind {
                conditions::remove(all, condition::REMOVALS_PAUSED);
            }
        } else if was_blind {
            conditions::remove(all, condition::REMOVALS_PAUSED);
        } else if is_reported {
            let message = format!(
                "Deletions on {name} continue: they were released with the annotation {}.",
                annotation::RESUME_REMOVALS
            );
            conditions::set(all, reported("False", reason::REMOVALS_RESUMED, message, now));
        }
        return (None, None);
    };
    let Some(began) = pause.began else {
        return (None, None);
    };
    let message = message(name, pause);
    let event = (!is_reported).then(|| Event {
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
    conditions::set(all, reported("True", pause.cause.reason(), message, pause.since));
    let again_at = pause
        .waiting
        .is_none()
        .then(|| began.plus(COUNTED_AFTER).max(now.plus(1)));
    (event, again_at)
}
