//! Invariants of sets, over generated components and clusters.

use proptest::{collection::vec, prelude::*};

use super::tests::{Case, Member, cluster, components, one_cluster};
use crate::estimate::{Capacity, Demand};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The CPUs of one replica of each component, and their number.
fn sets() -> impl Strategy<Value = Vec<(i64, i32)>> {
    vec((1..6_i64, 0..5_i32), 1..5)
}

/// The free CPUs of a cluster, and the classes of its nodes, smallest first.
fn clusters() -> impl Strategy<Value = Vec<(i64, Vec<(i64, i64)>)>> {
    let nodes = vec((1..8_i64, 0..4_i64), 0..4).prop_map(|mut nodes| {
        nodes.sort_unstable();
        nodes
    });
    vec((0..40_i64, nodes), 1..=NAMES.len())
}

fn members(clusters: &[(i64, Vec<(i64, i64)>)]) -> Vec<Member<'_>> {
    let named = NAMES.into_iter().zip(clusters);
    named
        .map(|(name, (cpu, nodes))| (name, Some(*cpu), nodes.as_slice()))
        .collect()
}

fn chosen(members: &[Member<'_>], components: &[(i64, i32)], current: &[&str], fresh: bool) -> Vec<String> {
    let case = Case {
        components,
        members,
        current,
        fresh,
        placement: one_cluster(),
    };
    case.chosen()
}

fn capacity(member: &Member<'_>) -> Capacity {
    Capacity::of(&cluster(member)).unwrap()
}

/// True if nodes with this room hold all pods, by trying every node for each.
fn is_held(free: &mut [i64], pods: &[i64]) -> bool {
    let Some((pod, rest)) = pods.split_first() else {
        return true;
    };
    for place in 0..free.len() {
        // Equal nodes are equivalent: the first of them is enough.
        if free[place] < *pod || free[..place].contains(&free[place]) {
            continue;
        }
        free[place] -= pod;
        let is_held = is_held(free, rest);
        free[place] += pod;
        if is_held {
            return true;
        }
    }
    false
}

proptest! {
    #[test]
    fn the_chosen_cluster_has_room_for_all_of_it_and_none_is_missed_by_sums(set in sets(), clusters in clusters()) {
        let members = members(&clusters);
        let wanted: i64 = set.iter().map(|(cpu, replicas)| cpu * i64::from(*replicas)).sum();
        let chosen = chosen(&members, &set, &[], false);
        prop_assert!(chosen.len() <= 1);
        for name in &chosen {
            let (_, cpu, nodes) = members.iter().find(|member| member.0 == *name).unwrap();
            prop_assert!(wanted <= cpu.unwrap(), "{name}");
            let on_nodes: i64 = nodes.iter().map(|(cpu, count)| cpu * count).sum();
            prop_assert!(nodes.is_empty() || wanted <= on_nodes, "{name}");
        }
        if chosen.is_empty() {
            let is_roomy = |member: &&Member<'_>| member.2.is_empty() && wanted <= member.1.unwrap();
            prop_assert!(!members.iter().any(|member| is_roomy(&member)));
        }
    }

    /// A place that is found for the pods exists, whichever of them are placed first.
    #[test]
    fn what_is_counted_on_nodes_can_be_placed_there(set in sets(), nodes in vec((1..6_i64, 1..3_i64), 1..3)) {
        let mut nodes = nodes;
        nodes.sort_unstable();
        let pods: i32 = set.iter().map(|(_, replicas)| *replicas).sum();
        prop_assume!((1..=8).contains(&pods));
        let demand = Demand::of_set(&components(&set));
        let capacity = capacity(&("a", Some(1_000), nodes.as_slice()));
        let found = capacity.replicas(&demand, 0);
        prop_assert_eq!(capacity.holds_one(&demand), found > 0);
        let mut free: Vec<i64> = nodes
            .iter()
            .flat_map(|(cpu, count)| (0..*count).map(move |_| *cpu))
            .collect();
        let all: Vec<i64> = set
            .iter()
            .flat_map(|(cpu, replicas)| (0..*replicas).map(move |_| *cpu))
            .collect();
        if found > 0 {
            prop_assert!(is_held(&mut free, &all));
        }
    }

    #[test]
    fn the_order_of_components_and_clusters_decides_nothing(
        (set, other_set) in sets().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        clusters in clusters(), fresh in any::<bool>(),
    ) {
        let members = members(&clusters);
        let mut backwards = members.clone();
        backwards.reverse();
        let first = chosen(&members, &set, &["b"], fresh);
        prop_assert_eq!(&first, &chosen(&backwards, &set, &["b"], fresh));
        prop_assert_eq!(&first, &chosen(&members, &other_set, &["b"], fresh));
    }

    #[test]
    fn what_was_placed_stays(set in sets(), clusters in clusters(), other in clusters()) {
        let first = chosen(&members(&clusters), &set, &[], false);
        let current: Vec<&str> = first.iter().map(String::as_str).collect();
        // Whatever the reports say then, as long as the cluster is there.
        let mut later = other;
        later.resize(NAMES.len(), (0, Vec::new()));
        if !first.is_empty() {
            prop_assert_eq!(chosen(&members(&later), &set, &current, false), first.clone());
        }
    }

    #[test]
    fn what_is_reserved_for_others_is_room_for_nobody_else(
        set in sets(), clusters in clusters(), (cpu, replicas) in (1..4_i64, 1..4_i32),
    ) {
        let demand = Demand::of_set(&components(&set));
        prop_assume!(demand.pods() > 0);
        for member in members(&clusters) {
            let before = capacity(&member);
            let mut after = before.clone();
            let other = Demand::of_set(&components(&[(cpu, replicas)]));
            after.reserve(&other, 1);
            let (free, left) = (before.replicas(&demand, 0), after.replicas(&demand, 0));
            prop_assert!(left <= free || !member.2.is_empty());
            if left > 0 {
                let taken = i64::from(replicas) * cpu;
                let wanted: i64 = set.iter().map(|(cpu, replicas)| cpu * i64::from(*replicas)).sum();
                prop_assert!(wanted * left + taken <= member.1.unwrap());
            }
            after.release(&other, 1);
            prop_assert_eq!(&after, &before);
            // Its own reservation is no hindrance.
            after.reserve(&demand, 1);
            prop_assert_eq!(after.replicas(&demand, 1), free);
        }
    }
}
