//! The counts before and after a key is planned, and the pauses that follow.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use super::{COUNTED_AFTER, LEAST, SHARE, cause};
use crate::{
    cache::Binding,
    fleet::{Fleet, secrets::is_revoked, sync_requirement::BASE, wanted::wants},
    memory::deletion_pauses::{Cause, Measured, Pause, WINDOW, explains, pause_name},
    object::{ResourceId, Str, Time},
    observation::Watch,
    places::Place,
    plan::{Change, Key, Plan, RemovalMode, SyncRequirement},
    stored_binding::eviction_from,
};

/// Before a key is planned: records whether an edit explains that its copy is no longer required. Cost: O(1) for a copy that is
/// required and was not edited; else that of [`wants`] and [`measure`].
pub(crate) fn explain(fleet: &mut Fleet, key: &Key, now: Time) {
    if !fleet.config.limit_deletions {
        return;
    }
    match key {
        Key::Copy(id, cluster) => explain_copy(fleet, id, cluster, now),
        Key::Distributed(name, place) => {
            if let Some(cluster) = &place.cluster
                && is_leaving_unexplained(fleet, name, place)
            {
                measure(fleet, cluster, now);
            }
        }
        Key::Namespace(name, cluster) if is_ending_unexplained(fleet, name, cluster) => {
            measure(fleet, cluster, now);
        }
        Key::Cluster(name) => count_waiting(fleet, name, now),
        _ => {}
    }
}

fn explain_copy(fleet: &mut Fleet, id: &ResourceId, cluster: &Str, now: Time) {
    let Some(resource) = fleet.cache.resources.get(id) else {
        return;
    };
    let Some(state) = resource.copies.get(cluster).filter(|state| state.live.is_some()) else {
        return;
    };
    let ends = resource
        .template
        .as_ref()
        .is_some_and(|template| template.meta.deleting.is_some());
    let wanted = !ends
        && resource.template.is_some()
        && wants(fleet, id, resource, cluster)
        && !is_revoked(fleet, id, cluster);
    // Evictions have their own limit.
    let is_evicted = resource
        .binding
        .as_ref()
        .is_some_and(|binding| eviction_from(&binding.object.spec, cluster).is_some());
    let (explained, counted) = if wanted {
        (false, false)
    } else {
        (
            state.explained || ends || is_evicted || explains(resource.edited, now),
            state.counted,
        )
    };
    let is_due = !wanted && !explained && !counted;
    if (explained, counted) != (state.explained, state.counted) {
        let state = fleet.copy_state(id, cluster);
        (state.explained, state.counted) = (explained, counted);
    }
    if is_due && fleet.is_removal_safe(&id.gvk) && fleet.copies_known(cluster, &id.gvk) {
        measure(fleet, cluster, now);
    }
}

fn is_leaving_unexplained(fleet: &Fleet, name: &Str, place: &Place) -> bool {
    let held = fleet.memory.distributions.held.get(name);
    let target_state = held.and_then(|held| held.target_states.get(place));
    target_state.is_some_and(|target_state| {
        target_state.target_status.is_some_and(|each| !each.is_meant()) && !target_state.explained
    })
}

fn is_ending_unexplained(fleet: &Fleet, name: &Str, cluster: &Str) -> bool {
    let ending = fleet.cache.namespaces.ending(cluster, name);
    let seen = fleet.cache.namespaces.on(cluster, name);
    !fleet.cache.namespaces.hub.contains_key(name)
        && seen.is_some_and(|seen| seen.is_of(&fleet.config.hub, cluster))
        && !ending.is_some_and(|ending| ending.explained || ending.counted)
        && fleet.cache.watches.is_synced(&Watch::Namespaces)
        && fleet.is_base_synced()
}

/// After a key was planned: counts the deletions of its plan, and pauses those beyond the limit. Cost: O(log members).
pub(crate) fn account(fleet: &mut Fleet, key: &Key, plan: &Plan, now: Time) {
    if !fleet.config.limit_deletions {
        return;
    }
    let deletes = plan.changes.iter().any(|change| {
        matches!(
            change,
            Change::Remove {
                mode: RemovalMode::Delete,
                ..
            } | Change::EndNamespace { .. }
        ) || matches!(change, Change::Withdraw(order) if order.mode == RemovalMode::Delete)
    });
    let waits = matches!(plan.awaits.as_deref(), Some(SyncRequirement::Removals(_)));
    if !deletes && !waits {
        return;
    }
    let (cluster, explained) = match key {
        Key::Copy(id, cluster) => {
            let leaves = fleet
                .cache
                .members
                .get(cluster)
                .is_some_and(|member| member.meta.deleting.is_some());
            let state = fleet.copy_state(id, cluster);
            let explained = state.explained || leaves;
            if deletes && std::mem::replace(&mut state.counted, true) {
                return;
            }
            (cluster.clone(), explained)
        }
        Key::Distributed(name, place) => {
            let Some(cluster) = place.cluster.clone() else {
                return;
            };
            let held = fleet.memory.distributions.held.get_mut(name);
            let Some(held) = held else { return };
            let ending = held.object.meta.deleting.is_some();
            let Some(target_state) = held.target_states.get_mut(place) else {
                return;
            };
            if deletes && std::mem::replace(&mut target_state.counted, true) {
                return;
            }
            (cluster, target_state.explained || ending)
        }
        Key::Namespace(name, cluster) => {
            let Some(ending) = fleet.cache.namespaces.ending_mut(cluster, name) else {
                return;
            };
            if deletes && std::mem::replace(&mut ending.counted, true) {
                return;
            }
            (cluster.clone(), ending.explained)
        }
        _ => return,
    };
    if deletes {
        charge(fleet, &cluster, explained, now);
    } else {
        pause(fleet, &cluster, explained, now);
    }
}

/// Before an unexplained deletion is planned: counts the copies that the limit depends on, once a minute for each member, and
/// when a list that was missing has arrived. Objects of kinds that are not listed count as unknown, not as absent. Cost: O(kinds
/// in use); O(resources × their clusters) when that is due.
fn measure(fleet: &mut Fleet, cluster: &Str, now: Time) {
    let unsynced = unsynced(fleet, cluster);
    let limiter = fleet.memory.deletion_pauses.members.get(cluster);
    if let Some(measured) = limiter.and_then(|limiter| limiter.measured.as_ref())
        && now < measured.at.plus(WINDOW)
        && measured.unsynced == unsynced
    {
        return;
    }
    let (mut copies, mut unexplained, mut unknown, mut standing) = (0, 0, 0, false);
    let mut missing = None;
    for (id, resource) in &fleet.cache.resources {
        let state = resource.copies.get(cluster).filter(|state| state.live.is_some());
        let is_placed = |binding: &Binding| binding.accounts_for(cluster);
        if state.is_none() && !resource.binding.as_ref().is_some_and(is_placed) {
            continue;
        }
        copies += usize::from(state.is_some());
        if resource.last_binding().is_none() || state.is_some_and(|state| state.explained) {
            continue;
        }
        // Members list their kinds one after the other: the copy of an object of the hub may not be observed yet.
        standing |= resource.standing().is_some();
        let lists = [
            SyncRequirement::Templates(id.gvk.clone()),
            SyncRequirement::Copies(cluster.clone(), id.gvk.clone()),
        ];
        if let Some(list) = lists.into_iter().find(|list| !fleet.has(list)) {
            unknown += 1;
            missing.get_or_insert(list);
        } else if state.is_some() && !unsynced.contains(&fleet.templates(&id.gvk)) {
            unexplained += 1;
        }
    }
    let may_look_empty = |count: usize| count > LEAST && !standing;
    let missing = match fleet.is_base_synced() {
        true => missing.filter(|_| may_look_empty(unexplained + unknown)),
        false => Some(SyncRequirement::Base),
    };
    let limiter = fleet.memory.deletion_pauses.members.entry(cluster.clone());
    limiter.or_default().measured = Some(Measured {
        at: now,
        limit: LEAST.max(copies / SHARE),
        looks_empty: missing.is_none() && may_look_empty(unexplained),
        missing,
        unsynced,
    });
}

/// The lists of the kinds in use that are not complete now: those of the hub, and those of copies on a member.
fn unsynced(fleet: &Fleet, cluster: &Str) -> BTreeSet<Watch> {
    let watches = &fleet.cache.watches;
    let lists = (fleet.graph.kinds.iter()).flat_map(|gvk| [fleet.templates(gvk), fleet.copies(cluster, gvk)]);
    lists
        .chain(BASE)
        .filter(|list| {
            watches.is_demanded(list) && !watches.is_synced(list) && !watches.is_no_such_kind(list)
        })
        .collect()
}

/// Counts a deletion on a member that is about to be executed.
fn charge(fleet: &mut Fleet, cluster: &Str, explained: bool, now: Time) {
    let limiter = fleet
        .memory
        .deletion_pauses
        .members
        .entry(cluster.clone())
        .or_default();
    limiter.all.add(now);
    if !explained {
        limiter.unexplained.add(now);
    }
}

/// Starts a pause for a deletion that waits for a release, if none has started.
fn pause(fleet: &mut Fleet, cluster: &Str, explained: bool, now: Time) {
    let cause = cause(fleet, cluster, explained, now);
    let release = fleet
        .cache
        .members
        .get(cluster)
        .and_then(|member| member.meta.annotation(annotation::RESUME_REMOVALS));
    let Some(limiter) = fleet.memory.deletion_pauses.members.get_mut(cluster) else {
        return;
    };
    let Some(cause) = cause.filter(|_| limiter.pause.is_none()) else {
        return;
    };
    let mut since = Time(now.0 - now.0.rem_euclid(1_000));
    // The release of an earlier pause must not release this one.
    if release == Some(&*pause_name(since)) || limiter.released.is_some_and(|released| since <= released) {
        since = since.plus(1_000);
    }
    let (deleted, limit) = match cause {
        Cause::Budget => (
            limiter.all.count(now),
            fleet.config.removal_budget.unwrap_or_default() as usize,
        ),
        _ => (
            limiter.unexplained.count(now),
            limiter.measured.as_ref().map_or(LEAST, |measured| measured.limit),
        ),
    };
    limiter.pause = Some(Pause {
        cause,
        since,
        began: Some(now),
        deleted,
        limit,
        waiting: None,
    });
    fleet.memory.deletion_pauses.raised.insert(cluster.clone());
}

/// Counts the waiting deletions once, when most of them are known.
fn count_waiting(fleet: &mut Fleet, cluster: &Str, now: Time) {
    let waiting = fleet.waiting_for(&SyncRequirement::Removals(cluster.clone()));
    let pause = fleet
        .memory
        .deletion_pauses
        .members
        .get_mut(cluster)
        .and_then(|limiter| limiter.pause.as_mut());
    if let Some(pause) = pause
        && pause.waiting.is_none()
        && pause.began.is_some_and(|began| now >= began.plus(COUNTED_AFTER))
    {
        pause.waiting = Some(waiting);
    }
}
