//! Events: one on the transition of a condition.

use std::collections::BTreeSet;

use entourage_api::{
    keys::{condition, event, reason},
    work::{AggregatedStatusItem, NotAppliedReason, ResourceBindingStatus},
};

use crate::{
    cache::Binding,
    fleet::regarding::{on_binding, on_template},
    object::{ResourceId, Str},
    observation::Template,
    plan::Event,
    render_spec::overrides_of,
};

/// The events of a new status of a binding. Cost: O(conditions).
pub(super) fn events(
    id: &ResourceId,
    (stored, template): (&Binding, &Template),
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let on_template = on_template(id, template);
    let on_binding = on_binding(stored);
    let mut all = Vec::new();
    // Success is reported on the binding, as users of Karmada know it; problems on the object that the user wrote.
    for (type_, bad, reported, good, regarding) in [
        (
            condition::SCHEDULED,
            "False",
            event::SCHEDULE_BINDING_FAILED,
            None,
            &on_template,
        ),
        (
            condition::EVICTION_BLOCKED,
            "True",
            event::EVICT_WORKLOAD_FAILED,
            None,
            &on_template,
        ),
        (
            condition::FULLY_APPLIED,
            "False",
            event::SYNC_FAILED,
            None,
            &on_binding,
        ),
        (
            condition::DISPATCHING,
            "False",
            event::WORK_DISPATCHING,
            None,
            &on_binding,
        ),
        (
            condition::DEPENDENCY_POLICY_CONFLICT,
            "True",
            event::DEPENDENCY_POLICY_CONFLICT,
            None,
            &on_binding,
        ),
        (
            condition::INTERPRETED,
            "False",
            event::NO_ANSWER,
            None,
            &on_template,
        ),
        (
            condition::DEPENDENCIES_READY,
            "False",
            event::SYNC_DEPENDENCIES_FAILED,
            Some(event::SYNC_DEPENDENCIES_SUCCEED),
            &on_template,
        ),
    ] {
        let find = |status: &ResourceBindingStatus| {
            status.conditions.iter().find(|each| each.type_ == type_).cloned()
        };
        let (old, new) = (find(before), find(after));
        let Some(new) = new else { continue };
        let turned = old.as_ref().map(|old| (&old.status, &old.reason)) != Some((&new.status, &new.reason));
        // Delivery in progress is not reported, and a suspension is reported by `Dispatching`.
        let as_asked = type_ == condition::FULLY_APPLIED && new.reason == reason::SUSPEND_DISPATCHING;
        if !turned || new.reason == reason::DELIVERING || as_asked {
            continue;
        }
        let is_bad = new.status == bad;
        let Some(reason) = (if is_bad { Some(reported) } else { good }) else {
            continue;
        };
        all.push(Event {
            regarding: if is_bad {
                regarding.clone()
            } else {
                on_binding.clone()
            },
            // A suspension is no warning.
            warning: is_bad && type_ != condition::DISPATCHING,
            reason,
            message: new.message,
        });
    }
    all
}

/// The events about override policies, on the template as users of Karmada know them: one when other rules than before were
/// applied to a copy, and one when rules began to fail there. `spoiled`: the clusters where they fail now. `is_current`: true if
/// the copy is up to date.
///
/// Cost: O(members).
pub(super) fn overrides(
    id: &ResourceId,
    template: &Template,
    spoiled: &BTreeSet<&Str>,
    is_current: impl Fn(&str) -> bool,
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let mut all = Vec::new();
    for item in &after.aggregated_status {
        let old = before
            .aggregated_status
            .iter()
            .find(|old| old.cluster_name == item.cluster_name);
        let rules = |item: &AggregatedStatusItem| {
            let source = item.copy.as_ref().map(|copy| copy.source.as_str());
            source.and_then(overrides_of).map(ToOwned::to_owned)
        };
        let (failed, message) = if spoiled.iter().any(|cluster| ***cluster == *item.cluster_name) {
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
