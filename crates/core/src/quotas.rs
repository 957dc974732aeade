//! FederatedResourceQuotas: the ResourceQuotas that they make on members, and their status.
//!
//! A static assignment is one ResourceQuota, with the name and namespace of the quota, on the member. Invariants:
//!
//! - It is written only if the quota has its finalizer and its status lists the member: so every ResourceQuota that may exist is
//!   accounted for, also after a restart.
//! - It is managed if it carries the id of this hub and the name of its assignment. Nothing else is changed or deleted, whatever
//!   its name; an event reports it.
//! - It is deleted when the quota no longer assigns limits to the member, or the quota or the Cluster is being deleted. A quota
//!   that is gone deletes nothing: its finalizer was taken off by someone else.
//! - The finalizer is removed when no ResourceQuota of it is left on any member that exists.
//!
//! What bindings use of a quota is a sum of [`crate::fleet`]; with the feature gate FederatedQuotaEnforcement the scheduler keeps
//! to it, see `crate::failover`. Source: Karmada reference 1.7 and 6.2; differences are listed in docs/differences.md.

pub mod apply_task;
mod copy;
mod status;

use entourage_api::keys::{event, finalizer};
use serde_json::json;

pub(crate) use copy::plan as plan_copy;

use crate::{
    fleet::Fleet,
    kinds,
    memory::quotas::{QuotaState, Sync},
    object::{NamespacedName, Str, Time},
    observation::Watch,
    plan::{Change, Event, HubObject, Plan, Regarding, Verb},
};

/// Plans the finalizer and the status of a quota. Cost: O(its clusters + resources).
#[must_use]
pub(crate) fn plan(fleet: &Fleet, name: &NamespacedName, now: Time) -> Plan {
    let Some(held) = fleet.memory.quotas.get(name) else {
        return Plan::nothing();
    };
    if !fleet.cache.watches.is_listed(&Watch::Clusters) || !fleet.cache.watches.is_listed(&Watch::Quotas) {
        return Plan::wait("Clusters or quotas are not synced yet");
    }
    let has = held.meta.has_finalizer(finalizer::QUOTA);
    if held.meta.deleting.is_some() {
        return match held
            .clusters()
            .iter()
            .find_map(|cluster| stands(fleet, name, cluster))
        {
            _ if !has => Plan::nothing(),
            Some(why) => Plan::wait(why),
            None => finalizers(name, held, false, "no ResourceQuota of it is left"),
        };
    }
    let needs = !held.object.spec.static_assignments.is_empty();
    if needs && !has {
        return finalizers(name, held, true, "its ResourceQuotas on members go before it");
    }
    let plan = status::plan(fleet, name, held, now);
    if !plan.changes.is_empty() || needs || !has {
        return plan;
    }
    match held
        .clusters()
        .iter()
        .find_map(|cluster| stands(fleet, name, cluster))
    {
        Some(_) => plan,
        None => finalizers(name, held, false, "it has no static assignments any more"),
    }
}

/// Records what the plan of a quota reports. Cost: as [`plan`].
pub(crate) fn note(fleet: &mut Fleet, name: &NamespacedName, plan: &Plan, now: Time) {
    let Some(sync) = fleet.memory.quotas.get(name).map(|held| sync(fleet, name, held)) else {
        return;
    };
    let Some(held) = fleet.memory.quotas.get_mut(name) else {
        return;
    };
    held.sync = sync;
    let is_status = |change: &Change| {
        matches!(
            change,
            Change::Hub {
                verb: Verb::ReplaceStatus(_),
                ..
            }
        )
    };
    if plan.changes.iter().any(is_status) {
        held.status_written = Some(now);
    }
}

/// The reason why a ResourceQuota of a quota may exist on a member; `None` if there is none, or no such member. Cost: O(log).
fn stands(fleet: &Fleet, name: &NamespacedName, cluster: &Str) -> Option<String> {
    if !fleet.cache.members.contains_key(cluster) {
        return None;
    }
    if !fleet
        .cache
        .watches
        .is_listed(&Watch::QuotaCopies(cluster.clone()))
    {
        return Some(format!("unknown state of cluster {cluster}"));
    }
    fleet
        .quota_copy(cluster, name)
        .map(|_| format!("its ResourceQuota is still on {cluster}"))
}

/// True if a quota assigns limits to a member that there is, and that this control plane writes to.
fn is_target(fleet: &Fleet, held: &QuotaState, cluster: &str) -> bool {
    let member = fleet.cache.members.get(cluster);
    held.meta.deleting.is_none()
        && held.assigned(cluster).is_some()
        && member.is_some_and(|member| {
            member.meta.deleting.is_none()
                && member.object.spec.sync_mode == entourage_api::cluster::SyncMode::Push
        })
}

/// The state of the assignments of a quota. Cost: O(its clusters).
fn sync(fleet: &Fleet, name: &NamespacedName, held: &QuotaState) -> Sync {
    if held.object.spec.static_assignments.is_empty() {
        return Sync::Nothing;
    }
    let clusters = held.clusters();
    let targets = || clusters.iter().filter(|cluster| is_target(fleet, held, cluster));
    let failed = targets().find_map(|cluster| {
        if let Some(why) = fleet.cache.watches.refused(&Watch::QuotaCopies(cluster.clone())) {
            return Some(format!(
                "the ResourceQuotas of {cluster} cannot be listed: {why}; entourage join {cluster} --allow \
                 resourcequotas grants the right"
            ));
        }
        let target = held.targets.get(cluster)?;
        let (_, why) = target.failure.as_ref()?;
        Some(why.clone())
    });
    if let Some(why) = failed {
        return Sync::Failed(why);
    }
    let is_done = |cluster: &Str| {
        let listed = fleet
            .cache
            .watches
            .is_listed(&Watch::QuotaCopies(cluster.clone()));
        let limits = held.assigned(cluster);
        let copy = fleet.quota_copy(cluster, name);
        listed
            && copy
                .zip(limits)
                .is_some_and(|(copy, limits)| apply_task::is_equal(copy, limits))
    };
    // What is not listed yet is unknown after a start, and is no news.
    let is_unknown = targets().any(|cluster| {
        !fleet
            .cache
            .watches
            .is_listed(&Watch::QuotaCopies(cluster.clone()))
    });
    match (targets().all(is_done), is_unknown) {
        (true, _) => Sync::Done,
        (false, true) => held.sync.clone(),
        (false, false) => Sync::Pending,
    }
}

/// The event about the assignments of a quota, if their state changed. Cost: as [`sync`].
fn synced(fleet: &Fleet, name: &NamespacedName, held: &QuotaState) -> Option<Change> {
    let sync = sync(fleet, name, held);
    match (&held.sync, &sync) {
        (before, after) if before == after => None,
        (Sync::Pending | Sync::Failed(_), Sync::Done) => {
            let count = held.object.spec.static_assignments.len();
            let message = format!("Every static assignment has its ResourceQuota ({count}).");
            Some(emit(name, held, (false, event::SYNC_QUOTA_SUCCEED), message))
        }
        (_, Sync::Failed(why)) => {
            let message = format!("{why}; retrying");
            Some(emit(name, held, (true, event::SYNC_QUOTA_FAILED), message))
        }
        _ => None,
    }
}

fn emit(
    name: &NamespacedName,
    held: &QuotaState,
    (warning, reason): (bool, &'static str),
    message: String,
) -> Change {
    Change::Emit(Event {
        regarding: Regarding {
            api_version: kinds::QUOTA_API.into(),
            kind: kinds::QUOTA.into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: held.meta.uid.clone(),
        },
        warning,
        reason,
        message,
    })
}

fn finalizers(name: &NamespacedName, held: &QuotaState, with: bool, why: &str) -> Plan {
    let all = held.meta.finalizers.iter().map(|each| &**each);
    let mut wanted: Vec<&str> = all.filter(|each| *each != finalizer::QUOTA).collect();
    if with {
        wanted.push(finalizer::QUOTA);
    }
    let patch = json!({
        "apiVersion": kinds::QUOTA_API,
        "kind": kinds::QUOTA,
        "metadata": {
            "name": &*name.name,
            "namespace": &*name.namespace,
            "uid": &*held.meta.uid,
            "resourceVersion": &*held.meta.resource_version,
            "finalizers": wanted,
        },
    });
    let change = Change::Hub {
        object: HubObject::Quota(name.clone()),
        verb: Verb::Merge(patch),
    };
    Plan::one(change, why)
}
