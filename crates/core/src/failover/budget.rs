//! The eviction slots of a binding.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::eviction_budget::Budget;
use crate::{
    fleet::Fleet,
    object::{Str, Time},
    plan::{Key, Plan},
};

/// Takes slots for the clusters that a planned binding is to be evicted from. Returns true if any was taken, so that its plan
/// may now differ. If nothing was decided, or nothing can be written yet, it keeps its slots. Cost: O(1) without budgets, else
/// O(clusters × log evictions).
pub(crate) fn reserve(fleet: &mut Fleet, key: &Key, plan: &Plan, now: Time) -> bool {
    let Key::Binding(id) = key else { return false };
    let budget = fleet.config.eviction_budget;
    if budget.is_unlimited() {
        return false;
    }
    let is_gone = fleet
        .resource(id)
        .is_none_or(|resource| resource.binding.is_none());
    let leaves = match &plan.leaves {
        Some(leaves) if plan.awaits.is_none() => leaves,
        _ if is_gone => &BTreeSet::new(),
        _ => return false,
    };
    let region = |cluster: &Str| {
        let region = &fleet.cache.members.get(cluster)?.object.spec.region;
        (!region.is_empty()).then(|| region.as_str().into())
    };
    let leaves = leaves.iter();
    let due: BTreeMap<Str, Option<Str>> = leaves.map(|cluster| (cluster.clone(), region(cluster))).collect();
    fleet.memory.evictions.reserve(&budget, id, &due, now)
}
