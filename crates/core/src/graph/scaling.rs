//! Scaling: which HorizontalPodAutoscalers scale a workload, and the workloads that are labelled because of one.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::ResourceId;

/// Both relations, by the templates on the hub. Entries exist only while the scale-target marker is on.
#[derive(Debug, Default)]
pub(crate) struct Scaling {
    /// Workload → autoscalers whose template names it.
    scalers: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    /// Autoscaler → workloads that carry its name, among others, in [`entourage_api::keys::annotation::SCALED_BY`].
    marked: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
}

impl Scaling {
    /// The autoscalers whose template names a workload, by name. Cost: O(log workloads).
    pub(crate) fn scalers(&self, target: &ResourceId) -> impl Iterator<Item = &ResourceId> {
        self.scalers.get(target).into_iter().flatten()
    }

    /// The workloads that are labelled because of an autoscaler. Cost: O(log autoscalers).
    pub(crate) fn marked(&self, autoscaler: &ResourceId) -> impl Iterator<Item = &ResourceId> {
        self.marked.get(autoscaler).into_iter().flatten()
    }

    /// The template of an autoscaler names another workload than before, or none.
    pub(crate) fn retarget(
        &mut self,
        autoscaler: &ResourceId,
        before: Option<&ResourceId>,
        after: Option<&ResourceId>,
    ) {
        turn(&mut self.scalers, autoscaler, before, after);
    }

    /// The template of a workload names other autoscalers than before, or none.
    pub(crate) fn mark(&mut self, target: &ResourceId, before: &[ResourceId], after: &[ResourceId]) {
        for gone in before.iter().filter(|each| !after.contains(each)) {
            turn(&mut self.marked, target, Some(gone), None);
        }
        for new in after.iter().filter(|each| !before.contains(each)) {
            turn(&mut self.marked, target, None, Some(new));
        }
    }
}

/// Moves an entry from one set to another; no set stays empty.
fn turn(
    sets: &mut BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    entry: &ResourceId,
    before: Option<&ResourceId>,
    after: Option<&ResourceId>,
) {
    if before == after {
        return;
    }
    if let Some(before) = before
        && let Some(set) = sets.get_mut(before)
    {
        set.remove(entry);
        if set.is_empty() {
            sets.remove(before);
        }
    }
    if let Some(after) = after {
        sets.entry(after.clone()).or_default().insert(entry.clone());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::Gvk;

    fn id(kind: &str, at: usize) -> ResourceId {
        ResourceId::new(Gvk::new("v1", kind), "shop", &format!("n{at}"))
    }

    proptest! {
        /// The sets are those of the last names of each workload, and nothing is kept of the earlier ones.
        #[test]
        fn each_workload_is_in_the_sets_of_its_last_autoscalers_alone(
            changes in prop::collection::vec((0..3_usize, prop::collection::btree_set(0..4_usize, 0..3)), 1..30),
        ) {
            let mut scaling = Scaling::default();
            let mut held: BTreeMap<usize, Vec<ResourceId>> = BTreeMap::new();
            for (target, names) in changes {
                let after: Vec<ResourceId> = names.into_iter().map(|at| id("Scaler", at)).collect();
                let before = held.insert(target, after.clone()).unwrap_or_default();
                scaling.mark(&id("Deployment", target), &before, &after);
                for autoscaler in (0..4).map(|at| id("Scaler", at)) {
                    let want = held.iter().filter(|(_, names)| names.contains(&autoscaler));
                    let want: Vec<ResourceId> = want.map(|(at, _)| id("Deployment", *at)).collect();
                    prop_assert_eq!(scaling.marked(&autoscaler).cloned().collect::<Vec<_>>(), want);
                }
                prop_assert!(scaling.marked.values().all(|set| !set.is_empty()));
            }
        }

        /// The sets are those of the last target of each autoscaler, and nothing is kept of the earlier ones.
        #[test]
        fn each_autoscaler_is_in_the_set_of_its_last_target_alone(
            changes in prop::collection::vec((0..4_usize, prop::option::of(0..3_usize)), 1..30),
        ) {
            let mut scaling = Scaling::default();
            let mut held: BTreeMap<usize, ResourceId> = BTreeMap::new();
            for (autoscaler, target) in changes {
                let after = target.map(|at| id("Deployment", at));
                scaling.retarget(&id("Scaler", autoscaler), held.get(&autoscaler), after.as_ref());
                match after {
                    Some(after) => drop(held.insert(autoscaler, after)),
                    None => drop(held.remove(&autoscaler)),
                }
                for target in (0..3).map(|at| id("Deployment", at)) {
                    let want = held.iter().filter(|(_, each)| **each == target);
                    let want: Vec<ResourceId> = want.map(|(at, _)| id("Scaler", *at)).collect();
                    prop_assert_eq!(scaling.scalers(&target).cloned().collect::<Vec<_>>(), want);
                }
                prop_assert!(scaling.scalers.values().all(|set| !set.is_empty()));
            }
        }
    }
}
