//! Events: one on the transition of a condition, of a copy's override rules, or of an operation that fails.

use std::collections::BTreeSet;

use entourage_api::{
    keys::{condition, event, reason},
    work::{AggregatedStatusItem, NotAppliedReason, ResourceBindingStatus},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::{
    cache::Binding,
    event_reasons::On,
    fleet::{
        Fleet,
        regarding::{on_binding, on_template},
    },
    interpreter::{operations::Operation, question::InterpretError},
    object::{ResourceId, Str},
    observation::Template,
    plan::Event,
    render_spec::overrides_of,
};

/// The events of one condition: the reason and the objects when it turns bad, and when it turns good.
struct Reported {
    type_: &'static str,
    /// The status that is a problem.
    bad: &'static str,
    failed: Option<(&'static str, &'static [On])>,
    succeeded: Option<(&'static str, &'static [On])>,
}

const fn failed(type_: &'static str, bad: &'static str, reason: &'static str, on: &'static [On]) -> Reported {
    Reported {
        type_,
        bad,
        failed: Some((reason, on)),
        succeeded: None,
    }
}

/// Problems are reported on the object that the user wrote, or where Karmada reports them; success once, not on both, unless
/// [`ALSO_ON_BINDINGS`] has it.
const REPORTED: [Reported; 7] = [
    Reported {
        succeeded: Some((event::SCHEDULE_BINDING_SUCCEED, &[On::Template])),
        ..failed(
            condition::SCHEDULED,
            "False",
            event::SCHEDULE_BINDING_FAILED,
            &[On::Template, On::Binding],
        )
    },
    failed(
        condition::EVICTION_BLOCKED,
        "True",
        event::EVICT_WORKLOAD_FAILED,
        &[On::Template],
    ),
    Reported {
        succeeded: Some((event::SYNC_WORK_SUCCEED, &[On::Template])),
        ..failed(
            condition::FULLY_APPLIED,
            "False",
            event::SYNC_FAILED,
            &[On::Binding],
        )
    },
    failed(
        condition::DISPATCHING,
        "False",
        event::WORK_DISPATCHING,
        &[On::Binding],
    ),
    failed(
        condition::DEPENDENCY_POLICY_CONFLICT,
        "True",
        event::DEPENDENCY_POLICY_CONFLICT,
        &[On::Binding],
    ),
    failed(condition::INTERPRETED, "False", event::NO_ANSWER, &[On::Template]),
    Reported {
        succeeded: Some((event::SYNC_DEPENDENCIES_SUCCEED, &[On::Binding])),
        ..failed(
            condition::DEPENDENCIES_READY,
            "False",
            event::SYNC_DEPENDENCIES_FAILED,
            &[On::Template],
        )
    },
];

/// The successes that are also recorded on bindings where the settings request it, as Karmada does.
const ALSO_ON_BINDINGS: [&str; 2] = [event::SCHEDULE_BINDING_SUCCEED, event::SYNC_WORK_SUCCEED];

/// The events of a new status of a binding. Cost: O(conditions).
pub(super) fn events(
    fleet: &Fleet,
    id: &ResourceId,
    (stored, template): (&Binding, &Template),
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let mut all = Vec::new();
    for reported in REPORTED {
        let (old, new) = (find(before, reported.type_), find(after, reported.type_));
        let Some(new) = new else { continue };
        let turned = old.map(|old| (&old.status, &old.reason)) != Some((&new.status, &new.reason));
        // Delivery in progress is not reported, and a suspension is reported by `Dispatching`.
        let as_asked =
            reported.type_ == condition::FULLY_APPLIED && new.reason == reason::SUSPEND_DISPATCHING;
        if !turned || new.reason == reason::DELIVERING || as_asked {
            continue;
        }
        let is_bad = new.status == reported.bad;
        let Some((reason, on)) = (if is_bad {
            reported.failed
        } else {
            reported.succeeded
        }) else {
            continue;
        };
        // A dependency is delivered for the workloads that refer to it: their events report it.
        if reason == event::SYNC_WORK_SUCCEED && stored.object.spec.placement.is_none() {
            continue;
        }
        let is_repeated = fleet.config.events_on_bindings && ALSO_ON_BINDINGS.contains(&reason);
        let also = is_repeated.then_some(&On::Binding);
        all.extend(on.iter().chain(also).map(|on| Event {
            regarding: match on {
                On::Binding => on_binding(stored),
                _ => on_template(id, template),
            },
            // A suspension is no warning.
            warning: is_bad && reported.type_ != condition::DISPATCHING,
            reason,
            message: new.message.clone(),
        }));
    }
    // It appears with the first interpretation of its dependencies.
    if find(before, condition::DEPENDENCIES_READY).is_none()
        && find(after, condition::DEPENDENCIES_READY).is_some()
    {
        all.push(Event {
            regarding: on_template(id, template),
            warning: false,
            reason: event::GET_DEPENDENCIES_SUCCEED,
            message: "Its dependencies are interpreted and follow it.".to_owned(),
        });
    }
    all
}

fn find<'a>(status: &'a ResourceBindingStatus, type_: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|each| each.type_ == type_)
}

/// The events about interpretations that begin to fail, and that no longer fail. `failing`: the errors now. `known`: the
/// operations that this process reported before; `None` if it has not yet, and then the condition `Interpreted` of the status
/// `before` says whether failures were reported by another process.
///
/// Cost: O(errors).
pub(super) fn operations(
    id: &ResourceId,
    (stored, template): (&Binding, &Template),
    failing: &[&InterpretError],
    known: Option<&BTreeSet<Operation>>,
    before: &ResourceBindingStatus,
) -> Vec<Event> {
    if known.is_none() && find(before, condition::INTERPRETED).is_some() {
        return Vec::new();
    }
    let none = BTreeSet::new();
    let known = known.unwrap_or(&none);
    let event = |operation, warning: bool, message: String| {
        let (failed, succeeded, on) = reasons(operation)?;
        Some(Event {
            regarding: match on {
                On::Binding => on_binding(stored),
                _ => on_template(id, template),
            },
            warning,
            reason: if warning { failed } else { succeeded },
            message,
        })
    };
    let mut added = BTreeSet::new();
    let begun = failing
        .iter()
        .filter(|error| !known.contains(&error.operation) && added.insert(error.operation))
        .filter_map(|error| {
            let message = format!("{}: {} failed: {}", error.layer, error.word(), error.why);
            event(error.operation, true, message)
        });
    let mut all: Vec<Event> = begun.collect();
    let ended = known
        .iter()
        .filter(|operation| failing.iter().all(|error| error.operation != **operation));
    all.extend(ended.filter_map(|operation| {
        event(
            *operation,
            false,
            format!("{} succeeded again.", operation.word()),
        )
    }));
    all
}

/// The reasons of an operation that fails and that succeeds again, and the object; `None` for those that only a delivery needs:
/// `FullyApplied` reports them.
const fn reasons(operation: Operation) -> Option<(&'static str, &'static str, On)> {
    Some(match operation {
        Operation::References => (
            event::GET_DEPENDENCIES_FAILED,
            event::GET_DEPENDENCIES_SUCCEED,
            On::Template,
        ),
        Operation::Replicas | Operation::Components => (
            event::GET_REPLICAS_FAILED,
            event::GET_REPLICAS_SUCCEED,
            On::Template,
        ),
        Operation::Reflect => (
            event::REFLECT_STATUS_FAILED,
            event::REFLECT_STATUS_SUCCEED,
            On::Binding,
        ),
        Operation::Health => (
            event::INTERPRET_HEALTH_FAILED,
            event::INTERPRET_HEALTH_SUCCEED,
            On::Binding,
        ),
        Operation::Aggregate => (
            event::AGGREGATE_STATUS_FAILED,
            event::AGGREGATE_STATUS_SUCCEED,
            On::Template,
        ),
        Operation::Prune | Operation::Revise | Operation::Retain => return None,
    })
}

/// The events about copies that are no longer required and cannot be removed: one when a removal begins to fail, or fails for
/// another reason. `failing`: the clusters where one fails now.
///
/// Cost: O(members).
pub(super) fn removals(
    stored: &Binding,
    failing: &BTreeSet<&Str>,
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let is_reported = |item: &AggregatedStatusItem| {
        let old = AggregatedStatusItem::find(&before.aggregated_status, &item.cluster_name);
        old.is_some_and(|old| old.applied_message == item.applied_message)
    };
    let items = after.aggregated_status.iter();
    let begun = items.filter(|item| {
        let fails = failing.iter().any(|cluster| ***cluster == *item.cluster_name);
        fails && !is_reported(item)
    });
    let events = begun.map(|item| Event {
        regarding: on_binding(stored),
        warning: true,
        reason: event::CLEANUP_WORK_FAILED,
        message: format!("cluster {}: {}", item.cluster_name, item.applied_message),
    });
    events.collect()
}

/// The event about a Secret that an allow-list begins to keep away from clusters, or for another reason than before: one for all of
/// them, with the words about the first. On the Secret, which its owner looks at.
///
/// Cost: O(members).
pub(super) fn not_allowed(
    id: &ResourceId,
    template: &Template,
    before: &ResourceBindingStatus,
    after: &[AggregatedStatusItem],
) -> Option<Event> {
    let is_kept_away =
        |item: &AggregatedStatusItem| item.applied_reason == Some(NotAppliedReason::NotAllowed);
    // By the message: the definition on the hub may lack the field of the reason.
    let begun = after.iter().filter(|item| {
        let old = AggregatedStatusItem::find(&before.aggregated_status, &item.cluster_name);
        is_kept_away(item) && old.is_none_or(|old| old.applied_message != item.applied_message)
    });
    let begun: Vec<&AggregatedStatusItem> = begun.collect();
    let first = begun.first()?;
    let message = match begun.len() {
        1 => first.applied_message.clone(),
        number => format!("kept away from {number} clusters: {}", first.applied_message),
    };
    Some(Event {
        regarding: on_template(id, template),
        warning: true,
        reason: event::SECRET_NOT_ALLOWED,
        message,
    })
}

/// The event of the first status that is merged into a template. Cost: O(members).
pub(super) fn first_aggregation(
    id: &ResourceId,
    template: &Template,
    items: &[(&str, Option<&Value>)],
) -> Event {
    let reported = items.iter().filter(|(_, status)| status.is_some()).count();
    Event {
        regarding: on_template(id, template),
        warning: false,
        reason: event::AGGREGATE_STATUS_SUCCEED,
        message: format!("Its status is merged from {reported}/{} clusters.", items.len()),
    }
}

/// The events about override policies, on the template as users of Karmada know them: one when other rules than before were
/// applied to a copy, and one when rules began to fail there. `override_errors`: the clusters where they fail now. `is_current`: true if
/// the copy is up to date.
///
/// Cost: O(members).
pub(super) fn overrides(
    id: &ResourceId,
    template: &Template,
    override_errors: &BTreeSet<&Str>,
    is_current: impl Fn(&str) -> bool,
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let mut all = Vec::new();
    for item in &after.aggregated_status {
        let old = AggregatedStatusItem::find(&before.aggregated_status, &item.cluster_name);
        let rules = |item: &AggregatedStatusItem| {
            let source = item.copy.as_ref().map(|copy| copy.source.as_str());
            source.and_then(overrides_of).map(ToOwned::to_owned)
        };
        let (failed, message) = if override_errors
            .iter()
            .any(|cluster| ***cluster == *item.cluster_name)
        {
            if old.is_some_and(|old| old.applied_message == item.applied_message) {
                continue;
            }
            (true, item.applied_message.clone())
        } else {
            let now = rules(item);
            // Also after they failed: the existing copy may be from the same rules as before that.
            let failed = is_current(&item.cluster_name)
                && old.is_some_and(|old| old.applied_reason == Some(NotAppliedReason::Override));
            if now.is_none() || !item.applied || (now == old.and_then(rules) && !failed) {
                continue;
            }
            let message = format!("override policies were applied for cluster {}", item.cluster_name);
            (false, message)
        };
        let reason = if failed {
            event::APPLY_OVERRIDE_POLICY_FAILED
        } else {
            event::APPLY_OVERRIDE_POLICY_SUCCEED
        };
        all.push(Event {
            regarding: on_template(id, template),
            warning: failed,
            reason,
            message,
        });
    }
    all
}
