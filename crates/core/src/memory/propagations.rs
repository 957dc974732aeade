//! The changes on their way: since when some copy of a template is outdated, and how long it took until none was. For metrics, and
//! decides nothing.
//!
//! Invariants:
//! - A change begins with the first copy whose record is not from the wanted version, and ends with the last one. Changes that meet
//!   count as one, from the first.
//! - It is reported once, with the time until the last copy that reached the wanted version. Copies that never do, because they or their
//!   template are deleted, or because their delivery is suspended, add nothing to it; without any other there is no report.
//! - One that a list shows, after a start or a gap, began nobody knows when: it is on its way, and its end is not reported.
//! - A process that does not lead follows the records of the one that does, and reports nothing: each change is counted by one process.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{ResourceId, Str, Time};

/// The way in which a copy ceases to be outdated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was written from the wanted version.
    Reached,
    /// It is not wanted any more, is not to be written now, or there is nothing to write.
    Dropped,
}

/// A change that has reached all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Propagated {
    /// The template.
    pub template: ResourceId,
    /// The time of the first copy that it outdated.
    pub began: Time,
    /// The time of the last copy that was written from it.
    pub reached: Time,
}

impl Propagated {
    /// The time between the two, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> i64 {
        self.reached.0 - self.began.0
    }
}

/// One change on its way.
#[derive(Clone, Debug)]
struct Propagation {
    /// `None` if that is not known.
    began: Option<Time>,
    outdated: BTreeSet<Str>,
    /// The time when the last copy reached the wanted version; `None` before the first one has.
    reached: Option<Time>,
}

/// The changes on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Propagations {
    running: BTreeMap<ResourceId, Propagation>,
    /// The changes that have ended since the last report.
    ended: Vec<Propagated>,
}

impl Propagations {
    /// A copy became outdated, at this time if it is known. Cost: O(log).
    pub(crate) fn begins(&mut self, id: &ResourceId, cluster: &Str, began: Option<Time>) {
        let propagation = self.running.entry(id.clone()).or_insert_with(|| Propagation {
            began,
            outdated: BTreeSet::new(),
            reached: None,
        });
        propagation.outdated.insert(cluster.clone());
    }

    /// A copy is outdated no longer. `leading`: the end of the change is reported. Cost: O(log).
    pub(crate) fn ends(&mut self, id: &ResourceId, cluster: &str, end: End, leading: bool, now: Time) {
        let Some(propagation) = self.running.get_mut(id) else {
            return;
        };
        if !propagation.outdated.remove(cluster) {
            return;
        }
        if end == End::Reached {
            propagation.reached = Some(now);
        }
        if propagation.outdated.is_empty()
            && let Some((template, propagation)) = self.running.remove_entry(id)
            && leading
            && let (Some(began), Some(reached)) = (propagation.began, propagation.reached)
        {
            self.ended.push(Propagated {
                template,
                began,
                reached,
            });
        }
    }

    /// A member is gone. Cost: O(changes on their way).
    pub(crate) fn forget_member(&mut self, cluster: &str, leading: bool, now: Time) {
        let there = self.running.iter();
        let there = there.filter(|(_, propagation)| propagation.outdated.contains(cluster));
        for id in there.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.ends(&id, cluster, End::Dropped, leading, now);
        }
    }

    /// A template is gone, with its binding and its copies. Cost: O(log).
    pub(crate) fn forget(&mut self, id: &ResourceId) {
        self.running.remove(id);
    }

    /// The number of changes on their way.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// The changes that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<Propagated> {
        std::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name)
    }

    /// The durations of the changes that have ended since the last call, in milliseconds.
    fn took(all: &mut Propagations) -> Vec<i64> {
        all.take_ended().iter().map(Propagated::millis).collect()
    }

    #[test]
    fn a_change_ends_with_its_last_copy() {
        let mut all = Propagations::default();
        all.begins(&id("a"), &"m1".into(), Some(Time(100)));
        all.begins(&id("a"), &"m2".into(), Some(Time(130)));
        all.begins(&id("b"), &"m1".into(), Some(Time(200)));
        all.ends(&id("a"), "m1", End::Reached, true, Time(300));
        assert_eq!((took(&mut all), all.count()), (vec![], 2));
        all.ends(&id("a"), "m1", End::Reached, true, Time(350));
        all.ends(&id("a"), "m2", End::Reached, true, Time(400));
        all.ends(&id("b"), "m1", End::Reached, true, Time(900));
        assert_eq!((took(&mut all), all.count()), (vec![300, 700], 0));
        assert!(all.take_ended().is_empty());
    }

    #[test]
    fn what_ends_otherwise_is_reported_with_the_last_copy_that_reached_the_version() {
        for (first, second, leading, wanted) in [
            (End::Reached, End::Reached, true, vec![20]),
            (End::Reached, End::Dropped, true, vec![10]),
            (End::Dropped, End::Reached, true, vec![20]),
            (End::Dropped, End::Dropped, true, vec![]),
            (End::Reached, End::Reached, false, vec![]),
        ] {
            let mut all = Propagations::default();
            all.begins(&id("a"), &"m1".into(), Some(Time(0)));
            all.begins(&id("a"), &"m2".into(), Some(Time(0)));
            all.ends(&id("a"), "m1", first, leading, Time(10));
            all.ends(&id("a"), "m2", second, leading, Time(20));
            assert_eq!(
                (took(&mut all), all.count()),
                (wanted, 0),
                "{first:?} {second:?} {leading}"
            );
        }
    }

    #[test]
    fn a_change_that_a_list_showed_is_on_its_way_and_not_reported() {
        let mut all = Propagations::default();
        all.begins(&id("a"), &"m1".into(), None);
        all.begins(&id("a"), &"m2".into(), Some(Time(5)));
        assert_eq!(all.count(), 1);
        all.ends(&id("a"), "m1", End::Reached, true, Time(10));
        all.ends(&id("a"), "m2", End::Reached, true, Time(20));
        assert_eq!((took(&mut all), all.count()), (vec![], 0));
    }

    #[test]
    fn a_member_that_left_and_a_template_that_is_gone_hold_nothing_up() {
        let mut all = Propagations::default();
        all.begins(&id("a"), &"m1".into(), Some(Time(0)));
        all.begins(&id("a"), &"m2".into(), Some(Time(0)));
        all.begins(&id("b"), &"m2".into(), Some(Time(0)));
        all.ends(&id("a"), "m1", End::Reached, true, Time(10));
        all.forget_member("m2", true, Time(50));
        assert_eq!((took(&mut all), all.count()), (vec![10], 0));
        all.begins(&id("a"), &"m1".into(), Some(Time(60)));
        all.forget(&id("a"));
        all.ends(&id("a"), "m1", End::Reached, true, Time(70));
        assert_eq!((took(&mut all), all.count()), (vec![], 0));
    }
}
