//! The steps about scheduling: the decision, what is stored of it, and what the binding waits for.

use entourage_api::{
    keys::{condition, reason},
    work::TargetCluster,
};

use super::{Subject, named};
use crate::{
    engine,
    failover::inspected::Inspected,
    inspection::explanation::{
        Effect::{self, Against, For, Note},
        Step, rule,
    },
    plan::Key,
    scheduler::Outcome,
    scheduling::Own,
    stored_binding::is_of_our_scheduler,
};

/// The steps about the scheduling of an object that has a placement, and about its binding.
pub(super) fn steps(subject: &Subject<'_>, inspected: Option<&Inspected>) -> Vec<Step> {
    if subject.known().is_none() {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if subject.placement().is_some() {
        match inspected {
            Some(inspected) => {
                steps.push(result(subject, &inspected.decision.outcome));
                let blocked = &inspected.decision.blocked;
                if !blocked.is_empty() {
                    steps.push(Step::new(rule::EVICTION, Note, blocked));
                }
                steps.extend(reported(subject, &inspected.decision.outcome));
            }
            None => steps.push(elsewhere(subject)),
        }
    }
    steps.extend(waiting(subject));
    steps
}

/// The step of a decision.
fn result(subject: &Subject<'_>, outcome: &Outcome) -> Step {
    let stored = subject.held.spec.clusters.as_slice();
    match outcome {
        _ if matches!(subject.own, Some(Own::Orphaned)) => {
            let message = format!(
                "it stays on {} until it is evicted: without a policy it is not scheduled again",
                named(stored)
            );
            Step::new(rule::SCHEDULING, effect_of(stored), message)
        }
        Outcome::Placed { clusters, note, .. } => {
            let note = match note.as_str() {
                "" => String::new(),
                note => format!("; {note}"),
            };
            let result = named(clusters);
            let message = if clusters == stored {
                format!("it is scheduled to {result}{note}")
            } else if stored.is_empty() {
                format!("it is about to be scheduled to {result}{note}")
            } else {
                format!("it is scheduled to {}, and now to {result}{note}", named(stored))
            };
            Step::new(rule::SCHEDULING, For, message)
        }
        Outcome::Failed { reason, message, .. } => {
            let stays = match stored {
                [] => String::new(),
                stored => format!("; it is scheduled to {} from before", named(stored)),
            };
            let rule = match *reason {
                reason::QUOTA_EXCEEDED => rule::QUOTA,
                _ => rule::SCHEDULING,
            };
            Step::new(rule, Against, format!("{reason}: {message}{stays}"))
        }
    }
}

/// The step of an object that this control plane does not schedule.
fn elsewhere(subject: &Subject<'_>) -> Step {
    let spec = &subject.held.spec;
    let stored = spec.clusters.as_slice();
    let effect = effect_of(stored);
    if is_of_our_scheduler(spec) {
        let message = format!(
            "scheduling is suspended by spec.suspension.scheduling of the binding; it is scheduled to {}",
            named(stored)
        );
        return Step::new(rule::SUSPENSION, effect, message);
    }
    let message = format!(
        "the scheduler {} schedules it, not this control plane: to {}",
        spec.scheduler_name,
        named(stored)
    );
    Step::new(rule::SCHEDULING, effect, message)
}

const fn effect_of(stored: &[TargetCluster]) -> Effect {
    if stored.is_empty() { Against } else { For }
}

/// The condition `Scheduled`, where it contradicts the outcome: the controllers know more than this fleet, or have not reported yet.
fn reported(subject: &Subject<'_>, outcome: &Outcome) -> Option<Step> {
    let conditions = &subject.held.status.as_ref()?.conditions;
    let stored = conditions
        .iter()
        .find(|each| each.type_ == condition::SCHEDULED)?;
    if (stored.status == "True") == matches!(outcome, Outcome::Placed { .. }) {
        return None;
    }
    let message = format!(
        "the controllers report Scheduled={} instead, {}: {}",
        stored.status, stored.reason, stored.message
    );
    Some(Step::new(rule::SCHEDULING, Note, message))
}

/// The next change of the binding, or what it waits for.
fn waiting(subject: &Subject<'_>) -> Option<Step> {
    let plan = engine::plan(subject.fleet, &Key::Binding(subject.id.clone()), subject.now);
    let cause = plan.why.join("; ");
    if cause.is_empty() {
        return None;
    }
    let message = if plan.changes.is_empty() {
        format!("its binding waits: {cause}")
    } else {
        format!("a change of its binding is due: {cause}")
    };
    Some(Step::new(rule::SCHEDULING, Note, message))
}
