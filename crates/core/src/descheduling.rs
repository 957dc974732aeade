//! Descheduling: replicas whose pods no node of their member has taken for a while are scheduled to other members.
//!
//! What a cluster reports as room is an estimate: node selectors, affinities of pods, volumes and taints of nodes decide there. A pod
//! that is still not scheduled to a node after [`Config::deschedule_after`](crate::config::Config::deschedule_after) is stuck. Its
//! replica moves in one write of `spec.clusters`, and only to a cluster with room; without one it stays. The workload is a Deployment
//! whose replicas are divided by room: see [`may_move`]. Only settled copies count, on members that respond and list their pods, so
//! that neither old news nor a rolling update nor the pods that a former descheduling leaves behind for a moment move anything. Ready
//! replicas never move.
//!
//! A cluster that lost stuck replicas gets no further replicas of that workload for half an hour, so that they do not go back and forth.
//!
//! Source: Karmada's descheduler (`--unschedulable-threshold`), which takes replicas away whether another cluster has room or not.

use std::collections::BTreeMap;

use entourage_api::{
    keys::event,
    work::{ResourceBindingSpec, TargetCluster},
};

use crate::{
    cache::{Binding, CopyState, ResourceState},
    fleet::{
        Fleet,
        autoscaling::leaves_replicas,
        current::is_current,
        regarding::{on_binding, on_template},
    },
    object::{Gvk, ResourceId, Str, Time},
    observation::{Template, Watch},
    plan::{Change, Event},
    scheduler,
    stored_binding::is_held_back_from,
};

/// The time, in milliseconds, after which pods that wait for a node and could not move are looked at again.
const RETRY: i64 = 60_000;

/// The stuck replicas of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// The number of stuck replicas of each cluster that has some; 0 for one that lost some lately, or is held back. Sorted by cluster.
    pub(crate) replicas: Vec<TargetCluster>,
    /// The time at which there may be more although nothing is observed.
    pub(crate) again_at: Option<Time>,
}

/// True if pods of a workload may move: it is a Deployment whose replicas are divided by room, as its binding says, and which no
/// autoscaler on a member scales. Cost: O(log resources).
///
/// A StatefulSet that is scaled down ends its last pod, whichever is stuck.
pub(crate) fn may_move(fleet: &Fleet, id: &ResourceId) -> bool {
    let Some(resource) = fleet
        .resource(id)
        .filter(|_| fleet.config.deschedule_after.is_some())
    else {
        return false;
    };
    let binding = resource.binding.as_ref();
    let placement = binding.and_then(|binding| binding.object.spec.placement.as_ref());
    let is_retained = |template: &Template| leaves_replicas(fleet, id, template);
    id.gvk == Gvk::new("apps/v1", "Deployment")
        && placement.is_some_and(scheduler::is_by_room)
        && !resource.template.as_ref().is_some_and(is_retained)
}

/// The stuck replicas of a workload by its stored binding. Cost: O(targets × log), and O(pods without a node) of the workload.
pub(crate) fn stuck(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    spec: &ResourceBindingSpec,
    now: Time,
) -> Stuck {
    let Some(after) = fleet.config.deschedule_after.filter(|_| may_move(fleet, id)) else {
        return Stuck::default();
    };
    let moved = fleet.memory.descheduled.of(id, now);
    let mut replicas: BTreeMap<&str, i32> = moved.keys().map(|cluster| (&**cluster, 0)).collect();
    let mut times = Vec::new();
    for target in &spec.clusters {
        let cluster = target.name.as_str();
        if is_held_back_from(spec, cluster) {
            replicas.insert(cluster, 0);
            continue;
        }
        // The pods that it leaves behind may not be deleted yet.
        if let Some(moved) = moved.get(cluster).filter(|moved| target.replicas <= moved.left)
            && now < moved.at.plus(after)
        {
            times.push(moved.at.plus(after));
            continue;
        }
        let (count, again_at) = stuck_on(fleet, id, resource, target, now, after);
        times.extend(again_at);
        if count > 0 {
            replicas.insert(cluster, count);
        }
    }
    let target = |(name, replicas): (&str, i32)| TargetCluster {
        name: name.into(),
        replicas,
        components: Vec::new(),
    };
    Stuck {
        replicas: replicas.into_iter().map(target).collect(),
        again_at: times.into_iter().min(),
    }
}

/// The number of replicas on a cluster that have been stuck for so long, and the time at which there may be more.
fn stuck_on(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    target: &TargetCluster,
    now: Time,
    after: i64,
) -> (i32, Option<Time>) {
    let name = target.name.as_str();
    let usage = fleet.cache.usage.of(name);
    let Some(waiting) = usage.and_then(|usage| usage.unscheduled(id)) else {
        return (0, None);
    };
    let due = |since: &Time| since.plus(after);
    let next = waiting.values().map(due).filter(|due| *due > now).min();
    let again_at = next.into_iter().chain([now.plus(RETRY)]).min();
    let cluster = Str::from(name);
    // Otherwise what is known of its pods may be old.
    let is_known = fleet.answers(name) && fleet.cache.watches.is_synced(&Watch::Pods(cluster.clone()));
    let ready = resource
        .copies
        .get(&cluster)
        .filter(|_| is_known && is_current(fleet, id, &cluster))
        .and_then(|state| ready(state, target.replicas));
    let Some(ready) = ready else {
        return (0, again_at);
    };
    let count = waiting.values().filter(|since| due(since) <= now).count();
    let most = target.replicas.saturating_sub(ready).max(0);
    (i32::try_from(count).unwrap_or(most).min(most), again_at)
}

/// The number of ready replicas of a copy that is settled: it has as many pods as it was scheduled, all of its present template.
/// `None` if it is not settled.
fn ready(state: &CopyState, replicas: i32) -> Option<i32> {
    let live = state.live.as_ref()?;
    let status = live.status.as_ref()?;
    let number = |field: &str| status[field].as_i64();
    let is_seen = number("observedGeneration").is_none_or(|seen| Some(seen) >= live.meta.generation);
    let all = Some(i64::from(replicas));
    let is_settled = is_seen && number("replicas") == all && number("updatedReplicas") == all;
    if !is_settled {
        return None;
    }
    i32::try_from(number("readyReplicas").unwrap_or(0)).ok()
}

/// The clusters from which a new result moves stuck replicas, with the number that goes and the number that stays. A result that
/// differs in more than that moves none: the workload was scaled, evicted or scheduled afresh. Cost: that of [`stuck`], if the result
/// differs; else O(targets).
pub(crate) fn moved(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    (before, after): (&ResourceBindingSpec, &[TargetCluster]),
    now: Time,
) -> Vec<(Str, i32, i32)> {
    let sum = |targets: &[TargetCluster]| -> i64 {
        let replicas = targets.iter().map(|target| i64::from(target.replicas));
        replicas.sum()
    };
    if before.clusters == after || sum(&before.clusters) != sum(after) {
        return Vec::new();
    }
    let of = |targets: &[TargetCluster], cluster: &str| {
        TargetCluster::find(targets, cluster).map_or(0, |target| target.replicas)
    };
    let stuck = stuck(fleet, id, resource, before, now).replicas;
    let mut moved = Vec::new();
    for target in &before.clusters {
        let left = of(after, &target.name);
        let goes = target.replicas.saturating_sub(left);
        if goes > of(&stuck, &target.name) {
            return Vec::new();
        }
        if goes > 0 {
            moved.push((Str::from(target.name.as_str()), goes, left));
        }
    }
    moved
}

/// The events for stuck replicas that a write moves, on the template and on the binding. Cost: that of [`moved`].
pub(crate) fn events(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, stored): (&ResourceState, &Template, &Binding),
    wanted: &ResourceBindingSpec,
    now: Time,
) -> Vec<Change> {
    let change = (&stored.object.spec, wanted.clusters.as_slice());
    let moves = moved(fleet, id, resource, change, now);
    let seconds = fleet.config.deschedule_after.unwrap_or_default() / 1_000;
    let events = moves.into_iter().flat_map(|(cluster, goes, left)| {
        let message = format!(
            "Descheduled from cluster {cluster}: {goes} of {} replicas, whose pods no node there has taken for {seconds} s.",
            goes + left
        );
        [on_template(id, template), on_binding(stored)].map(|regarding| {
            Change::Emit(Event {
                regarding,
                warning: false,
                reason: event::DESCHEDULE_BINDING_SUCCEED,
                message: message.clone(),
            })
        })
    });
    events.collect()
}
