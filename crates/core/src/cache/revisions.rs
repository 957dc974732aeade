//! The freshness of all other objects than resources: policies, overrides, Clusters, namespaces, distributions and others.
//!
//! The minimum of a cached object is its own revision; it has none while it is from before the revisions of its server went
//! back. Deleted objects are remembered, bounded in number and in time, until the object is observed again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Deletion, Freshness, Held};
use crate::{
    object::{Str, Time},
    observation::ObjectRef,
};

/// The number of deleted objects that are remembered, and the time, in milliseconds: longer than any event is late.
pub(crate) const MOST: usize = 20_000;
pub(crate) const AGE: i64 = 600_000;

/// The revisions of deleted objects, and the objects in the cache whose revision does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revisions {
    gone: BTreeMap<ObjectRef, (Time, Freshness)>,
    /// In the order of deletion; an object that was observed or deleted again stays here until its time has come.
    order: VecDeque<(Time, ObjectRef)>,
    /// Cached from before the server's revisions went back. Always a subset of the cached objects.
    outdated: BTreeSet<ObjectRef>,
}

impl Revisions {
    /// The freshness of an object. `held`: its revision in the cache.
    fn of(&self, which: &ObjectRef, held: Option<u64>) -> Freshness {
        match held {
            Some(_) if self.outdated.contains(which) => Freshness::default(),
            Some(held) => Freshness::from(held),
            None => {
                let gone = self.gone.get(which);
                gone.map(|(_, freshness)| *freshness).unwrap_or_default()
            }
        }
    }

    /// An object was observed at a revision. Returns the freshness of its cached version, or `None` if that is no news. Cost:
    /// O(log remembered).
    pub(crate) fn see(&mut self, which: &ObjectRef, held: Option<Held>, seen: u64) -> Option<Freshness> {
        let freshness = self.of(which, held.map(|held| held.revision));
        if !freshness.is_new(seen, held.is_some_and(|held| held.is_same)) {
            return None;
        }
        self.gone.remove(which);
        self.outdated.remove(which);
        Some(freshness)
    }

    /// A cached object with this uid and revision was deleted. Returns its freshness, or `None` if that is no news. Cost: O(log
    /// remembered), amortised.
    pub(crate) fn end(
        &mut self,
        which: ObjectRef,
        (uid, revision): (&str, u64),
        deletion: &Deletion,
        now: Time,
    ) -> Option<Freshness> {
        let freshness = self.of(&which, Some(revision));
        if !freshness.is_end_of(uid, deletion) {
            return None;
        }
        let mut after = freshness;
        after.end(deletion);
        self.gone(which, after, now);
        Some(freshness)
    }

    /// It was deleted. Cost: O(log remembered), amortised.
    fn gone(&mut self, which: ObjectRef, min_resource_version: Freshness, now: Time) {
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

    /// A member was removed, with its namespaces. Cost: O(remembered).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        let of_it = |which: &ObjectRef| matches!(which, ObjectRef::Namespace(Some(name), _) | ObjectRef::Distributed(Some(name), _) | ObjectRef::QuotaCopy(name, _) | ObjectRef::Endpoints(name, ..) if name == cluster);
        self.gone.retain(|which, _| !of_it(which));
        self.order.retain(|(_, which)| !of_it(which));
        self.outdated.retain(|which| !of_it(which));
    }

    /// The revisions of a server went back: the remembered revisions of the watch no longer mean anything, nor do those of its
    /// cached objects. Cost: O(remembered + cached).
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
        revisions.gone(namespace(None, "a"), Freshness::from(5), Time(0));
        revisions.gone(namespace(None, "b"), Freshness::from(6), Time(1));
        assert_eq!(revisions.of(&namespace(None, "a"), None), Freshness::from(5));
        revisions.see(&namespace(None, "a"), None, 5).expect("news");
        assert!(revisions.of(&namespace(None, "a"), None).is_unknown());
        revisions.gone(namespace(None, "a"), Freshness::from(9), Time(2));
        revisions.gone(namespace(None, "c"), Freshness::from(7), Time(AGE + 1));
        let left = ["a", "b", "c"].map(|name| revisions.of(&namespace(None, name), None));
        assert_eq!(
            left,
            [9, 0, 7].map(Freshness::from),
            "what went once more is remembered from then on"
        );
        for at in 0..2 * MOST {
            revisions.gone(
                namespace(None, &format!("n{at}")),
                Freshness::from(1),
                Time(AGE + 2),
            );
        }
        assert!(revisions.gone.len() <= MOST && revisions.order.len() <= MOST);
    }

    #[test]
    fn a_member_that_leaves_takes_its_namespaces_along() {
        let mut revisions = Revisions::default();
        revisions.gone(namespace(Some("m1"), "a"), Freshness::from(5), Time(0));
        revisions.gone(namespace(Some("m2"), "a"), Freshness::from(6), Time(0));
        revisions.gone(namespace(None, "a"), Freshness::from(7), Time(0));
        revisions.forget_member(&"m1".into());
        assert_eq!(revisions.gone.len(), 2);
        assert!(revisions.of(&namespace(Some("m1"), "a"), None).is_unknown());
    }
}
