//! The division of replicas by the room of the clusters: `Aggregated`, and `dynamicWeight: AvailableReplicas`.
//!
//! Replicas that are placed stay. More replicas are divided by the room that is left, fewer by what each cluster has; only a
//! fresh result is computed from all room. `Aggregated` takes as few clusters as have the room: those with replicas first, then
//! the roomiest. Source: Karmada reference 1.3 (Assign).
//!
//! Where the group has overflow groups, each takes only the replicas for which those before it have no room, and the last one
//! loses replicas first. Replicas that overflowed do not return by themselves while their number stays. Source: Karmada 1.18.
//!
//! The room of a cluster is what its report leaves, and no more than its estimator says, where it is asked.
//!
//! Replicas of a standing result that are stuck on their cluster move to others, as many as these have room for. Source: Karmada's
//! descheduler.

mod seats;

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeSet,
};

use entourage_api::{
    keys::reason,
    policy::{DivisionPreference, Placement, ReplicaSchedulingType},
    work::TargetCluster,
};
use entourage_model::object::Str;

use crate::{
    affinity,
    estimate::Capacity,
    filter::objection,
    request::{Candidate, Request, Round},
    spread::{self, Ranked},
};

/// The preference of a division by room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    /// Among as few clusters as possible.
    Aggregated,
    /// In proportion to the room.
    Available,
}

/// The preference of a placement; `None` if it does not divide by room.
pub(super) fn preference(placement: &Placement) -> Option<Preference> {
    let strategy = placement.replica_scheduling.as_ref()?;
    if placement.replica_scheduling_type() != ReplicaSchedulingType::Divided {
        return None;
    }
    if strategy.replica_division_preference == Some(DivisionPreference::Aggregated) {
        return Some(Preference::Aggregated);
    }
    let weights = strategy.weight_preference.as_ref()?;
    weights.dynamic_weight.as_ref().map(|_| Preference::Available)
}

/// True if the placement divides replicas by the room of the clusters.
#[must_use]
pub fn is_by_room(placement: &Placement) -> bool {
    preference(placement).is_some()
}

/// The shares of the clusters that fit, sorted by name; clusters without replicas are left out.
///
/// # Errors
/// The reason of the condition `Scheduled` and the cause: the clusters have too little room, or the placement's constraints cannot
/// be met.
///
/// Cost: O(clusters × resources) for the estimates, O(clusters × log clusters) for the shares, times O(overflow groups), and that
/// of [`spread::choose`].
pub(super) fn divide(
    round: &Round<'_>,
    fitting: &[&Candidate<'_>],
    replicas: i32,
    preference: Preference,
) -> Result<Vec<TargetCluster>, (&'static str, String)> {
    divided(round, fitting, replicas, preference).or_else(|failure| {
        // A cluster where replicas are stuck is better than none.
        if round.request.stuck.is_empty() {
            return Err(failure);
        }
        let mut round = round.clone();
        round.request.stuck = &[];
        divided(&round, fitting, replicas, preference)
    })
}

/// A result that stands, without the stuck replicas that other clusters have room for; `None` if there are none. Only what is stuck
/// moves, and only to clusters that would be chosen anew: a present target also fits while it is tainted, not ready or being deleted.
/// Cost: O(clusters × entries of the placement), and that of [`divide`]; O(1) without stuck replicas.
pub(super) fn relieve(
    round: &Round<'_>,
    fitting: &[&Candidate<'_>],
    replicas: i32,
    preference: Preference,
) -> Option<Vec<TargetCluster>> {
    let request = &round.request;
    if !request.stuck.iter().any(|target| target.replicas > 0) {
        return None;
    }
    let mut anew = round.clone();
    anew.request.current = &[];
    let mut stuck = request.stuck.to_vec();
    for candidate in fitting {
        let is_listed = TargetCluster::find(request.stuck, candidate.name).is_some();
        if request.is_current(candidate.name) && !is_listed && objection(&anew, candidate).is_some() {
            stuck.push(TargetCluster {
                name: candidate.name.into(),
                ..TargetCluster::default()
            });
        }
    }
    stuck.sort();
    let mut relieved = round.clone();
    relieved.request.stuck = &stuck;
    let current = lightened(&relieved.request, fitting, i64::from(replicas));
    if current == request.current {
        return None;
    }
    relieved.request.current = &current;
    let shares = divided(&relieved, fitting, replicas, preference).ok()?;
    let keeps = |target: &TargetCluster| {
        of(&shares, &target.name) >= i64::from(target.replicas) - of(&stuck, &target.name)
    };
    request.current.iter().all(keeps).then_some(shares)
}

/// The present targets without the replicas that are stuck and that other clusters have room for. Cost: O(clusters × log).
fn lightened(request: &Request<'_>, fitting: &[&Candidate<'_>], wanted: i64) -> Vec<TargetCluster> {
    let mut lightened: Vec<TargetCluster> = request.current.to_vec();
    for target in &mut lightened {
        let stuck = of(request.stuck, &target.name);
        let stays = i64::from(target.replicas).saturating_sub(stuck).max(0);
        target.replicas = i32::try_from(stays).unwrap_or(target.replicas);
    }
    let room = fitting.iter().fold(0_i64, |sum, each| {
        let held = of(&lightened, each.name);
        sum.saturating_add(held.saturating_add(left(request, each.name, held)))
    });
    let mut lacking = wanted.saturating_sub(room).max(0);
    for (target, before) in lightened.iter_mut().zip(request.current) {
        let back = i64::from(before.replicas.saturating_sub(target.replicas)).min(lacking);
        target.replicas = i32::try_from(i64::from(target.replicas) + back).unwrap_or(before.replicas);
        lacking -= back;
    }
    lightened
}

/// As [`divide`]; the clusters where replicas are stuck get no further ones.
fn divided(
    round: &Round<'_>,
    fitting: &[&Candidate<'_>],
    replicas: i32,
    preference: Preference,
) -> Result<Vec<TargetCluster>, (&'static str, String)> {
    let request = &round.request;
    let wanted = i64::from(replicas);
    let mut unresponsive = 0;
    let mut holders: Vec<Ranked<'_>> = Vec::with_capacity(fitting.len());
    for candidate in fitting {
        let held = held(request, candidate.name);
        let left = left(request, candidate.name, held);
        unresponsive += usize::from(capacity(request, candidate.name).is_none());
        let weight = held.saturating_add(left);
        if weight > 0 {
            holders.push(Ranked {
                candidate,
                current: held > 0,
                tier: affinity::tier(round, candidate).unwrap_or(0),
                weight,
            });
        }
    }
    enough(request, &holders, wanted, unresponsive)?;
    let constraints = &request.placement.spread_constraints;
    if !constraints.is_empty() {
        let all = holders;
        holders = spread::choose(constraints, all.clone()).map_err(|why| (reason::SCHEDULER_ERROR, why))?;
        if enough(request, &holders, wanted, unresponsive).is_err() {
            holders = match exchanged(request, &all, &holders, wanted) {
                Some(holders) => holders,
                None => roomiest(round, all)?,
            };
        }
        enough(request, &holders, wanted, unresponsive)?;
    }
    let steady = attempt(request, &holders, wanted, preference, |name| held(request, name));
    let shares = match steady {
        // The placed replicas do not meet the constraints, however many are added: the workload moves.
        Err(_) => attempt(request, &holders, wanted, preference, |_| 0),
        shares => shares,
    };
    let shares = shares.map_err(|why| (reason::SCHEDULER_ERROR, why))?;
    let mut targets: Vec<TargetCluster> = holders
        .iter()
        .zip(shares)
        .filter(|(_, share)| *share > 0)
        .map(|(each, share)| TargetCluster {
            name: each.candidate.name.into(),
            replicas: i32::try_from(share).unwrap_or(replicas),
            components: Vec::new(),
        })
        .collect();
    targets.sort();
    Ok(targets)
}

/// The chosen clusters, of which those of the last tiers are replaced by roomier ones until there is room for all replicas. Present
/// targets stay; `None` if it does not suffice, or if the constraints do not hold then. Cost: O(chosen × (clusters + that of
/// [`spread::choose`])).
fn exchanged<'a>(
    request: &Request<'_>,
    all: &[Ranked<'a>],
    chosen: &[Ranked<'a>],
    wanted: i64,
) -> Option<Vec<Ranked<'a>>> {
    let constraints = &request.placement.spread_constraints;
    let is_met = |chosen: &[Ranked<'a>]| {
        spread::choose(constraints, chosen.to_vec()).is_ok_and(|again| again.len() == chosen.len())
    };
    let mut chosen = chosen.to_vec();
    chosen.sort_by_key(|each| (Reverse(each.tier), each.weight, Reverse(each.candidate.name)));
    for place in (0..chosen.len())
        .filter(|place| !chosen[*place].current)
        .collect::<Vec<_>>()
    {
        let held = chosen[place];
        let mut others: Vec<&Ranked<'a>> = all
            .iter()
            .filter(|each| each.weight > held.weight)
            .filter(|each| !chosen.iter().any(|one| one.candidate.name == each.candidate.name))
            .collect();
        others.sort_by_key(|each| (Reverse(each.weight), each.tier, each.candidate.name));
        for other in others {
            chosen[place] = *other;
            if is_met(&chosen) {
                break;
            }
            chosen[place] = held;
        }
        if enough(request, &chosen, wanted, 0).is_ok() {
            return spread::choose(constraints, chosen).ok();
        }
    }
    None
}

/// The clusters that the constraints select whatever their tier: those of the first tiers have too little room.
fn roomiest<'a>(
    round: &Round<'_>,
    mut all: Vec<Ranked<'a>>,
) -> Result<Vec<Ranked<'a>>, (&'static str, String)> {
    let constraints = &round.request.placement.spread_constraints;
    all.iter_mut().for_each(|each| each.tier = 0);
    let mut chosen = spread::choose(constraints, all).map_err(|why| (reason::SCHEDULER_ERROR, why))?;
    for each in &mut chosen {
        each.tier = affinity::tier(round, each.candidate).unwrap_or(0);
    }
    Ok(chosen)
}

/// The replicas that a cluster has by the present result.
fn held(request: &Request<'_>, cluster: &str) -> i64 {
    of(request.current, cluster)
}

fn of(targets: &[TargetCluster], cluster: &str) -> i64 {
    TargetCluster::find(targets, cluster).map_or(0, |target| i64::from(target.units().max(0)))
}

/// The capacity that a cluster reports, if it does.
pub(super) fn capacity<'a>(request: &Request<'a>, cluster: &str) -> Option<&'a Capacity> {
    request.room.as_ref()?.capacities.get(cluster)
}

/// The number of replicas, or sets, beyond the `held` ones that a cluster has room for. One that reports no capacity has room for those
/// that are there, one where replicas are stuck for none.
pub(super) fn left(request: &Request<'_>, cluster: &str, held: i64) -> i64 {
    let Some(room) = &request.room else { return 0 };
    if TargetCluster::find(request.stuck, cluster).is_some() {
        return 0;
    }
    let by_report = free(request, cluster).saturating_add(of(room.accounted, cluster));
    let estimate = room.estimates.and_then(|estimates| estimates.of(cluster));
    let all = estimate.map_or(by_report, |estimate| by_report.min(estimate.all(room.demand)));
    all.saturating_sub(held).max(0)
}

/// The number of replicas, or sets, that a cluster has room for beyond those of the present result.
pub(super) fn further(request: &Request<'_>, cluster: &str) -> i64 {
    left(request, cluster, held(request, cluster))
}

/// The number of replicas that a cluster has room for by its report, besides those that the report contains. One that reports no
/// capacity has none.
fn free(request: &Request<'_>, cluster: &str) -> i64 {
    let (Some(room), Some(capacity)) = (&request.room, capacity(request, cluster)) else {
        return 0;
    };
    capacity.replicas(room.demand, of(room.reserved, cluster))
}

/// The clusters whose estimators are to be asked before this result is used: those that fit, that have room by their reports, and
/// that were not asked. None if no cluster gets more replicas than it has: then room did not matter. Less room never makes replicas
/// fit, so nothing is to be asked for a group of clusters that has too little of it by reports alone. Cost: O(clusters × resources).
pub(super) fn unestimated(
    round: &Round<'_>,
    fitting: &[&Candidate<'_>],
    result: &[TargetCluster],
) -> BTreeSet<Str> {
    let request = &round.request;
    let Some(estimates) = request.room.as_ref().and_then(|room| room.estimates) else {
        return BTreeSet::new();
    };
    let is_set = !request.components.is_empty();
    // A present set stays whatever the room, also where the present target does not name its components.
    let grows = |target: &TargetCluster| {
        let more = i64::from(target.units()) > held(request, &target.name);
        more && !(is_set && request.is_current(&target.name))
    };
    let pods = request.room.map_or(0, |room| room.demand.pods());
    let is_for_room = if is_set {
        pods > 0
    } else {
        is_by_room(request.placement)
    };
    if !is_for_room || !result.iter().any(grows) {
        return BTreeSet::new();
    }
    let is_asked = |candidate: &&&Candidate<'_>| {
        estimates.lacks(candidate)
            && TargetCluster::find(request.stuck, candidate.name).is_none()
            && free(request, candidate.name) > 0
    };
    let asked = fitting.iter().filter(is_asked);
    asked.map(|candidate| candidate.name.into()).collect()
}

/// Succeeds if the clusters have room for all replicas.
fn enough(
    request: &Request<'_>,
    holders: &[Ranked<'_>],
    wanted: i64,
    unresponsive: usize,
) -> Result<(), (&'static str, String)> {
    let (mut placed, mut left) = (0_i64, 0_i64);
    for each in holders {
        let held = held(request, each.candidate.name);
        placed = placed.saturating_add(held);
        left = left.saturating_add(each.weight.saturating_sub(held));
    }
    let needed = wanted - placed;
    if left >= needed {
        return Ok(());
    }
    let more = if placed > 0 { " more" } else { "" };
    let unknown = match unresponsive {
        0 => String::new(),
        _ => format!("; {unresponsive} that fit report no status.resourceSummary and count as full"),
    };
    Err((
        reason::UNSCHEDULABLE,
        format!(
            "Clusters available replicas {left} are not enough to schedule. {needed}{more} are needed: scale down, add nodes, or \
             let more clusters fit{unknown}"
        ),
    ))
}

/// The shares of the holders, in their order. `stays` is the number of replicas of a cluster that are placed and stay while there
/// are not too many.
///
/// # Errors
/// The constraint that cannot hold, and the remedy.
fn attempt(
    request: &Request<'_>,
    holders: &[Ranked<'_>],
    wanted: i64,
    preference: Preference,
    stays: impl Fn(&str) -> i64,
) -> Result<Vec<i64>, String> {
    let mut base: Vec<i64> = holders.iter().map(|each| stays(each.candidate.name)).collect();
    let placed: i64 = base.iter().sum();
    let (seats, room): (i64, Vec<i64>) = match placed.cmp(&wanted) {
        Ordering::Greater => (wanted, std::mem::replace(&mut base, vec![0; holders.len()])),
        Ordering::Less | Ordering::Equal => {
            let left = holders.iter().zip(&base).map(|(each, held)| each.weight - held);
            (wanted - placed, left.collect())
        }
    };
    let mut shares = seats::by_tier(request.uid, holders, (&base, &room), seats, preference);
    let sum = |shares: &[i64]| -> Vec<i64> {
        shares
            .iter()
            .zip(&base)
            .map(|(share, held)| share + held)
            .collect()
    };
    let constraints = &request.placement.spread_constraints;
    if constraints.is_empty() {
        return Ok(sum(&shares));
    }
    let reserved = spread::reserved(constraints, holders, &sum(&shares), wanted)?;
    let lacks = |place: usize, shares: &[i64]| reserved[place] && base[place] + shares[place] == 0;
    for place in 0..holders.len() {
        if !lacks(place, &shares) {
            continue;
        }
        let gives = |other: &usize| shares[*other] > i64::from(reserved[*other] && base[*other] == 0);
        let Some(most) = (0..holders.len())
            .filter(gives)
            .max_by_key(|other| (shares[*other], Reverse(*other)))
        else {
            return Err(format!(
                "placement.spreadConstraints asks for more clusters, each with a replica, than the {seats} replicas that are to be \
                 placed: scale up, or set spec.rescheduleTriggeredAt"
            ));
        };
        shares[most] -= 1;
        shares[place] += 1;
    }
    Ok(sum(&shares))
}

#[cfg(test)]
mod estimators;
#[cfg(test)]
mod overflow;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod stuck;
#[cfg(test)]
mod tests;
