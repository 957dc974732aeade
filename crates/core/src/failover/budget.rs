//! Slots of the eviction budgets, taken for a binding before it is planned.

use std::collections::BTreeMap;

use super::to_leave;
pub use crate::eviction_budget::Budget;
use crate::{
    index::Index,
    object::{Str, Time},
    plan::Key,
};

/// Before a binding is planned: takes slots for the clusters that it is to leave. Cost: O(1) without budgets, else
/// that of [`to_leave`].
pub(crate) fn reserve(index: &mut Index, key: &Key, now: Time) {
    let Key::Binding(id) = key else { return };
    let budget = index.config.eviction_budget;
    if budget.is_unlimited() {
        return;
    }
    let region = |cluster: &Str| {
        let region = &index.members.get(cluster)?.object.spec.region;
        (!region.is_empty()).then(|| region.as_str().into())
    };
    let due: BTreeMap<Str, Option<Str>> = to_leave(index, id, now)
        .into_iter()
        .map(|cluster| {
            let region = region(&cluster);
            (cluster, region)
        })
        .collect();
    index.evictions.reserve(&budget, id, &due, now);
}
