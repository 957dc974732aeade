//! Status: the state of a binding's copies on its members, and the status of the template itself.
//!
//! A status is written once when all members that respond have reported, or when the last report is `status_delay` old; at most
//! once in `status_interval` under churn (architecture 2.11). Events are made on the transition of a condition.

pub(crate) mod events;
mod failed_operations;
mod health;
mod item;
mod needed;
mod orphaned;
mod places;
mod room;
mod scheduled;
pub mod template;

use std::collections::BTreeSet;

use entourage_api::{
    keys::{condition, reason},
    work::{AggregatedStatusItem, ResourceBindingStatus},
};
use failed_operations::failed_operations;
use item::item;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use needed::{Dependencies, ask_again, dependencies_ready, unlisted_dependencies, unsure};
use places::{Place, places, suspended};

use crate::{
    cache::{Binding, ResourceState},
    condition as conditions, dependencies,
    eviction::task,
    failover,
    fleet::Fleet,
    interpreter::{self, operations::Operation, references::DependencySelection},
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, HubObject, Plan, SyncRequirement, Verb},
    stored_binding::to_value,
};

/// The longest time that a status waits for members that are still being written to, in milliseconds.
const LONGEST_WAIT: i64 = 30_000;

/// The time that a workload whose dependency or data is missing waits for its members' first reports, in milliseconds.
const FIRST_ANSWERS: i64 = 1_000;

/// The time that the spec must be unchanged before a status is written that updates nothing but its generation: longer than
/// changes of referrers are collected, so that successive referrers cost one such write.
const GENERATION_DELAY: i64 = 2_000;

/// Plans the status of a binding. Cost: O(its copies + references × clusters).
#[must_use]
pub fn plan_binding(fleet: &Fleet, id: &ResourceId, now: Time) -> Plan {
    let Some(resource) = fleet.resource(id) else {
        return Plan::nothing();
    };
    let Some(stored) = &resource.binding else {
        return Plan::nothing();
    };
    if stored.meta.deleting.is_some() || stored.is_kept_by_others() {
        return Plan::nothing();
    }
    if resource.is_orphaned() {
        return orphaned::plan(fleet, id, resource, stored, now);
    }
    let Some(template) = &resource.template else {
        return Plan::nothing();
    };
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(SyncRequirement::Kind(id.gvk.clone()), "the hub is not synced yet");
    }
    if !stored.object.spec.required_by.is_empty() && !fleet.has(&SyncRequirement::Referrers) {
        return Plan::wait_for(SyncRequirement::Referrers, "its dependents are not synced yet");
    }
    if fleet.awaits_works() {
        return Plan::wait("Works are not synced yet: one may suspend a copy");
    }
    let places = places(fleet, id, resource);
    // At start the members' lists come later than the hub's: existing copies must not look lost.
    if places.iter().any(|place| place.unknown) {
        return Plan::wait("a member is not synced yet");
    }
    let before = stored.object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let may_take = |each: &&DependencySelection| fleet.may_take(id, &each.gvk, &each.namespace);
    let selected = template.selections.iter().filter(may_take).map(|each| &each.gvk);
    let needed = fleet
        .links(id)
        .references
        .iter()
        .map(|reference| &reference.id.gvk);
    if let Some(gvk) = needed.chain(selected).find(|gvk| !fleet.is_kind_listed(gvk)) {
        return Plan::wait_for(
            SyncRequirement::Kind(gvk.clone()),
            "its dependencies are not synced yet",
        );
    }
    if let Some(proof) = unlisted_dependencies(fleet, (id, resource), &places) {
        return Plan::wait_for(proof, "a member's list of its dependencies is not synced yet");
    }
    let unsure: Vec<Change> = unsure(fleet, (id, resource), now)
        .map(Change::GetTemplate)
        .collect();
    if !unsure.is_empty() {
        let why = vec!["whether a dependency is missing must be known for certain".into()];
        return Plan {
            changes: unsure,
            why,
            ..Plan::default()
        };
    }
    let ready = dependencies_ready(fleet, (id, resource), &places);
    fill(
        fleet,
        id,
        (resource, stored, template),
        &places,
        &ready,
        &mut status,
        now,
    );
    if status == before {
        let waits = |until| Plan::wait_until(until, "the report may change");
        let evicted = task::reported_again_at(fleet, id, (resource, stored), now);
        let spec = &stored.object.spec;
        let leaves = spec.placement.as_ref().and_then(|placement| {
            failover::elsewhere::leaves_at(fleet, resource, (placement, spec.failover.as_ref()), spec, now)
        });
        let again_at = ask_again(fleet, (id, resource), now).into_iter();
        let again_at = again_at.chain(evicted).chain(leaves).min();
        return again_at.map_or_else(Plan::nothing, waits);
    }
    if let Some(until) = too_early(fleet, resource, &places, &ready, now) {
        return Plan::wait_until(until, "members are still answering");
    }
    let settled = resource
        .spec_written
        .map(|written| written.plus(GENERATION_DELAY));
    if let Some(until) = settled.filter(|until| now < *until)
        && only_generations_differ(&before, &status)
    {
        return Plan::wait_until(until, "only the generation differs");
    }
    let mut object = (*stored.object).clone();
    let override_errors = places.iter().filter(|place| place.has_override_error());
    let override_errors: BTreeSet<&Str> = override_errors.map(|place| place.cluster).collect();
    let mut events = events::events(fleet, id, (stored, template), &before, &status);
    let is_current = |cluster: &str| {
        places
            .iter()
            .any(|place| place.current && **place.cluster == *cluster)
    };
    events.extend(events::operations(
        id,
        (stored, template),
        &failed_operations::errors(fleet, id, template, resource),
        resource.reported_failures.as_ref(),
        &before,
    ));
    events.extend(events::overrides(
        id,
        template,
        &override_errors,
        is_current,
        &before,
        &status,
    ));
    let failing = places.iter().filter(|place| place.has_removal_error());
    let failing: BTreeSet<&Str> = failing.map(|place| place.cluster).collect();
    events.extend(events::removals(stored, &failing, &before, &status));
    for (place, item) in places.iter().zip(&mut status.aggregated_status) {
        item.applied_reason = place.reason();
    }
    let after = &status.aggregated_status;
    events.extend(events::not_allowed(id, template, &before, after));
    object.status = Some(status);
    let verb = Verb::ReplaceStatus(to_value(&object));
    let mut plan = Plan::one(
        Change::Hub {
            object: HubObject::Binding(stored.name.clone()),
            verb,
        },
        "the status differs",
    );
    plan.changes.extend(events.into_iter().map(Change::Emit));
    plan
}

/// The operations whose failure the status of a binding reports. Cost: O(copies).
pub(crate) fn failing_operations(fleet: &Fleet, id: &ResourceId) -> BTreeSet<Operation> {
    fleet
        .resource(id)
        .map(|resource| failed_operations::operations(fleet, id, resource))
        .unwrap_or_default()
}

fn fill(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, stored, template): (&ResourceState, &Binding, &Template),
    places: &[Place<'_>],
    ready: &Dependencies,
    status: &mut ResourceBindingStatus,
    now: Time,
) {
    let held = std::mem::take(&mut status.aggregated_status);
    status.aggregated_status = places
        .iter()
        .map(|place| item(id, place, AggregatedStatusItem::find(&held, place.cluster)))
        .collect();
    let lacking: Vec<String> = places
        .iter()
        .zip(&status.aggregated_status)
        .filter(|(place, _)| place.wanted && !place.is_complete())
        .map(|(place, item)| {
            let short = place.short.as_ref().filter(|_| place.applied());
            format!("{}: {}", place.cluster, short.unwrap_or(&item.applied_message))
        })
        .collect();
    let health = health::report(places, &status.aggregated_status);
    let native = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind);
    if native.is_none_or(|native| native.reflects_all()) {
        room::share(&mut status.aggregated_status);
    }
    let generation = stored.meta.generation;
    let set = |all: &mut Vec<Condition>, type_: &str, good: bool, reason: &str, message: String| {
        conditions::set(
            all,
            Condition {
                type_: type_.into(),
                status: if good { "True" } else { "False" }.into(),
                reason: reason.into(),
                message,
                observed_generation: generation,
                last_transition_time: now.to_k8s(),
            },
        )
    };
    scheduled::fill(fleet, id, (resource, stored, template), status, now);
    let lacks = || places.iter().filter(|place| place.wanted && !place.is_complete());
    let on_its_way = lacks().all(Place::is_on_its_way);
    let as_asked = lacks().all(Place::is_as_asked);
    let going_on = lacks().all(|place| place.is_on_its_way() || place.is_as_asked());
    let suspended = suspended(places);
    let is_settled = is_spec_settled(fleet, resource, stored, places);
    let wanted = places.iter().filter(|place| place.wanted).count();
    if wanted == 0 {
        conditions::remove(&mut status.conditions, condition::FULLY_APPLIED);
    } else if lacking.is_empty() && !is_settled {
        // The spec is about to be written: its state is reported then.
    } else if lacking.is_empty() {
        let message = format!("Applied on {wanted}/{wanted} clusters.");
        set(
            &mut status.conditions,
            condition::FULLY_APPLIED,
            true,
            reason::FULLY_APPLIED_SUCCESS,
            message,
        );
    } else {
        // A delivery in progress is no failure, nor is one that a user suspended.
        let reason = if as_asked {
            reason::SUSPEND_DISPATCHING
        } else if going_on {
            reason::DELIVERING
        } else {
            reason::FULLY_APPLIED_FAILED
        };
        set(
            &mut status.conditions,
            condition::FULLY_APPLIED,
            false,
            reason,
            lacking.join("; "),
        );
    }
    conditions::remove(&mut status.conditions, condition::ORPHANED);
    let exceptions = [
        (
            condition::DISPATCHING,
            false,
            reason::SUSPEND_DISPATCHING,
            suspended,
        ),
        (
            condition::DEPENDENCY_POLICY_CONFLICT,
            true,
            reason::REFERRERS_DISAGREE,
            dependencies::policy_conflict(fleet, id, resource),
        ),
        (
            condition::EVICTING,
            true,
            reason::GRACEFUL_EVICTION,
            task::message(fleet, id, (resource, stored), now),
        ),
        (
            condition::INTERPRETED,
            false,
            reason::NO_ANSWER,
            failed_operations(fleet, id, template, resource),
        ),
    ];
    for (type_, good, reason, message) in exceptions {
        match message {
            None => conditions::remove(&mut status.conditions, type_),
            Some(message) => {
                set(&mut status.conditions, type_, good, reason, message);
            }
        }
    }
    match health {
        health::HealthReport::Nothing => conditions::remove(&mut status.conditions, condition::HEALTHY),
        health::HealthReport::AsBefore => {
            let mut held = status.conditions.iter_mut();
            if let Some(held) = held.find(|each| each.type_ == condition::HEALTHY) {
                held.observed_generation = generation;
            }
        }
        health::HealthReport::Healthy(message) => {
            set(
                &mut status.conditions,
                condition::HEALTHY,
                true,
                reason::ALL_HEALTHY,
                message,
            );
        }
        health::HealthReport::Unhealthy(message) => {
            set(
                &mut status.conditions,
                condition::HEALTHY,
                false,
                reason::UNHEALTHY,
                message,
            );
        }
    }
    match ready {
        Dependencies::Ready { .. } if wanted == 0 => {
            conditions::remove(&mut status.conditions, condition::DEPENDENCIES_READY)
        }
        Dependencies::NotFollowed => {
            conditions::remove(&mut status.conditions, condition::DEPENDENCIES_READY)
        }
        Dependencies::Ready { count, suspended } => {
            let message = needed::all_present(*count, *suspended);
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                true,
                reason::DEPENDENCIES_DELIVERED,
                message,
            );
        }
        Dependencies::Missing(message) => {
            let message = message.clone();
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                false,
                reason::DEPENDENCY_MISSING,
                message,
            );
        }
        // The workload waits for them: that is not reported before it is over.
        Dependencies::NotDelivered { failed: false, .. } if on_its_way => {}
        Dependencies::NotDelivered { message, .. } => {
            let message = message.clone();
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                false,
                reason::NOT_DELIVERED,
                message,
            );
        }
    }
}

/// Conditions with counts of copies: while they stay True, a changed count is no more reason for a write than the generation.
const COUNTING: [&str; 3] = [
    condition::SCHEDULED,
    condition::FULLY_APPLIED,
    condition::DEPENDENCIES_READY,
];

/// True if only generations differ, and counts of conditions that stay True.
fn only_generations_differ(before: &ResourceBindingStatus, after: &ResourceBindingStatus) -> bool {
    let mut same = before.clone();
    same.scheduler_observed_generation = after.scheduler_observed_generation;
    for (held, reported) in same.conditions.iter_mut().zip(&after.conditions) {
        held.observed_generation = reported.observed_generation;
        let is_good = |each: &Condition| each.status == "True" && each.reason == reported.reason;
        if held.type_ == reported.type_
            && COUNTING.contains(&&*reported.type_)
            && is_good(held)
            && is_good(reported)
        {
            held.message.clone_from(&reported.message);
        }
    }
    same == *after
}

/// True if on each cluster that the stored spec names the copy is required, or is up to date (I9). Cost: O(clusters).
fn is_spec_settled(fleet: &Fleet, resource: &ResourceState, stored: &Binding, places: &[Place<'_>]) -> bool {
    let spec = &stored.object.spec;
    let own = spec.clusters.iter().filter(|_| spec.placement.is_some());
    let mut named = own.chain(spec.required_by.iter().flat_map(|each| &each.clusters));
    named.all(|target| {
        let is_wanted = || {
            let mut here = places.iter().filter(|place| **place.cluster == *target.name);
            here.any(|place| place.wanted)
        };
        let is_recorded = || {
            let state = resource.copies.get(target.name.as_str());
            state.is_some_and(|state| state.record.is_some() && state.outdated_since.is_none())
        };
        !fleet.cache.members.contains_key(target.name.as_str()) || is_wanted() || is_recorded()
    })
}

// --- when

/// The time until which a write waits for reports that are about to come.
fn too_early(
    fleet: &Fleet,
    resource: &ResourceState,
    places: &[Place<'_>],
    dependencies: &Dependencies,
    now: Time,
) -> Option<Time> {
    let config = &fleet.config;
    let again = resource
        .status_written
        .map(|written| written.plus(config.status_interval))
        .filter(|until| now < *until);
    let lacking_since = match dependencies {
        Dependencies::NotDelivered { since, .. } => *since,
        _ => None,
    };
    let on_its_way = matches!(dependencies, Dependencies::NotDelivered { failed: false, .. });
    // No report comes before a user has acted.
    let reported_soon = matches!(
        dependencies,
        Dependencies::Missing(_) | Dependencies::NotDelivered { data: true, .. }
    );
    if !on_its_way && !places.iter().any(Place::is_pending) {
        // Members come first: when all have reported the hub is written a moment later, and once.
        let last = resource.answers.map(|(_, last)| last).max(resource.lists_came);
        let settled = last.map(|last| last.plus(config.status_delay / 2));
        return again.max(settled.filter(|until| now < *until));
    }
    let wanted = || places.iter().filter_map(|place| place.state.wanted_since).min();
    let pending = places
        .iter()
        .filter_map(Place::pending_since)
        .chain(lacking_since);
    let since = pending.min().or_else(wanted).unwrap_or(now);
    let longest = since.plus(LONGEST_WAIT).max(
        resource
            .status_written
            .unwrap_or_default()
            .plus(config.status_delay),
    );
    let answers = resource.answers.map(|(first, last)| {
        let last = last.max(resource.lists_came.unwrap_or_default());
        (first, last)
    });
    let until = match answers {
        // A loaded member reports late: the others may take as long again as the first did.
        Some((first, last)) if resource.status_written.is_none() => {
            last.plus(config.status_delay.max(first.0 - since.0))
        }
        Some((_, last)) => last.plus(config.status_delay),
        // A user may be waiting for the message; members that respond report soon after they could be written to.
        None if reported_soon => since
            .max(resource.lists_came.unwrap_or_default())
            .plus(FIRST_ANSWERS),
        None => longest,
    };
    let until = until.min(longest).max(again.unwrap_or_default());
    (now < until).then_some(until)
}
