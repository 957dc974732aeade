//! Drift: another writer changes a copy, or deletes it, each time it is corrected.
//!
//! A single manual change is corrected at once. From the second one on each correction is delayed twice as long as the one
//! before, from a second to a minute, and from the third one on it is reported to the user. Drift is over when nothing was
//! corrected for ten minutes, or when the desired copy changes.

use std::collections::BTreeSet;

use entourage_api::keys::label;

use crate::object::{ResourceId, Time};

/// The number of corrections of a copy in a row, and the paths that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftBackoff {
    corrections: u32,
    last: Time,
    /// The time between the last two corrections, in milliseconds.
    interval: i64,
    /// The paths that differed; no values. Empty for a copy that did not exist.
    paths: BTreeSet<String>,
}

/// The first delay, in milliseconds; each is twice the one before.
const SHORTEST_PAUSE: i64 = 1_000;
/// The longest delay, in milliseconds.
const LONGEST_PAUSE: i64 = 60_000;
/// The time without corrections after which drift is over, in milliseconds.
const FORGOTTEN_AFTER: i64 = 600_000;
/// The number of corrections from which drift is reported.
const NO_ACCIDENT: u32 = 3;
/// The path for a copy that did not exist.
pub(crate) const DELETED: &str = "";
/// The maximum number of paths named.
const NAMED: usize = 3;

impl DriftBackoff {
    /// Adds a correction of a difference at `path` to the earlier ones.
    #[must_use]
    pub fn corrected(held: Option<Self>, path: String, now: Time) -> Self {
        let mut drift_backoff = held.filter(|held| now < held.over_at()).unwrap_or(Self {
            corrections: 0,
            last: now,
            interval: 0,
            paths: BTreeSet::new(),
        });
        drift_backoff.corrections = drift_backoff.corrections.saturating_add(1);
        drift_backoff.interval = now.0.saturating_sub(drift_backoff.last.0).max(0);
        drift_backoff.last = now;
        if drift_backoff.paths.len() < NAMED {
            drift_backoff.paths.insert(path);
        }
        drift_backoff
    }

    /// The time before which the copy is not corrected again.
    #[must_use]
    pub fn retry_at(&self) -> Time {
        self.last.plus(self.pause())
    }

    fn pause(&self) -> i64 {
        match self.corrections {
            0 | 1 => 0,
            more => (SHORTEST_PAUSE << (more - 2).min(16)).min(LONGEST_PAUSE),
        }
    }

    /// The time until which a copy of a distribution is reported as contended after the last correction: a few manual edits are
    /// reported for a short time, and a change that returns every few minutes all the time.
    #[must_use]
    pub fn told_until(&self) -> Time {
        let again = self.pause().max(self.interval).saturating_mul(2);
        self.last.plus(again.min(FORGOTTEN_AFTER))
    }

    /// The time at which drift is over, if nothing has to be corrected until then.
    #[must_use]
    pub fn over_at(&self) -> Time {
        self.last.plus(FORGOTTEN_AFTER)
    }

    /// True if drift is reported.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.corrections >= NO_ACCIDENT
    }

    /// The message about a copy of a distribution; `None` while drift is not reported.
    #[must_use]
    pub fn message_of_distribution(&self) -> Option<String> {
        if !self.is_told() {
            return None;
        }
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let what = match &*paths {
            [DELETED, ..] => "deleting it".to_owned(),
            _ => format!("changing {}", paths.join(", ")),
        };
        Some(format!(
            "another writer keeps {what} (contended); it is corrected with back-off: stop that writer, write its \
             change into the resource, or exclude the namespace"
        ))
    }

    /// The message about a copy; `None` while drift is not reported.
    #[must_use]
    pub fn message(&self, id: &ResourceId, cluster: &str) -> Option<String> {
        if !self.is_told() {
            return None;
        }
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let retained = if self.paths.contains("spec.replicas") {
            format!(
                ", or label the template {}: \"true\" if an autoscaler there decides",
                label::RETAIN_REPLICAS
            )
        } else {
            String::new()
        };
        Some(format!(
            "another writer on {cluster} keeps changing {} of {id} (contended); it is corrected with back-off: stop \
             it there, or set its value by an OverridePolicy for {cluster}{retained}",
            paths.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn fought(times: u32) -> DriftBackoff {
        let mut drift_backoff = None;
        for _ in 0..times {
            drift_backoff = Some(DriftBackoff::corrected(
                drift_backoff,
                "spec.paused".into(),
                Time(0),
            ));
        }
        drift_backoff.unwrap()
    }

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_a_minute() {
        let pauses: Vec<_> = (1..10).map(|times| fought(times).retry_at().0).collect();
        assert_eq!(
            pauses,
            [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
        );
    }

    #[test]
    fn ten_quiet_minutes_end_it() {
        let again = |at| DriftBackoff::corrected(Some(fought(8)), "spec.paused".into(), Time(at)).retry_at();
        assert_eq!(
            again(FORGOTTEN_AFTER - 1),
            Time(FORGOTTEN_AFTER - 1 + LONGEST_PAUSE)
        );
        assert_eq!(again(FORGOTTEN_AFTER), Time(FORGOTTEN_AFTER));
    }

    #[test]
    fn what_comes_back_every_few_minutes_is_told_without_a_break() {
        for minutes in 1..10 {
            let interval = minutes * 60_000;
            let mut drift_backoff = Some(fought(2));
            for round in 1..6 {
                let held =
                    DriftBackoff::corrected(drift_backoff, "spec.paused".into(), Time(round * interval));
                assert!(held.is_told());
                let next = Time((round + 1) * interval);
                assert!(next < held.told_until(), "every {minutes} minutes");
                assert!(held.told_until() <= held.over_at(), "every {minutes} minutes");
                drift_backoff = Some(held);
            }
        }
    }

    #[test]
    fn a_few_edits_are_told_for_seconds() {
        assert_eq!(fought(3).told_until(), Time(4_000));
    }

    #[test]
    fn the_message_of_a_distribution_names_what_is_changed_or_that_it_is_deleted() {
        assert_eq!(fought(2).message_of_distribution(), None);
        let message = fought(3).message_of_distribution().unwrap();
        assert!(message.contains("keeps changing spec.paused"), "{message}");
        let deleted = DriftBackoff::corrected(Some(fought(3)), DELETED.into(), Time(0));
        let message = deleted.message_of_distribution().unwrap();
        assert!(message.contains("keeps deleting it"), "{message}");
    }

    #[test]
    fn the_message_names_what_is_changed_and_the_remedy() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        assert_eq!(fought(2).message(&id, "m1"), None);
        let message = fought(3).message(&id, "m1").unwrap();
        assert!(
            message.contains("another writer on m1 keeps changing spec.paused"),
            "{message}"
        );
        assert!(!message.contains(label::RETAIN_REPLICAS), "{message}");
        let replicas = DriftBackoff::corrected(Some(fought(3)), "spec.replicas".into(), Time(0));
        let message = replicas.message(&id, "m1").unwrap();
        assert!(message.contains("spec.paused, spec.replicas"), "{message}");
        assert!(message.contains(label::RETAIN_REPLICAS), "{message}");
    }
}
