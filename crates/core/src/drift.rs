//! Drift: another writer changes an object that we write, or deletes it, each time it is corrected.
//!
//! A single manual change is corrected at once. From the second one on each correction is delayed twice as long as the one
//! before, from a second to a minute, and from the third one on it is reported to the user; of a status corrections are only
//! counted. Drift is over when nothing was corrected for some time, see [`Drifting`], or when the desired object changes.

use std::collections::BTreeSet;

use entourage_api::keys::label;

use crate::object::{ResourceId, Time};

/// The objects whose drift is corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drifting {
    /// The copy of a binding or of a distribution. Its drift is reported, so a change that returns every few minutes must not
    /// look like a new one each time.
    Copy,
    /// The labels and annotations of a member's namespace.
    Namespace,
    /// The status of a template.
    Status,
    /// The label or the replicas of a template that follow from autoscalers. Its drift is reported, as that of a copy.
    Scaling,
}

impl Drifting {
    /// The time without corrections after which drift is over, in milliseconds.
    const fn over_after(self) -> i64 {
        match self {
            Self::Copy | Self::Scaling => 600_000,
            Self::Namespace => 60_000,
            Self::Status => 300_000,
        }
    }
}

/// The number of corrections of an object in a row, and the paths that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftBackoff {
    of: Drifting,
    corrections: u32,
    last: Time,
    /// The time between the last two corrections, in milliseconds.
    interval: i64,
    /// The paths that differed; no values. Empty for an object that did not exist.
    paths: BTreeSet<String>,
}

/// The first delay, in milliseconds; each is twice the one before.
const SHORTEST_PAUSE: i64 = 1_000;
/// The longest delay, in milliseconds.
const LONGEST_PAUSE: i64 = 60_000;
/// The time without corrections after a delay before which drift is never over, in milliseconds: else each correction that was
/// delayed for longer than drift is remembered would be a first one.
const CALM: i64 = 60_000;
/// The number of corrections from which drift is reported.
const NO_ACCIDENT: u32 = 3;
/// The path for an object that did not exist.
pub(crate) const DELETED: &str = "";
/// The maximum number of paths named.
const NAMED: usize = 3;

impl DriftBackoff {
    /// Adds a correction of a difference at `path` to the earlier ones.
    pub(crate) fn corrected(held: Option<Self>, of: Drifting, path: &str, now: Time) -> Self {
        let mut drift_backoff = held.filter(|held| now < held.over_at()).unwrap_or(Self {
            of,
            corrections: 0,
            last: now,
            interval: 0,
            paths: BTreeSet::new(),
        });
        drift_backoff.corrections = drift_backoff.corrections.saturating_add(1);
        drift_backoff.interval = now.0.saturating_sub(drift_backoff.last.0).max(0);
        drift_backoff.last = now;
        if drift_backoff.paths.len() < NAMED {
            drift_backoff.paths.insert(path.to_owned());
        }
        drift_backoff
    }

    /// Adds a difference at `path` that is corrected as soon as possible. Differences until then are not counted.
    pub(crate) fn differs(held: Option<Self>, of: Drifting, path: &str, now: Time) -> Self {
        match held {
            Some(held) if now < held.retry_at() => held,
            held => Self::corrected(held, of, path, now),
        }
    }

    /// The drift of a copy that was compared, and corrected if it differed at a path.
    pub(crate) fn compared(held: Option<Box<Self>>, differed: Option<&str>, now: Time) -> Option<Box<Self>> {
        match differed {
            Some(path) => Some(Box::new(Self::corrected(
                held.map(|held| *held),
                Drifting::Copy,
                path,
                now,
            ))),
            None => held.filter(|held| now < held.over_at()),
        }
    }

    /// The time before which the object is not corrected again.
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
    pub fn reported_until(&self) -> Time {
        let again = self.pause().max(self.interval).saturating_mul(2);
        self.last.plus(again.min(self.of.over_after()))
    }

    /// The time at which drift is over, if nothing has to be corrected until then.
    #[must_use]
    pub fn over_at(&self) -> Time {
        let calm = self.pause().saturating_add(CALM);
        self.last.plus(self.of.over_after().max(calm))
    }

    /// True if drift is reported.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.corrections >= NO_ACCIDENT
    }

    /// The message about a copy of a distribution; `None` while drift is not reported.
    #[must_use]
    pub fn message_of_distribution(&self) -> Option<String> {
        if !self.is_reported() {
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
        if !self.is_reported() {
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
    use proptest::prelude::*;

    use super::*;
    use crate::object::Gvk;

    fn corrected(held: Option<DriftBackoff>, at: i64) -> DriftBackoff {
        DriftBackoff::corrected(held, Drifting::Copy, "spec.paused", Time(at))
    }

    fn contended(times: u32) -> DriftBackoff {
        let drift_backoff = (0..times).fold(None, |held, _| Some(corrected(held, 0)));
        drift_backoff.unwrap()
    }

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_a_minute() {
        let pauses: Vec<_> = (1..10).map(|times| contended(times).retry_at().0).collect();
        assert_eq!(
            pauses,
            [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
        );
    }

    #[test]
    fn quiet_time_ends_it() {
        // The drifting objects, the number of corrections, and the time after the last one at which the drift is over.
        let table = [
            (Drifting::Copy, 1, 600_000),
            (Drifting::Copy, 8, 600_000),
            (Drifting::Status, 3, 300_000),
            (Drifting::Scaling, 1, 600_000),
            (Drifting::Namespace, 1, 60_000),
            (Drifting::Namespace, 3, 62_000),
            (Drifting::Namespace, 8, 120_000),
        ];
        for (of, times, over) in table {
            let again = |held, at| DriftBackoff::corrected(held, of, "spec.paused", Time(at));
            let held = (0..times).fold(None, |held, _| Some(again(held, 0)));
            let corrections = |at| again(held.clone(), at).corrections;
            assert_eq!(corrections(over - 1), times + 1, "{of:?} {times}");
            assert_eq!(corrections(over), 1, "{of:?} {times}");
        }
    }

    #[test]
    fn differences_during_a_pause_do_not_make_it_longer() {
        let drift_backoff = (0..200).fold(None, |held, at| {
            Some(DriftBackoff::differs(
                held,
                Drifting::Namespace,
                "metadata",
                Time(at),
            ))
        });
        assert_eq!(drift_backoff.unwrap().retry_at(), Time(1_001));
    }

    #[test]
    fn what_comes_back_every_few_minutes_is_reported_without_a_break() {
        for minutes in 1..10 {
            let interval = minutes * 60_000;
            let mut drift_backoff = Some(contended(2));
            for round in 1..6 {
                let held = corrected(drift_backoff, round * interval);
                assert!(held.is_reported());
                let next = Time((round + 1) * interval);
                assert!(next < held.reported_until(), "every {minutes} minutes");
                assert!(held.reported_until() <= held.over_at(), "every {minutes} minutes");
                drift_backoff = Some(held);
            }
        }
    }

    #[test]
    fn a_few_edits_are_reported_for_seconds() {
        assert_eq!(contended(3).reported_until(), Time(4_000));
    }

    proptest! {
        /// Another writer that changes an object at any times is corrected at once the first time, and never more often than
        /// the pauses allow.
        #[test]
        fn corrections_become_rare_and_the_first_one_is_never_delayed(
            of in prop_oneof![
                Just(Drifting::Copy), Just(Drifting::Namespace), Just(Drifting::Status), Just(Drifting::Scaling),
            ],
            gaps in prop::collection::vec(0_i64..700_000, 1..60),
        ) {
            let (mut now, mut held) = (Time(0), None::<DriftBackoff>);
            for gap in gaps {
                now = now.plus(gap);
                let next = DriftBackoff::differs(held.clone(), of, "metadata", now);
                let before = held.as_ref().filter(|before| now < before.over_at());
                match before {
                    None => prop_assert_eq!((next.corrections, next.retry_at()), (1, now)),
                    Some(before) if now < before.retry_at() => prop_assert_eq!(&next, before),
                    Some(before) => {
                        prop_assert_eq!(next.corrections, before.corrections + 1);
                        prop_assert!(next.pause() >= before.pause().max(SHORTEST_PAUSE));
                    }
                }
                prop_assert!(next.pause() <= LONGEST_PAUSE);
                prop_assert!(next.retry_at() < next.over_at() && next.reported_until() <= next.over_at());
                prop_assert!(next.paths.len() <= NAMED);
                held = Some(next);
            }
        }
    }

    #[test]
    fn the_message_of_a_distribution_names_what_is_changed_or_that_it_is_deleted() {
        assert_eq!(contended(2).message_of_distribution(), None);
        let message = contended(3).message_of_distribution().unwrap();
        assert!(message.contains("keeps changing spec.paused"), "{message}");
        let deleted = DriftBackoff::corrected(Some(contended(3)), Drifting::Copy, DELETED, Time(0));
        let message = deleted.message_of_distribution().unwrap();
        assert!(message.contains("keeps deleting it"), "{message}");
    }

    #[test]
    fn the_message_names_what_is_changed_and_the_remedy() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        assert_eq!(contended(2).message(&id, "m1"), None);
        let message = contended(3).message(&id, "m1").unwrap();
        assert!(
            message.contains("another writer on m1 keeps changing spec.paused"),
            "{message}"
        );
        assert!(!message.contains(label::RETAIN_REPLICAS), "{message}");
        let replicas = DriftBackoff::corrected(Some(contended(3)), Drifting::Copy, "spec.replicas", Time(0));
        let message = replicas.message(&id, "m1").unwrap();
        assert!(message.contains("spec.paused, spec.replicas"), "{message}");
        assert!(message.contains(label::RETAIN_REPLICAS), "{message}");
    }
}
