//! The memory of an agent about a Work and its objects.

use crate::{
    drift::DriftBackoff,
    object::{Meta, ResourceId, Str, Time},
    observation::{CopyMeta, Work},
};

/// The first delay after a failure, in milliseconds; each is twice the one before.
const FIRST_DELAY: i64 = 1_000;
/// The longest delay after a failure, in milliseconds.
const LONGEST_DELAY: i64 = 60_000;
/// The number of failures in a row from which one that may pass by itself is reported.
const LASTING: u32 = 3;

/// The version of a Work's spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The uid of the Work.
    pub uid: Str,
    /// Its generation; without one its resourceVersion.
    pub version: Str,
}

impl Source {
    /// The version of a Work. Cost: O(1).
    #[must_use]
    pub fn of(work: &Meta) -> Self {
        Self {
            uid: work.uid.clone(),
            version: match work.generation {
                Some(generation) => format!("g{generation}").into(),
                None => work.resource_version.clone(),
            },
        }
    }
}

/// A Work.
#[derive(Debug)]
pub(super) struct WorkState {
    pub(super) work: Work,
    /// Its objects, in their order.
    pub(super) objects: Vec<ObjectState>,
    /// The failure of the last request to the hub.
    pub(super) hub_failure: Option<Failure>,
    /// The time of the last report.
    pub(super) reported_at: Option<Time>,
    /// True if the states of its objects that are reported are those that this process wrote.
    pub(super) has_reported: bool,
    /// True if this process removed its finalizer: its end is no surprise.
    pub(super) is_ended: bool,
}

impl WorkState {
    pub(super) fn new(work: Work) -> Self {
        let objects = work.manifests.iter().map(ObjectState::new).collect();
        Self {
            work,
            objects,
            hub_failure: None,
            reported_at: None,
            has_reported: false,
            is_ended: false,
        }
    }

    pub(super) fn source(&self) -> Source {
        Source::of(&self.work.meta)
    }

    /// The hub was restored: a version may stand for another content now, and what was removed is wanted again.
    pub(super) fn restored(&mut self) {
        self.work.meta.resource_version = "0".into();
        (self.hub_failure, self.is_ended, self.has_reported) = (None, false, false);
        for object in &mut self.objects {
            (object.failure, object.removal) = (None, Removal::Pending);
            if let Some(record) = &mut object.record {
                record.source = None;
            }
        }
    }

    /// The ids of its objects.
    pub(super) fn ids(&self) -> impl Iterator<Item = &ResourceId> {
        self.objects.iter().filter_map(|each| each.id.as_ref())
    }
}

/// An object of a Work.
#[derive(Clone, Debug)]
pub(super) struct ObjectState {
    /// `None` for a manifest that names no object.
    pub(super) id: Option<ResourceId>,
    /// The last successful application.
    pub(super) record: Option<Record>,
    pub(super) drift: Option<Box<DriftBackoff>>,
    /// Reads that found it equal although it had changed, of a kind without generation.
    pub(super) equal: Option<Equal>,
    /// The failure of the last attempt to apply it.
    pub(super) failure: Option<Failure>,
    /// The state of its removal.
    pub(super) removal: Removal,
}

impl ObjectState {
    pub(super) fn new(id: &Option<ResourceId>) -> Self {
        Self {
            id: id.clone(),
            record: None,
            drift: None,
            equal: None,
            failure: None,
            removal: Removal::Pending,
        }
    }
}

/// The record of a successful application.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The version of the Work; `None` if the hub was restored since: it is to be compared anew.
    pub(super) source: Option<Source>,
    /// The object as it was then.
    pub(super) copy: CopyMeta,
    /// The plural of its kind.
    pub(super) resource: String,
}

impl Record {
    /// True if it was applied in this version.
    pub(super) fn is_in(&self, source: &Source) -> bool {
        self.source.as_ref() == Some(source)
    }

    /// True if the object is the one that was applied, unchanged since in all that its manifest determines.
    pub(super) fn is_of(&self, copy: &CopyMeta) -> bool {
        self.copy.uid == copy.uid
            && match (self.copy.generation, copy.generation) {
                (Some(then), Some(now)) => then == now && self.copy.marks == copy.marks,
                _ => self.copy.resource_version == copy.resource_version,
            }
    }
}

/// Reads in a row that found an object equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equal {
    last: Time,
    count: u32,
}

impl Equal {
    /// One more; after a while without any they are forgotten.
    pub(super) fn again(held: Option<Self>, now: Time) -> Self {
        let held = held.filter(|held| now < held.last.plus(2 * LONGEST_DELAY));
        Self {
            last: now,
            count: held.map_or(0, |held| held.count).saturating_add(1),
        }
    }

    /// The time before which it is not read again.
    pub(super) fn retry_at(&self) -> Time {
        self.last.plus(delay(self.count.saturating_sub(1)))
    }
}

/// The removal of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is still to be removed.
    Pending,
    /// It was not removed yet: the next attempt, and the number of failures.
    Later(Time, u32),
    /// It is gone, released, or was never this Work's.
    Done,
}

/// Failures in a row.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The version of the Work that it is about.
    pub(super) source: Source,
    /// The message, for a user.
    pub(super) message: String,
    /// True if it may pass by itself.
    passes: bool,
    count: u32,
    /// The time of the next attempt.
    pub(super) retry_at: Time,
}

impl Failure {
    /// The failure after the earlier ones about the same version.
    pub(super) fn again(
        held: Option<&Self>,
        source: Source,
        (message, passes): (String, bool),
        now: Time,
    ) -> Self {
        let count = held
            .filter(|held| held.source == source)
            .map_or(0, |held| held.count);
        Self {
            source,
            message,
            passes,
            count: count.saturating_add(1),
            retry_at: now.plus(delay(count)),
        }
    }

    /// True if it is reported on the hub.
    pub(super) const fn is_reported(&self) -> bool {
        !self.passes || self.count >= LASTING
    }
}

/// The delay after so many earlier failures.
pub(super) fn delay(count: u32) -> i64 {
    (FIRST_DELAY << count.min(16)).min(LONGEST_DELAY)
}
