//! Descheduling: replicas whose pods no node of their member has taken for a while are scheduled to other members.
//!
//! What a cluster reports as room is an estimate: node selectors, affinities of pods, volumes and taints of nodes decide there. A pod
//! that is still not scheduled to a node after [`Config::deschedule_after`](crate::config::Config::deschedule_after) is stuck. Its
//! replica moves in one write of `spec.clusters`, and only to a cluster with room; without one it stays. The workload is one whose
//! replicas are divided by room. Only settled copies count: current, with a status of the current generation, and no more pods than
//! replicas, so that the pods of a rolling update, and those that a former descheduling leaves behind for a moment, move nothing. Ready
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
        current::is_current,
        regarding::{on_binding, on_template},
    },
    memory::descheduled::Moved,
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, Event},
};

/// The time, in milliseconds, after which stuck replicas that no other cluster has room for are tried again.
const RETRY: i64 = 60_000;

/// The stuck replicas of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// The number of stuck replicas of each cluster that has some; 0 for one that lost some lately. Sorted by cluster.
    pub(crate) replicas: Vec<TargetCluster>,
    /// The time at which there may be more although nothing is observed.
    pub(crate) again_at: Option<Time>,
}

/// The stuck replicas of a workload by its stored result. Cost: O(targets × log), and O(pods without a node) of the workload.
pub(crate) fn stuck(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    targets: &[TargetCluster],
    now: Time,
) -> Stuck {
    let mut stuck = Stuck::default();
    let Some(after) = fleet.config.deschedule_after else {
        return stuck;
    };
    let moved = fleet.memory.descheduled.of(id, now);
    let mut replicas: BTreeMap<&str, i32> = moved.keys().map(|cluster| (&**cluster, 0)).collect();
    for target in targets {
        let cluster = target.name.as_str();
        // The pods that it leaves behind may not be deleted yet.
        let is_done = |moved: &Moved| target.replicas <= moved.left && now < moved.at.plus(after);
        if moved.get(cluster).is_some_and(|moved| is_done(moved)) {
            continue;
        }
        let (count, again_at) = stuck_on(fleet, id, resource, target, now.plus(-after));
        stuck.again_at = stuck
            .again_at
            .into_iter()
            .chain(again_at.map(|time| time.plus(after)))
            .min();
        if count > 0 {
            replicas.insert(cluster, count);
            stuck.again_at = stuck.again_at.into_iter().chain([now.plus(RETRY)]).min();
        }
    }
    let target = |(name, replicas): (&str, i32)| TargetCluster {
        name: name.into(),
        replicas,
        components: Vec::new(),
    };
    stuck.replicas = replicas.into_iter().map(target).collect();
    stuck
}

/// The number of replicas on a cluster that have been stuck since this time, and the first time since which others are.
fn stuck_on(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    target: &TargetCluster,
    since: Time,
) -> (i32, Option<Time>) {
    let Some(waiting) = fleet
        .cache
        .usage
        .of(&target.name)
        .and_then(|usage| usage.unscheduled(id))
    else {
        return (0, None);
    };
    let cluster = Str::from(target.name.as_str());
    let ready = resource
        .copies
        .get(&cluster)
        .and_then(|state| ready(state, target.replicas));
    let Some(ready) = ready.filter(|_| is_current(fleet, id, &cluster)) else {
        return (0, None);
    };
    let count = waiting.values().filter(|time| **time <= since).count();
    let next = waiting.values().filter(|time| **time > since).min().copied();
    let most = target.replicas.saturating_sub(ready).max(0);
    (i32::try_from(count).unwrap_or(most).min(most), next)
}

/// The number of ready replicas of a copy that is settled; `None` if it is not, or does not report it.
fn ready(state: &CopyState, replicas: i32) -> Option<i32> {
    let live = state.live.as_ref()?;
    let status = live.status.as_ref()?;
    let number = |field: &str| status[field].as_i64();
    if number("observedGeneration").is_some_and(|seen| Some(seen) < live.meta.generation) {
        return None;
    }
    if number("replicas")? > i64::from(replicas) {
        return None;
    }
    i32::try_from(number("readyReplicas").unwrap_or(0)).ok()
}

/// The clusters from which a new result moves stuck replicas, with the number that goes and the number that stays. A workload that is
/// scaled down moves none. Cost: that of [`stuck`], if the result differs; else O(targets).
pub(crate) fn moved(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    (before, after): (&[TargetCluster], &[TargetCluster]),
    now: Time,
) -> Vec<(Str, i32, i32)> {
    if fleet.config.deschedule_after.is_none() || before == after {
        return Vec::new();
    }
    let of = |targets: &[TargetCluster], cluster: &str| {
        TargetCluster::find(targets, cluster).map_or(0, |target| target.replicas)
    };
    let is_raised = |target: &TargetCluster| target.replicas > of(before, &target.name);
    if !after.iter().any(is_raised) {
        return Vec::new();
    }
    let stuck = stuck(fleet, id, resource, before, now).replicas;
    let moves = stuck.iter().filter_map(|target| {
        let left = of(after, &target.name);
        let goes = of(before, &target.name).saturating_sub(left).min(target.replicas);
        (goes > 0).then(|| (Str::from(target.name.as_str()), goes, left))
    });
    moves.collect()
}

/// The events for stuck replicas that a write moves, on the template and on the binding. Cost: that of [`moved`].
pub(crate) fn events(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, stored): (&ResourceState, &Template, &Binding),
    wanted: &ResourceBindingSpec,
    now: Time,
) -> Vec<Change> {
    let (before, after) = (&stored.object.spec.clusters, &wanted.clusters);
    let moves = moved(fleet, id, resource, (before, after), now);
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
