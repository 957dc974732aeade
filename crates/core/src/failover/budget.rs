//! Slots of the eviction budgets, taken for what a binding is to leave.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::eviction_budget::Budget;
use crate::{
    index::Index,
    object::{Str, Time},
    plan::{Key, Plan},
};

/// When a binding was planned: takes slots for the clusters that it is to leave, and answers whether any was taken, so that its
/// plan may be another one now. Where nothing was decided, or nothing can be written yet, it keeps what it has. Cost: O(1) without
/// budgets, else O(clusters × log evictions).
pub(crate) fn reserve(index: &mut Index, key: &Key, plan: &Plan, now: Time) -> bool {
    let Key::Binding(id) = key else { return false };
    let budget = index.config.eviction_budget;
    if budget.is_unlimited() {
        return false;
    }
    let is_gone = index
        .resource(id)
        .is_none_or(|resource| resource.binding.is_none());
    let leaves = match &plan.leaves {
        Some(leaves) if plan.awaits.is_none() => leaves,
        _ if is_gone => &BTreeSet::new(),
        _ => return false,
    };
    let region = |cluster: &Str| {
        let region = &index.members.get(cluster)?.object.spec.region;
        (!region.is_empty()).then(|| region.as_str().into())
    };
    let leaves = leaves.iter();
    let due: BTreeMap<Str, Option<Str>> = leaves.map(|cluster| (cluster.clone(), region(cluster))).collect();
    index.evictions.reserve(&budget, id, &due, now)
}
