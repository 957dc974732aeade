//! The watches of what decides which kinds a member serves: its CustomResourceDefinitions and its APIServices. Discovery runs soon
//! after one of them changed.
//!
//! Metadata is enough, as the resourceVersion changes with the conditions Established and Available, too. Servers take a moment to
//! list the kinds of a new definition, so discovery runs a few times more, further and further apart. A watch that is opened anew
//! did not see the changes before: discovery runs right after. So a watch lasts about as long as the interval of discovery, and
//! the watches end together: at rest there are two more requests per interval for each. Each is opened by itself: a member that
//! permits one of them, has only one of the kinds, or fails one list is watched for the other, and the rest is tried again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
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

/// The collections that are watched.
const WATCHED: [fn() -> Path; 2] = [|| Path::definitions(None), Path::api_services];
/// The times of discovery after an object changed.
const AFTER: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(600),
    Duration::from_millis(1400),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// The minimum time between two of them: objects may change all the time.
const SPACING: Duration = Duration::from_millis(500);
/// The usual time that the server is asked to keep the watch open. With its jitter less than the interval of discovery, so that
/// discovery runs once in that time.
const OPEN_FOR: Duration = Duration::from_secs(270);
/// The idle timeout of the watch: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(305);
/// The minimum time between two attempts to watch a resource, and the shortest time that it is watched for.
const AGAIN: Duration = Duration::from_secs(60);
/// The same if the account is not permitted to, or the server has no such kind.
const AGAIN_REFUSED: Duration = Duration::from_secs(300);
/// The time limit for the list.
const DEADLINE: Duration = Duration::from_secs(5);

/// The definitions and APIServices of one member, and the time at which their changes require discovery.
pub(crate) struct Definitions {
    watched: [Watched; WATCHED.len()],
    /// Notifies that an object has changed, or that a watch has ended.
    any: Arc<Notify>,
    /// The time at which the watch that was opened last ends.
    until: Instant,
    /// The time of the last change.
    changed: Option<Instant>,
    /// The time of the last discovery.
    ran: Instant,
    /// The time of the next one because of a change.
    due: Option<Instant>,
}

/// One resource, and its watch.
struct Watched {
    of: fn() -> Path,
    /// The last watch, which may have ended; `None` if it was not opened.
    watch: Option<(Arc<WatchState>, AbortOnDropHandle<()>)>,
    /// The earliest time of the next attempt.
    again: Instant,
}

/// The report of one watch. Each has its own: a late message of the one before is not mixed up with it.
struct WatchState {
    has_changed: AtomicBool,
    is_open: AtomicBool,
}

impl Definitions {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            watched: WATCHED.map(|of| Watched {
                of,
                watch: None,
                again: now,
            }),
            any: Arc::default(),
            until: now,
            changed: None,
            ran: now,
            due: None,
        }
    }

    /// Opens the watches that are not open. Discovery is due at once after one was, as the changes before were not seen.
    pub(crate) async fn watch(&mut self, api: &Api) {
        let now = Instant::now();
        let wanted: Vec<_> = self
            .watched
            .iter_mut()
            .filter(|each| each.is_wanted(now))
            .collect();
        if wanted.is_empty() {
            return;
        }
        // One that is opened late ends with the others: discovery then runs once for all.
        if self.until < now + AGAIN {
            self.until = now + probe::interval(OPEN_FOR, api.name());
        }
        let (period, any) = (self.until - now, &self.any);
        let opened = join_all(wanted.into_iter().map(|each| each.open(api, period, any))).await;
        if opened.contains(&true) {
            self.due = Some(now);
        }
    }

    /// Ends the watches: their client is not used any more.
    pub(crate) fn stop(&mut self) {
        let ran = self.ran;
        *self = Self { ran, ..Self::new() };
    }

    /// Waits until discovery is due, because of a change or because a watch has ended. May be dropped half way.
    pub(crate) async fn wait(&mut self) {
        while !self.is_due() {
            let due = self.due;
            tokio::select! {
                () = self.any.notified() => {}
                () = sleep_until(due.unwrap_or(self.ran)), if due.is_some() => {}
            }
            let now = Instant::now();
            // All are read: a change that is left behind would count again.
            let changes = self.watched.iter().filter(|each| each.take_change()).count();
            if changes > 0 {
                self.changed = Some(now);
                let next = (now + AFTER[0]).max(self.ran + SPACING);
                // Never later: changes may not end.
                self.due = Some(self.due.map_or(next, |due| due.min(next)));
            }
            let has_ended = |each: &Watched| each.watch.is_some() && each.is_wanted(now);
            if self.watched.iter().any(has_ended) {
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

impl Watched {
    /// True if it is not open, and may be tried.
    fn is_wanted(&self, now: Instant) -> bool {
        let is_open = |(state, _): &(Arc<WatchState>, _)| state.is_open.load(Ordering::Relaxed);
        now >= self.again && !self.watch.as_ref().is_some_and(is_open)
    }

    /// True if a change was reported since the last call.
    fn take_change(&self) -> bool {
        let take = |(state, _): &(Arc<WatchState>, _)| state.has_changed.swap(false, Ordering::Relaxed);
        self.watch.as_ref().is_some_and(take)
    }

    /// Opens its watch for about this period. False if that failed.
    async fn open(&mut self, api: &Api, period: Duration, any: &Arc<Notify>) -> bool {
        let opened = open(api, self.of, period).await;
        let is_refused = |failure: &Failure| matches!(failure.class(), Class::Refused | Class::Missing);
        let refused = opened.as_ref().is_err_and(is_refused);
        self.again = Instant::now() + if refused { AGAIN_REFUSED } else { AGAIN };
        self.watch = match opened {
            Ok(body) => {
                let state = Arc::new(WatchState {
                    has_changed: AtomicBool::new(false),
                    is_open: AtomicBool::new(true),
                });
                let task = tokio::spawn(follow(body, state.clone(), any.clone()));
                Some((state, AbortOnDropHandle::new(task)))
            }
            Err(failure) => {
                debug!(
                    cluster = api.name(),
                    resource = %(self.of)().resource,
                    refused,
                    error = ?failure,
                    "it cannot be watched: a kind that is new by it is found at the next regular discovery"
                );
                None
            }
        };
        self.watch.is_some()
    }
}

/// The time of the next discovery because of this change, after one at `ran`.
fn next(ran: Instant, changed: Instant) -> Option<Instant> {
    let at = AFTER.iter().map(|after| changed + *after);
    let next = at.filter(|at| *at > ran).min()?;
    Some(next.max(ran + SPACING))
}

/// A watch from now on. The list is only for the revision: one item of it is enough.
async fn open(api: &Api, of: fn() -> Path, period: Duration) -> Result<Body, Failure> {
    let list = of().query("limit", "1");
    let call = Call {
        verb: Verb::Get,
        path: &list,
        accept: Form::Metadata.accept_list(),
        body: None,
        deadline: Some(DEADLINE),
    };
    let bytes = api.bytes(call).await?;
    let meta = read::list(&bytes, &mut |_| {}).map_err(|error| Failure::Garbled(error.to_string()))?;
    let seconds = period.as_secs().to_string();
    let path = of()
        .query("watch", "true")
        .query("timeoutSeconds", &seconds)
        .query("resourceVersion", &meta.resource_version);
    api.open(&path, Form::Metadata.accept()).await
}

/// Reports each change until the watch ends. Without bookmarks, all that arrives is a change.
async fn follow(mut body: Body, state: Arc<WatchState>, any: Arc<Notify>) {
    while let Ok(Some(Ok(frame))) = timeout(IDLE, body.frame()).await {
        if frame.data_ref().is_some_and(|data| !data.is_empty()) {
            state.has_changed.store(true, Ordering::Relaxed);
            any.notify_one();
        }
    }
    state.is_open.store(false, Ordering::Relaxed);
    any.notify_one();
}

#[cfg(test)]
mod tests {
    use entourage_core::server::Server;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use crate::client::tests::{Log, Reply, api, status};

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

    const DEFINITIONS: &str = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?";
    const API_SERVICES: &str = "GET /apis/apiregistration.k8s.io/v1/apiservices?";

    /// A member that permits these, and whose watch of the resource `changes` reports one change.
    fn member(permitted: &'static [&'static str], changes: &'static str) -> (Api, Log) {
        api(Server::Member("member1".into()), move |asked| {
            if !permitted.iter().any(|each| asked.line.starts_with(each)) {
                return status(403, "Forbidden");
            }
            if !asked.line.contains("watch=true") {
                return Reply::Json(
                    200,
                    json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}),
                );
            }
            let event =
                json!({"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "8"}}});
            let events = asked.line.starts_with(changes).then_some(event);
            Reply::Lines(events.into_iter().collect(), true)
        })
    }

    #[tokio::test(start_paused = true)]
    async fn discovery_is_due_soon_after_a_definition_or_an_api_service_changed() {
        for (permitted, changes, is_noticed) in [
            (&[DEFINITIONS, API_SERVICES][..], DEFINITIONS, true),
            (&[DEFINITIONS, API_SERVICES], API_SERVICES, true),
            (&[DEFINITIONS], DEFINITIONS, true),
            (&[API_SERVICES], API_SERVICES, true),
            (&[DEFINITIONS], API_SERVICES, false),
            (&[], DEFINITIONS, false),
        ] {
            let (api, log) = member(permitted, changes);
            let mut definitions = Definitions::new();
            definitions.watch(&api).await;
            assert_eq!(definitions.is_due(), !permitted.is_empty(), "the changes before");
            definitions.runs();
            let due = timeout(Duration::from_secs(2), definitions.wait()).await;
            assert_eq!(
                due.is_ok(),
                is_noticed,
                "{permitted:?} {changes}: {:?}",
                log.lines()
            );
            let watches = log
                .lines()
                .iter()
                .filter(|line| line.contains("watch=true"))
                .count();
            assert_eq!(watches, permitted.len(), "{:?}", log.lines());
        }
    }

    /// A member whose first list, or first watch, of APIServices fails with this answer. Watches stay open.
    fn failing((code, reason): (u16, &'static str), at_watch: bool) -> (Api, Log) {
        let failed = AtomicBool::new(false);
        api(Server::Member("member1".into()), move |asked| {
            let is_watch = asked.line.contains("watch=true");
            if asked.line.starts_with(API_SERVICES)
                && is_watch == at_watch
                && !failed.swap(true, Ordering::SeqCst)
            {
                return status(code, reason);
            }
            if is_watch {
                return Reply::Lines(vec![], true);
            }
            let metadata = json!({"resourceVersion": "7"});
            Reply::Json(200, json!({"kind": "List", "metadata": metadata, "items": []}))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_fails_for_a_passing_reason_is_opened_soon_and_the_other_stays_open() {
        let step = Duration::from_secs(10);
        for (answer, at_watch, expected) in [
            ((429, "TooManyRequests"), false, AGAIN),
            ((429, "TooManyRequests"), true, AGAIN),
            ((500, "InternalError"), false, AGAIN),
            ((500, "InternalError"), true, AGAIN),
            ((403, "Forbidden"), false, AGAIN_REFUSED),
            ((404, "NotFound"), false, AGAIN_REFUSED),
        ] {
            let (api, log) = failing(answer, at_watch);
            let began = Instant::now();
            let mut definitions = Definitions::new();
            let watches = |of: &str| {
                let is_one = |line: &&String| line.starts_with(of) && line.contains("watch=true");
                log.lines().iter().filter(is_one).count()
            };
            let first = 1 + usize::from(at_watch);
            definitions.watch(&api).await;
            assert!(definitions.is_due(), "of the one that is open");
            definitions.runs();
            while watches(API_SERVICES) < first {
                assert!(began.elapsed() < expected + step, "{answer:?}: {:?}", log.lines());
                assert!(!definitions.is_due(), "{answer:?}");
                advance(step).await;
                definitions.watch(&api).await;
            }
            assert_eq!(began.elapsed(), expected, "{answer:?}");
            assert!(
                definitions.is_due(),
                "{answer:?}: the changes before were not seen"
            );
            assert_eq!(watches(DEFINITIONS), 1, "{answer:?}: it stayed open");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_opened_late_ends_with_the_other() {
        let (api, log) = failing((500, "InternalError"), false);
        let mut definitions = Definitions::new();
        definitions.watch(&api).await;
        advance(AGAIN).await;
        definitions.watch(&api).await;
        let lines = log.lines();
        let seconds: Vec<u64> = [DEFINITIONS, API_SERVICES]
            .into_iter()
            .flat_map(|of| lines.iter().filter(move |line| line.starts_with(of)))
            .filter_map(|line| {
                line.split_once("timeoutSeconds=")?
                    .1
                    .split('&')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        let [definitions_for, api_services_for] = seconds[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(api_services_for + AGAIN.as_secs(), definitions_for);
    }
}
