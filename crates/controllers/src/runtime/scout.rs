//! Kinds that are not known to be served: one task per API server discovers all of them.
//!
//! A kind in a policy may not be served anywhere, and there may be a thousand of them. Until the server is found to serve it, a
//! kind has no watch, no task and no request of its own: `Scout` runs discovery on the server ([`Api::catalog`]), and sends the
//! result for each wanted kind. Discovery runs
//! - when the first kind is wanted, and for a new one if definitions cannot be watched;
//! - once a minute, while there is a kind that is not served;
//! - a moment after a CustomResourceDefinition changed, and a few times more: servers take seconds to serve a new definition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use entourage_core::{object::Gvk, observation::Server};
use http_body_util::BodyExt as _;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::Message;
use crate::{
    client::{
        Api, Form,
        catalog::{self, Catalog},
        path::Path,
        served::Served,
    },
    clock,
    supervise::supervise,
};

/// The interval of discovery while a kind is not served.
const MINUTE: Duration = Duration::from_secs(60);
/// The minimum time between two runs of discovery.
const SPACING: Duration = Duration::from_secs(1);
/// The same if only a new kind needs it, or the last run failed.
const SPACING_NEW: Duration = Duration::from_secs(5);
/// The time that discovery may fail before it is reported.
const PATIENCE: Duration = Duration::from_secs(30);
/// The delays of discovery after a definition changed.
const AFTER: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(6),
    Duration::from_secs(12),
];
/// The time that the server is asked to keep the watch of definitions open, in seconds; and the idle timeout.
const OPEN_FOR: &str = "290";
const IDLE: Duration = Duration::from_secs(305);

/// The results for wanted kinds; `None` if unknown, because a server of their group does not respond.
pub type Found = Vec<(Gvk, Option<Served>)>;

/// The wanted kinds, each with the number of the request for it. A kind that is wanted again is answered again, even if the
/// task did not run in between.
type Wanted = BTreeMap<Gvk, u64>;

/// Discovers kinds on one server. Dropping it ends that.
pub(super) struct Scout {
    /// Distinguishes its messages from those of an earlier one.
    pub(super) run: u64,
    wanted: watch::Sender<Wanted>,
    /// The number of requests for kinds so far.
    requests: AtomicU64,
    _task: AbortOnDropHandle<()>,
}

impl Scout {
    pub(super) fn new(server: Server, api: Api, run: u64, brain: mpsc::Sender<Message>) -> Self {
        let (wanted, kinds) = watch::channel(Wanted::new());
        let task = async move {
            let teller = Teller { server, run, brain };
            let make = || look(api.clone(), kinds.clone(), teller.clone());
            supervise("scout", make, || async {}).await;
        };
        Self {
            run,
            wanted,
            requests: AtomicU64::new(0),
            _task: AbortOnDropHandle::new(tokio::spawn(task)),
        }
    }

    /// Sets the wanted kinds. Cost: O(kinds).
    pub(super) fn want(&self, kinds: &BTreeSet<Gvk>) {
        self.wanted.send_if_modified(|held| {
            let before = held.len();
            // Kinds compare without their version.
            held.retain(|kind, _| {
                kinds
                    .get(kind)
                    .is_some_and(|wanted| wanted.version == kind.version)
            });
            let mut is_change = held.len() != before;
            for kind in kinds {
                if !held.contains_key(kind) {
                    held.insert(kind.clone(), self.requests.fetch_add(1, Ordering::Relaxed));
                    is_change = true;
                }
            }
            is_change
        });
    }
}

/// The state of the watch of definitions.
#[derive(Default)]
struct Definitions {
    /// Notifies that a definition has changed, or that the watch has ended.
    news: Notify,
    has_changed: AtomicBool,
    is_open: AtomicBool,
}

#[derive(Clone)]
struct Teller {
    server: Server,
    run: u64,
    brain: mpsc::Sender<Message>,
}

impl Teller {
    /// Sends results; `None`: the control loop has ended.
    async fn tell(&self, found: Found) -> Option<()> {
        let (server, run) = (self.server.clone(), self.run);
        self.brain.send(Message::Looked { server, run, found }).await.ok()
    }
}

async fn look(api: Api, mut wanted: watch::Receiver<Wanted>, teller: Teller) {
    let definitions = Arc::new(Definitions::default());
    let mut watching: Option<AbortOnDropHandle<()>> = None;
    let mut known: Option<Catalog> = None;
    let (mut last, mut due, mut changed) = (None::<Instant>, Instant::now(), None::<Instant>);
    let mut reported = Wanted::new();
    let mut failing: Option<Instant> = None;
    loop {
        let kinds = wanted.borrow_and_update().clone();
        reported.retain(|kind, number| kinds.get(kind) == Some(number));
        if kinds.is_empty() {
            // No kind is wanted: no request is sent.
            drop(watching.take());
            known = None;
            definitions.is_open.store(false, Ordering::Relaxed);
            if wanted.changed().await.is_err() {
                return;
            }
            due = earliest(last, SPACING);
            continue;
        }
        if let Some(catalog) = &known {
            // A new kind is answered by the last catalog, if a change of it would have been reported.
            let mut new = kinds.clone();
            new.retain(|kind, _| !reported.contains_key(kind));
            let found = find(catalog, new.keys());
            let is_served = |(_, served): &(Gvk, Option<Served>)| matches!(served, Some(Served::In(_)));
            if new.is_empty() {
            } else if definitions.is_open.load(Ordering::Relaxed) || found.iter().all(is_served) {
                reported.extend(new);
                if teller.tell(found).await.is_none() {
                    return;
                }
            } else {
                due = due.min(earliest(last, SPACING_NEW));
            }
        }
        tokio::select! {
            ended = wanted.changed() => {
                if ended.is_err() {
                    return;
                }
                continue;
            }
            () = definitions.news.notified() => {
                if definitions.has_changed.swap(false, Ordering::Relaxed) {
                    changed = Some(Instant::now());
                }
                due = due.min(earliest(last, SPACING).max(Instant::now() + AFTER[0]));
                continue;
            }
            () = sleep_until(due) => {}
        }
        let began = Instant::now();
        last = Some(began);
        match api.catalog().await {
            Ok(catalog) => {
                if !definitions.is_open.load(Ordering::Relaxed)
                    && let Some(revision) = catalog.revision()
                {
                    let task = follow(api.clone(), revision.to_owned(), definitions.clone());
                    watching = Some(AbortOnDropHandle::new(tokio::spawn(task)));
                }
                let found = find(&catalog, kinds.keys());
                (reported, known, failing) = (kinds, Some(catalog), None);
                if teller.tell(found).await.is_none() {
                    return;
                }
            }
            Err(failure) => {
                debug!(cluster = api.name(), error = ?failure, "discovery failed");
                if failing.get_or_insert(began).elapsed() >= PATIENCE {
                    let unknown = kinds.into_keys().map(|kind| (kind, None));
                    if teller.tell(unknown.collect()).await.is_none() {
                        return;
                    }
                }
            }
        }
        due = next(began, changed, failing.is_none());
    }
}

/// The time of the next run, after one that began at `began`.
fn next(began: Instant, changed: Option<Instant>, worked: bool) -> Instant {
    let after = changed.and_then(|changed| {
        let at = AFTER.iter().map(|after| changed + *after);
        at.filter(|at| *at > began).min()
    });
    let pause = if worked { MINUTE } else { SPACING_NEW };
    let usual = began + pause.mul_f64(1.0 + clock::jitter() / 10.0);
    after.map_or(usual, |at| at.max(began + SPACING).min(usual))
}

/// Now, or `spacing` after the last run.
fn earliest(last: Option<Instant>, spacing: Duration) -> Instant {
    let now = Instant::now();
    last.map_or(now, |last| now.max(last + spacing))
}

/// The served versions of these kinds; their plurals are known from then on.
fn find<'a>(catalog: &Catalog, kinds: impl Iterator<Item = &'a Gvk>) -> Found {
    let found = kinds.map(|kind| {
        catalog::learn(catalog, kind);
        (kind.clone(), catalog.find(kind))
    });
    found.collect()
}

/// Watches the definitions from a revision on, and reports each change, and the end if it was open for a while.
async fn follow(api: Api, revision: String, definitions: Arc<Definitions>) {
    let path = Path::definitions(None)
        .query("watch", "true")
        .query("timeoutSeconds", OPEN_FOR)
        .query("resourceVersion", &revision);
    let Ok(mut body) = api.open(&path, Form::Metadata.accept()).await else {
        return;
    };
    definitions.is_open.store(true, Ordering::Relaxed);
    let began = Instant::now();
    while let Ok(Some(Ok(frame))) = timeout(IDLE, body.frame()).await {
        if frame.data_ref().is_some_and(|data| !data.is_empty()) {
            definitions.has_changed.store(true, Ordering::Relaxed);
            definitions.news.notify_one();
        }
    }
    definitions.is_open.store(false, Ordering::Relaxed);
    if began.elapsed() >= MINUTE {
        // Another run of discovery watches the definitions again.
        definitions.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_are_a_minute_apart_and_follow_a_change_of_a_definition_for_a_while() {
        let began = Instant::now();
        let pause = |changed| next(began, changed, true) - began;
        assert!(pause(None) >= MINUTE && pause(None) <= MINUTE.mul_f64(1.1));
        assert_eq!(
            pause(Some(began)),
            SPACING,
            "not sooner, although a change was reported"
        );
        assert_eq!(pause(Some(began - Duration::from_secs(2))), SPACING);
        assert_eq!(
            pause(Some(began - Duration::from_secs(4))),
            Duration::from_secs(2)
        );
        assert!(pause(Some(began - Duration::from_secs(13))) >= MINUTE);
    }
}
