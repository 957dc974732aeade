//! Selection of clusters by an affinity.

use entourage_api::{
    cluster::Cluster,
    policy::{ClusterAffinity, ClusterAffinityTerm, FieldRequirement, OverflowAffinity},
};

use crate::request::{Candidate, Round};
use entourage_model::selector;

/// True if all given parts of the affinity select the cluster and it is not excluded. Exclusion takes precedence over names.
pub fn selects(affinity: &ClusterAffinity, candidate: &Candidate<'_>) -> bool {
    let is_in = |names: &[String]| names.iter().any(|name| name == candidate.name);
    !is_in(&affinity.exclude)
        && (affinity.cluster_names.is_empty() || is_in(&affinity.cluster_names))
        && affinity
            .label_selector
            .as_ref()
            .is_none_or(|wanted| selector::matches(wanted, candidate.labels))
        && affinity
            .field_selector
            .iter()
            .flat_map(|fields| &fields.match_expressions)
            .all(|requirement| holds(requirement, candidate.cluster))
}

/// The tier of a cluster in a round: 0 if the group itself selects it, else the number of the first of its overflow groups that
/// does, from 1; `None` if none selects it. Source: Karmada 1.18, whose first group counts, too.
pub(super) fn tier(round: &Round<'_>, candidate: &Candidate<'_>) -> Option<usize> {
    match round.affinity {
        None => Some(0),
        Some(affinity) => tier_of(affinity, round.overflow, candidate),
    }
}

/// True if a group, or one of its overflow groups, selects the cluster.
pub(super) fn term_selects(term: &ClusterAffinityTerm, candidate: &Candidate<'_>) -> bool {
    tier_of(&term.affinity, &term.overflow_affinities, candidate).is_some()
}

fn tier_of(
    affinity: &ClusterAffinity,
    overflow: &[OverflowAffinity],
    candidate: &Candidate<'_>,
) -> Option<usize> {
    let groups = std::iter::once(affinity).chain(overflow.iter().map(|each| &each.affinity));
    groups
        .enumerate()
        .find(|(_, group)| selects(group, candidate))
        .map(|(tier, _)| tier)
}

/// The zones that a cluster spans; the deprecated single one applies if `zones` is empty.
pub(super) fn zones(cluster: &Cluster) -> &[String] {
    if cluster.spec.zones.is_empty() {
        single(&cluster.spec.zone)
    } else {
        &cluster.spec.zones
    }
}

/// Succeeds if the field selector's requirement is valid.
pub(super) fn check(requirement: &FieldRequirement) -> Result<(), String> {
    if !["provider", "region", "zone"].contains(&requirement.key.as_str()) {
        return Err(format!(
            "{:?} is not a field: the fields are provider, region and zone",
            requirement.key
        ));
    }
    if !["In", "NotIn"].contains(&requirement.operator.as_str()) {
        return Err(format!(
            "{:?} is not an operator: the operators are In and NotIn",
            requirement.operator
        ));
    }
    if requirement.values.is_empty() {
        return Err("give at least one value".into());
    }
    Ok(())
}

/// True if the requirement holds. `In` needs a value, and all values of the cluster among the listed: a cluster that spans
/// zones a and b is not within zone a. `NotIn` needs none of them among the listed, so a cluster whose field is not set passes.
/// Source: Karmada's field selector, whose zone rule this is; provider and region have at most one value.
fn holds(requirement: &FieldRequirement, cluster: &Cluster) -> bool {
    let found = match requirement.key.as_str() {
        "provider" => single(&cluster.spec.provider),
        "region" => single(&cluster.spec.region),
        "zone" => zones(cluster),
        _ => return false,
    };
    let is_listed = |value: &String| requirement.values.contains(value);
    match requirement.operator.as_str() {
        "In" => !found.is_empty() && found.iter().all(is_listed),
        "NotIn" => !found.iter().any(is_listed),
        _ => false,
    }
}

fn single(value: &String) -> &[String] {
    if value.is_empty() {
        &[]
    } else {
        std::slice::from_ref(value)
    }
}
