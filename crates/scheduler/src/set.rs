//! The scheduling of a workload with several components as one set, to a cluster that has room for all of them together.
//!
//! Only where the spread constraints ask for exactly one cluster; elsewhere each chosen cluster gets the whole workload, whatever its
//! room. A set that is placed stays, also where its components grow; it is scheduled by room anew when it leaves its cluster, or when a
//! fresh result is requested. Source: Karmada's gate `MultiplePodTemplatesScheduling`, and the condition under which it estimates sets.

use entourage_api::{
    keys::reason,
    policy::{Placement, SpreadField},
    work::{Component, TargetCluster, TargetComponent},
};

use crate::{
    affinity,
    request::{Candidate, Request, Round},
    room,
    spread::{self, Ranked},
};

/// True if a workload with these components is scheduled as one set: it has components and no replicas, and exactly one cluster gets it.
#[must_use]
pub fn is_set(placement: &Placement, replicas: Option<i32>, components: &[Component]) -> bool {
    is_one_cluster(placement) && replicas.is_none() && !components.is_empty()
}

/// True if the spread constraints ask for exactly one cluster.
#[must_use]
pub fn is_one_cluster(placement: &Placement) -> bool {
    let mut constraints = placement.spread_constraints.iter();
    constraints.any(|each| {
        let is_by_cluster = spread::field(each) == Some(SpreadField::Cluster);
        is_by_cluster && each.min_groups <= 1 && each.max_groups == 1
    })
}

/// The cluster of a set, among those that fit: the present one, else the one with room for the most sets, of equal ones the first by
/// name. A set without pods, which sleeps, needs no room, and no report of it. Of several groups of clusters the earlier one goes first.
///
/// # Errors
/// The reason of the condition `Scheduled` and the cause: no cluster has room for the set, or the placement's constraints cannot be met.
///
/// Cost: O(clusters × that of the estimate), and that of [`spread::choose`].
pub(super) fn assign(
    round: &Round<'_>,
    fitting: &[&Candidate<'_>],
) -> Result<Vec<TargetCluster>, (&'static str, String)> {
    let request = &round.request;
    let sleeps = request.room.is_some_and(|room| room.demand.pods() == 0);
    let mut holders: Vec<Ranked<'_>> = Vec::with_capacity(fitting.len());
    for candidate in fitting {
        let current = request.is_current(candidate.name);
        let weight = if sleeps {
            0
        } else {
            room::left(request, candidate.name, 0)
        };
        if current || sleeps || weight > 0 {
            holders.push(Ranked {
                candidate,
                current,
                tier: affinity::tier(round, candidate).unwrap_or(0),
                weight,
            });
        }
    }
    if holders.is_empty() {
        return Err((reason::UNSCHEDULABLE, too_little(request, fitting)));
    }
    let chosen = spread::choose(&request.placement.spread_constraints, holders);
    let chosen = chosen.map_err(|why| (reason::SCHEDULER_ERROR, why))?;
    let mut targets: Vec<TargetCluster> = chosen.iter().map(|each| target(request, each)).collect();
    targets.sort();
    Ok(targets)
}

/// The whole set on a cluster.
fn target(request: &Request<'_>, chosen: &Ranked<'_>) -> TargetCluster {
    let components = request.components.iter().map(|component| TargetComponent {
        name: component.name.clone(),
        replicas: component.replicas,
    });
    TargetCluster {
        name: chosen.candidate.name.into(),
        replicas: 0,
        components: components.collect(),
    }
}

fn too_little(request: &Request<'_>, fitting: &[&Candidate<'_>]) -> String {
    let pods = request.room.as_ref().map_or(0, |room| room.demand.pods());
    let unresponsive = fitting
        .iter()
        .filter(|candidate| room::capacity(request, candidate.name).is_none())
        .count();
    let unknown = match unresponsive {
        0 => String::new(),
        _ => format!("; {unresponsive} that fit report no status.resourceSummary and count as full"),
    };
    format!(
        "none has room for all components together ({pods} pods): scale down, add nodes, or let more clusters fit{unknown}"
    )
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
