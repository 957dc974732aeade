//! The state of a copy: the live object, its record, and its last problem.

use entourage_api::work::{CopyRecord, NotAppliedReason};

use super::Freshness;
use crate::{
    drift::DriftBackoff,
    interpreter::question::InterpretError,
    object::{Str, Time},
    observation::Copy,
};

/// The reason why a copy could not be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// An object that is not managed by this hub exists there.
    Foreign,
    /// The member refused it.
    Rejected,
    /// The member returned an error that may be temporary.
    Failed,
    /// The member, or the hub for the template, did not respond.
    Unreachable,
    /// There is nothing to deliver.
    NoSource,
    /// A rule of an override policy cannot be applied.
    Override,
    /// The customization or webhook of its kind returned an interpret error.
    Interpretation,
    /// A hook that determines the content of the copy gives no response now.
    NoResponse,
    /// The drift was corrected, and another writer on the member changes it back again and again.
    Contended,
}

impl ProblemKind {
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

/// The attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The copy was to be written from this source version: none if the template was deleted while the delivery was in flight.
    Delivery(Option<String>),
    /// The copy was to be removed.
    Removal,
}

impl Attempt {
    /// True if a delivery from this source version was tried.
    pub(crate) fn is_delivery_from(&self, source: &str) -> bool {
        matches!(self, Self::Delivery(Some(tried)) if tried == source)
    }
}

/// The last attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason.
    pub kind: ProblemKind,
    /// The message for the user.
    pub message: String,
    /// The error of the interpreter, if that is the reason. Boxed: few problems have one.
    pub interpret_error: Option<Box<InterpretError>>,
    /// The attempt.
    pub attempt: Attempt,
    /// The number of failed attempts in a row.
    pub attempts: u32,
    /// No retry of this attempt before this time: a delivery from another source version, or a removal after a delivery, is another
    /// attempt.
    pub retry_at: Time,
}

/// The state of one template on one member.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    /// The copy as last seen, if it is managed: see [`crate::ownership`].
    pub live: Option<Copy>,
    /// An unmanaged object in its place that carries our metadata. Boxed: few targets have one.
    pub copied: Option<Box<Copy>>,
    /// The copy as last written: from a response, or, at start, from the binding's status.
    pub record: Option<CopyRecord>,
    /// The last failure, cleared by success. Boxed: few copies have one.
    pub problem: Option<Box<Problem>>,
    /// The time when the copy was first wanted here.
    pub wanted_since: Option<Time>,
    /// The time since when the record is from another version than the copy should be written from, as far as this process
    /// knows; `None` also while there is no record. See `observe/outdated.rs`.
    pub outdated_since: Option<Time>,
    /// Not written again before this time.
    pub not_before: Option<Time>,
    /// The number of drift corrections in a row. Boxed: few copies have it.
    pub drift_backoff: Option<Box<DriftBackoff>>,
    /// The time since when the copy has not been healthy. The status keeps it over restarts.
    pub unhealthy_since: Option<Time>,
    /// A write is in flight: until its outcome is known a copy may exist here.
    pub in_flight: bool,
    /// A write whose outcome this process does not know: a copy may exist, or may be created yet. Boxed: few copies have it.
    pub pending: Option<Box<PendingWrite>>,
    /// The binding is being written without this cluster: no first copy is sent meanwhile.
    pub leaving: bool,
    /// The uid of the copy that is being removed: other keys are planned meanwhile, and must not rely on it.
    pub removing: Option<Str>,
    /// It is no longer wanted, and an edit that this process observed explains that; see [`crate::governor`].
    pub explained: bool,
    /// Its deletion was counted.
    pub counted: bool,
    /// The freshness of the copy.
    pub freshness: Freshness,
}

/// A write whose outcome is not known. A member that was slow, or was stopped for a while, may still carry it out. Therefore
/// the absence of the copy counts only if it is observed by a GET that was sent some time after the member responded to an
/// earlier one: by then, whatever was sent before has been carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingWrite {
    /// The time when the member first responded, since the write, that there is no copy.
    absent_since: Option<Time>,
    /// The time when the GET in flight was sent.
    asked: Option<Time>,
    /// No GET before this time.
    not_before: Option<Time>,
}

/// The time after a member's response from which on earlier requests to it are assumed to have been carried out, in milliseconds.
const SETTLING: i64 = 2_000;

/// The pause after a GET without a response, in milliseconds.
const LOOK_PAUSE: i64 = 5_000;

impl PendingWrite {
    /// The time of the next GET of the copy; at once if `None`.
    pub(crate) fn due(&self) -> Option<Time> {
        self.not_before
            .max(self.absent_since.map(|absent_since| absent_since.plus(SETTLING)))
    }
}

impl CopyState {
    /// Notes that a write may be in flight of which this process does not know. Cost: O(1).
    pub(crate) fn note_pending(&mut self) {
        self.pending = Some(Box::default());
    }

    /// Notes that a list shows no copy. Cost: O(1).
    pub(crate) fn note_unlisted(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.absent_since.get_or_insert(now);
        }
    }

    /// Notes that a GET for the copy is sent. Cost: O(1).
    pub(crate) fn note_look(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.asked = Some(now);
        }
    }

    /// Notes that a GET found no copy. Returns true if the write is no longer pending. Cost: O(1).
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

    /// Notes that a GET got no response. Cost: O(1).
    pub(crate) fn note_failed_look(&mut self, now: Time) {
        if let Some(pending) = &mut self.pending {
            pending.asked = None;
            pending.not_before = Some(now.plus(LOOK_PAUSE));
        }
    }

    /// True if the live copy is the one that was last written, unchanged since.
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

    /// True if the copy exists and will continue to, as far as this process knows: an agent, where there is one, has applied it, it
    /// is not being deleted, and its removal is not in flight. For copies that others rely on, never for one that is to be deleted.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.meta.deleting.is_none()
                && self.removing.as_ref() != Some(&live.meta.uid)
                && live.is_carried_out()
        })
    }

    /// True if there is no copy and no write is in flight, provided that the copies of the member are synced.
    pub(crate) fn is_absent(&self) -> bool {
        self.live.is_none() && !self.in_flight && self.pending.is_none()
    }
}
