//! The parts of a policy without effect: a PriorityClass that is not there, and parts of its placement that match no cluster.

use entourage_api::{
    keys::{condition, reason},
    policy::{ClusterAffinity, Placement, ReplicaSchedulingType},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::Policy,
    condition as conditions,
    fleet::{Fleet, Priority},
    object::Time,
    scheduler::{Candidate, affinity, weight},
};

/// The maximum number of names in a sentence.
const MAX_NAMED: usize = 3;

/// Sets the condition `Effective`: False lists the parts without effect; it is absent if there are none. Returns its message
/// when it becomes False.
///
/// Cost: O(names in the placement); O(members) more where it excludes, or gives weights.
pub(super) fn fill(fleet: &Fleet, policy: &Policy, all: &mut Vec<Condition>, now: Time) -> Option<String> {
    let parts = parts_without_effect(fleet, policy);
    if parts.is_empty() {
        conditions::remove(all, condition::EFFECTIVE);
        return None;
    }
    let message = parts.join("; ");
    let turned = conditions::set(
        all,
        Condition {
            type_: condition::EFFECTIVE.into(),
            status: "False".into(),
            reason: reason::PARTS_WITHOUT_EFFECT.into(),
            message: message.clone(),
            observed_generation: policy.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
    turned.then_some(message)
}

fn parts_without_effect(fleet: &Fleet, policy: &Policy) -> Vec<String> {
    let spec = &policy.object.spec;
    let mut all = Vec::new();
    let priority = fleet.priority_by(spec);
    all.extend(priority.as_ref().and_then(Priority::objection).map(str::to_owned));
    let placement = &spec.placement;
    let affinities = affinities(placement);
    for (path, affinity) in &affinities {
        let is_missing = |name: &&String| !fleet.cache.members.contains_key(name.as_str());
        let missing: Vec<&str> = affinity
            .cluster_names
            .iter()
            .filter(is_missing)
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            let names = named(&missing);
            all.push(format!(
                "{path}.clusterNames: {names} not found; join it, or correct the name"
            ));
        }
        if excludes_all(fleet, affinity) {
            all.push(format!("{path}.exclude excludes every selected cluster"));
        }
    }
    let weightless = weightless(fleet, placement, &affinities);
    if !weightless.is_empty() {
        let names = named(&weightless);
        all.push(format!(
            "spec.placement.replicaScheduling.weightPreference gives {names} no weight, so no replicas: add a rule for it, or \
             do not select it"
        ));
    }
    all
}

fn affinities(placement: &Placement) -> Vec<(String, &ClusterAffinity)> {
    let one = placement.cluster_affinity.iter();
    let one = one.map(|each| ("spec.placement.clusterAffinity".to_owned(), each));
    let groups = placement.cluster_affinities.iter().enumerate();
    let groups = groups.flat_map(|(at, each)| {
        let path = format!("spec.placement.clusterAffinities[{at}]");
        let overflow = each.overflow_affinities.iter().enumerate();
        let overflow =
            overflow.map(|(at, each)| (format!("{path}.overflowAffinities[{at}]"), &each.affinity));
        let all: Vec<_> = overflow.collect();
        [(path, &each.affinity)].into_iter().chain(all)
    });
    one.chain(groups).collect()
}

fn candidates(fleet: &Fleet) -> impl Iterator<Item = Candidate<'_>> {
    fleet.cache.members.iter().map(|(name, member)| Candidate {
        name,
        labels: &member.meta.labels,
        cluster: &member.object,
        ready: true,
        deleting: false,
    })
}

/// True if the exclusion alone is the reason why no cluster is selected.
fn excludes_all(fleet: &Fleet, affinity: &ClusterAffinity) -> bool {
    if affinity.exclude.is_empty() {
        return false;
    }
    let without = ClusterAffinity {
        exclude: Vec::new(),
        ..affinity.clone()
    };
    candidates(fleet).any(|each| affinity::selects(&without, &each))
        && !candidates(fleet).any(|each| affinity::selects(affinity, &each))
}

/// The clusters that are selected and get no replicas, because static weights are given and none matches them.
fn weightless<'a>(
    fleet: &'a Fleet,
    placement: &Placement,
    affinities: &[(String, &ClusterAffinity)],
) -> Vec<&'a str> {
    let strategy = placement.replica_scheduling.as_ref();
    let weights = strategy.and_then(|strategy| strategy.weight_preference.as_ref());
    let is_given = weights.is_some_and(|weights| !weights.static_weight_list.is_empty());
    if !is_given || placement.replica_scheduling_type() != ReplicaSchedulingType::Divided {
        return Vec::new();
    }
    // If no cluster has a weight, all weigh the same.
    let selected = |each: &Candidate<'_>| {
        affinities.is_empty()
            || affinities
                .iter()
                .any(|(_, affinity)| affinity::selects(affinity, each))
    };
    let (with, without): (Vec<_>, Vec<_>) = candidates(fleet)
        .filter(selected)
        .partition(|each| weight(placement, each) > 0);
    if with.is_empty() {
        return Vec::new();
    }
    without.into_iter().map(|each| each.name).collect()
}

/// `cluster "a"`, `clusters "a", "b", "c" and 2 more`.
fn named(names: &[&str]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("{name:?}"))
        .collect();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if names.len() == 1 { "cluster" } else { "clusters" };
    format!("{word} {}{more}", quoted.join(", "))
}
