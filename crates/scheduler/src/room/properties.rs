//! Invariants of divisions by room, over generated clusters and results.

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::tests::{Case, aggregated, dynamic};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Free pods and present replicas of each cluster.
fn clusters() -> impl Strategy<Value = Vec<(&'static str, Option<i64>, i32)>> {
    let one = (
        prop::option::weighted(0.9, 0..20_i64),
        prop_oneof![Just(0), 0..12_i32],
    );
    vec(one, 1..=NAMES.len()).prop_map(|all| {
        let all = NAMES.into_iter().zip(all);
        all.map(|(name, (free, held))| (name, free, held)).collect()
    })
}

fn divide(
    clusters: &[(&'static str, Option<i64>, i32)],
    replicas: i32,
    is_aggregated: bool,
    fresh: bool,
) -> Option<Vec<(String, i32)>> {
    let free: Vec<(&str, Option<i64>)> = clusters.iter().map(|(name, free, _)| (*name, *free)).collect();
    let mut current: Vec<(&str, i32)> = clusters
        .iter()
        .filter(|(.., held)| *held > 0)
        .map(|(name, _, held)| (*name, *held))
        .collect();
    current.sort_unstable();
    let case = Case {
        strategy: if is_aggregated { aggregated() } else { dynamic() },
        replicas,
        current: &current,
        free: &free,
        spread: json!([]),
        fresh,
    };
    case.shares()
}

fn share(shares: &[(String, i32)], cluster: &str) -> i64 {
    let found = shares.iter().find(|(name, _)| name == cluster);
    found.map_or(0, |(_, replicas)| i64::from(*replicas))
}

proptest! {
    /// Shares add up, no cluster gets more than it has room for, and what is placed moves only if it must.
    #[test]
    fn shares_add_up_fit_and_move_nothing_without_need(
        clusters in clusters(), replicas in 1..60_i32, is_aggregated in any::<bool>(), fresh in any::<bool>(),
    ) {
        let held: i64 = clusters.iter().map(|(.., held)| i64::from(*held)).sum();
        let room: i64 = clusters.iter().map(|(_, free, _)| free.unwrap_or(0)).sum();
        let wanted = i64::from(replicas);
        let Some(shares) = divide(&clusters, replicas, is_aggregated, fresh) else {
            prop_assert!(held + room < wanted, "there is room for {wanted}");
            return Ok(());
        };
        prop_assert_eq!(shares.iter().map(|(_, share)| i64::from(*share)).sum::<i64>(), wanted);
        for (name, free, held) in &clusters {
            let (share, held) = (share(&shares, name), i64::from(*held));
            prop_assert!(share <= held + free.unwrap_or(0), "{name} has {share}");
            if !fresh && wanted >= i64::from(clusters.iter().map(|each| each.2).sum::<i32>()) {
                prop_assert!(share >= held, "{name} loses replicas of {held} while there are more");
            }
            if !fresh && wanted <= clusters.iter().map(|each| i64::from(each.2)).sum() {
                prop_assert!(share <= held, "{name} gets replicas to {held} while there are fewer");
            }
        }
    }

    #[test]
    fn the_order_of_the_clusters_decides_nothing(
        (clusters, shuffled) in clusters().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        replicas in 0..60_i32, is_aggregated in any::<bool>(), fresh in any::<bool>(),
    ) {
        prop_assert_eq!(
            divide(&clusters, replicas, is_aggregated, fresh),
            divide(&shuffled, replicas, is_aggregated, fresh)
        );
    }

    /// Once the summaries show what was placed, it is placed again as it is.
    #[test]
    fn what_was_placed_stays(clusters in clusters(), replicas in 1..60_i32, is_aggregated in any::<bool>()) {
        let Some(shares) = divide(&clusters, replicas, is_aggregated, false) else { return Ok(()) };
        let settled: Vec<_> = clusters
            .iter()
            .map(|(name, free, held)| {
                let share = share(&shares, name);
                let left = free.map(|free| free + i64::from(*held) - share);
                (*name, left, i32::try_from(share).unwrap())
            })
            .collect();
        prop_assert_eq!(divide(&settled, replicas, is_aggregated, false), Some(shares));
    }

    /// Aggregated: without any of the clusters that it takes anew, the others have too little room.
    #[test]
    fn as_few_clusters_as_possible_are_taken(clusters in clusters(), replicas in 1..60_i32) {
        let none: Vec<_> = clusters.iter().map(|(name, free, _)| (*name, *free, 0)).collect();
        let Some(shares) = divide(&none, replicas, true, false) else { return Ok(()) };
        let mut room: Vec<i64> = none.iter().map(|(_, free, _)| free.unwrap_or(0)).collect();
        room.sort_unstable();
        let most: i64 = room.iter().rev().take(shares.len() - 1).sum();
        prop_assert!(most < i64::from(replicas));
    }
}
