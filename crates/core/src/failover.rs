//! Failover: a workload is evicted from a cluster where it may not stay, and its dependencies there stay as long as it does.
//!
//! One chain, and each step is stored in the binding before the next one starts, so that any process can continue it after a
//! crash:
//!
//! 1. A NoExecute taint of the Cluster that the placement in force does not tolerate (any longer), or an application that has
//!    been unhealthy for too long: the workload is to be evicted from the cluster.
//! 2. *One* write of the binding removes the cluster from `spec.clusters`, adds the replacement, and adds an eviction task to
//!    `spec.gracefulEvictionTasks`. If no other cluster fits, nothing is written: the copy stays, and the condition
//!    `EvictionBlocked` reports it. A cluster that the placement no longer selects is left all the same.
//! 3. The replacement is delivered, its dependencies first. The old copy stays, with all its dependencies
//!    ([`crate::cache::Binding::needs_on`]).
//! 4. The old copy is deleted when the task permits that (`crate::eviction`): as a rule when all new copies are healthy.
//! 5. The task is dropped when the copy is proven to be gone. Until then it accounts for the copy, and keeps the workload from
//!    being scheduled there.
//!
//! If the cluster recovers before the replacement is healthy, the workload is scheduled to it again, and the replacement is
//! evicted.
//!
//! Source: Karmada reference 4; differences are listed in docs/differences.md.

pub mod budget;
mod companions;
mod data;
pub(crate) mod elsewhere;
pub(crate) mod home;
pub(crate) mod inspected;
mod made;
mod outcomes;
mod quota;
pub(crate) mod records;
pub(crate) mod state;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use entourage_api::{
    keys::reason,
    policy::{FailoverBehavior, Placement},
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};

pub use crate::eviction::tolerance;
use crate::{
    cache::{Member, ResourceState},
    descheduling::stuck,
    eviction::{
        task::{self, Progress},
        tolerance::{Stay, stay},
    },
    fleet::{Fleet, autoscaling::as_scaled},
    memory::room::next_try,
    object::{ResourceId, Str, Time},
    observation::Template,
    scheduler::{Outcome, Scheduled},
    scheduling,
    stored_binding::{eviction_from, is_held_back_from, is_scheduled_by_us, purge},
};
pub use home::LONGEST as LONGEST_FAIL_BACK;
use home::Ways;
use inspected::Asked;
use made::{blocked, new_task, surplus};
pub(crate) use outcomes::clusters_of;
use outcomes::{failed, is_unselected, staying, unselected};
use records::Records;

/// The producers of tasks caused by an unhealthy application, the second for cluster-scoped workloads. Source: Karmada's wire
/// contract.
const APPLICATION_FAILOVER: [&str; 2] = [
    "resource-binding-application-failover-controller",
    "cluster-resource-binding-application-failover-controller",
];

/// The producer of tasks for replacements that are no longer needed.
const RETURN: &str = "Return";

/// The clusters that a template is scheduled to, and its evictions.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The outcome of the scheduler.
    pub(crate) outcome: Outcome,
    /// The eviction tasks that the binding should have.
    pub(crate) tasks: Vec<GracefulEvictionTask>,
    /// The clusters that it should be evicted from and is not, with the reason; empty if there is none.
    pub(crate) blocked: String,
    /// The other records that the binding should store.
    pub(crate) records: Records,
    /// The clusters that it would start to be evicted from now if no budget was in the way, and that count for one. The end of a
    /// replacement because its cluster recovered in time does not count.
    pub(crate) leaves: BTreeSet<Str>,
    /// The clusters whose room is to be estimated before the decision is used; see [`scheduling::schedule`].
    pub(crate) unestimated: BTreeSet<Str>,
    /// The clusters whose room is to be estimated before a further move is decided, which this decision is without.
    pub(crate) tried: BTreeSet<Str>,
    /// The clusters that the outcome takes as present, and those that it is kept from.
    pub(crate) asked: Asked,
    /// The time to decide again although nothing was observed.
    pub(crate) again_at: Option<Time>,
}

/// The cause of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// A taint that is not tolerated, or no longer.
    Taint(String),
    /// The application was unhealthy for so many seconds.
    Application(i32),
}

/// The eviction decision about a cluster.
enum Leave {
    No,
    At(Time),
    Now(Cause),
}

/// Schedules a template by its placement, evictions included; `None` if this control plane does not schedule it. `held` is the
/// stored binding. The result is written at once: a second decision on that gives the same result.
///
/// Cost: that of [`crate::scheduler::schedule`], up to six times while a workload is to be evicted and no other cluster fits,
/// and up to three times more for each home cluster it may fail back to; twice that while an eviction waits for its slot.
pub(crate) fn decide(
    fleet: &Fleet,
    id: &ResourceId,
    of: (&ResourceState, &Template),
    behaviour: (&Placement, Option<&FailoverBehavior>),
    held: &ResourceBinding,
    now: Time,
) -> Option<Decision> {
    let scaled = as_scaled(fleet, id, of, behaviour.0, held, Some(now));
    let (of, held) = match &scaled {
        Some((template, held)) => ((of.0, template), held),
        None => (of, held),
    };
    let decide = |turn: TurnOf<'_>| {
        let decision = decide_by(fleet, id, of, behaviour, held, (turn, now))?;
        Some(quota::limited(
            fleet,
            (id, of.1),
            (behaviour.0, held),
            decision,
            now,
        ))
    };
    let free = decide(&|_| Turn::Now)?;
    let turn = |cluster: &str| match fleet.memory.evictions.slot(id, cluster) {
        _ if !free.leaves.contains(cluster) => Turn::Now,
        Some(slot) if slot <= now => Turn::Now,
        slot => Turn::Later(slot),
    };
    let is_limited = !fleet.config.eviction_budget.is_unlimited();
    if !is_limited || free.leaves.iter().all(|cluster| turn(cluster) == Turn::Now) {
        return Some(free);
    }
    let limited = decide(&turn)?;
    Some(Decision {
        leaves: free.leaves,
        blocked: free.blocked,
        ..limited
    })
}

/// The time at which an eviction may start, by the eviction budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Now,
    /// The time is unknown before a slot is taken.
    Later(Option<Time>),
}

type TurnOf<'a> = &'a dyn Fn(&str) -> Turn;

/// The clusters whose evictions may start later.
type Later<'a> = BTreeMap<&'a String, Option<Time>>;

/// As [`decide`]; `turn` returns when an eviction from a cluster may start.
fn decide_by(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    held: &ResourceBinding,
    (turn, now): (TurnOf<'_>, Time),
) -> Option<Decision> {
    let spec = &held.spec;
    if !is_scheduled_by_us(spec) {
        return None;
    }
    // A workload is not scheduled to a new cluster whose taint it no longer tolerates: it would be evicted at once.
    let is_over = |name: &Str, member: &Member| {
        matches!(
            stay(&member.object, &placement.cluster_tolerations),
            Stay::Until(time, _) if time <= now
        ) && TargetCluster::find(&spec.clusters, name).is_none()
    };
    let members = fleet.cache.members.iter();
    let over: Vec<Str> = members
        .filter(|(name, member)| is_over(name, member))
        .map(|(name, _)| name.clone())
        .collect();
    let (mut open, mut back) = (Vec::new(), Vec::new());
    let failed = failed(held, placement, now);
    let (companions, others_leave) = companions::companions(fleet, id, template, placement, now);
    for stored in &spec.graceful_eviction_tasks {
        match task::progress(fleet, id, resource, held, stored, placement) {
            Progress::Over => {}
            // The scheduler takes a recovered cluster as one that is scheduled, which the workload groups do not keep from it.
            Progress::Recovered if companions.permit(&stored.from_cluster) => back.push(stored),
            Progress::Recovered | Progress::Open => open.push(task::dated(stored, now)),
        }
    }
    let Ways {
        open: mut homes,
        mut closed,
        mut again_at,
    } = home::ways(fleet, id, held, placement, now);
    again_at = again_at.into_iter().chain(others_leave).min();
    let is_open = |task: &GracefulEvictionTask| companions.permit(&task.from_cluster);
    let shut = homes.extract_if(.., |task| !is_open(task));
    closed.extend(shut.map(|task| Str::from(task.from_cluster.as_str())));
    // Clusters with a later slot are kept until then, for evictions and for fail-back.
    let later = spec
        .clusters
        .iter()
        .filter_map(|target| match turn(&target.name) {
            Turn::Now => None,
            Turn::Later(time) => Some((&target.name, time)),
        });
    let later: Later<'_> = later.collect();
    if !later.is_empty() {
        again_at = later.values().flatten().copied().chain(again_at).min();
        closed.extend(homes.drain(..).map(|task| Str::from(task.from_cluster.as_str())));
    }
    let stuck = stuck(fleet, id, resource, spec, now);
    again_at = again_at.into_iter().chain(stuck.again_at).min();
    let by_room = scheduling::by_room(fleet, id, template, placement, held, now);
    let tried: RefCell<BTreeSet<Str>> = RefCell::default();
    let choose = |current: &[TargetCluster], evicted: &[Str]| {
        let choose_with = |stuck: &[TargetCluster]| {
            let others = (current, evicted, &companions, stuck, by_room.as_ref());
            scheduling::schedule(fleet, id, template, placement, held, others, now)
        };
        let moved = choose_with(&stuck.replicas);
        if stuck.replicas.is_empty() || moved.unestimated.is_empty() {
            return moved;
        }
        // The move of stuck replicas waits for estimates, and nothing else waits for it.
        let standing = choose_with(&[]);
        let stands = matches!(standing.outcome, Outcome::Placed { .. }) && standing.unestimated.is_empty();
        if !stands {
            return moved;
        }
        tried.borrow_mut().extend(moved.unestimated);
        standing
    };
    let schedule =
        |current: &[TargetCluster], tasks: &[GracefulEvictionTask], due: &[(&TargetCluster, Cause)]| {
            let (surplus, left): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| task.producer == RETURN);
            let names = |tasks: Vec<&GracefulEvictionTask>| -> Vec<Str> {
                let names = tasks.into_iter().map(|task| task.from_cluster.as_str().into());
                names.collect()
            };
            let mut evicted = names(left);
            evicted.extend(due.iter().map(|(target, _)| Str::from(target.name.as_str())));
            evicted.extend(over.iter().cloned());
            let without_failed = evicted.len();
            let stays = |cluster: &&Str| TargetCluster::find(current, cluster).is_none();
            evicted.extend(failed.iter().chain(&closed).filter(stays).cloned());
            let without_surplus = evicted.len();
            evicted.extend(names(surplus));
            let mut scheduled = choose(current, &evicted);
            // A cluster where it is no longer needed, or where it failed once, is better than none.
            for count in [without_surplus, without_failed] {
                if matches!(scheduled.outcome, Outcome::Failed { .. }) && count < evicted.len() {
                    evicted.truncate(count);
                    scheduled = choose(current, &evicted);
                }
            }
            (scheduled, evicted)
        };
    let mut due = Vec::new();
    for target in &spec.clusters {
        match leave(fleet, resource, &target.name, (placement, failover), now) {
            Leave::No => {}
            Leave::At(time) => again_at = again_at.into_iter().chain([time]).min(),
            Leave::Now(cause) => due.push((target, cause)),
        }
    }
    let is_due = |due: &[(&TargetCluster, Cause)], name: &str| due.iter().any(|(each, _)| each.name == *name);
    due.retain(|(target, _)| !later.contains_key(&target.name));
    let decision = |(scheduled, asked): (Scheduled, Asked),
                    mut tasks: Vec<GracefulEvictionTask>,
                    leaves,
                    blocked,
                    again_at| {
        let Scheduled { outcome, unestimated } = scheduled;
        let chosen = &clusters_of(&outcome, &spec.clusters);
        let is_chosen = |cluster: &str| TargetCluster::find(chosen, cluster).is_some();
        tasks.retain(|task| task.producer != RETURN || !is_chosen(&task.from_cluster));
        if chosen.is_empty() {
            // No replacement is to come.
            tasks.retain(|task| {
                !is_unselected(&outcome, &task.from_cluster) || task::is_to_be_confirmed(task)
            });
        }
        // A cluster that is scheduled again in the meantime is as new as any other: it waits for the purge.
        let comes = |name: &String| is_chosen(name) && TargetCluster::find(&spec.clusters, name).is_none();
        for task in tasks.iter_mut().filter(|task| purge::is_direct(task)) {
            task.clusters_before_failover.retain(|name| !comes(name));
        }
        let application = tasks
            .iter()
            .filter(|task| task.reason == reason::APPLICATION_FAILURE);
        let now_failed = application
            .filter(|task| eviction_from(spec, &task.from_cluster).is_none())
            .map(|task| Str::from(task.from_cluster.as_str()));
        let all: BTreeSet<Str> = failed.iter().cloned().chain(now_failed).collect();
        let failed = all.into_iter().filter(|cluster| !is_chosen(cluster)).collect();
        let lists = (failed, unselected(held, &outcome));
        let records = Records::of(fleet, (held, placement), lists, (&tasks, chosen), now);
        Some(Decision {
            outcome,
            tasks,
            blocked,
            records,
            leaves,
            unestimated,
            tried: tried.take(),
            asked,
            again_at,
        })
    };
    let stored = |(scheduled, evicted)| {
        let current = None;
        (scheduled, Asked { current, evicted })
    };
    homes.retain(|task| !failed.contains(task.from_cluster.as_str()));
    // No eviction for a home cluster that the workload is not scheduled to, and none before its room is known: until then the result
    // stands, and nothing waits.
    let comes_to = |homes: &[GracefulEvictionTask]| {
        let returning: Vec<&GracefulEvictionTask> = back.iter().copied().chain(homes).collect();
        let (scheduled, _) = schedule(&staying(&spec.clusters, &due, &returning), &open, &due);
        let Outcome::Placed { clusters, .. } = scheduled.outcome else {
            return false;
        };
        let is_reached =
            |task: &GracefulEvictionTask| TargetCluster::find(&clusters, &task.from_cluster).is_some();
        if !homes.iter().all(is_reached) {
            return false;
        }
        let is_known = scheduled.unestimated.is_empty();
        tried.borrow_mut().extend(scheduled.unestimated);
        is_known
    };
    homes.retain(|task| comes_to(std::slice::from_ref(task)));
    if homes.len() > 1 && !comes_to(&homes) {
        homes.truncate(1);
    }
    if due.is_empty() && back.is_empty() && homes.is_empty() {
        return decision(
            stored(schedule(&spec.clusters, &open, &[])),
            open,
            BTreeSet::new(),
            String::new(),
            again_at,
        );
    }
    let returning: Vec<&GracefulEvictionTask> = back.iter().copied().chain(&homes).collect();
    let current = staying(&spec.clusters, &due, &returning);
    let (scheduled, evicted) = schedule(&current, &open, &due);
    match scheduled.outcome {
        Outcome::Placed {
            clusters,
            affinity,
            note,
        } => {
            let has = |name: &str| TargetCluster::find(&clusters, name).is_some();
            let mut tasks = open;
            // Clusters that could not be scheduled again are still being evicted.
            let stays = back.iter().filter(|task| !has(&task.from_cluster));
            tasks.extend(stays.map(|task| (*task).clone()));
            let before: Vec<&str> = spec.clusters.iter().map(|target| target.name.as_str()).collect();
            let name = |target: &TargetCluster| Str::from(target.name.as_str());
            let mut left: BTreeSet<Str> = due.iter().map(|(target, _)| name(target)).collect();
            if let Some(returned) = returning.iter().find(|task| has(&task.from_cluster)) {
                let is_surplus = |target: &&TargetCluster| {
                    !is_due(&due, &target.name)
                        && !has(&target.name)
                        && fleet.may_stand(id, &target.name.as_str().into())
                };
                let all: Vec<&TargetCluster> = spec.clusters.iter().filter(is_surplus).collect();
                if homes.iter().any(|task| has(&task.from_cluster)) {
                    left.extend(all.iter().map(|target| name(target)));
                }
                let tasks_of_all = all
                    .into_iter()
                    .map(|target| surplus(target, &returned.from_cluster, now));
                tasks.extend(tasks_of_all);
            }
            for (target, cause) in due {
                tasks.push(new_task(id, target, &cause, (failover, held), &before, now));
            }
            let scheduled = Scheduled {
                outcome: Outcome::Placed {
                    clusters,
                    affinity,
                    note,
                },
                ..scheduled
            };
            let current = Some(current);
            let asked = Asked { current, evicted };
            decision((scheduled, asked), tasks, left, String::new(), again_at)
        }
        Outcome::Failed {
            reason: failure,
            message,
            ..
        } => {
            let mut tasks = open;
            tasks.extend(back.into_iter().cloned());
            let scheduled = stored(schedule(&spec.clusters, &tasks, &[]));
            due.retain(|(target, _)| !is_unselected(&scheduled.0.outcome, &target.name));
            let why = format!("because no replacement can be scheduled: {message}");
            let blocked = blocked(&due, &why);
            // What stays placed is not among those that wait for room: it is tried again at the same times.
            let waits_for_room = fleet.config.multiple_pod_templates
                && by_room.is_some()
                && failure == reason::UNSCHEDULABLE
                && !due.is_empty();
            let retry = waits_for_room.then(|| next_try(now));
            let again_at = again_at.into_iter().chain(retry).min();
            decision(scheduled, tasks, BTreeSet::new(), blocked, again_at)
        }
    }
}

/// The decision if and when a workload has to leave a cluster. Cost: O(taints).
fn leave(
    fleet: &Fleet,
    resource: &ResourceState,
    cluster: &str,
    (placement, failover): (&Placement, Option<&FailoverBehavior>),
    now: Time,
) -> Leave {
    let Some(member) = fleet.cache.members.get(cluster) else {
        return Leave::No;
    };
    // While delivery is suspended nothing changes, and a Cluster that is being deleted waits for its copies.
    let is_held = resource
        .binding
        .as_ref()
        .is_some_and(|binding| is_held_back_from(&binding.object.spec, cluster));
    if !fleet.config.failover || is_held || member.meta.deleting.is_some() {
        return Leave::No;
    }
    let until = match stay(&member.object, &placement.cluster_tolerations) {
        Stay::Ends(taint) => return Leave::Now(Cause::Taint(taint)),
        Stay::Until(time, taint) if time <= now => return Leave::Now(Cause::Taint(taint)),
        Stay::Until(time, _) => Some(time),
        Stay::Unlimited => None,
    };
    let seconds = failover
        .and_then(|failover| failover.application.as_ref())
        .map(|application| application.decision_conditions.toleration_seconds);
    let since = resource
        .copies
        .get(cluster)
        .and_then(|state| state.unhealthy_since)
        .filter(|_| fleet.answers(cluster));
    let failing = seconds.zip(since).map(|(seconds, since)| {
        let ends = since.plus(i64::from(seconds.max(0)) * 1_000);
        (ends, seconds)
    });
    match failing {
        Some((ends, seconds)) if ends <= now => Leave::Now(Cause::Application(seconds)),
        _ => {
            let all = until.into_iter().chain(failing.map(|(ends, _)| ends));
            all.min().map_or(Leave::No, Leave::At)
        }
    }
}
