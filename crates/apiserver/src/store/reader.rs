//! The readers of events, and the position of each.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use super::Revision;

/// A position in the events of a collection, or of all. While it lives, the events behind it are kept as long as there is room.
#[derive(Debug)]
pub(crate) struct Reader(Arc<AtomicU64>);

impl Reader {
    pub(super) fn new(at: Revision) -> (Self, Weak<AtomicU64>) {
        let at = Arc::new(AtomicU64::new(at));
        let watched = Arc::downgrade(&at);
        (Self(at), watched)
    }

    /// The revision up to which all events were read.
    pub(crate) fn at(&self) -> Revision {
        self.0.load(Ordering::Relaxed)
    }

    /// Records that all events up to `revision` were read.
    pub(crate) fn reached(&self, revision: Revision) {
        self.0.store(revision, Ordering::Relaxed);
    }
}

/// The position of the slowest of them; those that are gone are dropped. O(readers).
pub(super) fn slowest(readers: &mut Vec<Weak<AtomicU64>>) -> Revision {
    let mut slowest = Revision::MAX;
    readers.retain(|reader| {
        let at = reader.upgrade().map(|at| at.load(Ordering::Relaxed));
        slowest = slowest.min(at.unwrap_or(Revision::MAX));
        at.is_some()
    });
    slowest
}
