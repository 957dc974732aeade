//! Revisions of policies, overrides, Clusters and namespaces: the revisions below which events of them are old news.
//!
//! What is held has its own revision for a floor, and none while it is from before the revisions of its server went back.
//! What is gone is remembered, bounded in number and in time, until the object is seen again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    object::{Str, Time},
    observation::ObjectRef,
};

/// How many objects that are gone are remembered, and for how long, in milliseconds: longer than any event is late.
pub(crate) const MOST: usize = 20_000;
pub(crate) const AGE: i64 = 600_000;

/// The revisions of deleted objects, and the objects in the cache whose revision does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revisions {
    gone: BTreeMap<ObjectRef, (Time, u64)>,
    /// In the order in which they went; what was seen again, or went once more, stands here until its time has come.
    order: VecDeque<(Time, ObjectRef)>,
    /// Held from before the server's revisions went back. Always a part of what is held.
    outdated: BTreeSet<ObjectRef>,
}

impl Revisions {
    /// The lowest revision at which an event of an object is news; 0 if every event is. `held`: its revision in the cache.
    pub(crate) fn of(&self, which: &ObjectRef, held: Option<u64>) -> u64 {
        match held {
            Some(_) if self.outdated.contains(which) => 0,
            Some(held) => held,
            None => self
                .gone
                .get(which)
                .map_or(0, |(_, min_resource_version)| *min_resource_version),
        }
    }

    /// It is gone. Cost: O(log remembered), amortised.
    pub(crate) fn gone(&mut self, which: ObjectRef, min_resource_version: u64, now: Time) {
        self.outdated.remove(&which);
        self.gone.insert(which.clone(), (now, min_resource_version));
        self.order.push_back((now, which));
        while let Some((time, _)) = self.order.front() {
            if self.order.len() <= MOST && now.0 - time.0 < AGE {
                break;
            }
            let Some((time, which)) = self.order.pop_front() else {
                break;
            };
            if self.gone.get(&which).is_some_and(|(held, _)| *held <= time) {
                self.gone.remove(&which);
            }
        }
    }

    /// The object is in the cache again, at a revision that counts.
    pub(crate) fn seen(&mut self, which: &ObjectRef) {
        self.gone.remove(which);
        self.outdated.remove(which);
    }

    /// A member is gone, with its namespaces. Cost: O(remembered).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        let of_it = |which: &ObjectRef| matches!(which, ObjectRef::Namespace(Some(name), _) | ObjectRef::Distributed(Some(name), _) if name == cluster);
        self.gone.retain(|which, _| !of_it(which));
        self.order.retain(|(_, which)| !of_it(which));
        self.outdated.retain(|which| !of_it(which));
    }

    /// The revisions of a server went back: what is remembered under the watch means nothing any more, nor does the
    /// revision of what is held under it. Cost: O(remembered + held).
    pub(crate) fn went_back(&mut self, held: Vec<ObjectRef>, is_under: impl Fn(&ObjectRef) -> bool) {
        self.gone.retain(|which, _| !is_under(which));
        self.order.retain(|(_, which)| !is_under(which));
        self.outdated.extend(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(cluster: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef::Namespace(cluster.map(Into::into), name.into())
    }

    #[test]
    fn what_is_gone_is_remembered_until_it_is_seen_again_or_too_long_ago() {
        let mut revisions = Revisions::default();
        revisions.gone(namespace(None, "a"), 5, Time(0));
        revisions.gone(namespace(None, "b"), 6, Time(1));
        assert_eq!(revisions.of(&namespace(None, "a"), None), 5);
        revisions.seen(&namespace(None, "a"));
        assert_eq!(revisions.of(&namespace(None, "a"), None), 0);
        revisions.gone(namespace(None, "a"), 9, Time(2));
        revisions.gone(namespace(None, "c"), 7, Time(AGE + 1));
        let left = ["a", "b", "c"].map(|name| revisions.of(&namespace(None, name), None));
        assert_eq!(left, [9, 0, 7], "what went once more is remembered from then on");
        for at in 0..2 * MOST {
            revisions.gone(namespace(None, &format!("n{at}")), 1, Time(AGE + 2));
        }
        assert!(revisions.gone.len() <= MOST && revisions.order.len() <= MOST);
    }

    #[test]
    fn a_member_that_leaves_takes_its_namespaces_along() {
        let mut revisions = Revisions::default();
        revisions.gone(namespace(Some("m1"), "a"), 5, Time(0));
        revisions.gone(namespace(Some("m2"), "a"), 6, Time(0));
        revisions.gone(namespace(None, "a"), 7, Time(0));
        revisions.forget_member(&"m1".into());
        assert_eq!(revisions.gone.len(), 2);
        assert_eq!(revisions.of(&namespace(Some("m1"), "a"), None), 0);
    }
}
