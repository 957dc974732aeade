//! The freshness rule: an event of an object counts only if it is news. One rule for the objects of all kinds.
//!
//! Each object has a minimum resourceVersion; events below it are outdated. So stale, repeated and reordered events change
//! nothing (I7). After the revisions of a server went back, cached objects from before have no minimum: every event of them is
//! news.

use crate::object::{Meta, Str, revision};

/// The minimum resourceVersion of an object: that of its cached version. The default is none: every event is news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness(u64);

/// The cached version of an object when an event of it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Its revision.
    pub(crate) revision: u64,
    /// True if the event has the same version.
    pub(crate) is_same: bool,
}

/// The content of an event about a deleted object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    /// Its uid, if known.
    pub(crate) uid: Option<Str>,
    /// The resourceVersion of its deletion, if known.
    pub(crate) revision: Option<u64>,
}

impl Freshness {
    /// A minimum.
    pub(crate) const fn from(revision: u64) -> Self {
        Self(revision)
    }

    /// True if there is no minimum: the object was not observed yet, or only before its server's revisions went back.
    pub(crate) const fn is_unknown(self) -> bool {
        self.0 == 0
    }

    /// True if an event at this resourceVersion is outdated.
    pub(crate) fn is_outdated(self, resource_version: &str) -> bool {
        revision(resource_version) < self.0
    }

    /// True if an event is news: it is neither outdated nor an echo of the cached version.
    pub(crate) const fn is_new(self, seen: u64, is_same: bool) -> bool {
        seen >= self.0 && (self.is_unknown() || !is_same)
    }

    /// The object was observed at a revision, whatever its minimum was before.
    pub(crate) const fn set(&mut self, seen: u64) {
        self.0 = seen;
    }

    /// Events below a revision are outdated from now on.
    pub(crate) fn raise(&mut self, revision: Option<u64>) {
        self.0 = self.0.max(revision.unwrap_or_default());
    }

    /// True if a deletion is not outdated and is that of the cached object, which has this uid.
    pub(crate) fn is_end_of(self, uid: &str, deletion: &Deletion) -> bool {
        deletion.uid.as_deref().is_none_or(|gone| gone == uid)
            && deletion.revision.is_none_or(|revision| revision >= self.0)
    }

    /// The object was deleted. Even without a revision of the deletion, its cached version is outdated from now on.
    pub(crate) fn end(&mut self, deletion: &Deletion) {
        self.0 = self.0.saturating_add(1);
        self.raise(deletion.revision);
    }
}

impl Held {
    /// The cached version of an object, compared with the observed one.
    pub(crate) fn of(held: &Meta, seen: &Meta) -> Self {
        Self {
            revision: held.revision(),
            is_same: held.is_same_version(seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_news_if_it_is_neither_outdated_nor_an_echo() {
        let known = Freshness::from(5);
        let table = [
            ("older", known, 4, false, false),
            ("an echo", known, 5, true, false),
            ("the same revision, another content", known, 5, false, true),
            ("newer", known, 6, false, true),
            ("the first", Freshness::default(), 1, false, true),
            ("the same after a restore", Freshness::default(), 5, true, true),
        ];
        for (what, known, seen, is_same, wanted) in table {
            assert_eq!(known.is_new(seen, is_same), wanted, "{what}");
        }
        assert!(known.is_outdated("4") && !known.is_outdated("5"));
    }

    #[test]
    fn a_deletion_ends_the_object_that_it_is_of_and_makes_older_events_outdated() {
        let mut known = Freshness::from(5);
        let deletion = |uid: Option<&str>, revision| Deletion {
            uid: uid.map(Into::into),
            revision,
        };
        let table = [
            ("of the object", deletion(Some("u"), Some(7)), true),
            ("nothing is known of it", deletion(None, None), true),
            ("of another object", deletion(Some("v"), Some(7)), false),
            ("outdated", deletion(Some("u"), Some(4)), false),
        ];
        for (what, deletion, wanted) in &table {
            assert_eq!(known.is_end_of("u", deletion), *wanted, "{what}");
        }
        known.end(&deletion(None, None));
        assert_eq!(known, Freshness::from(6));
        known.end(&deletion(None, Some(20)));
        assert_eq!(known, Freshness::from(20));
    }
}
