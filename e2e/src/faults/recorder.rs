//! The record of the calls to API servers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::call::{Call, Verb};

/// Counts calls, keeps the list of writes and counts the faults that struck. Clones share one record.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    calls: BTreeMap<(String, Verb, String), u64>,
    answers: BTreeMap<Answered, u64>,
    /// By number; numbers are never given twice, so that a call of before a reset cannot be taken for a later one.
    writes: BTreeMap<u64, Recorded>,
    next: u64,
    faults: BTreeMap<&'static str, u64>,
}

/// A kind of call, and the status of the server's own answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answered {
    /// The server: `hub` or a member's name.
    pub scope: String,
    /// The verb of the call.
    pub verb: Verb,
    /// As in [`Call`].
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The HTTP status.
    pub status: u16,
}

/// A write call and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The call.
    pub call: Call,
    /// Its outcome, as far as the layer knows.
    pub outcome: Outcome,
}

/// The outcomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Sent, and not answered: still under way, or given up by the caller.
    Sent,
    /// The server's own status, whatever the caller got.
    Answered(u16),
    /// Sent, and the connection failed by itself.
    Failed,
    /// A fault or the crash kept it from being sent.
    NotSent,
}

/// The number of a write in the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteId(u64);

impl Recorder {
    /// The number of calls by scope, verb and resource, including those that a fault kept from being sent.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<(String, Verb, String), u64> {
        self.record().calls.clone()
    }

    /// The number of answers of servers, by what was asked.
    #[must_use]
    pub fn answers(&self) -> BTreeMap<Answered, u64> {
        self.record().answers.clone()
    }

    /// The total number of calls.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.record().calls.values().sum()
    }

    /// The writes that reached a server, in the order of sending, leader leases apart: a quiet system has none.
    /// Source: architecture 2.11.
    #[must_use]
    pub fn writes(&self) -> Vec<Recorded> {
        let lease = |w: &Recorded| w.call.resource == "leases.coordination.k8s.io";
        let record = self.record();
        record
            .writes
            .values()
            .filter(|w| w.outcome != Outcome::NotSent && !lease(w))
            .cloned()
            .collect()
    }

    /// All write calls, including those to leases and those that were not sent.
    #[must_use]
    pub fn all_writes(&self) -> Vec<Recorded> {
        self.record().writes.values().cloned().collect()
    }

    /// The number of injected faults, by key in the plan. A test of faults asserts that it is not 0.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.record().faults.clone()
    }

    /// Clears the record.
    pub fn reset(&self) {
        let mut record = self.record();
        *record = Record {
            next: record.next,
            ..Record::default()
        };
    }

    pub(super) fn begin(&self, call: &Call) -> Option<WriteId> {
        let mut record = self.record();
        *record
            .calls
            .entry((call.scope.clone(), call.verb, call.resource.clone()))
            .or_default() += 1;
        if !call.is_write() {
            return None;
        }
        let number = record.next;
        record.next += 1;
        record.writes.insert(
            number,
            Recorded {
                call: call.clone(),
                outcome: Outcome::NotSent,
            },
        );
        Some(WriteId(number))
    }

    pub(super) fn answered(&self, call: &Call, status: u16) {
        let answered = Answered {
            scope: call.scope.clone(),
            verb: call.verb,
            resource: call.resource.clone(),
            namespace: call.namespace.clone(),
            status,
        };
        *self.record().answers.entry(answered).or_default() += 1;
    }

    pub(super) fn became(&self, write: Option<WriteId>, outcome: Outcome) {
        let Some(WriteId(number)) = write else { return };
        if let Some(recorded) = self.record().writes.get_mut(&number) {
            recorded.outcome = outcome;
        }
    }

    pub(super) fn struck(&self, fault: &'static str) {
        *self.record().faults.entry(fault).or_default() += 1;
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match self.outcome {
            Outcome::Sent => f.write_str("sent"),
            Outcome::Answered(code) => write!(f, "{code}"),
            Outcome::Failed => f.write_str("connection failed"),
            Outcome::NotSent => f.write_str("not sent"),
        }
    }
}
