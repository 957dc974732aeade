//! The scheduler's part of the status: the condition `Scheduled`, the cluster affinity in use, and the last scheduled time.

use entourage_api::{
    keys::{condition, reason},
    work::{ResourceBindingStatus, TargetCluster},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::{Binding, ResourceState},
    condition as conditions, failover,
    fleet::{Fleet, Priority, claims::claimed_by},
    object::{ResourceId, Str, Time},
    observation::Template,
    scheduler::Outcome,
    stored_binding::is_reschedule_asked,
};

/// Added to the reason of a failed scheduling, if rescheduling was triggered.
const PENDING: &str =
    "; the fresh choice that spec.rescheduleTriggeredAt asks for is made as soon as it can be";

/// The maximum number of clusters named in a list of the condition `Scheduled`.
const NAMED: usize = 10;

/// Sets the scheduler's part of a status. If another scheduler schedules the binding, scheduling is suspended, or the policy is
/// gone, it stays as it is. A blocked eviction is reported in any case. While a decision depends on estimates that are not there, all of it
/// stays as it is: the decision that is written waits for them.
///
/// Cost: that of [`failover::decide`].
pub(super) fn fill(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, stored, template): (&ResourceState, &Binding, &Template),
    status: &mut ResourceBindingStatus,
    now: Time,
) {
    let spec = &stored.object.spec;
    let Some(placement) = &spec.placement else {
        conditions::remove(&mut status.conditions, condition::SCHEDULED);
        status.scheduler_observed_generation = 0;
        status.scheduler_observing_affinity_name.clear();
        status.last_scheduled_time = None;
        return;
    };
    let behaviour = (placement, spec.failover.as_ref());
    let decided = failover::decide(fleet, id, (resource, template), behaviour, &stored.object, now);
    if decided
        .as_ref()
        .is_some_and(|decision| !decision.unestimated.is_empty())
    {
        return;
    }
    let blocked = match &decided {
        Some(decision) => decision.blocked.clone(),
        None => failover::elsewhere::held_back(fleet, resource, behaviour, spec, now),
    };
    report_blocked(stored, status, blocked, now);
    let Some((_, policy)) = claimed_by(fleet, id, &template.meta) else {
        let mut held = status.conditions.iter_mut();
        if let Some(held) = held.find(|each| each.type_ == condition::SCHEDULED) {
            held.observed_generation = stored.meta.generation;
        }
        return;
    };
    let Some(decision) = decided else {
        return;
    };
    let (good, reason, mut message) = match decision.outcome {
        Outcome::Placed {
            clusters: decided,
            affinity,
            note,
        } => {
            // Otherwise the spec is about to be written: its result is reported then.
            if decided == spec.clusters {
                status.scheduler_observing_affinity_name = affinity;
                chosen(resource, stored, status, now);
            }
            let targets = if spec.clusters.is_empty() {
                &decided
            } else {
                &spec.clusters
            };
            let mut message = result(targets);
            if !note.is_empty() {
                message.push(' ');
                message.push_str(&note);
            }
            (true, reason::SUCCESS, message)
        }
        Outcome::Failed {
            reason, mut message, ..
        } => {
            message.push_str(&left(decision.records.unselected()));
            if is_reschedule_asked(&stored.object, now) {
                message.push_str(PENDING);
            }
            (false, reason, message)
        }
    };
    let priority = fleet.priority_by(&policy.object.spec);
    if let Some(why) = priority.as_ref().and_then(Priority::objection) {
        message.push_str(if good { " " } else { "; " });
        message.push_str(why);
    }
    let generation = stored.meta.generation;
    conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::SCHEDULED.into(),
            status: if good { "True" } else { "False" }.into(),
            reason: reason.into(),
            message,
            observed_generation: generation,
            last_transition_time: now.to_k8s(),
        },
    );
    status.scheduler_observed_generation = generation.unwrap_or_default();
}

/// The scheduling result of a binding, with the replicas of each cluster: taken from its spec, so that it changes with it alone.
fn result(clusters: &[TargetCluster]) -> String {
    if clusters.is_empty() {
        return "Scheduled to no cluster.".to_owned();
    }
    let named = clusters.iter().take(NAMED).map(|target| match target.replicas {
        0 => target.name.clone(),
        replicas => format!("{} ({replicas})", target.name),
    });
    let named: Vec<String> = named.collect();
    let more = match clusters.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Scheduled to {}{more}.", named.join(", "))
}

/// The clusters that a workload leaves although no other fits.
fn left(clusters: &[Str]) -> String {
    let named: Vec<&str> = clusters.iter().take(NAMED).map(|name| &**name).collect();
    let more = match clusters.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match clusters.len() {
        0 => String::new(),
        1 => format!(
            "; it leaves {}: the placement no longer selects it",
            named.join(", ")
        ),
        _ => format!(
            "; it leaves {}{more}: the placement no longer selects them",
            named.join(", ")
        ),
    }
}

/// Reports an eviction that is due and blocked.
fn report_blocked(stored: &Binding, status: &mut ResourceBindingStatus, blocked: String, now: Time) {
    if blocked.is_empty() {
        return conditions::remove(&mut status.conditions, condition::EVICTION_BLOCKED);
    }
    conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::EVICTION_BLOCKED.into(),
            status: "True".into(),
            reason: reason::NO_REPLACEMENT.into(),
            message: blocked,
            observed_generation: stored.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
}

/// Sets the last scheduled time: now if it is unknown or if a user triggered rescheduling, else when this process observed the
/// last change of the stored clusters. It is never earlier than the trigger: clocks differ.
fn chosen(resource: &ResourceState, stored: &Binding, status: &mut ResourceBindingStatus, now: Time) {
    let asked = stored.object.spec.reschedule_triggered_at.clone();
    let time = match (&status.last_scheduled_time, asked) {
        (None, asked) => asked.map_or(now.to_k8s(), |asked| asked.max(now.to_k8s())),
        (Some(_), Some(asked)) if is_reschedule_asked(&stored.object, now) => asked.max(now.to_k8s()),
        (Some(last), _) => match resource.clusters_chosen.map(Time::to_k8s) {
            Some(seen) if seen.0 > last.0 => seen,
            _ => return,
        },
    };
    status.last_scheduled_time = Some(time);
}
