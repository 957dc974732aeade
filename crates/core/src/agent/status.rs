//! The status of a Work: Applied, Dispatching, and the state of each object.

use entourage_api::{
    keys::{condition, reason},
    work::{ManifestStatus, ResourceHealth, ResourceIdentifier},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Agent, state::WorkState};
use crate::{
    condition as conditions,
    interpreter::{Health, operations::Operation},
    messages::steady,
    object::{ResourceId, Str, Time},
    observation::{Copy, digest},
};

/// The shortest time between two reports of a Work that differ in the status of its objects alone, in milliseconds.
pub(super) const INTERVAL: i64 = 1_000;

/// The status to write.
pub(super) struct Report {
    pub(super) conditions: Vec<Condition>,
    /// `None`: what is reported of the objects stays.
    pub(super) statuses: Option<Vec<ManifestStatus>>,
    /// The digest of the objects' statuses after this.
    pub(super) digest: Str,
    /// True if the conditions are reported already.
    pub(super) is_status_alone: bool,
}

/// The status of a Work; `None` if it has it. Cost: O(its objects and their status).
pub(super) fn report(agent: &Agent, state: &WorkState, now: Time) -> Option<Report> {
    let work = &state.work;
    let mut all = work.conditions.clone();
    let mut set = |type_: &str, good: bool, reason: &str, message: String| {
        let wanted = Condition {
            type_: type_.into(),
            status: if good { "True" } else { "False" }.into(),
            reason: reason.into(),
            message,
            observed_generation: work.meta.generation,
            last_transition_time: now.to_k8s(),
        };
        conditions::set(&mut all, wanted);
    };
    if work.suspended {
        let message = "Work dispatching is in a suspended state.".to_owned();
        set(
            condition::DISPATCHING,
            false,
            reason::SUSPEND_DISPATCHING,
            message,
        );
    } else {
        let message = "Work is being dispatched to member clusters.".to_owned();
        set(condition::DISPATCHING, true, reason::DISPATCHING, message);
        match applied(agent, state, now) {
            Some(Ok(message)) => set(condition::APPLIED, true, reason::APPLIED_SUCCESSFUL, message),
            Some(Err(message)) => {
                let mut held = work.conditions.iter();
                let held = held.find(|each| each.type_ == condition::APPLIED && each.status == "False");
                let message = held.map_or(message.clone(), |held| steady(&held.message, message));
                set(condition::APPLIED, false, reason::APPLIED_FAILED, message);
            }
            None => {}
        }
    }
    let statuses = if work.suspended {
        None
    } else {
        statuses(agent, state)
    };
    let digest = statuses
        .as_ref()
        .map_or_else(|| work.reported.clone(), |all| digest(all));
    let is_status_alone = is_reported(&all, &work.conditions);
    (!is_status_alone || digest != work.reported).then_some(Report {
        conditions: all,
        statuses,
        digest,
        is_status_alone,
    })
}

/// The transition time is left out: it follows from the others.
fn is_reported(wanted: &[Condition], held: &[Condition]) -> bool {
    let is_same = |one: &Condition, other: &Condition| {
        (
            &one.type_,
            &one.status,
            &one.reason,
            &one.message,
            one.observed_generation,
        ) == (
            &other.type_,
            &other.status,
            &other.reason,
            &other.message,
            other.observed_generation,
        )
    };
    wanted.len() == held.len()
        && wanted
            .iter()
            .all(|each| held.iter().any(|held| is_same(each, held)))
}

/// The message of Applied, if it is known: true or false.
fn applied(agent: &Agent, state: &WorkState, now: Time) -> Option<Result<String, String>> {
    let source = state.source();
    let (mut failed, mut contended, mut done) = (Vec::new(), Vec::new(), 0);
    for object in &state.objects {
        let failure = object.failure.as_ref().filter(|each| each.source == source);
        match (&object.id, failure) {
            (None, _) => failed.push("a manifest needs apiVersion, kind and metadata.name".to_owned()),
            (Some(_), Some(failure)) if failure.is_reported() => failed.push(failure.message.clone()),
            (Some(_), Some(_)) => {}
            (Some(id), None) => {
                done += usize::from(object.record.as_ref().is_some_and(|each| each.is_in(&source)));
                let drift = object.drift.as_ref().filter(|drift| now < drift.over_at());
                contended.extend(drift.and_then(|drift| drift.message(id, &agent.config.cluster)));
            }
        }
    }
    let total = state.objects.len();
    if !failed.is_empty() {
        let message = format!(
            "Failed to apply all manifests ({done}/{total}): {}",
            failed.join("; ")
        );
        return Some(Err(message));
    }
    (done == total).then(|| {
        contended.insert(0, "Manifest has been successfully applied".to_owned());
        Ok(contended.join("; "))
    })
}

/// The state of the objects; `None` while that of one of them is not known.
fn statuses(agent: &Agent, state: &WorkState) -> Option<Vec<ManifestStatus>> {
    let mut all = Vec::new();
    let is_ours = state.has_reported || state.work.reported.is_empty();
    for (ordinal, object) in state.objects.iter().enumerate() {
        let Some(id) = &object.id else { continue };
        let copy = agent.copies.get(id);
        let is_synced = agent.synced.contains_key(&agent.copies_of(&id.gvk));
        match (&object.record, copy) {
            (Some(record), copy) if copy.is_some() || is_synced => {
                all.push(manifest_status(ordinal, id, &record.resource, copy));
            }
            // This process never applied it: there is nothing to report of it. What an earlier one reported stays, unless the object
            // does not exist.
            (None, copy) if object.failure.is_some() && (is_ours || (is_synced && copy.is_none())) => {}
            _ => return None,
        }
    }
    Some(all)
}

fn manifest_status(ordinal: usize, id: &ResourceId, resource: &str, copy: Option<&Copy>) -> ManifestStatus {
    ManifestStatus {
        identifier: ResourceIdentifier {
            ordinal: i64::try_from(ordinal).unwrap_or_default(),
            group: id.gvk.group.to_string(),
            version: id.gvk.version.to_string(),
            kind: id.gvk.kind.to_string(),
            resource: resource.to_owned(),
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
        },
        status: copy.and_then(|copy| copy.status.clone()),
        health: Some(copy.map_or(ResourceHealth::Unknown, health)),
    }
}

/// A kind without a health rule counts as healthy.
fn health(copy: &Copy) -> ResourceHealth {
    match copy.health {
        Some(Health::Healthy) => ResourceHealth::Healthy,
        Some(Health::Unhealthy) => ResourceHealth::Unhealthy,
        Some(Health::Unknown) => ResourceHealth::Unknown,
        None if copy.lacks(Operation::Health).is_some() => ResourceHealth::Unknown,
        None => ResourceHealth::Healthy,
    }
}
