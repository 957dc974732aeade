//! The status of a Work: the entry of its cluster in the status of the binding, and the Events about its transitions.

use entourage_api::{
    keys::{condition, event, reason},
    work::{
        AggregatedStatusItem, ManifestStatus, NotAppliedReason, ResourceHealth, ResourceIdentifier,
        WorkStatus,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::{
    cache::{Binding, HeldWork},
    condition as conditions,
    fleet::{Fleet, works::work_of},
    object::{ResourceId, Str, Time},
    observation::digest,
    plan::{Event, Regarding},
    rights,
};

/// The status to write and its Events; `None` if the Work has it. Cost: O(size of the reported status).
pub(super) fn status(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (binding, held): (&Binding, &HeldWork),
    now: Time,
) -> Option<(WorkStatus, Vec<Event>)> {
    let item = binding.status_on(cluster);
    let work = &held.work;
    let manifest_statuses: Vec<ManifestStatus> = item
        .map(|item| manifest_status(fleet, id, cluster, item))
        .into_iter()
        .collect();
    let mut status = WorkStatus {
        conditions: work.conditions.clone(),
        manifest_statuses,
    };
    let mut events = Vec::new();
    let mut turn = |type_: &str, good: bool, reason: &str, message: &str, event: &'static str| {
        let before = status.conditions.iter().find(|each| each.type_ == type_);
        let was = before.map(|each| each.status == "True");
        // A Work that was never suspended gets no event that it is dispatched.
        let is_reported = was != Some(good) && (was.is_some() || type_ != condition::DISPATCHING || !good);
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: type_.into(),
                status: if good { "True" } else { "False" }.into(),
                reason: reason.into(),
                message: message.into(),
                observed_generation: work.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
        if is_reported {
            let warning = event == event::SYNC_FAILED;
            events.push(about(id, cluster, held, (warning, event), message));
        }
    };
    if work.suspended {
        let message = "Delivery is suspended by spec.suspendDispatching.";
        turn(
            condition::DISPATCHING,
            false,
            reason::SUSPEND_DISPATCHING,
            message,
            event::WORK_DISPATCHING,
        );
    } else {
        let message = "The manifest is delivered.";
        turn(
            condition::DISPATCHING,
            true,
            reason::DISPATCHING,
            message,
            event::WORK_DISPATCHING,
        );
    }
    match item.map(|item| (item.applied, item)) {
        Some((true, _)) => {
            let message = "The manifest is applied.";
            turn(
                condition::APPLIED,
                true,
                reason::APPLIED_SUCCESSFUL,
                message,
                event::SYNC_SUCCEED,
            );
        }
        Some((false, item)) if is_trouble(item) => {
            let message = &item.applied_message;
            turn(
                condition::APPLIED,
                false,
                reason::APPLIED_FAILED,
                message,
                event::SYNC_FAILED,
            );
        }
        _ => {}
    }
    if let Some(item) = item {
        if item.status.is_some() && !work.reflected {
            let message = "The status of the object is reported.";
            events.push(about(
                id,
                cluster,
                held,
                (false, event::REFLECT_STATUS_SUCCEED),
                message,
            ));
        }
        let known = item.health.filter(|health| *health != ResourceHealth::Unknown);
        if known.is_some() && work.health != known {
            let message = format!("The object is {}.", json!(known).as_str().unwrap_or_default());
            events.push(about(
                id,
                cluster,
                held,
                (false, event::INTERPRET_HEALTH_SUCCEED),
                &message,
            ));
        }
    }
    let is_same = |one: &Condition, other: &Condition| {
        (&one.type_, &one.status, &one.reason, &one.message)
            == (&other.type_, &other.status, &other.reason, &other.message)
    };
    let same_conditions = status.conditions.len() == work.conditions.len()
        && status
            .conditions
            .iter()
            .all(|each| work.conditions.iter().any(|held| is_same(each, held)));
    let is_current = same_conditions && digest(&status.manifest_statuses) == work.reported;
    (!is_current).then_some((status, events))
}

/// True if the copy is not applied for a reason that does not end by itself.
fn is_trouble(item: &AggregatedStatusItem) -> bool {
    let passing = [NotAppliedReason::Pending, NotAppliedReason::Suspended];
    !item.applied_message.is_empty()
        && item
            .applied_reason
            .is_none_or(|reason| !passing.contains(&reason))
}

fn manifest_status(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    item: &AggregatedStatusItem,
) -> ManifestStatus {
    ManifestStatus {
        identifier: ResourceIdentifier {
            ordinal: 0,
            group: id.gvk.group.to_string(),
            version: id.gvk.version.to_string(),
            kind: id.gvk.kind.to_string(),
            resource: plural(fleet, id, cluster),
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
        },
        status: item.status.clone(),
        health: item.health,
    }
}

/// The plural of a kind: a known one, or as the member serves it.
fn plural(fleet: &Fleet, id: &ResourceId, cluster: &str) -> String {
    if let Some(kind) = rights::propagated_kind(&id.gvk.group, &id.gvk.kind) {
        return kind.resource.plural.to_owned();
    }
    let member = fleet.cache.members.get(cluster);
    let status = member.and_then(|member| member.object.status.as_ref());
    let served = status.into_iter().flat_map(|status| &status.api_enablements);
    let of_version = served.filter(|each| each.group_version == id.gvk.api_version());
    let mut resources = of_version.flat_map(|each| &each.resources);
    let found = resources.find(|resource| *resource.kind == *id.gvk.kind);
    found.map_or_else(
        || format!("{}s", id.gvk.kind.to_lowercase()),
        |resource| resource.name.clone(),
    )
}

/// The merge patch of the status subresource.
pub(super) fn patch(held: &HeldWork, status: &WorkStatus) -> Value {
    json!({
        "metadata": {"uid": &*held.work.meta.uid, "resourceVersion": &*held.work.meta.resource_version},
        "status": {"conditions": status.conditions, "manifestStatuses": status.manifest_statuses},
    })
}

fn about(
    id: &ResourceId,
    cluster: &Str,
    held: &HeldWork,
    (warning, reason): (bool, &'static str),
    message: &str,
) -> Event {
    let name = work_of(id, cluster);
    Event {
        regarding: Regarding {
            api_version: "work.karmada.io/v1alpha1".into(),
            kind: "Work".into(),
            namespace: name.namespace,
            name: name.name,
            uid: held.work.meta.uid.clone(),
        },
        warning,
        reason,
        message: message.to_owned(),
    }
}
