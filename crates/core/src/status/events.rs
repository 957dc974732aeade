//! Events: one on the transition of a condition.

use entourage_api::{
    keys::{condition, event, reason},
    work::ResourceBindingStatus,
};

use crate::{
    index::Binding,
    object::Id,
    observation::Template,
    plan::{Event, Regarding},
};

/// The events that a new status of a binding makes. Cost: O(conditions).
pub(super) fn events(
    id: &Id,
    (stored, template): (&Binding, &Template),
    before: &ResourceBindingStatus,
    after: &ResourceBindingStatus,
) -> Vec<Event> {
    let on_template = Regarding {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        uid: template.meta.uid.clone(),
    };
    let on_binding = Regarding {
        api_version: "work.karmada.io/v1alpha2".into(),
        kind: "ResourceBinding".into(),
        namespace: stored.name.namespace.clone(),
        name: stored.name.name.clone(),
        uid: stored.meta.uid.clone(),
    };
    let mut all = Vec::new();
    // Success is told on the binding, as users of Karmada know it; what they must act upon on what they wrote.
    for (type_, warns, succeeds, regarding) in [
        (
            condition::SCHEDULED,
            event::SCHEDULE_BINDING_FAILED,
            None,
            &on_template,
        ),
        (condition::FULLY_APPLIED, event::SYNC_FAILED, None, &on_binding),
        (
            condition::DEPENDENCIES_READY,
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
        if !turned || new.reason == reason::DELIVERING {
            continue;
        }
        let warning = new.status == "False";
        let Some(reason) = (if warning { Some(warns) } else { succeeds }) else {
            continue;
        };
        all.push(Event {
            regarding: if warning {
                regarding.clone()
            } else {
                on_binding.clone()
            },
            warning,
            reason,
            message: new.message,
        });
    }
    all
}
