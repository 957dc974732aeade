//! The watch of a member's CustomResourceDefinitions: discovery runs soon after one of them changed.
//!
//! Metadata is enough, as the resourceVersion changes with the condition Established, too. Servers take a moment to list the kinds
//! of a new definition, so discovery runs a few times more, further and further apart. A watch that is opened anew did not see
//! the changes before: discovery runs right after. So a watch lasts about as long as the interval of discovery, and at rest
//! there is one more request per interval, and the watch.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::probe;
use crate::{
    client::{Api, Call, Form, path::Path, read},
    error::{Class, Failure},
    metrics::Verb,
};

/// The times of discovery after a definition changed.
const AFTER: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(600),
    Duration::from_millis(1400),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// The minimum time between two of them: definitions may change all the time.
const SPACING: Duration = Duration::from_millis(500);
/// The usual time that the server is asked to keep the watch open. With its jitter less than the interval of discovery, so that
/// discovery runs once in that time.
const OPEN_FOR: Duration = Duration::from_secs(270);
/// The idle timeout of the watch: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(305);
/// The minimum time between two attempts to watch.
const AGAIN: Duration = Duration::from_secs(60);
/// The same if the account is not permitted to, or the server has no such kind.
const AGAIN_REFUSED: Duration = Duration::from_secs(300);
/// The time limit for the list.
const DEADLINE: Duration = Duration::from_secs(5);

/// The definitions of one member, and the time at which their changes require discovery.
pub(crate) struct Definitions {
    state: Arc<WatchState>,
    task: Option<AbortOnDropHandle<()>>,
    /// The earliest time of the next attempt to watch.
    again: Instant,
    /// The time of the last change.
    changed: Option<Instant>,
    /// The time of the last discovery.
    ran: Instant,
    /// The time of the next one because of a change.
    due: Option<Instant>,
}

/// The report of the watch.
#[derive(Default)]
struct WatchState {
    /// Notifies that a definition has changed, or that the watch has ended.
    any: Notify,
    has_changed: AtomicBool,
    is_open: AtomicBool,
}

impl Definitions {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            state: Arc::default(),
            task: None,
            again: now,
            changed: None,
            ran: now,
            due: None,
        }
    }

    /// Opens the watch if there is none. Discovery is then due at once, as the changes before were not seen.
    pub(crate) async fn watch(&mut self, api: &Api) {
        let now = Instant::now();
        if self.state.is_open.load(Ordering::Relaxed) || now < self.again {
            return;
        }
        match open(api).await {
            Ok(body) => {
                // Of its own: a late message of the watch before is not mixed up with it.
                let state = Arc::new(WatchState::default());
                state.is_open.store(true, Ordering::Relaxed);
                self.task = Some(AbortOnDropHandle::new(tokio::spawn(follow(body, state.clone()))));
                (self.state, self.again) = (state, now + AGAIN);
                self.due = Some(now);
            }
            Err(failure) => {
                let refused = matches!(failure.class(), Class::Refused | Class::Missing);
                debug!(
                    cluster = api.name(),
                    refused,
                    error = ?failure,
                    "definitions cannot be watched: a new kind is found at the next regular discovery"
                );
                self.again = now + if refused { AGAIN_REFUSED } else { AGAIN };
            }
        }
    }

    /// Ends the watch: its client is not used any more.
    pub(crate) fn stop(&mut self) {
        let ran = self.ran;
        *self = Self { ran, ..Self::new() };
    }

    /// Waits until discovery is due, because of a change or because the watch has ended. May be dropped half way.
    pub(crate) async fn wait(&mut self) {
        while !self.is_due() {
            let due = self.due;
            tokio::select! {
                () = self.state.any.notified() => {}
                () = sleep_until(due.unwrap_or(self.ran)), if due.is_some() => {}
            }
            let now = Instant::now();
            if self.state.has_changed.swap(false, Ordering::Relaxed) {
                self.changed = Some(now);
                let next = (now + AFTER[0]).max(self.ran + SPACING);
                // Never later: changes may not end.
                self.due = Some(self.due.map_or(next, |due| due.min(next)));
            }
            let has_ended = self.task.is_some() && !self.state.is_open.load(Ordering::Relaxed);
            if has_ended && now >= self.again {
                return;
            }
        }
    }

    /// True if a change requires discovery now.
    pub(crate) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Discovery runs now.
    pub(crate) fn runs(&mut self) {
        self.ran = Instant::now();
        self.due = self.changed.and_then(|changed| next(self.ran, changed));
    }
}

/// The time of the next discovery because of this change, after one at `ran`.
fn next(ran: Instant, changed: Instant) -> Option<Instant> {
    let at = AFTER.iter().map(|after| changed + *after);
    let next = at.filter(|at| *at > ran).min()?;
    Some(next.max(ran + SPACING))
}

/// A watch from now on. The list is only for the revision: one item of it is enough.
async fn open(api: &Api) -> Result<Body, Failure> {
    let list = Path::definitions(None).query("limit", "1");
    let call = Call {
        verb: Verb::Get,
        path: &list,
        accept: Form::Metadata.accept_list(),
        body: None,
        deadline: Some(DEADLINE),
    };
    let bytes = api.bytes(call).await?;
    let meta = read::list(&bytes, &mut |_| {}).map_err(|error| Failure::Garbled(error.to_string()))?;
    let seconds = probe::interval(OPEN_FOR, api.name()).as_secs().to_string();
    let path = Path::definitions(None)
        .query("watch", "true")
        .query("timeoutSeconds", &seconds)
        .query("resourceVersion", &meta.resource_version);
    api.open(&path, Form::Metadata.accept()).await
}

/// Reports each change until the watch ends. Without bookmarks, all that arrives is a change.
async fn follow(mut body: Body, state: Arc<WatchState>) {
    while let Ok(Some(Ok(frame))) = timeout(IDLE, body.frame()).await {
        if frame.data_ref().is_some_and(|data| !data.is_empty()) {
            state.has_changed.store(true, Ordering::Relaxed);
            state.any.notify_one();
        }
    }
    state.is_open.store(false, Ordering::Relaxed);
    state.any.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn discovery_follows_a_change_a_few_times_and_then_no_more() {
        let changed = Instant::now();
        let mut ran = changed + AFTER[0];
        let mut all = vec![ran - changed];
        while let Some(at) = next(ran, changed) {
            assert!(at >= ran + SPACING);
            ran = at;
            all.push(at - changed);
        }
        let all: Vec<u128> = all.iter().map(Duration::as_millis).collect();
        assert_eq!(all, [200, 700, 1400, 3000, 6000]);
    }
}
