//! The last writes of a template by this process because of autoscalers on members: the label and the replicas. The pauses between
//! two writes follow from them, and whether another writer of the hub undoes them.

use crate::{
    drift::{DriftBackoff, Drifting},
    object::{Str, Time},
};

/// The label that leaves replicas to members, and the annotation with the autoscaler that it was set for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The value of the label.
    pub(crate) value: Option<Str>,
    /// The autoscaler; `None` for a label that is a user's.
    pub(crate) by: Option<Str>,
}

/// The last writes of a template.
#[derive(Clone, Debug, Default)]
pub struct ScalingWrites {
    pub(crate) label: Option<Written<Label>>,
    pub(crate) replicas: Option<Written<Option<i32>>>,
}

/// The last write of a field, and how often another writer has undone one.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    value: T,
    /// True if the value was observed since: a write that failed, or lost to another one, undoes nothing.
    stored: bool,
    at: Time,
    drift_backoff: Option<DriftBackoff>,
}

impl<T: PartialEq> Written<T> {
    /// The write of a value in place of the one that is found, after an earlier write.
    pub(crate) fn next(before: Option<&Self>, (found, value): (&T, T), path: &str, now: Time) -> Self {
        let is_undone = before.is_some_and(|before| before.stored && before.value != *found);
        let drift_backoff = before.and_then(|before| before.drift_backoff.clone());
        Self {
            value,
            stored: false,
            at: now,
            drift_backoff: match is_undone {
                true => Some(DriftBackoff::corrected(
                    drift_backoff,
                    Drifting::Scaling,
                    path,
                    now,
                )),
                false => drift_backoff.filter(|drift_backoff| now < drift_backoff.over_at()),
            },
        }
    }

    /// The template has this value.
    pub(crate) fn observe(&mut self, found: &T) {
        self.stored |= self.value == *found;
    }

    /// True if this value was written last.
    pub(crate) fn is_of(&self, value: &T) -> bool {
        self.value == *value
    }

    /// The time of the next write: so long after one that was stored, and later while another writer undoes it.
    pub(crate) fn not_before(&self, pause: i64) -> Time {
        let collected = if self.stored { self.at.plus(pause) } else { self.at };
        let retry_at = self.drift_backoff.as_ref().map(DriftBackoff::retry_at);
        retry_at.map_or(collected, |retry_at| retry_at.max(collected))
    }

    /// True if another writer undoes it so often that it is reported.
    pub(crate) fn is_contested(&self) -> bool {
        self.drift_backoff.as_ref().is_some_and(DriftBackoff::is_reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `value` in place of `found` at a time, and observes it.
    fn write(before: Option<&Written<i32>>, found: i32, value: i32, now: i64) -> Written<i32> {
        let mut written = Written::next(before, (&found, value), "spec.replicas", Time(now));
        written.observe(&value);
        written
    }

    #[test]
    fn writes_of_its_own_are_collected_and_contest_nothing() {
        let mut held = write(None, 1, 2, 0);
        for step in 1..20 {
            held = write(Some(&held), step + 1, step + 2, i64::from(step) * 1_000);
            assert_eq!(held.not_before(30_000), Time(i64::from(step) * 1_000 + 30_000));
            assert!(!held.is_contested());
        }
    }

    #[test]
    fn what_another_writer_undoes_is_written_with_back_off_and_reported_from_the_third_time_on() {
        let mut held = write(None, 1, 2, 0);
        for (times, pause, reported) in [
            (1, 0, false),
            (2, 1_000, false),
            (3, 2_000, true),
            (4, 4_000, true),
        ] {
            held = write(Some(&held), 1, 2, 0);
            assert_eq!(held.not_before(0), Time(pause), "{times}");
            assert_eq!(held.is_contested(), reported, "{times}");
        }
    }

    #[test]
    fn a_write_that_was_not_stored_is_repeated_at_once_and_nobody_undid_it() {
        let failed = Written::next(None, (&1, 2), "spec.replicas", Time(0));
        assert_eq!(failed.not_before(30_000), Time(0));
        for _ in 0..5 {
            let again = Written::next(Some(&failed), (&1, 2), "spec.replicas", Time(10));
            assert_eq!(again.not_before(30_000), Time(10));
            assert!(!again.is_contested());
        }
    }
}
