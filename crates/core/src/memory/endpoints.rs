//! The last writes of EndpointSlices of the hub: changes of a Service that follow each other closely are one write. And the Services that
//! members export whose endpoints are not watched, because there are too many.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{NamespacedName, Str, Time};

/// The shortest time between two writes for one Service of a member, in milliseconds.
const INTERVAL: i64 = 1_000;

/// The time of the last write, by member and Service.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointWrites(BTreeMap<(Str, NamespacedName), Time>);

impl EndpointWrites {
    /// The time before which nothing is written for a Service of a member; `None` if it may be written now. Cost: O(log Services).
    pub(crate) fn not_before(&self, cluster: &Str, service: &NamespacedName, now: Time) -> Option<Time> {
        let last = self.0.get(&(cluster.clone(), service.clone()))?;
        let until = last.plus(INTERVAL);
        (now < until).then_some(until)
    }

    /// Slices of a Service were planned, and are written, not only deleted, if `writes`. Cost: O(log Services).
    pub(crate) fn note(&mut self, cluster: &Str, service: &NamespacedName, writes: bool, now: Time) {
        if writes {
            self.0.insert((cluster.clone(), service.clone()), now);
        } else if self.not_before(cluster, service, now).is_none() {
            self.forget(cluster, service);
        }
    }

    /// A member does not export a Service any more. Cost: O(log Services).
    pub(crate) fn forget(&mut self, cluster: &Str, service: &NamespacedName) {
        self.0.remove(&(cluster.clone(), service.clone()));
    }

    /// A member was removed. Cost: O(Services).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.0.retain(|(of, _), _| **of != *cluster);
    }
}

/// The exported Services whose endpoints are not watched, by member; no entry if there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnwatchedExports(BTreeMap<Str, BTreeSet<NamespacedName>>);

impl UnwatchedExports {
    /// Notes whether a Service is one. Returns true if that changes. Cost: O(log Services).
    pub(crate) fn set(&mut self, cluster: &Str, service: &NamespacedName, is_one: bool) -> bool {
        if is_one {
            return self.0.entry(cluster.clone()).or_default().insert(service.clone());
        }
        let Some(services) = self.0.get_mut(cluster) else {
            return false;
        };
        let changes = services.remove(service);
        if services.is_empty() {
            self.0.remove(cluster);
        }
        changes
    }

    /// Those of a member. Cost: O(log members).
    pub(crate) fn of(&self, cluster: &str) -> Option<&BTreeSet<NamespacedName>> {
        self.0.get(cluster)
    }

    /// True if a Service is one. Cost: O(log Services).
    pub(crate) fn contains(&self, cluster: &str, service: &NamespacedName) -> bool {
        self.of(cluster)
            .is_some_and(|services| services.contains(service))
    }

    /// A member was removed. Cost: O(log members).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.0.remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_within_a_second_are_one_write_and_nothing_is_remembered_longer() {
        let mut writes = EndpointWrites::default();
        let (member, web) = (Str::from("m1"), NamespacedName::new("shop", "web"));
        assert_eq!(writes.not_before(&member, &web, Time(0)), None);
        writes.note(&member, &web, true, Time(0));
        assert_eq!(writes.not_before(&member, &web, Time(999)), Some(Time(1_000)));
        writes.note(&member, &web, false, Time(999));
        assert_eq!(writes.0.len(), 1);
        writes.note(&member, &web, false, Time(1_000));
        assert!(writes.0.is_empty());
        writes.note(&member, &web, true, Time(2_000));
        writes.forget(&member, &web);
        assert!(writes.0.is_empty());
        writes.note(&member, &web, true, Time(2_000));
        writes.forget_member("m2");
        assert_eq!(writes.0.len(), 1);
        writes.forget_member("m1");
        assert!(writes.0.is_empty());
    }
}
