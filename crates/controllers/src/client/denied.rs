//! The rights that the hub denies to our account: each is logged, whatever the request was for.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use entourage_core::object::Time;
use tracing::warn;

use crate::error::Failure;

/// The time for which a right that is denied again is not logged again, in milliseconds.
const QUIET: i64 = 600_000;

/// The maximum number of rights that are remembered; a further one is logged each time.
const MOST: usize = 1_000;

/// The rights that were denied, and when each was logged.
#[derive(Default)]
pub(super) struct Denied(Mutex<BTreeMap<String, Time>>);

impl Denied {
    /// Logs the right that a refusal is for want of, unless that was logged a short while ago.
    pub(super) fn note(&self, failure: &Failure, now: Time) {
        let Some(right) = failure.denied_right() else {
            return;
        };
        if self.is_news(&right, now) {
            let remedy = "grant it to the account; the roles of config/ list its rights: docs/reference/members.md, \"Rights on the hub\"";
            warn!(
                cluster = "hub",
                right, remedy, "a right is denied to this process"
            );
        }
    }

    fn is_news(&self, right: &str, now: Time) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(right).is_some_and(|at| now.0 - at.0 < QUIET) {
            return false;
        }
        if logged.len() < MOST || logged.contains_key(right) {
            logged.insert(right.to_owned(), now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_news_once_in_ten_minutes() {
        let denied = Denied::default();
        let news = |right, minutes: i64| denied.is_news(right, Time(minutes * 60_000));
        assert!(news("list nodes", 0));
        assert!(!news("list nodes", 9));
        assert!(news("patch events", 9));
        assert!(news("list nodes", 10));
        assert!(!news("list nodes", 11));
    }
}
