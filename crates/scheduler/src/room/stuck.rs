//! Replicas that no node of their cluster can take: cases, and invariants over generated clusters and results.

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::tests::{Case, aggregated, dynamic, shares_of};

/// The name of a cluster, its free pods, its present replicas, and those of them that are stuck, if it has any or had some lately.
type Cluster = (&'static str, i64, i32, Option<i32>);

/// The replicas of each cluster.
type Want<'a> = &'a [(&'a str, i32)];

fn divide(clusters: &[Cluster], replicas: i32, is_aggregated: bool) -> Option<Vec<(String, i32)>> {
    let free: Vec<(&str, Option<i64>)> = clusters.iter().map(|each| (each.0, Some(each.1))).collect();
    let held = clusters.iter().filter(|each| each.2 > 0);
    let current: Vec<(&str, i32)> = held.map(|each| (each.0, each.2)).collect();
    let stuck = clusters.iter().filter_map(|each| Some((each.0, each.3?)));
    let stuck: Vec<(&str, i32)> = stuck.collect();
    let case = Case {
        strategy: if is_aggregated { aggregated() } else { dynamic() },
        replicas,
        current: &current,
        free: &free,
        spread: json!([]),
        fresh: false,
    };
    shares_of(case.outcome_with(&json!([]), &stuck))
}

#[test]
fn stuck_replicas_move_where_there_is_room_and_only_they() {
    let cases: [(&str, &[Cluster], i32, Want<'_>); 8] = [
        (
            "all of them",
            &[("a", 9, 5, Some(3)), ("b", 9, 2, None)],
            7,
            &[("a", 2), ("b", 5)],
        ),
        (
            "as many as there is room for",
            &[("a", 9, 5, Some(3)), ("b", 1, 2, None)],
            7,
            &[("a", 4), ("b", 3)],
        ),
        (
            "none without room",
            &[("a", 9, 5, Some(3)), ("b", 0, 2, None)],
            7,
            &[("a", 5), ("b", 2)],
        ),
        (
            "a cluster may be left",
            &[("a", 9, 2, Some(2)), ("b", 9, 0, None)],
            2,
            &[("b", 2)],
        ),
        (
            "not to a cluster where others are stuck",
            &[("a", 9, 2, Some(1)), ("b", 9, 2, Some(1)), ("c", 1, 0, None)],
            4,
            &[("a", 2), ("b", 1), ("c", 1)],
        ),
        (
            "nor to one that had some",
            &[("a", 9, 4, None), ("b", 9, 2, Some(0))],
            8,
            &[("a", 6), ("b", 2)],
        ),
        (
            "scaled up, it goes elsewhere, too",
            &[("a", 9, 4, Some(1)), ("b", 9, 2, None)],
            8,
            &[("a", 4), ("b", 4)],
        ),
        (
            "unless there is no other room",
            &[("a", 9, 4, Some(1)), ("b", 0, 2, None)],
            8,
            &[("a", 6), ("b", 2)],
        ),
    ];
    for (case, clusters, replicas, want) in cases {
        for is_aggregated in [false, true] {
            let shares = divide(clusters, replicas, is_aggregated);
            let want = want.iter().map(|(name, share)| ((*name).to_owned(), *share));
            assert_eq!(
                shares,
                Some(want.collect()),
                "{case} (aggregated: {is_aggregated})"
            );
        }
    }
}

fn clusters() -> impl Strategy<Value = Vec<Cluster>> {
    let one = (0..20_i64, 0..12_i32, prop::option::weighted(0.4, 0..12_i32));
    vec(one, 1..=6).prop_map(|all| {
        let names = ["a", "b", "c", "d", "e", "f"].into_iter();
        names
            .zip(all)
            .map(|(name, (free, held, stuck))| (name, free, held, stuck.map(|stuck| stuck.min(held))))
            .collect()
    })
}

proptest! {
    /// A workload of unchanged size loses no more than what is stuck, and another cluster has what one loses.
    #[test]
    fn no_more_moves_than_is_stuck(clusters in clusters(), is_aggregated in any::<bool>()) {
        let wanted: i32 = clusters.iter().map(|each| each.2).sum();
        prop_assume!(wanted > 0);
        let shares = divide(&clusters, wanted, is_aggregated).expect("the present result fits");
        let share = |name: &str| shares.iter().find(|each| each.0 == name).map_or(0, |each| each.1);
        prop_assert_eq!(shares.iter().map(|each| each.1).sum::<i32>(), wanted);
        for (name, free, held, stuck) in &clusters {
            let share = share(name);
            prop_assert!(share >= held - stuck.unwrap_or(0), "{name} loses {held} - {share}");
            prop_assert!(i64::from(share) <= i64::from(*held) + free, "{name} has {share}");
            prop_assert!(stuck.is_none() || share <= *held, "{name} gets more although some are stuck there");
        }
        let moved: i32 = clusters.iter().map(|each| (each.2 - share(each.0)).max(0)).sum();
        let stuck: i32 = clusters.iter().filter_map(|each| each.3).sum();
        let open = clusters.iter().filter(|each| each.3.is_none());
        let room: i64 = open.map(|each| each.1).sum();
        prop_assert_eq!(i64::from(moved), i64::from(stuck).min(room), "as many as there is room for");
    }
}
