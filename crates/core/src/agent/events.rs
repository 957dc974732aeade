//! The Events about a Work: each on a transition of what its status says, as the write of that status was accepted, and where the
//! interpretation of its object begins to fail.

use entourage_api::{
    keys::{condition, event},
    work::ResourceHealth,
};
use serde_json::json;

use super::{Agent, state::WorkState, status::Report};
use crate::{
    interpreter::{operations::Operation, question::Until},
    object::{ResourceId, Str},
    observation::{Copy, work_gvk},
    plan::{Event, Regarding},
};

/// The operations whose failure is recorded on a Work, and the reasons.
const INTERPRETED: [(Operation, &str); 2] = [
    (Operation::Reflect, event::REFLECT_STATUS_FAILED),
    (Operation::Health, event::INTERPRET_HEALTH_FAILED),
];

/// The Events of a report. Cost: O(conditions + objects of the Work).
pub(super) fn of_report(agent: &Agent, name: &Str, state: &WorkState, report: &Report) -> Vec<Event> {
    let work = &state.work;
    let mut events = Vec::new();
    for each in &report.conditions {
        let is_true = each.status == "True";
        let mut held = work.conditions.iter().filter(|held| held.type_ == each.type_);
        let was_true = held.next().map(|held| held.status == "True");
        if was_true == Some(is_true) {
            continue;
        }
        let (warning, reason) = match (&*each.type_, is_true) {
            (condition::APPLIED, true) => (false, event::SYNC_SUCCEED),
            (condition::APPLIED, false) => (true, event::SYNC_FAILED),
            // That a Work is dispatched is no news unless it was suspended.
            (condition::DISPATCHING, true) if was_true.is_none() => continue,
            (condition::DISPATCHING, _) => (false, event::WORK_DISPATCHING),
            _ => continue,
        };
        events.push(about(agent, name, state, (warning, reason), each.message.clone()));
    }
    let Some(statuses) = &report.statuses else {
        return events;
    };
    if !work.reflected && statuses.first().is_some_and(|first| first.status.is_some()) {
        let message = "The status of the object is reported.".to_owned();
        let reason = (false, event::REFLECT_STATUS_SUCCEED);
        events.push(about(agent, name, state, reason, message));
    }
    let health = statuses.first().and_then(|first| first.health);
    let health = health.filter(|health| *health != ResourceHealth::Unknown);
    if health.is_some() && health != work.health && has_health(agent, state) {
        let message = format!("The object is {}.", json!(health).as_str().unwrap_or_default());
        let reason = (false, event::INTERPRET_HEALTH_SUCCEED);
        events.push(about(agent, name, state, reason, message));
    }
    events
}

/// True if the first object of the Work is of a kind with a health rule. One without counts as healthy.
fn has_health(agent: &Agent, state: &WorkState) -> bool {
    let first = state.objects.first().and_then(|object| object.id.as_ref());
    first
        .and_then(|id| agent.copies.get(id))
        .is_some_and(|copy| copy.health.is_some())
}

/// The Events of an object whose interpretation fails and did not before, one for each Work that carries it. Cost: O(those Works).
pub(super) fn uninterpreted(agent: &Agent, id: &ResourceId, copy: &Copy) -> Vec<Event> {
    let held = agent.copies.get(id);
    let mut events = Vec::new();
    for (operation, reason) in INTERPRETED {
        let begins = held.is_none_or(|held| held.lacks(operation).is_none());
        let error = copy.lacks(operation).filter(|_| begins);
        // One that is skipped has the answer of another layer, and one that is not used is no failure.
        let Some(error) = error.filter(|error| matches!(error.until, Until::Changed | Until::Answered))
        else {
            continue;
        };
        for name in agent.carriers.get(id).into_iter().flatten() {
            if let Some(state) = agent.works.get(name) {
                events.push(about(agent, name, state, (true, reason), error.failure()));
            }
        }
    }
    events
}

fn about(
    agent: &Agent,
    name: &Str,
    state: &WorkState,
    (warning, reason): (bool, &'static str),
    message: String,
) -> Event {
    let gvk = work_gvk();
    Event {
        regarding: Regarding {
            api_version: gvk.api_version(),
            kind: gvk.kind.to_string(),
            namespace: agent.config.namespace.clone(),
            name: name.clone(),
            uid: state.work.meta.uid.clone(),
        },
        warning,
        reason,
        message,
    }
}
