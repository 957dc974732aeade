//! The status of a Cluster in Pull mode: its agent writes it, and renews a Lease while it lives.
//!
//! The hub turns Ready to Unknown when the Lease was not renewed for the grace, and never otherwise: the agent's next report turns
//! it back. The grace counts from what this process observed, so the clock of the agent does not matter, and begins anew with each
//! list of the Leases: what happened in a gap of the watch was not observed. Taints follow from the condition as in Push mode.

use entourage_api::keys::{condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{ready::say_what_is_not_watched, warning, write_status};
use crate::{
    cache::Member,
    condition as conditions,
    fleet::Fleet,
    governor,
    object::{Str, Time},
    observation::{LEASES, Watch},
    plan::{Change, Plan},
    readiness::stored_ready,
};

/// Plans the status of a Cluster in Pull mode. Cost: O(kinds in use).
pub(super) fn plan(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Plan {
    let mut status = member.object.status.clone().unwrap_or_default();
    let before = status.conditions.clone();
    let due = due(fleet, name, member);
    let is_late = due.is_some_and(|due| due <= now);
    let is_unknown = stored_ready(&member.object).is_some_and(|ready| ready.status == "Unknown");
    let mut turned = None;
    if is_late && !is_unknown {
        let message = message(fleet, name);
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::READY.into(),
                status: "Unknown".into(),
                reason: reason::CLUSTER_STATUS_UNKNOWN.into(),
                message: message.clone(),
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
        turned = Some(message);
    }
    // Of an earlier version, which delivered nothing to such a cluster.
    conditions::remove(&mut status.conditions, condition::EFFECTIVE);
    let watched_at = say_what_is_not_watched(fleet, name, member, &mut status.conditions, now);
    let (paused, counts_at) = governor::say(fleet, name, member, &mut status.conditions, now);
    let due = due.filter(|_| !is_late);
    let again_at = due.into_iter().chain(watched_at).chain(counts_at).min();
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

/// The time at which the agent counts as absent, if it does nothing until then; `None` while Leases are not observed.
fn due(fleet: &Fleet, name: &Str, member: &Member) -> Option<Time> {
    if !fleet.cache.watches.is_synced(&Watch::Leases) {
        return None;
    }
    let leases = &fleet.cache.leases;
    let listed = leases.listed?;
    if let Some(held) = leases.held.get(name) {
        return Some(held.since.max(listed).plus(fleet.config.cluster_monitor_grace));
    }
    let since = leases.ended.get(name).copied().max(member.meta.created);
    let since = since.unwrap_or(listed).max(listed);
    Some(since.plus(fleet.config.cluster_startup_grace))
}

fn message(fleet: &Fleet, name: &Str) -> String {
    let seconds = |millis: i64| millis.div_euclid(1_000);
    match fleet.cache.leases.held.contains_key(name) {
        true => format!(
            "the agent of {name} has not renewed its Lease {LEASES}/{name} for {} s: it is down, or does not reach the hub. What is \
             written for the cluster is applied when it does",
            seconds(fleet.config.cluster_monitor_grace)
        ),
        false => format!(
            "the agent of {name} has not made its Lease {LEASES}/{name} within {} s: start it in the cluster",
            seconds(fleet.config.cluster_startup_grace)
        ),
    }
}
