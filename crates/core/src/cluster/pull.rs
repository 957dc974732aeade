//! The status of a Cluster in Pull mode: its agent writes it, and renews a Lease while it lives.
//!
//! The hub turns Ready to Unknown when the Lease was not renewed for the grace, and never otherwise: the agent's next report turns
//! it back. The grace counts from what this process observed, so the clock of the agent does not matter, and begins anew with each
//! list of the Leases: what happened in a gap of the watch was not observed. That a watch reports nothing is no proof: when the
//! grace is over, a GET of the Lease decides. Taints follow from the condition as in Push mode.
//! A Cluster about which no agent ever reported has a reason of its own: its first agent may still fill in its id.
//!
//! Ready is the agent's, which would undo any other words in it. That Leases cannot be read is a condition of its own.

use entourage_api::keys::{condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{endpoints, ready::say_what_is_not_watched, warning, write_status};
use crate::{
    cache::{LeaseRead, Member},
    condition as conditions,
    fleet::Fleet,
    governor,
    object::{Str, Time},
    observation::{LEASES, Watch},
    plan::{Change, Plan},
    readiness::stored_ready,
};

/// The presence of an agent as of now.
#[derive(Debug, PartialEq, Eq)]
enum Presence {
    /// It does not count as absent. To be decided again at this time; without one when something is observed.
    Assumed(Option<Time>),
    /// A GET of its Lease decides.
    Doubtful,
    /// It is absent: the GET of its Lease showed no renewal.
    Refuted,
}

/// Plans the status of a Cluster in Pull mode. Cost: O(kinds in use).
pub(super) fn plan(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Plan {
    let presence = presence(fleet, name, member, now);
    let mut status = member.object.status.clone().unwrap_or_default();
    let before = status.conditions.clone();
    let mut turned = None;
    if presence == Presence::Refuted && !is_unknown(member) {
        let (reason, message) = absence(fleet, name, member);
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::READY.into(),
                status: "Unknown".into(),
                reason: reason.into(),
                message: message.clone(),
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
        turned = Some(message);
    }
    // Of an earlier version, which delivered nothing to such a cluster.
    conditions::remove(&mut status.conditions, condition::EFFECTIVE);
    // Of the time in Push mode.
    conditions::remove(&mut status.conditions, condition::CAPACITY_WATCHED);
    say_what_is_not_read(fleet, name, member, &mut status.conditions, now);
    endpoints::fill(fleet, name, member, &mut status.conditions, now);
    let watched_at = say_what_is_not_watched(fleet, name, member, &mut status.conditions, now);
    let (paused, counts_at) = governor::say(fleet, name, member, &mut status.conditions, now);
    let decides_at = match presence {
        Presence::Assumed(until) => until,
        Presence::Doubtful | Presence::Refuted => None,
    };
    let again_at = decides_at.into_iter().chain(watched_at).chain(counts_at).min();
    if status.conditions == before && presence == Presence::Doubtful {
        let why = "its agent may have renewed its Lease without an event";
        return Plan::one(Change::GetLease(name.clone()), why);
    }
    if status.conditions == before {
        let why = "its agent may stop renewing its Lease";
        return again_at.map_or_else(Plan::nothing, |until| Plan::wait_until(until, why));
    }
    let mut plan = write_status(name, member, &status, "its conditions differ");
    plan.again_at = again_at;
    plan.changes.extend(paused.map(Change::Emit));
    if let Some(message) = turned {
        plan.changes
            .push(warning(name, member, event::CLUSTER_NOT_READY, message));
    }
    plan
}

fn is_unknown(member: &Member) -> bool {
    stored_ready(&member.object).is_some_and(|ready| ready.status == "Unknown")
}

fn presence(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Presence {
    let Some(due) = due(fleet, name, member) else {
        return Presence::Assumed(None);
    };
    let read = fleet.cache.leases.read.get(name);
    if let Some(read) = read.filter(|read| read.refused.is_some()) {
        // Whether it is refused still.
        let again_at = read.at.plus(fleet.config.cluster_monitor_grace);
        return match again_at <= now {
            true => Presence::Doubtful,
            false => Presence::Assumed(Some(again_at)),
        };
    }
    let stored = member.object.status.iter().flat_map(|status| &status.conditions);
    let is_reported = { stored }.any(|each| each.type_ == condition::AGENT_WATCHED);
    if is_reported && read.is_none() {
        return Presence::Doubtful;
    }
    if now < due {
        return Presence::Assumed(Some(due));
    }
    let is_fresh = |read: &LeaseRead| now <= read.at.plus(fleet.config.cluster_monitor_grace);
    match read {
        Some(read) if read.at >= due && is_fresh(read) => Presence::Refuted,
        // Nothing is decided.
        _ if is_unknown(member) => Presence::Assumed(None),
        _ => Presence::Doubtful,
    }
}

/// The time at which the agent counts as absent, if it does nothing until then; `None` while Leases are not observed.
fn due(fleet: &Fleet, name: &Str, member: &Member) -> Option<Time> {
    if !fleet.cache.watches.is_synced(&Watch::Leases) {
        return None;
    }
    let leases = &fleet.cache.leases;
    let begun = leases
        .listed?
        .max(leases.returned.get(name).copied().unwrap_or(Time(i64::MIN)));
    if let Some(held) = leases.held.get(name) {
        return Some(held.since.max(begun).plus(fleet.config.cluster_monitor_grace));
    }
    let since = leases.ended.get(name).copied().max(member.meta.created);
    let since = since.unwrap_or(begun).max(begun);
    Some(since.plus(fleet.config.cluster_startup_grace))
}

/// The reason and the message of Ready while the agent is absent.
fn absence(fleet: &Fleet, name: &Str, member: &Member) -> (&'static str, String) {
    let seconds = |millis: i64| millis.div_euclid(1_000);
    if stored_ready(&member.object).is_none() {
        let message = format!(
            "no agent has reported about {name} yet: run the command that `entourage token create {name} \
             --print-register-command` prints in the cluster, or look at the log of its agent there"
        );
        return (reason::CLUSTER_STATUS_NEVER_UPDATED, message);
    }
    let message = match fleet.cache.leases.held.contains_key(name) {
        true => format!(
            "the agent of {name} has not renewed its Lease {LEASES}/{name} for {} s: it is down, or does not reach the hub. What is \
             written for the cluster is applied when it does",
            seconds(fleet.config.cluster_monitor_grace)
        ),
        false => format!(
            "the agent of {name} has not made its Lease {LEASES}/{name} within {} s: start it in the cluster",
            seconds(fleet.config.cluster_startup_grace)
        ),
    };
    (reason::CLUSTER_STATUS_UNKNOWN, message)
}

/// Reports that the hub refuses Leases to our account. The stored report is kept until they have been read: a restart takes nothing
/// back.
fn say_what_is_not_read(
    fleet: &Fleet,
    name: &Str,
    member: &Member,
    conditions: &mut Vec<Condition>,
    now: Time,
) {
    let (watches, leases) = (&fleet.cache.watches, &fleet.cache.leases);
    let read = leases.read.get(name);
    let not_listed = watches.refused(&Watch::Leases).map(|why| ("list and watch", why));
    let not_read = read.and_then(|read| Some(("get", read.refused.as_ref()?)));
    let Some((verbs, why)) = not_listed.or(not_read) else {
        if read.is_some() && watches.is_synced(&Watch::Leases) {
            conditions::remove(conditions, condition::AGENT_WATCHED);
        }
        return;
    };
    let message = format!(
        "unknown whether the agent of {name} lives: the hub does not let the controllers {verbs} leases.coordination.k8s.io in \
         namespace {LEASES} ({why}). Grant that, as config/rbac does. Until then Ready stays as it is: no taint and no eviction \
         follows from the absence of the agent"
    );
    conditions::set(
        conditions,
        Condition {
            type_: condition::AGENT_WATCHED.into(),
            status: "False".into(),
            reason: reason::RIGHTS_MISSING.into(),
            message,
            observed_generation: member.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
}
