//! The planner of one assignment: the ResourceQuota of a quota on a member is written, kept or deleted.

use entourage_api::keys::finalizer;

use super::{apply_task, is_target};
use crate::{
    fleet::Fleet,
    memory::quotas::QuotaState,
    object::{NamespacedName, Str, Time},
    observation::{AssignedQuota, Watch},
    plan::{Change, Plan, Preconditions, QuotaOrder},
};

/// Plans the ResourceQuota of a quota on a member. Cost: O(assignments + resources).
#[must_use]
pub(crate) fn plan(fleet: &Fleet, name: &NamespacedName, cluster: &Str, now: Time) -> Plan {
    let Some(held) = fleet.memory.quotas.get(name) else {
        return Plan::nothing();
    };
    let watches = &fleet.cache.watches;
    if !watches.is_listed(&Watch::Quotas) || !watches.is_listed(&Watch::Clusters) {
        return Plan::wait("quotas or Clusters are not synced yet");
    }
    if !watches.is_listed(&Watch::QuotaCopies(cluster.clone())) {
        return Plan::wait(format!("unknown state of cluster {cluster}"));
    }
    let live = fleet.quota_copy(cluster, name);
    if is_target(fleet, held, cluster) {
        return write(fleet, (name, held), cluster, live, now);
    }
    match live {
        Some(live) => remove(fleet, (name, held), cluster, live, now),
        None => Plan::nothing(),
    }
}

fn write(
    fleet: &Fleet,
    (name, held): (&NamespacedName, &QuotaState),
    cluster: &Str,
    live: Option<&AssignedQuota>,
    now: Time,
) -> Plan {
    let Some(hard) = held.assigned(cluster) else {
        return Plan::nothing();
    };
    if live.is_some_and(|live| apply_task::is_equal(live, hard)) {
        return Plan::nothing();
    }
    if live.is_some_and(|live| live.deleting) {
        return Plan::wait("it is being deleted, and made again when it is gone");
    }
    if !held.meta.has_finalizer(finalizer::QUOTA) {
        return Plan::wait("the quota gets its finalizer first");
    }
    if !held.reported_on(cluster) {
        return Plan::wait(format!("the status does not list {cluster} yet"));
    }
    if fleet.cache.namespaces.on(cluster, &name.namespace).is_none() {
        return Plan::wait(format!(
            "namespace {} does not exist on {cluster} yet",
            name.namespace
        ));
    }
    if let Some(wait) = pause(held, cluster, Some(hard), now) {
        return wait;
    }
    let order = QuotaOrder {
        quota: name.clone(),
        cluster: cluster.clone(),
        hub: fleet.config.hub.clone(),
        hard: hard.clone(),
    };
    let why = if live.is_some() {
        "its limits differ"
    } else {
        "it is missing"
    };
    Plan::one(Change::AssignQuota(Box::new(order)), why)
}

fn remove(
    fleet: &Fleet,
    (name, held): (&NamespacedName, &QuotaState),
    cluster: &Str,
    live: &AssignedQuota,
    now: Time,
) -> Plan {
    if live.deleting {
        return Plan::wait("it is being deleted");
    }
    // The present state of the quota and of the Cluster asks for it: both must be the present ones.
    let watches = &fleet.cache.watches;
    if !watches.is_synced(&Watch::Quotas) || !watches.is_synced(&Watch::Clusters) {
        return Plan::wait("quotas or Clusters are not synced: it may still be assigned");
    }
    if let Some(wait) = pause(held, cluster, None, now) {
        return wait;
    }
    let change = Change::UnassignQuota {
        quota: name.clone(),
        cluster: cluster.clone(),
        preconditions: Preconditions {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        },
    };
    Plan::one(change, "the quota does not assign limits to the cluster any more")
}

/// The plan to wait if the last attempt failed, or another writer keeps changing the object. Other limits than at the last
/// attempt are tried at once.
fn pause(
    held: &QuotaState,
    cluster: &str,
    hard: Option<&entourage_api::work::Resources>,
    now: Time,
) -> Option<Plan> {
    let target = held.targets.get(cluster)?;
    let failure = target.failure.as_ref();
    let is_of_it = hard.is_none_or(|hard| failure.is_none_or(|(tried, _)| tried == hard));
    if let Some(until) = target.not_before.filter(|until| is_of_it && now < *until) {
        return Some(Plan::wait_until(until, "the last attempt failed"));
    }
    let drift = target.drift_backoff.as_ref().map(|drift| drift.retry_at());
    let until = drift.filter(|until| hard.is_some() && now < *until)?;
    Some(Plan::wait_until(until, "something changes it back each time"))
}
