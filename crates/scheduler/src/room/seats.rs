//! The division of further replicas among clusters, as seats among parties: tier by tier, by their room.

use std::{cmp::Reverse, collections::BTreeSet};

use entourage_api::names;

use super::Preference;
use crate::spread::Ranked;

/// The seats, divided among the tiers in their order: each takes as many as it has room for before the next one takes any. `base`
/// is the number of replicas that stay, `room` that of further ones.
pub(super) fn by_tier(
    uid: &str,
    holders: &[Ranked<'_>],
    (base, room): (&[i64], &[i64]),
    mut seats: i64,
    preference: Preference,
) -> Vec<i64> {
    let tiers: BTreeSet<usize> = holders.iter().map(|each| each.tier).collect();
    let mut shares = vec![0; holders.len()];
    for tier in tiers {
        let of_tier = |(each, room): (&Ranked<'_>, &i64)| if each.tier == tier { *room } else { 0 };
        let room: Vec<i64> = holders.iter().zip(room).map(of_tier).collect();
        let taken = seats.min(room.iter().fold(0, |sum: i64, more| sum.saturating_add(*more)));
        let weights = match preference {
            Preference::Available => room,
            Preference::Aggregated => fewest(holders, base, &room, taken),
        };
        let more = proportional(uid, holders, base, &weights, taken);
        shares
            .iter_mut()
            .zip(more)
            .for_each(|(share, more)| *share += more);
        seats -= taken;
    }
    shares
}

/// The seats in proportion to the weights, whose sum is no less: each holder's part, rounded down, and one of the rest for those
/// with the largest weights; among equal ones for those with more replicas, then by name, or backwards if `uid` hashes to an odd
/// number. No share is larger than its weight.
fn proportional(uid: &str, holders: &[Ranked<'_>], base: &[i64], weights: &[i64], seats: i64) -> Vec<i64> {
    let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    if total == 0 {
        return vec![0; holders.len()];
    }
    let part =
        |weight: &i64| i64::try_from(i128::from(*weight) * i128::from(seats) / total).unwrap_or(*weight);
    let mut shares: Vec<i64> = weights.iter().map(part).collect();
    let rest = usize::try_from(seats - shares.iter().sum::<i64>()).unwrap_or(0);
    if rest > 0 {
        let is_descending = names::fnv1a_32(uid.as_bytes()) % 2 == 1;
        let mut order: Vec<usize> = (0..holders.len()).collect();
        order.sort_by(|one, other| {
            let by_name = holders[*one].candidate.name.cmp(holders[*other].candidate.name);
            (weights[*other], base[*other])
                .cmp(&(weights[*one], base[*one]))
                .then(if is_descending { by_name.reverse() } else { by_name })
        });
        for place in order.into_iter().take(rest) {
            shares[place] += 1;
        }
    }
    shares
}

/// The room of as few clusters as have enough for the seats, and 0 for the others: those with replicas first, then the roomiest,
/// then by name.
fn fewest(holders: &[Ranked<'_>], base: &[i64], room: &[i64], seats: i64) -> Vec<i64> {
    let mut order: Vec<usize> = (0..holders.len()).collect();
    order.sort_by_key(|place| {
        (
            base[*place] == 0,
            Reverse(room[*place]),
            holders[*place].candidate.name,
        )
    });
    let mut taken = vec![0; holders.len()];
    let mut sum = 0_i64;
    for place in order {
        if sum >= seats {
            break;
        }
        taken[place] = room[place];
        sum = sum.saturating_add(room[place]);
    }
    taken
}
