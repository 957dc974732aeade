//! What a placement may ask for in this version. Everything else is refused, with what to write instead.

use entourage_api::policy::{ClusterAffinity, Placement, ReplicaSchedulingType};

use super::{Request, affinity, taint};
use crate::selector;

/// Whether this version can do what the request asks for, as far as that shows without looking at clusters.
///
/// # Errors
/// A message that names the field, says why and what to do.
pub(super) fn supported(request: &Request<'_>) -> Result<(), String> {
    let placement = request.placement;
    check_affinities(placement)?;
    for (position, toleration) in placement.cluster_tolerations.iter().enumerate() {
        taint::check(toleration).map_err(|why| format!("placement.clusterTolerations[{position}]: {why}"))?;
    }
    if let Some(wish) = &placement.workload_affinity
        && (wish.affinity.is_some() || wish.anti_affinity.is_some())
    {
        return Err(
            "placement.workloadAffinity is not supported by this version: take it out, and tell workloads \
                    apart by clusterAffinity"
                .into(),
        );
    }
    match request.replicas {
        Some(replicas) if placement.replica_scheduling_type() == ReplicaSchedulingType::Divided => {
            Err(format!(
                "placement.replicaScheduling asks to divide {replicas} replicas among clusters (Divided), which is not \
             supported by this version: leave replicaScheduling out, or set replicaSchedulingType: Duplicated, to \
             run all {replicas} on each chosen cluster"
            ))
        }
        _ => Ok(()),
    }
}

fn check_affinities(placement: &Placement) -> Result<(), String> {
    if let Some(affinity) = &placement.cluster_affinity {
        if !placement.cluster_affinities.is_empty() {
            return Err("placement has both clusterAffinity and clusterAffinities: give one of them".into());
        }
        check_affinity(affinity).map_err(|why| format!("placement.clusterAffinity.{why}"))?;
    }
    for (position, term) in placement.cluster_affinities.iter().enumerate() {
        let at = |why: String| format!("placement.clusterAffinities[{position}].{why}");
        check_affinity(&term.affinity).map_err(at)?;
        if !term.overflow_affinities.is_empty() {
            return Err(at(
                "overflowAffinities is not supported by this version: take it out, or list its groups as \
                           further clusterAffinities, which are used when no cluster of an earlier group fits"
                    .into(),
            ));
        }
    }
    Ok(())
}

fn check_affinity(wanted: &ClusterAffinity) -> Result<(), String> {
    if let Some(labels) = &wanted.label_selector {
        selector::check(labels).map_err(|why| format!("labelSelector: {why}"))?;
    }
    let requirements = wanted
        .field_selector
        .iter()
        .flat_map(|fields| &fields.match_expressions);
    for (position, requirement) in requirements.enumerate() {
        affinity::check(requirement)
            .map_err(|why| format!("fieldSelector.matchExpressions[{position}]: {why}"))?;
    }
    Ok(())
}
