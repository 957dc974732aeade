//! The objects that leave a cluster, or move, if the cluster is removed.

use entourage_api::work::TargetCluster;

use super::{Relation, Touched, configuration::copies_of};
use crate::{
    cache::ResourceState,
    failover::inspected,
    fleet::{Fleet, wanted::wants},
    inspection::{distributions, why},
    object::{ResourceId, Str, Time},
    scheduler::Outcome,
    stored_binding::eviction_from,
};

pub(super) fn of(fleet: &Fleet, cluster: &Str, now: Time) -> Vec<Touched> {
    let mut all = Vec::new();
    for (id, resource) in fleet.resources() {
        if let Some(touched) = resource_on(fleet, id, resource, cluster, now) {
            all.push(touched);
        }
    }
    for (name, view) in distributions(fleet) {
        let copies = copies_of(name, view, "it is kept, and no longer managed");
        all.extend(
            copies
                .into_iter()
                .filter(|each| each.cluster.as_ref() == Some(cluster)),
        );
    }
    all
}

fn resource_on(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
    now: Time,
) -> Option<Touched> {
    resource.standing()?;
    let binding = resource.binding.as_ref()?;
    if !binding.accounts_for(cluster) && !wants(fleet, id, resource, cluster) {
        return None;
    }
    let held = &binding.object;
    if eviction_from(&held.spec, cluster).is_some() && !binding.is_placed_on(cluster) {
        let why = "it is being evicted from there";
        return Some(touched(id, cluster, Relation::Leaves, why.to_owned()));
    }
    let asking = why::asking(fleet, id, held, now).filter(|_| binding.is_placed_on(cluster));
    let Some(asking) = asking else {
        let why = "its referrers decide where it is needed: it leaves with them";
        return Some(touched(id, cluster, Relation::Leaves, why.to_owned()));
    };
    let (relation, why) = match inspected::without(fleet, asking, cluster, now) {
        Some(outcome) => effect(&held.spec.clusters, &outcome),
        None => {
            let why = "another scheduler decides, or its scheduling is suspended";
            (Relation::Leaves, why.to_owned())
        }
    };
    Some(touched(id, cluster, relation, why))
}

fn touched(id: &ResourceId, cluster: &Str, relation: Relation, on_deletion: String) -> Touched {
    Touched {
        cluster: Some(cluster.clone()),
        relation,
        object: id.into(),
        // What a change of labels or taints moves depends on the new ones.
        on_change: String::new(),
        on_deletion,
    }
}

/// The effect of a scheduling result on a workload that has to leave a cluster.
fn effect(present: &[TargetCluster], outcome: &Outcome) -> (Relation, String) {
    match outcome {
        Outcome::Failed { reason, message, .. } => (
            Relation::Stranded,
            format!("no other cluster fits: {reason}: {message}"),
        ),
        Outcome::Placed { clusters, .. } => {
            let had = |target: &TargetCluster| {
                let before = TargetCluster::find(present, &target.name);
                before.map_or(-1, |before| before.replicas)
            };
            let gains = clusters.iter().filter(|target| target.replicas > had(target));
            let gains: Vec<TargetCluster> = gains.cloned().collect();
            if gains.is_empty() {
                (Relation::Leaves, format!("it stays on {}", why::named(clusters)))
            } else {
                (Relation::Moves, format!("it moves to {}", why::named(&gains)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(all: &[(&str, i32)]) -> Vec<TargetCluster> {
        let target = |(name, replicas): &(&str, i32)| TargetCluster {
            name: (*name).to_owned(),
            replicas: *replicas,
            ..TargetCluster::default()
        };
        all.iter().map(target).collect()
    }

    #[test]
    fn a_workload_moves_leaves_or_is_stranded() {
        let placed = |all: &[(&str, i32)]| Outcome::Placed {
            clusters: targets(all),
            affinity: String::new(),
            note: String::new(),
        };
        let failed = Outcome::Failed {
            reason: "NoClusterFit",
            message: "0 of 1 clusters fit".to_owned(),
            unselected: Vec::new(),
        };
        let present = targets(&[("m1", 2), ("m2", 1)]);
        for (outcome, relation, message) in [
            (placed(&[("m2", 3)]), Relation::Moves, "it moves to m2 (3)"),
            (
                placed(&[("m2", 1), ("m3", 2)]),
                Relation::Moves,
                "it moves to m3 (2)",
            ),
            (placed(&[("m2", 1)]), Relation::Leaves, "it stays on m2 (1)"),
            (
                failed,
                Relation::Stranded,
                "no other cluster fits: NoClusterFit: 0 of 1 clusters fit",
            ),
        ] {
            assert_eq!(effect(&present, &outcome), (relation, message.to_owned()));
        }
        let unnumbered = targets(&[("m1", 0)]);
        let moved = effect(&unnumbered, &placed(&[("m2", 0)]));
        assert_eq!(moved, (Relation::Moves, "it moves to m2".to_owned()));
    }
}
