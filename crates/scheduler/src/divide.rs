//! The division of replicas among the selected clusters: Webster's method, also called Sainte-Laguë.
//!
//! Each seat goes to the holder with the largest `weight / (2 × seats + 1)`. So one replica more or less changes the share of
//! one cluster only. Source: Karmada reference 1.3 (Assign).

use entourage_api::{names, policy::Placement};

use crate::{affinity, request::Candidate};

/// The static weight of a cluster: the largest of the rules that select it; 0 if none does.
/// Source: Karmada reference 1.3.
pub fn weight(placement: &Placement, candidate: &Candidate<'_>) -> i64 {
    let rules = placement
        .replica_scheduling
        .iter()
        .filter_map(|strategy| strategy.weight_preference.as_ref())
        .flat_map(|preference| &preference.static_weight_list);
    rules
        .filter(|rule| affinity::selects(&rule.target_cluster, candidate))
        .map(|rule| rule.weight)
        .max()
        .unwrap_or(0)
}

/// Divides seats among holders of weights: a share for each, in their order; the sum is `seats`. If no holder has a weight, all
/// weigh the same.
///
/// Of two with the same claim the one with fewer seats comes first, then the one with the smaller name, or with the larger one
/// if `uid` hashes to an odd number, so that remainders of many workloads do not all fall to one cluster. Source: Karmada
/// reference 1.3.
///
/// Cost: O(holders²), whatever the number of seats.
#[must_use]
pub fn apportion(seats: i64, holders: &[(&str, i64)], uid: &str) -> Vec<i64> {
    let even = holders.iter().all(|(_, weight)| *weight <= 0);
    let weights: Vec<i128> = holders
        .iter()
        .map(|(_, weight)| if even { 1 } else { i128::from((*weight).max(0)) })
        .collect();
    let total: i128 = weights.iter().sum();
    if total == 0 || seats <= 0 {
        return vec![0; holders.len()];
    }
    let is_descending = names::fnv1a_32(uid.as_bytes()) % 2 == 1;
    let count = i128::try_from(holders.len()).unwrap_or(i128::MAX);
    // Claims above the threshold total / (2 × seats − holders) are fewer than the seats: they are granted at once.
    let steep = (2 * i128::from(seats) - count).max(0);
    let mut shares: Vec<i128> = weights
        .iter()
        .map(|weight| ((weight * steep - 1).div_euclid(total) + 1).div_euclid(2))
        .collect();
    let rest = i128::from(seats) - shares.iter().sum::<i128>();
    for _ in 0..rest {
        let claims = |one: &usize, other: &usize| {
            let (left, right) = (
                weights[*one] * (2 * shares[*other] + 1),
                weights[*other] * (2 * shares[*one] + 1),
            );
            let by_name = holders[*other].0.cmp(holders[*one].0);
            left.cmp(&right)
                .then(shares[*other].cmp(&shares[*one]))
                .then(if is_descending { by_name.reverse() } else { by_name })
        };
        let next = (0..holders.len())
            .filter(|place| weights[*place] > 0)
            .max_by(claims);
        match next {
            Some(place) => shares[place] += 1,
            None => break,
        }
    }
    shares
        .into_iter()
        .map(|share| i64::try_from(share).unwrap_or(i64::MAX))
        .collect()
}

/// As [`apportion`], but each of the `reserved` gets at least one seat; there are at least as many seats as reserved holders.
///
/// Cost: O(holders³) when seats have to be kept for them.
pub(super) fn apportion_reserving(
    seats: i64,
    holders: &[(&str, i64)],
    reserved: &[bool],
    uid: &str,
) -> Vec<i64> {
    let mut granted = vec![false; holders.len()];
    loop {
        let places: Vec<usize> = (0..holders.len()).filter(|place| !granted[*place]).collect();
        let others: Vec<(&str, i64)> = places.iter().map(|place| holders[*place]).collect();
        let kept = i64::try_from(holders.len() - others.len()).unwrap_or(i64::MAX);
        let mut shares = vec![1; holders.len()];
        for (place, share) in places.iter().zip(apportion(seats - kept, &others, uid)) {
            shares[*place] = share;
        }
        // With fewer seats for all, a holder without a seat stays without: one seat is all that it will get.
        let short: Vec<usize> = places
            .into_iter()
            .filter(|place| reserved[*place] && shares[*place] == 0)
            .collect();
        if short.is_empty() {
            return shares;
        }
        for place in short {
            granted[place] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const UIDS: [&str; 3] = ["", "a", "b"];
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    fn shares(seats: i64, weights: &[i64], uid: &str) -> Vec<i64> {
        let holders: Vec<(&str, i64)> = NAMES.iter().copied().zip(weights.iter().copied()).collect();
        apportion(seats, &holders, uid)
    }

    /// The definition, one seat after the other.
    fn one_by_one(seats: i64, weights: &[i64], uid: &str) -> Vec<i64> {
        let weights: Vec<i128> = if weights.iter().all(|weight| *weight == 0) {
            vec![1; weights.len()]
        } else {
            weights.iter().map(|weight| i128::from(*weight)).collect()
        };
        let mut held = vec![0_i64; weights.len()];
        for _ in 0..seats {
            let mut order: Vec<usize> = (0..weights.len()).filter(|place| weights[*place] > 0).collect();
            if names::fnv1a_32(uid.as_bytes()) % 2 == 1 {
                order.reverse();
            }
            let claim = |place: usize, held: &[i64]| (weights[place], i128::from(2 * held[place] + 1));
            let Some(next) = order.into_iter().reduce(|best, other| {
                let ((a, b), (c, d)) = (claim(best, &held), claim(other, &held));
                if c * b > a * d || (c * b == a * d && held[other] < held[best]) {
                    other
                } else {
                    best
                }
            }) else {
                break;
            };
            held[next] += 1;
        }
        held
    }

    /// The example of the article on the Sainte-Laguë method in Wikipedia, seat by seat; Karmada tests with it too.
    #[test]
    fn the_textbook_example_comes_out() {
        let seats = [0, 1, 0, 2, 1, 3, 0, 1];
        let mut want = vec![0; 4];
        for (given, next) in seats.into_iter().enumerate() {
            want[next] += 1;
            let given = i64::try_from(given).unwrap() + 1;
            assert_eq!(
                shares(given, &[100_000, 80_000, 30_000, 20_000], "a"),
                want,
                "{given} seats"
            );
        }
    }

    /// Cases of Karmada's documentation and tests.
    #[test]
    fn known_divisions_come_out() {
        for (seats, weights, want) in [
            (4, vec![1200, 900, 400], vec![2, 1, 1]),
            (9, vec![1, 2], vec![3, 6]),
            (9, vec![1, 3], vec![2, 7]),
            (12, vec![3, 2, 1], vec![6, 4, 2]),
            (12, vec![0, 0, 0], vec![4, 4, 4]),
            (14, vec![3, 2, 1], vec![7, 5, 2]),
            (0, vec![3, 2], vec![0, 0]),
            (1, vec![1, 1], vec![1, 0]),
        ] {
            assert_eq!(shares(seats, &weights, "a"), want, "{seats} by {weights:?}");
        }
        assert_eq!(
            shares(1, &[1, 1], "b"),
            [0, 1],
            "an odd uid begins at the other end"
        );
        assert_eq!(shares(3, &[], "a"), [] as [i64; 0]);
    }

    proptest! {
        #[test]
        fn it_is_websters_method(
            seats in 0..60_i64,
            weights in vec(prop_oneof![0..4_i64, 0..1000_i64], 1..8),
            uid in prop::sample::select(&UIDS[..]),
        ) {
            prop_assert_eq!(shares(seats, &weights, uid), one_by_one(seats, &weights, uid));
        }

        #[test]
        fn a_reserved_seat_is_given_and_the_others_are_divided_as_ever(
            seats in 0..40_i64,
            weights in vec(1..1000_i64, 1..8),
            wanted in vec(any::<bool>(), 8),
            uid in prop::sample::select(&UIDS[..]),
        ) {
            let holders: Vec<(&str, i64)> = NAMES.iter().copied().zip(weights.iter().copied()).collect();
            let mut room = seats;
            let reserved: Vec<bool> = (0..weights.len())
                .map(|place| wanted[place] && { room -= 1; room >= 0 })
                .collect();
            let got = apportion_reserving(seats, &holders, &reserved, uid);
            prop_assert_eq!(got.iter().sum::<i64>(), seats);
            prop_assert!(got.iter().zip(&reserved).all(|(share, reserved)| !reserved || *share > 0));
            let free = apportion(seats, &holders, uid);
            if free.iter().zip(&reserved).all(|(share, reserved)| !reserved || *share > 0) {
                prop_assert_eq!(got, free);
            } else {
                prop_assert!(got.iter().zip(&free).all(|(got, free)| got <= free || (*got == 1 && *free == 0)));
            }
        }

        /// One replica more is one more for one cluster and none less for any other, at any scale.
        #[test]
        fn one_more_seat_moves_no_other(
            seats in prop_oneof![0..100_i64, 0..i64::from(i32::MAX)],
            weights in vec(prop_oneof![0..5_i64, 0..i64::MAX], 1..8),
            uid in prop::sample::select(&UIDS[..]),
        ) {
            let (before, after) = (shares(seats, &weights, uid), shares(seats + 1, &weights, uid));
            prop_assert_eq!(before.iter().sum::<i64>(), seats);
            prop_assert_eq!(after.iter().sum::<i64>(), seats + 1);
            prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
        }
    }
}
