//! The step from the clusters that fit to the scheduling result, with the replicas of each.

use entourage_api::{
    keys::reason,
    policy::{Placement, ReplicaSchedulingType},
    work::TargetCluster,
};

use crate::{
    affinity, divide,
    explain::FilterResult,
    request::{Candidate, Request, Round},
    room, set, spread,
};

/// The reason why a group of clusters is not used.
pub(super) struct ScheduleError {
    /// The reason for the condition `Scheduled`.
    pub(super) reason: &'static str,
    /// The remedy, if the message of the filters does not contain it.
    pub(super) why: Option<String>,
}

/// Selects among the clusters that fit and assigns replicas to each; sorted by name.
///
/// While replicas are divided, a result of the same placement for the same number of replicas is kept: a cluster that joins
/// moves no pods. Every other result is computed anew each time, with the present targets first.
///
/// # Errors
/// No cluster fits, or the placement's constraints cannot be met.
pub(super) fn assign(
    round: &Round<'_>,
    survey: &FilterResult<'_>,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    if survey.fitting.is_empty() {
        return Err(ScheduleError {
            reason: reason::NO_CLUSTER_FIT,
            why: None,
        });
    }
    let request = &round.request;
    if set::is_set(request.placement, request.replicas, request.components) {
        return set::assign(round, &survey.fitting).map_err(|(reason, why)| ScheduleError {
            reason,
            why: Some(why),
        });
    }
    let by_room = |replicas| Some((replicas, room::preference(request.placement)?));
    if let Some((replicas, preference)) = request.replicas.and_then(by_room)
        && replicas > 0
    {
        return divided_by_room(round, survey, replicas, preference);
    }
    match request.replicas {
        Some(replicas) if is_divided(request.placement) => divided(round, survey, replicas),
        replicas => everywhere(round, survey, replicas.unwrap_or(0)),
    }
    .map_err(|why| ScheduleError {
        reason: reason::SCHEDULER_ERROR,
        why: Some(why),
    })
}

/// True if replicas are divided among clusters.
pub(super) fn is_divided(placement: &Placement) -> bool {
    placement.replica_scheduling_type() == ReplicaSchedulingType::Divided
}

/// All replicas on each selected cluster; 0 for a kind without replicas.
fn everywhere(
    round: &Round<'_>,
    survey: &FilterResult<'_>,
    replicas: i32,
) -> Result<Vec<TargetCluster>, String> {
    let weightless = survey.fitting.iter().map(|candidate| ranked(round, candidate, 0));
    let chosen = chosen(&round.request, weightless.collect(), 0)?;
    Ok(targets(chosen.iter().map(|each| (each, replicas))))
}

fn ranked<'a>(round: &Round<'_>, candidate: &'a Candidate<'a>, weight: i64) -> spread::Ranked<'a> {
    spread::Ranked {
        candidate,
        current: round.request.is_current(candidate.name),
        tier: affinity::tier(round, candidate).unwrap_or(0),
        weight,
    }
}

/// By the room of the clusters, if the present result does not stand. If it does, only stuck replicas move.
fn divided_by_room(
    round: &Round<'_>,
    survey: &FilterResult<'_>,
    replicas: i32,
    preference: room::Preference,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    let request = &round.request;
    if stands(request, survey, replicas) {
        let relieved = room::relieve(round, &survey.fitting, replicas, preference);
        return Ok(relieved.unwrap_or_else(|| held(request)));
    }
    let divided = room::divide(round, &survey.fitting, replicas, preference);
    divided.map_err(|(reason, why)| ScheduleError {
        reason,
        why: Some(why),
    })
}

fn divided(
    round: &Round<'_>,
    survey: &FilterResult<'_>,
    replicas: i32,
) -> Result<Vec<TargetCluster>, String> {
    let request = &round.request;
    if stands(request, survey, replicas) {
        return Ok(held(request));
    }
    if replicas <= 0 {
        return asleep(round, survey);
    }
    let holders = weighed(round, survey)?;
    let weights: Vec<(&str, i64)> = holders
        .iter()
        .map(|each| (each.candidate.name, each.weight))
        .collect();
    let least = match request.followed {
        true => i64::try_from(holders.len()).unwrap_or(i64::MAX),
        false => 0,
    };
    let seats = i64::from(replicas).max(least);
    let reserved = if request.followed {
        vec![true; holders.len()]
    } else {
        let free = divide::apportion(seats, &weights, request.uid);
        spread::reserved(&request.placement.spread_constraints, &holders, &free, seats)?
    };
    let shares = divide::apportion_reserving(seats, &weights, &reserved, request.uid);
    let held = holders.iter().zip(shares).filter(|(_, share)| *share > 0);
    Ok(targets(held.map(|(each, share)| {
        (each, i32::try_from(share).unwrap_or(replicas))
    })))
}

/// The present result, sorted by name.
fn held(request: &Request<'_>) -> Vec<TargetCluster> {
    let mut held = request.current.to_vec();
    held.sort();
    held
}

/// The clusters that replicas are divided among. A cluster with weight 0 gets no replicas, so it is left out before the spread
/// constraints select.
fn weighed<'a>(round: &Round<'_>, survey: &FilterResult<'a>) -> Result<Vec<spread::Ranked<'a>>, String> {
    let request = &round.request;
    let all = survey.fitting.iter().map(|candidate| {
        let weight = match room::preference(request.placement) {
            None => divide::weight(request.placement, candidate),
            Some(_) => 0,
        };
        self::ranked(round, candidate, weight)
    });
    let mut ranked: Vec<spread::Ranked<'_>> = all.collect();
    let fitting = ranked.len();
    if ranked.iter().any(|each| each.weight > 0) {
        ranked.retain(|each| each.weight > 0);
    }
    let weightless = fitting - ranked.len();
    chosen(request, ranked, weightless)
}

/// The clusters that the spread constraints select; all without constraints.
fn chosen<'a>(
    request: &Request<'_>,
    ranked: Vec<spread::Ranked<'a>>,
    weightless: usize,
) -> Result<Vec<spread::Ranked<'a>>, String> {
    let constraints = &request.placement.spread_constraints;
    if constraints.is_empty() {
        return Ok(ranked);
    }
    spread::choose(constraints, ranked).map_err(|why| match weightless {
        0 => why,
        _ => format!("{why} ({weightless} that fit have no weight in staticWeightList)"),
    })
}

/// The result for 0 replicas: the copies stay on their clusters without replicas, like an object on a single cluster. A binding
/// that is not scheduled yet gets the clusters that its replicas will be divided among. Overflow groups have nothing to take:
/// unless constraints spread the copies, only the clusters of the first group that has any are among them.
///
/// Where members decide, a workload sleeps although it is requested, and each of them may wake it: it stays on all present clusters,
/// and has a copy on those that its replicas would be divided among otherwise.
fn asleep(round: &Round<'_>, survey: &FilterResult<'_>) -> Result<Vec<TargetCluster>, String> {
    let fitting = survey.fitting.iter().map(|candidate| ranked(round, candidate, 0));
    let mut holders: Vec<spread::Ranked<'_>> = fitting.filter(|each| each.current).collect();
    if round.request.followed {
        let new = match weighed(round, survey) {
            Err(why) if holders.is_empty() => return Err(why),
            new => new.unwrap_or_default(),
        };
        holders.extend(new.into_iter().filter(|each| !each.current));
        return Ok(targets(holders.iter().map(|each| (each, 0))));
    }
    if holders.is_empty() {
        holders = weighed(round, survey)?;
    }
    let first = holders.iter().map(|each| each.tier).min();
    if round.request.placement.spread_constraints.is_empty() {
        holders.retain(|each| Some(each.tier) == first);
    }
    Ok(targets(holders.iter().map(|each| (each, 0))))
}

/// True if the present result still fulfils the request: as many replicas, by the same placement, on clusters that may stay.
fn stands(request: &Request<'_>, survey: &FilterResult<'_>, replicas: i32) -> bool {
    let placed: i64 = request
        .current
        .iter()
        .map(|target| i64::from(target.replicas))
        .sum();
    !request.current.is_empty()
        && placed == i64::from(replicas)
        && request.current.iter().all(|target| {
            (target.replicas > 0 || replicas == 0 || request.followed) && survey.fits(&target.name)
        })
        && is_same(request)
}

/// True if the present targets were scheduled by this placement. Other groups of clusterAffinities than the one in use may have
/// changed. Source: Karmada reference 1.3 (doSchedule, 1).
fn is_same(request: &Request<'_>) -> bool {
    let now = request.placement;
    if serde_json::to_string(now).is_ok_and(|text| text == request.applied) {
        return true;
    }
    let Ok(before) = serde_json::from_str::<Placement>(request.applied) else {
        return false;
    };
    let in_use = |placement: &Placement| {
        let terms = &placement.cluster_affinities;
        terms
            .iter()
            .find(|term| Some(term.affinity_name.as_str()) == request.affinity)
            .cloned()
    };
    let rest = |placement: &Placement| Placement {
        cluster_affinities: Vec::new(),
        ..placement.clone()
    };
    let groups = match (in_use(&before), in_use(now)) {
        (None, None) => before.cluster_affinities == now.cluster_affinities,
        (before, now) => before == now,
    };
    groups && rest(&before) == rest(now)
}

/// Sorted by name.
fn targets<'a>(shares: impl Iterator<Item = (&'a spread::Ranked<'a>, i32)>) -> Vec<TargetCluster> {
    let mut all: Vec<TargetCluster> = shares
        .map(|(each, replicas)| TargetCluster {
            name: each.candidate.name.into(),
            replicas,
            components: Vec::new(),
        })
        .collect();
    all.sort();
    all
}
