//! What is held of each copy.

use entourage_api::work::{CopyRecord, NotAppliedReason};

use super::Freshness;
use crate::{
    drift::DriftBackoff,
    interpreter::question::InterpretError,
    object::{Str, Time},
    observation::Copy,
};

/// Why a copy could not be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An object that is not ours stands there.
    Foreign,
    /// The member refused it.
    Rejected,
    /// The member returned an error that may pass.
    Failed,
    /// The member, or the hub for the source, did not answer.
    Unreachable,
    /// There is nothing to deliver.
    NoSource,
    /// A rule of an override policy cannot be applied.
    Override,
    /// What people taught us of its kind has no answer.
    Interpretation,
    /// A hook that says what its copy looks like has no answer now.
    NoResponse,
    /// It was put right, and something on the member keeps changing it back.
    Contended,
}

impl Trouble {
    /// The reason that the status of the binding reports.
    pub(crate) const fn reason(self) -> NotAppliedReason {
        match self {
            Self::Foreign => NotAppliedReason::Conflict,
            Self::Rejected | Self::Failed => NotAppliedReason::Refused,
            Self::Unreachable => NotAppliedReason::Unknown,
            Self::NoSource => NotAppliedReason::Pending,
            Self::Override => NotAppliedReason::Override,
            Self::Interpretation | Self::NoResponse => NotAppliedReason::InterpretError,
            Self::Contended => NotAppliedReason::Contended,
        }
    }

    /// True if the request may have been carried out, and a retry may succeed.
    pub(crate) const fn is_passing(self) -> bool {
        matches!(self, Self::Failed | Self::Unreachable)
    }

    /// True if no copy can be made from the template, whatever is on the member.
    pub(crate) const fn is_of_source(self) -> bool {
        matches!(
            self,
            Self::NoSource | Self::Override | Self::Interpretation | Self::NoResponse
        )
    }
}

/// The last attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of trouble.
    pub trouble: Trouble,
    /// For a person.
    pub message: String,
    /// The error of the interpreter, if that is the trouble. Boxed: few problems have one.
    pub interpret_error: Option<Box<InterpretError>>,
    /// The source version that was tried.
    pub source: String,
    /// How often in a row.
    pub attempts: u32,
    /// Not before then, unless the source changes.
    pub retry_at: Time,
}

/// One template on one member.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    /// The copy as last seen, if it is managed: see [`crate::ownership`].
    pub live: Option<Copy>,
    /// What is there instead: an object that carries our metadata and is not managed. Boxed: few places have one.
    pub copied: Option<Box<Copy>>,
    /// The copy as last written; from an answer, or at start from the binding's status.
    pub record: Option<CopyRecord>,
    /// The last failure, cleared by success.
    pub problem: Option<Problem>,
    /// When the copy was first wanted here.
    pub wanted_since: Option<Time>,
    /// Since when the record is not from the version that the copy should be written from, as far as this process knows;
    /// `None` also while there is no record. See `engine/observe/outdated.rs`.
    pub outdated_since: Option<Time>,
    /// The source version of the last attempt, successful or not.
    pub answered: Option<String>,
    /// Not written again before this time.
    pub not_before: Option<Time>,
    /// How often in a row drift was corrected. Boxed: few copies have it.
    pub drift_backoff: Option<Box<DriftBackoff>>,
    /// Since when the copy has not been healthy. The status keeps it over restarts.
    pub unhealthy_since: Option<Time>,
    /// A write is under way: until its outcome is known a copy may stand here.
    pub in_flight: bool,
    /// A write whose outcome this process does not know: a copy may be here, or come. Boxed: few copies have it.
    pub pending: Option<Box<PendingWrite>>,
    /// The binding is being written so that it places nothing here any more: no first copy is sent meanwhile.
    pub leaving: bool,
    /// The uid of the copy whose removal is under way: plans of other keys are made meanwhile, and must not count on it.
    pub removing: Option<Str>,
    /// It is not wanted any more, and an edit that this process saw explains that; see [`crate::governor`].
    pub explained: bool,
    /// Its deletion was counted.
    pub counted: bool,
    /// The freshness of the copy.
    pub freshness: Freshness,
}

/// A write whose outcome is not known. A member that was slow, or did not run for a while, may carry it out yet. So that nothing
/// is there counts only when it is seen by a look that was sent some time after the member answered an earlier one: what was sent
/// before that has been carried out by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingWrite {
    /// When the member first answered, since the write, that nothing is there.
    absent_since: Option<Time>,
    /// When the look that is under way was sent.
    asked: Option<Time>,
    /// Not looked for before this time.
    not_before: Option<Time>,
}

/// How long after an answer of a member what was sent to it before is taken for carried out, in milliseconds.
const SETTLING: i64 = 2_000;

/// The pause after a look that was not answered, in milliseconds.
const LOOK_PAUSE: i64 = 5_000;

impl PendingWrite {
    /// When the copy is looked for next; at once if `None`.
    pub(crate) fn due(&self) -> Option<Time> {
        self.not_before
            .max(self.absent_since.map(|absent_since| absent_since.plus(SETTLING)))
    }
}

impl CopyState {
    /// Takes in that a write may be under way of which this process does not know. Cost: O(1).
    pub(crate) fn note_pending(&mut self) {
        self.pending = Some(Box::default());
    }

    /// Takes in that a list shows no copy. Cost: O(1).
    pub(crate) fn note_unlisted(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.absent_since.get_or_insert(now);
        }
    }

    /// Takes in that a look for the copy is sent. Cost: O(1).
    pub(crate) fn note_look(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.asked = Some(now);
        }
    }

    /// Takes in that a look found no copy. Answers whether that is the end of it. Cost: O(1).
    pub(crate) fn note_absent(&mut self, now: Time) -> bool {
        let Some(pending) = &mut self.pending else {
            return true;
        };
        let asked = pending.asked.take();
        let absent_since = *pending.absent_since.get_or_insert(now);
        if asked.is_none_or(|asked| asked < absent_since.plus(SETTLING)) {
            return false;
        }
        self.pending = None;
        true
    }

    /// Takes in that a look was not answered. Cost: O(1).
    pub(crate) fn note_failed_look(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.asked = None;
            pending.not_before = Some(now.plus(LOOK_PAUSE));
        }
    }

    /// Whether the live copy is the one that was last written, unchanged since.
    #[must_use]
    pub fn is_as_written(&self) -> bool {
        let (Some(live), Some(record)) = (&self.live, &self.record) else {
            return false;
        };
        *live.meta.uid == *record.uid
            && match (record.generation, &record.resource_version) {
                (Some(generation), _) => live.meta.generation == Some(generation),
                (None, Some(version)) => *live.meta.resource_version == **version,
                (None, None) => false,
            }
    }

    /// Whether the copy stands and will go on standing, as far as this process knows: it is not being deleted, and its removal
    /// is not under way. To be asked about a copy that others count on, never about one that is to go.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.meta.deleting.is_none() && self.removing.as_ref() != Some(&live.meta.uid)
        })
    }

    /// Whether nothing is there and no write is under way, where what is there is known.
    pub(crate) fn is_absent(&self) -> bool {
        self.live.is_none() && !self.in_flight && self.pending.is_none()
    }
}
