//! The client of interpreter webhooks: it sends the core's requests and returns the responses to the core.
//!
//! A hook that does not respond is in back-off for a while, so that it delays only its own operations; cacheable responses are
//! reused; and no error, log or `Debug` has content of an object.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use entourage_core::interpreter::{
    hook::{Answers, Breaker, Hook, LARGEST, Subject, answers::Key, answers::Room},
    operations::Operation,
    question::{Answer, InterpretError, Question, Until},
};
use serde_json::Value;

use crate::{
    clock,
    metrics::{Asked, Metrics},
};

#[cfg(test)]
pub(crate) mod client;
mod queue;
mod resolve;
#[cfg(test)]
mod tests;

use queue::HookQueue;
pub use resolve::Services;

/// The settings of the client.
#[derive(Clone)]
pub struct Options {
    /// The maximum size of a response, and of an object that one results in, in bytes.
    pub largest: usize,
    /// The capacity of the response cache.
    pub room: Room,
    /// The resolver of Service references. `None`: by their DNS names in the cluster that this process runs in.
    pub services: Option<Arc<dyn Services>>,
    /// The metrics for calls.
    pub metrics: Option<Metrics>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            largest: LARGEST,
            room: Room::default(),
            services: None,
            metrics: None,
        }
    }
}

/// The client of all hooks. Cheap to clone; clones share connections and cached responses.
#[derive(Clone)]
pub struct Hooks(Arc<Inner>);

struct Inner {
    options: Options,
    answers: Mutex<Answers>,
    /// The state of each hook, by its layer, which names its configuration.
    lines: Mutex<BTreeMap<String, Known>>,
    /// The number of the next request; the first number identifies this process.
    asked: (u64, AtomicU64),
}

/// The state of a hook in its configured version.
struct Known {
    version: String,
    /// The queue, or the error if its certificates cannot be read.
    line: Result<HookQueue, String>,
    breaker: Breaker,
    /// The error of the last call.
    why: String,
}

impl Hooks {
    /// Creates a client that has made no call yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let answers = Mutex::new(Answers::new(options.room));
        let process = (clock::jitter() * (1_u64 << 53) as f64) as u64;
        Self(Arc::new(Inner {
            options,
            answers,
            lines: Mutex::default(),
            asked: (process, AtomicU64::new(0)),
        }))
    }

    /// Returns the response of a hook to a question. Takes no longer than the hook's timeout.
    ///
    /// # Errors
    /// The reason why there is no result, and what to do; [`Hook::policy`] defines the consequence. The text stays the same
    /// while the cause does.
    pub async fn ask(
        &self,
        hook: &Hook,
        subject: &Subject<'_>,
        question: Question<'_>,
    ) -> Result<Answer, InterpretError> {
        let unanswered = |why: Cow<'static, str>| InterpretError {
            layer: hook.layer(),
            contract: hook.contract(),
            operation: question.operation(),
            why,
            until: Until::Answered,
        };
        // The caller has checked that the hook applies; a Secret must not be sent by mistake all the same, not under another
        // kind's name.
        let is_disguised = is_secret(question.object()) && !subject.is_secret();
        if is_disguised || !hook.is_about(subject, question.operation()) {
            return Err(unanswered("it has no rule for this operation".into()));
        }
        let key = Key::of(hook, subject, question);
        if let Some(key) = &key
            && let Some(answer) = lock(&self.0.answers).get(key)
        {
            self.count(hook, question, Asked::Known, None);
            return Ok(answer);
        }
        let uid = self.uid();
        let Some(request) = hook.request(&uid, subject, question) else {
            return Err(unanswered("its contract does not have this operation".into()));
        };
        let line = self.line(hook).map_err(|why| {
            self.count(hook, question, Asked::LeftAlone, None);
            unanswered(why.into())
        })?;
        let began = Instant::now();
        let exchanged = line
            .exchange(request.to_string().into(), self.0.options.largest)
            .await;
        drop(request);
        self.record(hook, exchanged.as_ref().err());
        let took = Some(began.elapsed());
        let bytes = exchanged.map_err(|failure| {
            self.count(hook, question, Asked::NoResponse, took);
            unanswered(failure.why.into())
        })?;
        let answer = hook.answer(&uid, question, &bytes, self.0.options.largest);
        let asked = if answer.is_ok() {
            Asked::Answered
        } else {
            Asked::Wrong
        };
        self.count(hook, question, asked, took);
        let answer = answer.map_err(unanswered)?;
        if let Some(key) = key {
            lock(&self.0.answers).keep(key, answer.clone(), bytes.len());
        }
        Ok(answer)
    }

    /// Drops connections and failures of hooks that are no longer configured.
    pub fn keep<'h>(&self, configured: impl IntoIterator<Item = &'h Hook>) {
        let configured: BTreeSet<_> = configured.into_iter().map(Hook::layer).collect();
        lock(&self.0.lines).retain(|layer, _| configured.contains(layer));
    }

    /// True if a hook is in back-off, or is tried after it.
    #[must_use]
    pub fn is_unresponsive(&self, hook: &Hook) -> bool {
        let lines = lock(&self.0.lines);
        lines
            .get(&hook.layer())
            .is_some_and(|known| known.version == hook.version() && known.breaker.is_open())
    }

    /// Checks that a hook is not in back-off, so that preparing a question is worthwhile.
    ///
    /// # Errors
    /// The reason for the back-off.
    pub fn reach(&self, hook: &Hook, operation: Operation) -> Result<(), InterpretError> {
        let lines = lock(&self.0.lines);
        match lines.get(&hook.layer()) {
            Some(known) if known.version == hook.version() && known.breaker.is_left_alone(clock::now()) => {
                Err(InterpretError {
                    layer: hook.layer(),
                    contract: hook.contract(),
                    operation,
                    why: known.why.clone().into(),
                    until: Until::Answered,
                })
            }
            _ => Ok(()),
        }
    }

    fn count(&self, hook: &Hook, question: Question<'_>, asked: Asked, took: Option<Duration>) {
        if let Some(metrics) = &self.0.options.metrics {
            metrics.asked(
                hook.name(),
                hook.contract().word(question.operation()),
                asked,
                took,
            );
        }
    }

    fn uid(&self) -> String {
        let (process, asked) = &self.0.asked;
        let count = asked.fetch_add(1, Ordering::Relaxed);
        format!("{process:014x}-{count:x}")
    }

    /// The queue of a hook, if it may be called now.
    fn line(&self, hook: &Hook) -> Result<HookQueue, String> {
        let call = hook.call().map_err(ToString::to_string)?;
        let mut lines = lock(&self.0.lines);
        let anew = || Known {
            version: hook.version().to_owned(),
            line: HookQueue::new(call, self.0.options.services.clone()),
            breaker: Breaker::default(),
            why: String::new(),
        };
        let known = lines.entry(hook.layer()).or_insert_with(anew);
        if known.version != hook.version() {
            *known = anew();
        }
        known.breaker.enter(clock::now()).map_err(|_| known.why.clone())?;
        known.line.clone()
    }

    fn record(&self, hook: &Hook, failure: Option<&queue::Failure>) {
        let mut lines = lock(&self.0.lines);
        let Some(known) = lines.get_mut(&hook.layer()) else {
            return;
        };
        if known.version != hook.version() {
            return;
        }
        let is_unresponsive = failure.is_some_and(|failure| failure.has_no_response);
        known.breaker.record(clock::now(), !is_unresponsive);
        if let Some(failure) = failure {
            known.why.clone_from(&failure.why);
        }
    }
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

/// Debug output omits responses and addresses.
impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("answers", &*lock(&self.0.answers))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("largest", &self.largest)
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
