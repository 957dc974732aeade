//! The last writes of a template by this process because of autoscalers on members: the label and the replicas. The pauses between
//! two writes follow from them, and whether another writer of the hub undoes them.

use crate::{
    drift::{DriftBackoff, Drifting},
    object::{Meta, Str, Time},
};

/// The pause after a write that was not observed since, in milliseconds: one that fails each time, or that a webhook of the hub changes,
/// is not repeated with each event of a copy.
const UNSTORED: i64 = 30_000;

/// The maximum number of versions that are known to follow from each other by writes of this process alone.
const STEPS: usize = 4;

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
    /// The write whose result was not observed yet.
    pub(crate) sent: Option<Sent>,
    /// The last versions of the template, each of which differs from the one before by a write of this process alone.
    steps: Vec<Meta>,
}

/// A write of a template: the version that it was made for, and the metadata and replicas that it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) before: Meta,
    pub(crate) after: Meta,
    pub(crate) replicas: Option<i32>,
}

impl ScalingWrites {
    /// The last versions of the template, each of which differs from the one before by a write of this process alone; empty if another
    /// writer changed it since.
    pub(crate) fn steps(&self) -> &[Meta] {
        &self.steps
    }

    /// The template was observed with this metadata and these replicas. Cost: O(labels and annotations).
    pub(crate) fn observe(&mut self, meta: &Meta, replicas: Option<i32>, found: &Label) {
        if let Some(label) = &mut self.label {
            label.observe(found);
        }
        if let Some(written) = &mut self.replicas {
            written.observe(&replicas);
        }
        let Some(sent) = self.sent.take() else { return };
        if sent.is_made(meta, replicas) {
            if !self.steps.last().is_some_and(|last| is_same(last, &sent.before)) {
                self.steps = vec![sent.before];
            }
            self.steps.push(meta.clone());
            let surplus = self.steps.len().saturating_sub(STEPS);
            self.steps.drain(..surplus);
        } else if is_same(&sent.before, meta) {
            // Its status alone changed, if anything did.
            self.sent = Some(sent);
        } else {
            self.steps.clear();
        }
    }
}

impl Sent {
    /// True if this is the result. The write has the resourceVersion that it was made for: nothing else has changed then.
    fn is_made(&self, meta: &Meta, replicas: Option<i32>) -> bool {
        let generation = self.before.generation;
        let next = generation.map(|generation| generation + 1);
        !is_same(&self.before, meta)
            && self.replicas == replicas
            && (meta.generation == generation || meta.generation == next)
            && meta.uid == self.after.uid
            && meta.labels == self.after.labels
            && meta.annotations == self.after.annotations
    }
}

/// True if two versions of a template have the same content, as far as metadata shows.
fn is_same(one: &Meta, other: &Meta) -> bool {
    one.uid == other.uid
        && one.generation == other.generation
        && one.labels == other.labels
        && one.annotations == other.annotations
}

/// The last write of a field, and how often another writer has undone one.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    value: T,
    /// True if the value was observed since.
    stored: bool,
    /// True if another value was observed after that: what is found now is not of this write, also if it is the same.
    replaced: bool,
    at: Time,
    drift_backoff: Option<DriftBackoff>,
}

impl<T: PartialEq> Written<T> {
    /// The write of a value in place of the one that is found, after an earlier write.
    pub(crate) fn next(before: Option<&Self>, (found, value): (&T, T), path: &str, now: Time) -> Self {
        // A webhook of the hub may change what is written, so that it is never found.
        let undoes = |before: &Self| before.value != *found && (before.stored || before.value == value);
        let is_undone = before.is_some_and(undoes);
        let drift_backoff = before.and_then(|before| before.drift_backoff.clone());
        Self {
            value,
            stored: false,
            replaced: false,
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
        let is_found = self.value == *found;
        self.replaced |= self.stored && !is_found;
        self.stored |= is_found;
    }

    /// True if this value was written last, and no other one was observed since.
    pub(crate) fn is_of(&self, value: &T) -> bool {
        self.value == *value && !self.replaced
    }

    /// The time of the next write: so long after one that was stored, and later while another writer undoes it, or after one that was
    /// never found.
    pub(crate) fn not_before(&self, pause: i64) -> Time {
        let pause = if self.stored { pause } else { pause.max(UNSTORED) };
        let collected = self.at.plus(pause);
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
    fn a_write_that_is_never_found_is_repeated_after_a_pause_and_reported_from_the_third_time_on() {
        let mut held = Written::next(None, (&3, 2), "spec.replicas", Time(0));
        for (round, reported) in [(1, false), (2, false), (3, true)] {
            assert_eq!(held.not_before(0), Time(round * 30_000), "{round}");
            // A webhook leaves it at 3.
            held.observe(&3);
            let now = Time(round * 30_000);
            held = Written::next(Some(&held), (&3, 2), "spec.replicas", now);
            assert_eq!(held.is_contested(), reported, "{round}");
        }
        // One that lost to another write, and is another value by now, is no sign of that.
        let lost = Written::next(None, (&1, 2), "spec.replicas", Time(0));
        let next = Written::next(Some(&lost), (&1, 3), "spec.replicas", Time(40_000));
        assert!(next.drift_backoff.is_none());
    }

    #[test]
    fn a_number_that_a_user_wrote_after_it_is_not_of_the_write_also_if_it_is_the_same() {
        let mut held = write(None, 1, 8, 0);
        for (found, want) in [(8, true), (6, false), (8, false)] {
            held.observe(&found);
            assert_eq!(held.is_of(&found), want, "{found}");
        }
    }

    /// A template at a generation, with these labels.
    fn meta(version: &str, generation: i64, labels: &[(&str, &str)]) -> Meta {
        let labels: serde_json::Map<String, serde_json::Value> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).into()))
            .collect();
        Meta::of(&serde_json::json!({"metadata": {
            "uid": "u", "resourceVersion": version, "generation": generation, "labels": labels,
        }}))
    }

    #[test]
    fn versions_follow_from_each_other_by_our_writes_until_another_writer_comes() {
        let plain = meta("1", 1, &[]);
        let touched = [("by", "a user")];
        for (what, replicas, seen, want) in [
            ("ours", 8, vec![meta("2", 2, &[])], 2),
            ("its status was written first", 8, vec![meta("2", 1, &[])], 0),
            ("another number", 9, vec![meta("2", 2, &[])], 0),
            ("a user's label beside it", 8, vec![meta("2", 2, &touched)], 0),
            ("a user's edit after it", 8, vec![meta("3", 3, &[])], 0),
        ] {
            let mut writes = ScalingWrites {
                sent: Some(Sent {
                    before: plain.clone(),
                    after: plain.clone(),
                    replicas: Some(8),
                }),
                ..ScalingWrites::default()
            };
            for meta in &seen {
                writes.observe(meta, Some(replicas), &Label::default());
            }
            assert_eq!(writes.steps().len(), want, "{what}");
        }
    }
}
