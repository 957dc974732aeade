//! Divisions among a group and its overflow groups: cases, and invariants over generated clusters and results.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::tests::{Case, aggregated, dynamic, named};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// One cluster: its name, its tier, its free pods and its present replicas.
type Cluster = (&'static str, usize, i64, i32);

/// The replicas of each cluster.
type Want<'a> = &'a [(&'a str, i32)];

/// A group with two overflow groups.
fn groups(clusters: &[Cluster]) -> Value {
    // No cluster has the name x: an affinity without names selects every cluster.
    let of = |tier| -> Vec<&str> {
        let members = clusters.iter().filter(|each| each.1 == tier).map(|each| each.0);
        members.chain(["x"]).collect()
    };
    json!([{"affinityName": "own", "clusterNames": of(0), "overflowAffinities": [
        {"affinityName": "more", "clusterNames": of(1)},
        // A cluster that an earlier group selects, too, counts there.
        {"affinityName": "rest", "clusterNames": of(2).into_iter().chain(of(0)).collect::<Vec<_>>()},
    ]}])
}

fn divide(
    clusters: &[Cluster],
    replicas: i32,
    is_aggregated: bool,
    fresh: bool,
) -> Option<Vec<(String, i32)>> {
    spread(clusters, replicas, (is_aggregated, fresh), json!([]))
}

fn spread(
    clusters: &[Cluster],
    replicas: i32,
    (is_aggregated, fresh): (bool, bool),
    constraints: Value,
) -> Option<Vec<(String, i32)>> {
    let free: Vec<(&str, Option<i64>)> = clusters.iter().map(|each| (each.0, Some(each.2))).collect();
    let held = clusters.iter().filter(|each| each.3 > 0);
    let mut current: Vec<(&str, i32)> = held.map(|each| (each.0, each.3)).collect();
    current.sort_unstable();
    let case = Case {
        strategy: if is_aggregated { aggregated() } else { dynamic() },
        replicas,
        current: &current,
        free: &free,
        spread: constraints,
        fresh,
    };
    case.shares_in(&groups(clusters))
}

#[test]
fn what_does_not_fit_goes_to_the_next_group_and_is_given_back_first() {
    let fresh = |free: [i64; 4]| {
        [
            ("a", 0, free[0], 0),
            ("b", 0, free[1], 0),
            ("c", 1, free[2], 0),
            ("d", 2, free[3], 0),
        ]
    };
    let cases: [(Vec<Cluster>, i32, bool, Want<'_>); 9] = [
        // The group has room for all.
        (fresh([6, 6, 90, 90]).into(), 8, false, &[("a", 4), ("b", 4)]),
        (fresh([6, 9, 90, 90]).into(), 8, true, &[("b", 8)]),
        // It has not.
        (
            fresh([6, 2, 90, 90]).into(),
            12,
            false,
            &[("a", 6), ("b", 2), ("c", 4)],
        ),
        (
            fresh([6, 2, 3, 90]).into(),
            12,
            true,
            &[("a", 6), ("b", 2), ("c", 3), ("d", 1)],
        ),
        (fresh([0, 0, 3, 90]).into(), 3, true, &[("c", 3)]),
        // More replicas: what has overflowed stays, and the new ones begin with the group.
        (
            vec![("a", 0, 2, 4), ("c", 1, 9, 3)],
            10,
            false,
            &[("a", 6), ("c", 4)],
        ),
        // Fewer: the last group loses first, whatever room the group has.
        (
            vec![("a", 0, 9, 4), ("c", 1, 9, 3), ("d", 2, 9, 2)],
            6,
            true,
            &[("a", 4), ("c", 2)],
        ),
        (
            vec![("a", 0, 9, 4), ("c", 1, 9, 3), ("d", 2, 9, 2)],
            3,
            false,
            &[("a", 3)],
        ),
        // As many, and room for them in the group: nothing moves.
        (
            vec![("a", 0, 9, 4), ("c", 1, 9, 3)],
            7,
            false,
            &[("a", 4), ("c", 3)],
        ),
    ];
    for (clusters, replicas, is_aggregated, want) in cases {
        assert_eq!(
            divide(&clusters, replicas, is_aggregated, false),
            named(want),
            "{clusters:?} {replicas}"
        );
    }
}

#[test]
fn a_fresh_division_returns_what_has_overflowed() {
    let clusters = [("a", 0, 9, 4), ("c", 1, 9, 3)];
    assert_eq!(divide(&clusters, 7, true, true), named(&[("a", 7)]));
}

#[test]
fn constraints_prefer_the_group_unless_its_room_is_too_little() {
    let one = json!([{"spreadByField": "cluster", "maxGroups": 1}]);
    let small = [("a", 0, 5, 0), ("c", 1, 90, 0)];
    assert_eq!(spread(&small, 5, (true, false), one.clone()), named(&[("a", 5)]));
    assert_eq!(spread(&small, 6, (true, false), one), named(&[("c", 6)]));
    let two = json!([{"spreadByField": "cluster", "minGroups": 2}]);
    assert_eq!(
        spread(&small, 5, (true, false), two),
        named(&[("a", 4), ("c", 1)])
    );
}

#[test]
fn no_more_of_the_group_is_given_up_than_its_room_takes() {
    let at_most = |clusters: i64| json!([{"spreadByField": "cluster", "maxGroups": clusters}]);
    let three = [("a", 0, 50, 0), ("b", 1, 60, 0), ("c", 2, 100, 0)];
    let four = [
        ("a", 0, 50, 0),
        ("b", 0, 10, 0),
        ("c", 1, 60, 0),
        ("d", 2, 100, 0),
    ];
    let cases: [(&[Cluster], i64, i32, Option<Want<'_>>); 7] = [
        (&three, 2, 110, Some(&[("a", 50), ("b", 60)])),
        (&three, 2, 120, Some(&[("a", 50), ("c", 70)])),
        (&three, 2, 150, Some(&[("a", 50), ("c", 100)])),
        // Only without any cluster of the group.
        (&three, 2, 160, Some(&[("b", 60), ("c", 100)])),
        (&three, 2, 161, None),
        (&four, 2, 130, Some(&[("a", 50), ("d", 80)])),
        (&four, 3, 200, Some(&[("a", 50), ("c", 60), ("d", 90)])),
    ];
    for (clusters, limit, replicas, want) in cases {
        let shares = spread(clusters, replicas, (true, false), at_most(limit));
        assert_eq!(shares, want.and_then(named), "{clusters:?} {limit} {replicas}");
    }
}

fn clusters() -> impl Strategy<Value = Vec<Cluster>> {
    let one = (0..3_usize, 0..12_i64, prop_oneof![Just(0), 0..8_i32]);
    vec(one, 1..=NAMES.len()).prop_map(|all| {
        let all = NAMES.into_iter().zip(all);
        all.map(|(name, (tier, free, held))| (name, tier, free, held))
            .collect()
    })
}

fn share(shares: &[(String, i32)], cluster: &str) -> i64 {
    let found = shares.iter().find(|(name, _)| name == cluster);
    found.map_or(0, |(_, replicas)| i64::from(*replicas))
}

proptest! {
    /// Shares add up and fit; a replica is added to a group only where those before it are full, and taken from one only where
    /// those after it have none.
    #[test]
    fn groups_are_filled_in_order_and_emptied_in_reverse(
        clusters in clusters(), replicas in 1..60_i32, is_aggregated in any::<bool>(), fresh in any::<bool>(),
    ) {
        let held: i64 = clusters.iter().map(|each| i64::from(each.3)).sum();
        let room: i64 = clusters.iter().map(|each| each.2).sum();
        let wanted = i64::from(replicas);
        let Some(shares) = divide(&clusters, replicas, is_aggregated, fresh) else {
            prop_assert!(held + room < wanted, "there is room for {wanted}");
            return Ok(());
        };
        prop_assert_eq!(shares.iter().map(|(_, share)| i64::from(*share)).sum::<i64>(), wanted);
        for (name, tier, free, held) in &clusters {
            let (share, held) = (share(&shares, name), i64::from(*held));
            prop_assert!(share <= held + free, "{name} has {share}");
            let base = if fresh { 0 } else { held };
            for (other, other_tier, other_free, other_held) in &clusters {
                let of_other = self::share(&shares, other);
                if share > base && other_tier < tier {
                    prop_assert_eq!(of_other, i64::from(*other_held) + other_free, "{} is not full, and {} gains", other, name);
                }
                if share < base && other_tier > tier {
                    prop_assert_eq!(of_other, 0, "{} has some left, and {} loses", other, name);
                }
            }
        }
    }

    #[test]
    fn what_overflowed_stays_and_the_order_of_the_clusters_decides_nothing(
        (clusters, shuffled) in clusters().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        replicas in 0..60_i32, is_aggregated in any::<bool>(),
    ) {
        let shares = divide(&clusters, replicas, is_aggregated, false);
        prop_assert_eq!(&shares, &divide(&shuffled, replicas, is_aggregated, false));
        let Some(shares) = shares else { return Ok(()) };
        let settled: Vec<Cluster> = clusters
            .iter()
            .map(|(name, tier, free, held)| {
                let share = share(&shares, name);
                (*name, *tier, free + i64::from(*held) - share, i32::try_from(share).unwrap())
            })
            .collect();
        if replicas > 0 {
            prop_assert_eq!(divide(&settled, replicas, is_aggregated, false), Some(shares));
        }
    }
}
