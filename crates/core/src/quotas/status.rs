//! The status of a quota: its limits, their use, and what its clusters report.

use std::collections::BTreeSet;

use entourage_api::{
    keys::event,
    policy::{ClusterQuotaStatus, FederatedResourceQuotaStatus},
    work::Resources,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{emit, is_target, stands, synced};
use crate::{
    cache::add_amounts,
    fleet::{Fleet, quotas::shown},
    memory::quotas::QuotaState,
    object::{NamespacedName, Str, Time},
    observation::Watch,
    plan::{Change, HubObject, Plan, Verb},
    scheduler::estimate::{Amounts, amounts},
};

/// Plans the status of a quota, and the events about it. Cost: O(its clusters + resources).
pub(super) fn plan(fleet: &Fleet, name: &NamespacedName, held: &QuotaState, now: Time) -> Plan {
    let stored = held.object.status.clone().unwrap_or_default();
    let Some(wanted) = wanted(fleet, name, held, &stored) else {
        return Plan::wait("bindings are not synced yet");
    };
    let mut changes = Vec::new();
    let mut again_at = None;
    let until = held
        .status_written
        .map(|written| written.plus(fleet.config.status_interval));
    let is_recorded = clusters(&wanted).all(|cluster| held.reported_on(cluster));
    if wanted != stored {
        match until.filter(|until| is_recorded && now < *until) {
            Some(until) => again_at = Some(until),
            None => {
                let mut object = (*held.object).clone();
                object.status = Some(wanted.clone());
                changes.push(Change::Hub {
                    object: HubObject::Quota(name.clone()),
                    verb: Verb::ReplaceStatus(serde_json::to_value(&object).unwrap_or_default()),
                });
                changes.extend(collected(name, held, &stored, &wanted));
            }
        }
    }
    changes.extend(synced(fleet, name, held));
    Plan {
        changes,
        again_at,
        why: vec!["its limits or their use changed".into()],
        ..Plan::nothing()
    }
}

/// The status as it should be; `None` if it is not known yet.
fn wanted(
    fleet: &Fleet,
    name: &NamespacedName,
    held: &QuotaState,
    stored: &FederatedResourceQuotaStatus,
) -> Option<FederatedResourceQuotaStatus> {
    let listed: BTreeSet<Str> = held.clusters();
    let aggregated_status: Vec<ClusterQuotaStatus> = listed
        .iter()
        .filter(|cluster| is_target(fleet, held, cluster) || stands(fleet, name, cluster).is_some())
        .map(|cluster| reported(fleet, name, cluster, stored))
        .collect();
    let of_bindings = fleet.config.enforce_quotas || held.object.spec.static_assignments.is_empty();
    let used = if of_bindings {
        if !fleet.are_bindings_listed() {
            return None;
        }
        fleet.memory.quotas.used(&name.namespace)?.clone()
    } else {
        let mut sum = Amounts::new();
        for each in &aggregated_status {
            add_amounts(&mut sum, &amounts(&each.used));
        }
        sum
    };
    let overall = held.object.spec.overall.clone();
    let overall_used = overall.keys().map(|resource| {
        let amount = used.get(resource.as_str()).copied().unwrap_or_default();
        (resource.clone(), Quantity(shown(resource, amount)))
    });
    Some(FederatedResourceQuotaStatus {
        overall_used: as_stored(overall_used.collect(), &stored.overall_used),
        overall,
        aggregated_status,
    })
}

/// The report of a member; the stored one while its state is unknown.
fn reported(
    fleet: &Fleet,
    name: &NamespacedName,
    cluster: &Str,
    stored: &FederatedResourceQuotaStatus,
) -> ClusterQuotaStatus {
    let before = stored
        .aggregated_status
        .iter()
        .find(|each| each.cluster_name == **cluster);
    if !fleet
        .cache
        .watches
        .is_listed(&Watch::QuotaCopies(cluster.clone()))
        && let Some(before) = before
    {
        return before.clone();
    }
    let copy = fleet.quota_copy(cluster, name);
    ClusterQuotaStatus {
        cluster_name: cluster.to_string(),
        hard: copy.map(|copy| copy.hard.clone()).unwrap_or_default(),
        used: copy.map(|copy| copy.used.clone()).unwrap_or_default(),
    }
}

/// Amounts in the form in which they are stored, if they are the same: another spelling is no change.
fn as_stored(wanted: Resources, stored: &Resources) -> Resources {
    if amounts(&wanted) == amounts(stored) {
        return stored.clone();
    }
    wanted
}

fn clusters(status: &FederatedResourceQuotaStatus) -> impl Iterator<Item = &str> {
    status
        .aggregated_status
        .iter()
        .map(|each| each.cluster_name.as_str())
}

/// The events about a status that is written: its overall use for the first time, and that of every cluster.
fn collected(
    name: &NamespacedName,
    held: &QuotaState,
    stored: &FederatedResourceQuotaStatus,
    wanted: &FederatedResourceQuotaStatus,
) -> Vec<Change> {
    let mut events = Vec::new();
    if stored.overall.is_empty() && !wanted.overall.is_empty() {
        let message = "The use of its limits over all clusters was collected.".to_owned();
        events.push(emit(
            name,
            held,
            (false, event::COLLECT_QUOTA_OVERALL_STATUS_SUCCEED),
            message,
        ));
    }
    let is_complete = |status: &FederatedResourceQuotaStatus| {
        let all = &status.aggregated_status;
        !all.is_empty() && all.iter().all(|each| !each.hard.is_empty())
    };
    if is_complete(wanted) && !is_complete(stored) {
        let count = wanted.aggregated_status.len();
        let message = format!("The limits and their use were collected from {count} clusters.");
        events.push(emit(
            name,
            held,
            (false, event::COLLECT_QUOTA_STATUS_SUCCEED),
            message,
        ));
    }
    events
}
