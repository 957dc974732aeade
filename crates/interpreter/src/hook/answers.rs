//! Cached responses, valid while their object is at the same version.
//!
//! Only answers to questions that look at nothing but the object are kept, and none about a Secret. The caller asks about
//! one version of an object always in the same form.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{Hook, Operation, Subject};
use crate::question::{Answer, Question};

/// What an answer is to: uid, resourceVersion, operation, hook and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Arc<(String, String, Operation, String, String)>);

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Answers.
    pub count: usize,
    /// Bytes of them, as they came.
    pub bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            count: 100_000,
            bytes: 32 << 20,
        }
    }
}

/// The answers kept; the oldest makes room.
pub struct Answers {
    room: Room,
    kept: BTreeMap<Key, (Answer, usize)>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Key {
    /// What an answer to this would be kept by; `None` if it may not be used again: the question looks at more than its
    /// object, the object has no version, or it is a Secret.
    #[must_use]
    pub fn of(hook: &Hook, subject: &Subject<'_>, question: Question<'_>) -> Option<Self> {
        match question {
            Question::Replicas(_)
            | Question::Components(_)
            | Question::Reflect(_)
            | Question::Health(_)
            | Question::Dependencies(_) => {}
            Question::Prune(_)
            | Question::Revise(..)
            | Question::Retain { .. }
            | Question::Aggregate { .. } => return None,
        }
        let object = question.object();
        if subject.is_secret() || object["kind"] == "Secret" {
            return None;
        }
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self(Arc::new((
            text(&metadata["uid"])?,
            text(&metadata["resourceVersion"])?,
            question.operation(),
            hook.layer(),
            hook.version().to_owned(),
        ))))
    }
}

impl Answers {
    /// None yet.
    #[must_use]
    pub const fn new(room: Room) -> Self {
        Self {
            room,
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The answer that was given before. Cost: O(log kept).
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Answer> {
        self.kept.get(key).map(|(answer, _)| answer.clone())
    }

    /// Keeps an answer that came in so many bytes. Cost: O(log kept) for each that makes room.
    pub fn keep(&mut self, key: Key, answer: Answer, bytes: usize) {
        if bytes > self.room.bytes || self.room.count == 0 {
            return;
        }
        match self.kept.insert(key.clone(), (answer, bytes)) {
            Some((_, before)) => self.bytes -= before,
            None => self.order.push_back(key),
        }
        self.bytes += bytes;
        while self.kept.len() > self.room.count || self.bytes > self.room.bytes {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some((_, bytes)) = self.kept.remove(&oldest) {
                self.bytes -= bytes;
            }
        }
    }

    /// How many are kept, and in how many bytes they came.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::new(Room::default())
    }
}

/// Without the answers.
impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("room", &self.room)
            .field("count", &self.kept.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
