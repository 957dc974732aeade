//! The clusters that lost stuck replicas of a workload; see [`crate::descheduling`].

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{ResourceId, Str, Time};

/// The time, in milliseconds, for which a cluster that lost stuck replicas of a workload gets no further ones of it.
const CLOSED: i64 = 30 * 60_000;

/// Replicas of a workload that were moved away from a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The number of replicas that the cluster keeps.
    pub(crate) left: i32,
    /// The time of the decision.
    pub(crate) at: Time,
}

/// The recent deschedulings.
#[derive(Debug, Default)]
pub(crate) struct Descheduled {
    by_workload: BTreeMap<ResourceId, BTreeMap<Str, Moved>>,
    /// The times of all of them.
    times: BTreeSet<(Time, ResourceId, Str)>,
}

impl Descheduled {
    /// The clusters that lost replicas of a workload lately. Cost: O(log workloads + those).
    pub(crate) fn of(&self, id: &ResourceId, now: Time) -> BTreeMap<Str, Moved> {
        let moved = self.by_workload.get(id).into_iter().flatten();
        moved
            .filter(|(_, moved)| now < moved.at.plus(CLOSED))
            .map(|(cluster, moved)| (cluster.clone(), *moved))
            .collect()
    }

    /// Notes that replicas of a workload are about to leave a cluster, and forgets what is over. Cost: O(log + those that are over).
    pub(crate) fn note(&mut self, id: &ResourceId, cluster: Str, moved: Moved) {
        let of_workload = self.by_workload.entry(id.clone()).or_default();
        if let Some(before) = of_workload.insert(cluster.clone(), moved) {
            self.times.remove(&(before.at, id.clone(), cluster.clone()));
        }
        self.times.insert((moved.at, id.clone(), cluster));
        while let Some((at, ..)) = self.times.first()
            && at.plus(CLOSED) <= moved.at
            && let Some((_, id, cluster)) = self.times.pop_first()
        {
            let Some(held) = self.by_workload.get_mut(&id) else {
                continue;
            };
            held.remove(&cluster);
            if held.is_empty() {
                self.by_workload.remove(&id);
            }
        }
    }

    /// A Cluster was deleted. Cost: O(deschedulings).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.times.retain(|(.., name)| **name != *cluster);
        self.by_workload.retain(|_, clusters| {
            clusters.remove(cluster);
            !clusters.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    #[test]
    fn a_descheduling_counts_for_half_an_hour() {
        let id = |name| ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name);
        let (a, b) = (Str::from("a"), Str::from("b"));
        let moved = |at| Moved {
            left: 1,
            at: Time(at),
        };
        let mut all = Descheduled::default();
        all.note(&id("x"), a.clone(), moved(0));
        all.note(&id("x"), b.clone(), moved(10));
        // Again, later.
        all.note(&id("x"), a.clone(), moved(20));
        assert_eq!(all.of(&id("x"), Time(CLOSED + 9)).len(), 2);
        assert_eq!(
            all.of(&id("x"), Time(CLOSED + 10)),
            [(a.clone(), moved(20))].into()
        );
        assert!(all.of(&id("y"), Time(0)).is_empty());
        all.note(&id("y"), a, moved(CLOSED + 10));
        assert_eq!(all.by_workload.values().map(BTreeMap::len).sum::<usize>(), 2);
        all.note(&id("y"), b, moved(CLOSED + 20));
        assert!(!all.by_workload.contains_key(&id("x")));
        assert_eq!(all.times.len(), 2);
        all.forget_member("a");
        assert_eq!((all.times.len(), all.by_workload.len()), (1, 1));
    }
}
