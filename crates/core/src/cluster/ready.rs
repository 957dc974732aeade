//! The condition Ready of a Cluster, and the time after which it changes.
//!
//! A member that stops responding has the failure threshold before Ready turns False, one that responds again the success
//! threshold before it turns True (Karmada reference 4.1). A cause that does not pass by itself is reported at once: another
//! physical cluster, credentials of another Cluster. Members that stop responding at the same time are handled by
//! [`crate::memory::cut_off`].

use entourage_api::keys::{condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{capacity, endpoints, named_kinds, warning, write_status};
use crate::{
    cache::Member,
    condition as conditions,
    fleet::Fleet,
    fleet::identities,
    governor,
    member_status::{describe, is_refusal},
    object::{Str, Time},
    observation::Probe,
    plan::{Change, Plan},
    readiness::{is_cut_off, stored_ready},
};

/// Reasons of Ready that pass by themselves: the success threshold applies to their end.
const PASSING: [&str; 3] = [
    reason::CLUSTER_NOT_REACHABLE,
    reason::CLUSTER_NOT_READY,
    reason::CLUSTER_API_SLOW,
];

/// Plans the status of a Cluster by the last probe. Cost: O(kinds it serves).
pub(super) fn plan(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Plan {
    let Some(probe) = &member.probe else {
        return Plan::wait("it was not probed yet");
    };
    let objection = identities::objection(fleet, name);
    let unused = objection.as_ref().map(|objection| Probe {
        healthy: false,
        reason: objection.reason().into(),
        message: objection.message(name),
        ..Probe::default()
    });
    let is_certain =
        unused.is_some() || probe.reason == reason::CLUSTER_ID_CHANGED || is_refusal(&probe.reason);
    let probe = unused.as_ref().unwrap_or(probe);
    if !is_certain {
        match turns_at(fleet, member, probe) {
            Some(until) if now < until => return Plan::wait_until(until, "it may not last"),
            _ => {}
        }
    }
    let cut_off = (!is_certain)
        .then(|| fleet.memory.cut_off.message(name))
        .flatten();
    let cut_off = cut_off.map(|message| Probe {
        healthy: false,
        reason: reason::HUB_CUT_OFF.into(),
        message,
        ..Probe::default()
    });
    report(fleet, name, member, cut_off.as_ref().unwrap_or(probe), now)
}

/// The time at which a probe result has lasted long enough to be reported; `None`: at once. That is so for a Cluster without a
/// stored condition.
fn turns_at(fleet: &Fleet, member: &Member, probe: &Probe) -> Option<Time> {
    let stored = stored_ready(&member.object)?;
    let was_ready = stored.status == "True";
    if probe.healthy {
        let passes = !was_ready && PASSING.contains(&stored.reason.as_str());
        let since = member.answering_since.filter(|_| passes)?;
        return Some(since.plus(fleet.config.cluster_success_threshold));
    }
    let since = member.failing_since.filter(|_| was_ready || is_cut_off(stored))?;
    Some(since.plus(fleet.config.cluster_failure_threshold))
}

fn report(fleet: &Fleet, name: &Str, member: &Member, probe: &Probe, now: Time) -> Plan {
    let mut status = member.object.status.clone().unwrap_or_default();
    let generation = member.meta.generation;
    let before = status.clone();
    let turned = describe(&mut status, probe, generation, now);
    conditions::remove(&mut status.conditions, condition::EFFECTIVE);
    // Of the time in Pull mode.
    conditions::remove(&mut status.conditions, condition::AGENT_WATCHED);
    let again_at = if probe.healthy {
        say_what_is_not_watched(fleet, name, member, &mut status.conditions, now)
    } else {
        None
    };
    let (paused, counts_at) = governor::say(fleet, name, member, &mut status.conditions, now);
    endpoints::fill(fleet, name, member, &mut status.conditions, now);
    let collects_at = capacity::fill(fleet, name, member, &mut status, now);
    let again_at = again_at.into_iter().chain(counts_at).chain(collects_at).min();
    if status == before {
        let waits = |until| Plan::wait_until(until, "there is more to say soon");
        return again_at.map_or_else(Plan::nothing, waits);
    }
    let mut plan = write_status(name, member, &status, "its status differs");
    plan.again_at = again_at;
    plan.changes.extend(paused.map(Change::Emit));
    if turned && !probe.healthy {
        let warning_message = probe.message.clone();
        plan.changes
            .push(warning(name, member, event::CLUSTER_NOT_READY, warning_message));
    }
    plan
}

/// Reports the kinds that a member that responds does not list, when that has lasted; returns the time to check again. A kind
/// that was never granted, and so was never written there, is not reported. While not all kinds are known, the stored report is
/// kept: a restart takes nothing back. Cost: O(kinds); that of [`Fleet::is_unwritten`] for those that do not list.
pub(super) fn say_what_is_not_watched(
    fleet: &Fleet,
    name: &Str,
    member: &Member,
    conditions: &mut Vec<Condition>,
    now: Time,
) -> Option<Time> {
    let (mut lasting, mut unsettled, mut again_at) = (Vec::new(), false, None);
    for gvk in &fleet.graph.kinds {
        let watch = fleet.copies(name, gvk);
        if !fleet.demand().contains(&watch)
            || fleet.cache.watches.is_synced(&watch)
            || fleet.cache.watches.is_unserved(&watch)
        {
            continue;
        }
        let Some((since, why)) = fleet.cache.watches.lost(&watch) else {
            unsettled = true;
            continue;
        };
        if fleet.is_unwritten(name, gvk) {
            continue;
        }
        let until = since.plus(fleet.config.cluster_failure_threshold);
        if until <= now {
            lasting.push((gvk, why));
        } else {
            unsettled = true;
            again_at = Some(again_at.map_or(until, |held: Time| held.min(until)));
        }
    }
    if !lasting.is_empty() {
        let message = format!(
            "unknown state of some kinds on {name}: {}. Until it lists them, changes of copies there are not seen, \
             no copy of them is deleted, and their bindings show the last known state",
            named_kinds(&lasting)
        );
        conditions::set(
            conditions,
            Condition {
                type_: condition::COPIES_WATCHED.into(),
                status: "False".into(),
                reason: reason::LIST_FAILS.into(),
                message,
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
    } else if !unsettled {
        conditions::remove(conditions, condition::COPIES_WATCHED);
    }
    again_at
}
