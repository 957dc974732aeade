//! The features of a placement that this version supports. Others are refused, with the remedy.

use entourage_api::policy::{ClusterAffinity, ClusterAffinityTerm, Placement};

use crate::{affinity, assign, request::Request, room, spread, taint};
use entourage_model::selector;

/// Succeeds if this version supports the request, as far as that is visible without the clusters.
///
/// # Errors
/// A message that names the field, the cause and the remedy.
pub(super) fn supported(request: &Request<'_>) -> Result<(), String> {
    let placement = request.placement;
    check_affinities(placement)?;
    for (position, toleration) in placement.cluster_tolerations.iter().enumerate() {
        taint::check(toleration).map_err(|why| format!("placement.clusterTolerations[{position}]: {why}"))?;
    }
    spread::check(&placement.spread_constraints)?;
    match request.replicas {
        Some(_) if assign::is_divided(placement) => check_division(placement),
        _ => Ok(()),
    }
}

/// The rules of fixed weights are valid.
fn check_division(placement: &Placement) -> Result<(), String> {
    let Some(strategy) = &placement.replica_scheduling else {
        return Ok(());
    };
    let Some(preference) = &strategy.weight_preference else {
        return Ok(());
    };
    for (position, rule) in preference.static_weight_list.iter().enumerate() {
        let at = |why: String| {
            format!("placement.replicaScheduling.weightPreference.staticWeightList[{position}].{why}")
        };
        check_affinity(&rule.target_cluster).map_err(|why| at(format!("targetCluster.{why}")))?;
        if rule.weight < 1 {
            return Err(at(format!("weight is {}: it must be 1 or more", rule.weight)));
        }
    }
    Ok(())
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
        let mut earlier = placement.cluster_affinities[..position].iter();
        if term.affinity_name.is_empty() || earlier.any(|each| each.affinity_name == term.affinity_name) {
            return Err(at(format!(
                "affinityName is {:?}: give each group a name of its own",
                term.affinity_name
            )));
        }
        if !term.overflow_affinities.is_empty() {
            check_overflow(placement, term).map_err(at)?;
        }
    }
    Ok(())
}

/// Replicas can overflow from a group that leaves some clusters out, where they are divided by room.
/// Source: Karmada's admission, which refuses the same.
fn check_overflow(placement: &Placement, term: &ClusterAffinityTerm) -> Result<(), String> {
    if !room::is_by_room(placement) {
        return Err(
            "overflowAffinities needs replicas that are divided by the available replicas of clusters: set \
             replicaSchedulingType Divided with replicaDivisionPreference Aggregated or with dynamicWeight"
                .into(),
        );
    }
    if term.affinity == ClusterAffinity::default() {
        return Err(
            "overflowAffinities has nothing to take, because the group itself selects every cluster: select the clusters that are \
             filled first"
                .into(),
        );
    }
    let mut names = vec![&term.affinity_name];
    for (position, overflow) in term.overflow_affinities.iter().enumerate() {
        let at = |why: String| format!("overflowAffinities[{position}].{why}");
        check_affinity(&overflow.affinity).map_err(at)?;
        if overflow.affinity_name.is_empty() || names.contains(&&overflow.affinity_name) {
            return Err(at(format!(
                "affinityName is {:?}: give each group a name of its own",
                overflow.affinity_name
            )));
        }
        names.push(&overflow.affinity_name);
    }
    Ok(())
}

/// Succeeds if an affinity is valid.
///
/// # Errors
/// The invalid field and the cause, such as `labelSelector: …`.
pub fn check_affinity(wanted: &ClusterAffinity) -> Result<(), String> {
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
