//! One eviction task: when it is over, when the old copy may be deleted, and the message about it.

use entourage_api::{
    policy::{Placement, PurgeMode, ReplicaSchedulingType},
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, TargetCluster},
};

use super::{
    TAINT_MANAGER,
    tolerance::{Stay, stay},
};
use crate::{
    cache::{Binding, CopyState, ResourceState},
    fleet::{Fleet, current::is_current},
    interpreter::Health,
    object::{ResourceId, Str, Time},
    stored_binding::{
        is_held_back_from,
        purge::{self, is_required},
    },
};

/// The progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is in progress.
    Open,
    /// No copy is left on the cluster: it is dropped.
    Over,
    /// The cluster recovered before the replacement was healthy: the workload is scheduled to it again.
    Recovered,
}

/// The progress of a stored task. Cost: O(clusters of the binding + taints).
pub(crate) fn progress(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    held: &ResourceBinding,
    task: &GracefulEvictionTask,
    placement: &Placement,
) -> Progress {
    let cluster: Str = task.from_cluster.as_str().into();
    let is_scheduled = |target: &TargetCluster| target.name == task.from_cluster;
    let Some(member) = fleet.cache.members.get(&cluster) else {
        return Progress::Over;
    };
    if held.spec.clusters.iter().any(is_scheduled) || !fleet.may_stand(id, &cluster) {
        return Progress::Over;
    }
    let may_return = task.producer == TAINT_MANAGER
        && resource.binding.is_some()
        && task.purge_mode != Some(PurgeMode::Directly)
        && task.suppress_deletion != Some(false)
        && fleet.config.failover
        && member.meta.deleting.is_none()
        && stay(&member.object, &placement.cluster_tolerations) == Stay::Unlimited;
    if may_return
        && is_well(fleet, id, resource, &cluster)
        && verify(fleet, id, resource, &held.spec).is_err()
    {
        return Progress::Recovered;
    }
    Progress::Open
}

/// The task with the time from which its grace period counts.
pub(crate) fn dated(task: &GracefulEvictionTask, now: Time) -> GracefulEvictionTask {
    let mut task = task.clone();
    task.creation_timestamp.get_or_insert_with(|| now.to_k8s());
    task
}

/// True if the copy of a task stays until a user confirms its deletion.
pub(crate) fn is_to_be_confirmed(task: &GracefulEvictionTask) -> bool {
    match task.suppress_deletion {
        Some(is_suppressed) => is_suppressed,
        None => task.purge_mode == Some(PurgeMode::Never),
    }
}

/// Returns the reason why the copy of a task may be deleted now.
///
/// The last healthy copy is never deleted: if the grace period is over and no new copy is healthy, a healthy old one is kept.
///
/// # Errors
/// The reason why it is kept, and when to ask again. Cost: O(clusters of the binding).
pub(crate) fn may_delete(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, binding): (&ResourceState, &Binding),
    task: &GracefulEvictionTask,
    now: Time,
) -> Result<&'static str, (String, Option<Time>)> {
    let spec = &binding.object.spec;
    match (task.suppress_deletion, task.purge_mode.unwrap_or_default()) {
        (Some(false), _) => return Ok("its deletion was confirmed"),
        (Some(true), _) | (None, PurgeMode::Never) => {
            let why =
                "its deletion is to be confirmed by setting suppressDeletion of its eviction task to false";
            return Err((why.into(), None));
        }
        (None, PurgeMode::Directly) => return Ok("its eviction task says purgeMode Directly"),
        (None, PurgeMode::Gracefully) => {}
    }
    let Err(unready) = verify(fleet, id, resource, spec) else {
        return Ok("its replacement is healthy");
    };
    let Some(created) = task.creation_timestamp.as_ref().map(Time::from_k8s) else {
        return Err((unready, None));
    };
    let grace = task
        .grace_period_seconds
        .map_or(fleet.config.eviction_timeout, |seconds| {
            i64::from(seconds) * 1_000
        });
    let until = created.plus(grace);
    if now < until {
        return Err((unready, Some(until)));
    }
    let is_replaced = |target: &TargetCluster| is_well(fleet, id, resource, &target.name.as_str().into());
    // Also if its removal was tried before: a pending removal is no reason to delete it.
    let is_last = is_seen_healthy(fleet, id, resource, &task.from_cluster.as_str().into())
        && !spec.clusters.iter().any(is_replaced);
    let stands = |target: &TargetCluster| {
        let state = resource.copies.get(target.name.as_str());
        fleet.answers(&target.name) && state.is_some_and(CopyState::is_lasting)
    };
    if !spec.clusters.iter().any(stands) {
        let why = format!("no replacement is there, although its grace period is over: {unready}");
        return Err((why, None));
    }
    if is_last {
        let why = format!("it is the last healthy copy, although its grace period is over: {unready}");
        return Err((why, None));
    }
    Ok("its grace period is over")
}

/// True if all copies that replace an evicted one are verified: written from the current template, and healthy where the kind
/// has a health rule.
fn verify(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    spec: &ResourceBindingSpec,
) -> Result<(), String> {
    if spec.clusters.is_empty() {
        return Err("it has no replacement".into());
    }
    for target in &spec.clusters {
        let cluster: Str = target.name.as_str().into();
        if !is_well(fleet, id, resource, &cluster) || !is_current(fleet, id, &cluster) {
            return Err(format!("waits until the copy on {cluster} is healthy"));
        }
    }
    Ok(())
}

/// True if a copy is observed, healthy, and lasting: the last known copy of a member that does not respond is no replacement,
/// nor is one that is about to be removed.
fn is_well(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let state = resource.copies.get(cluster);
    state.is_some_and(CopyState::is_lasting) && is_seen_healthy(fleet, id, resource, cluster)
}

/// True if a copy is observed, is not being deleted, and is healthy.
fn is_seen_healthy(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let live = resource.copies.get(cluster).and_then(|state| state.live.as_ref());
    fleet.answers(cluster)
        && fleet.copies_known(cluster, &id.gvk)
        && live.is_some_and(|live| live.meta.deleting.is_none() && is_healthy(live.health))
}

/// True if a copy counts as healthy: one of a kind without a health rule does.
fn is_healthy(health: Option<Health>) -> bool {
    health.is_none_or(|health| health == Health::Healthy)
}

/// The time at which the message about the tasks changes although nothing is observed. Cost: O(tasks × clusters).
pub(crate) fn reported_again_at(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, binding): (&ResourceState, &Binding),
    now: Time,
) -> Option<Time> {
    let tasks = binding.object.spec.graceful_eviction_tasks.iter();
    let waits = tasks.filter_map(|task| may_delete(fleet, id, (resource, binding), task, now).err());
    waits.filter_map(|(_, until)| until).min()
}

/// The message about the tasks of a binding; `None` without any. Cost: O(tasks × clusters).
pub(crate) fn message(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, binding): (&ResourceState, &Binding),
    now: Time,
) -> Option<String> {
    let tasks = binding.object.spec.graceful_eviction_tasks.iter();
    let all: Vec<String> = tasks
        .map(|task| report(fleet, id, (resource, binding), task, now))
        .collect();
    (!all.is_empty()).then(|| all.join(". "))
}

/// The message about one task. Cost: O(clusters).
pub(crate) fn report(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, binding): (&ResourceState, &Binding),
    task: &GracefulEvictionTask,
    now: Time,
) -> String {
    let cause = if task.message.is_empty() {
        &task.reason
    } else {
        &task.message
    };
    let what = match may_delete(fleet, id, (resource, binding), task, now) {
        // The state there is unknown, so a restart must not change the message.
        _ if !fleet.answers(&task.from_cluster) => {
            "the copy there is handled when the cluster responds".to_owned()
        }
        Ok(why) => match kept(binding, &task.from_cluster) {
            Some(by) => format!("the copy there is kept: {by}"),
            None => format!("the copy there is to be deleted, because {why}"),
        },
        Err((why, _)) => format!("the copy there is kept: {why}"),
    };
    let purged = purge::purged(&binding.object.spec).any(|each| each.from_cluster == task.from_cluster);
    let waits = match purged && is_divided(binding) {
        true => "; its replicas start elsewhere when it is gone",
        false => "",
    };
    format!("Evicted from {} ({cause}); {what}{waits}", task.from_cluster)
}

fn is_divided(binding: &Binding) -> bool {
    let placement = binding.object.spec.placement.as_ref();
    placement.is_some_and(|placement| placement.replica_scheduling_type() == ReplicaSchedulingType::Divided)
}

/// The reason why a copy is kept although its eviction task permits its deletion, or `None`.
fn kept(binding: &Binding, cluster: &str) -> Option<&'static str> {
    let spec = &binding.object.spec;
    if is_required(spec, cluster) {
        return Some("it is still required there (see spec.requiredBy)");
    }
    is_held_back_from(spec, cluster).then_some("delivery is suspended")
}
