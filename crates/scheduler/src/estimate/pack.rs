//! The number of sets of pods that nodes have room for, each pod on one of them.
//!
//! Nodes with the same room are counted together, so that the cost does not depend on their number, nor on that of the pods. A number is
//! the answer only if a place was found for every pod; there may be room for more.

use std::borrow::Cow;

use entourage_model::object::Str;

use super::{Amounts, Class, Part};

/// The largest number of sets, `most` or fewer, for which a place was found. Pods of which the nodes hold the fewest are placed first, each
/// on the smallest class of nodes that holds it. `nodes` are in the order of their size.
///
/// Cost: O(log sets × parts × (classes + parts) × resources).
pub(super) fn sets(nodes: &[Class], parts: &[Part], most: i128) -> i128 {
    let mut scarce_first: Vec<&Part> = parts.iter().collect();
    scarce_first.sort_by_cached_key(|part| {
        let counts = nodes.iter().map(|class| of_class(class, part));
        counts.fold(0_i128, i128::saturating_add)
    });
    let fits = |sets: i128| have_room(nodes, &scarce_first, sets);
    if most < 1 || !fits(1) {
        return 0;
    }
    let (mut fitting, mut beyond) = (1, most.saturating_add(1));
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    fitting
}

/// The nodes without as many of the largest as it takes to hold these amounts: on which nodes they are taken is unknown. Cost: O(classes ×
/// resources).
pub(super) fn without(nodes: &[Class], mut taken: Amounts) -> Vec<Class> {
    let mut left = nodes.to_vec();
    for class in left.iter_mut().rev() {
        let offers = |name: &Str| class.least.get(name).copied().unwrap_or(0).max(0);
        let needed = taken.iter().map(|(name, amount)| match offers(name) {
            0 => 0,
            offered => amount.max(&0).saturating_add(offered - 1) / offered,
        });
        let gone = needed.max().unwrap_or(0).min(i128::from(class.nodes.max(0)));
        for (name, amount) in &mut taken {
            *amount = amount.saturating_sub(offers(name).saturating_mul(gone));
        }
        class.nodes -= i64::try_from(gone).unwrap_or(class.nodes);
    }
    left
}

/// The number of pods that a node with this room holds.
pub(super) fn on_one(free: &Amounts, pod: &Amounts) -> i128 {
    let each = |(name, amount): (&Str, &i128)| free.get(name).copied().unwrap_or(0).max(0) / amount;
    pod.iter().map(each).min().unwrap_or(i128::MAX)
}

/// The number of pods of a part that the nodes of a class hold alone.
fn of_class(class: &Class, part: &Part) -> i128 {
    let nodes = i128::from(class.nodes.max(0));
    on_one(&class.least, &part.each).saturating_mul(nodes)
}

/// True if a place is found for so many sets. Invariant: all nodes of a group have the same room.
fn have_room(nodes: &[Class], parts: &[&Part], sets: i128) -> bool {
    let nodes = nodes.iter().filter(|class| class.nodes > 0);
    let mut groups: Vec<(Cow<'_, Amounts>, i128)> = nodes
        .map(|class| (Cow::Borrowed(&class.least), i128::from(class.nodes)))
        .collect();
    for part in parts {
        let mut open = sets.saturating_mul(i128::from(part.pods));
        let mut after = Vec::with_capacity(groups.len() + 2);
        for (free, count) in groups {
            let on_one = on_one(&free, &part.each);
            let taken = open.min(on_one.saturating_mul(count));
            if taken == 0 {
                after.push((free, count));
                continue;
            }
            open -= taken;
            let (full, rest) = (taken / on_one, taken % on_one);
            let last = i128::from(rest > 0);
            for (pods, count) in [(on_one, full), (rest, last)] {
                if count > 0 {
                    after.push((Cow::Owned(less(&free, &part.each, pods)), count));
                }
            }
            let untouched = count - full - last;
            if untouched > 0 {
                after.push((free, untouched));
            }
        }
        if open > 0 {
            return false;
        }
        groups = after;
    }
    true
}

/// The room of a node that takes so many more pods.
fn less(free: &Amounts, pod: &Amounts, pods: i128) -> Amounts {
    let taken = |name: &Str| pod.get(name).map_or(0, |amount| amount.saturating_mul(pods));
    let left = free
        .iter()
        .map(|(name, amount)| (name.clone(), amount.saturating_sub(taken(name))));
    left.collect()
}
