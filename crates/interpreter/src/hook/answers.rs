//! The response cache: responses are reused while their object has the same version.
//!
//! Only responses to questions that depend on nothing but the object are cached, and none about a Secret. The caller must ask
//! about one version of an object always in the same form.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{Hook, Operation, Subject};
use crate::question::{Answer, Question};

/// The key of a response: uid, resourceVersion, operation, hook and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Arc<(String, String, Operation, String, String)>);

/// The capacity.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The number of responses.
    pub count: usize,
    /// Their size in bytes, as received.
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

/// The cached responses; the oldest is evicted first.
pub struct Answers {
    room: Room,
    kept: BTreeMap<Key, (Answer, usize)>,
    /// In the order of arrival.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Key {
    /// The key of the response to a question; `None` if it may not be cached: the question depends on more than its object, the
    /// object has no version, or it is a Secret.
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
    /// Creates an empty cache.
    #[must_use]
    pub const fn new(room: Room) -> Self {
        Self {
            room,
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The cached response, or `None`. Cost: O(log entries).
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Answer> {
        self.kept.get(key).map(|(answer, _)| answer.clone())
    }

    /// Caches a response of this size. Cost: O(log entries) for each evicted one.
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

    /// The number of entries, and their size in bytes.
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

/// Debug output omits the responses.
impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("room", &self.room)
            .field("count", &self.kept.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
