//! One list-and-watch: one that [`entourage_core::fleet::Fleet::demand`] contains, kept running through every kind of end.
//!
//! An own loop instead of kube's watcher: items are projected one by one while a page is read, kinds that are not interpreted
//! are requested as metadata with a fallback that old servers understand, events that arrive together are sent together, and an
//! outage is reported once. The order:
//!
//! 1. list in pages (consistent: without a resourceVersion); sends `Listing` before the first item, every item as `Seen`, then
//!    `Listed` with all of them;
//! 2. watch from the list's resourceVersion, with bookmarks, and send the revision that was `Reached`; resume from the last
//!    resourceVersion after an ordinary end, and after any other one if the server has reached it: a server that was restored
//!    meanwhile accepts a version that it has not reached and sends nothing until it has. It is listed again, and so are all
//!    other watches of that server when they end;
//! 3. 410 or an ERROR event: list again. A failure to list, and the second in a row to open the watch, is reported as `Lost`;
//!    after it a watch that opens is closed for a new list;
//! 4. a kind that is not found is discovered again (the server may use another plural by now), and if the server reports what it
//!    serves instead, that is sent as `Unserved`.
//!
//! Only changes are reported, however often the same state is found again (`Reported`): an outage that turns out to be an upgrade is
//! reported as both, one after the other.
//!
//! Nothing is repeated without a pause: a watch that ends before `SHORTEST` counts as a failure.

use std::{collections::BTreeSet, time::Duration};

use entourage_core::{
    delivery::render::wipe,
    interpreter::Interpretation,
    object::{Gvk, ResourceId, revision},
    observation::{self, Observation, Watch, misread},
};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tracing::{debug, warn};

use crate::{
    client::{
        Api, Form,
        lines::Lines,
        path::{self, Path},
        read,
    },
    error::{Class, Failure},
    inbox::Message,
    interpreter_snapshot::InterpreterSnapshot,
};

mod hook_calls;
mod list;
mod outage;
mod scope;
mod state;

pub use scope::Scope;

use hook_calls::{HookRetries, WatchEvent};
use outage::{LONGEST, pause};
use state::{End, Reported};

/// The number of items per page: a page is in memory as a whole.
const PAGE: &str = "500";
/// The same for whole objects.
const PAGE_WHOLE: &str = "250";
/// The time that the server is asked to keep a watch open, in seconds.
const OPEN_FOR: &str = "290";
/// The idle timeout of a watch: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(305);
/// The same once the server has sent a bookmark: such servers send one a minute.
const IDLE_WITH_BOOKMARKS: Duration = Duration::from_secs(90);
/// The account is not allowed to.
const FORBIDDEN: u16 = 403;
/// A watch that ends earlier counts as a failure, so that a server that closes at once is not called in a loop.
const SHORTEST: Duration = Duration::from_secs(1);
/// The time that a busy or unresponsive server may delay the first list of a kind before it is reported: at a start nothing
/// depends on earlier reports, and an alarm would be false.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time for which a discovery result counts while a kind is not found.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// A running list-and-watch.
pub struct Watcher {
    api: Api,
    scope: Scope,
    watch: Watch,
    /// The interpretations by which objects are read.
    interpreters: InterpreterSnapshot,
    interpretation: Interpretation,
    /// The objects for which a hook failed.
    hook_retries: HookRetries,
    /// Distinguishes this run from an earlier one of the same watch, whose late messages may still arrive.
    run: u64,
    brain: mpsc::Sender<Message>,
    list: Path,
    form: Form,
    /// Calls that failed in a row.
    failures: u32,
    /// Watches in a row that did not last, or did not open before that was reported; each requires a new list, so a successful
    /// call in between does not reset this count.
    short: u32,
    /// The last report.
    reported: Reported,
    /// The time of the last discovery.
    asked: Option<Instant>,
    /// True if the server did not serve the kind at the last discovery, or may have started to since then: its definition may
    /// have been delivered a moment ago.
    missing: bool,
    /// The time since when the first list is attempted; `None` after it.
    waiting: Option<Instant>,
    /// True if the last watch broke or did not open: another server may respond now, or the same one restored from a backup.
    doubtful: bool,
    /// The number of restores found before the last list.
    restores: usize,
    /// The highest revision of the server then, or sent since.
    reached: u64,
}

/// The form of the requested objects.
fn form(watch: &Watch, interpretation: &Interpretation) -> Form {
    if observation::is_whole(watch, interpretation) {
        Form::Whole
    } else {
        Form::Metadata
    }
}

impl Watcher {
    /// A watch on this server.
    #[must_use]
    pub fn new(api: Api, watch: Watch, run: u64, scope: &Scope, brain: mpsc::Sender<Message>) -> Self {
        let interpretation = Interpretation::default();
        let form = form(&watch, &interpretation);
        let list = scope.listed(&watch);
        let missing = matches!(&watch, Watch::Copies(_, gvk) if !path::is_built_in(gvk));
        Self {
            api,
            scope: scope.clone(),
            watch,
            interpreters: InterpreterSnapshot::default(),
            interpretation,
            hook_retries: HookRetries::default(),
            run,
            brain,
            list,
            form,
            failures: 0,
            short: 0,
            reported: Reported::Works,
            asked: None,
            missing,
            waiting: Some(Instant::now()),
            doubtful: false,
            restores: 0,
            reached: 0,
        }
    }

    /// Sets the interpretation of its kind.
    #[must_use]
    pub fn interpreting(self, interpreters: InterpreterSnapshot, interpretation: Interpretation) -> Self {
        Self {
            form: form(&self.watch, &interpretation),
            interpreters,
            interpretation,
            ..self
        }
    }

    /// Lists and watches until the control loop has ended; drop the future to end it earlier.
    pub async fn run(mut self) {
        loop {
            let restores = self.api.restores();
            let listed = match self.look_up().await {
                Ok(()) => self.list().await,
                Err(failure) => Err(failure),
            };
            let mut from = match listed {
                Ok(Some(version)) => version,
                Ok(None) => return,
                Err(failure) => {
                    if self.give_up(&failure).await.is_none() {
                        return;
                    }
                    self.rest(&failure).await;
                    continue;
                }
            };
            if std::mem::take(&mut self.missing) {
                self.api.doubt_apis();
            }
            (self.reported, self.waiting, self.failures) = (Reported::Works, None, 0);
            self.was_listed(restores, revision(&from));
            loop {
                let began = Instant::now();
                match self.resume(from.clone()).await {
                    Ok(End::Stop) => return,
                    Ok(End::Relist) => {
                        // It opened after an outage that was reported: only a list ends that.
                        if self.reported != Reported::Works {
                            self.failures = 0;
                        }
                        self.breathe(began).await;
                        break;
                    }
                    Ok(End::Resume(version)) => {
                        from = version;
                        self.breathe(began).await;
                    }
                    Ok(End::Broken(version)) => {
                        self.api.doubt_identity();
                        (from, self.doubtful) = (version, true);
                        self.breathe(began).await;
                    }
                    Err(failure) if failure.class() == Class::Expired => {
                        self.breathe(Instant::now()).await;
                        break;
                    }
                    Err(failure) => {
                        debug!(cluster = self.api.name(), resource = %self.list.resource, error = ?failure, "a watch could not be opened");
                        self.doubtful = true;
                        if self.failures > 0 && self.give_up(&failure).await.is_none() {
                            return;
                        }
                        self.rest(&failure).await;
                        if self.missing {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Asks the server for the plural of a kind, unless it is known. A plural learnt by another watch counts, too; one that is
    /// known and not found is asked for again: a definition that was created again may have another plural.
    async fn look_up(&mut self) -> Result<(), Failure> {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = &self.watch else {
            return Ok(());
        };
        self.list = self.scope.listed(&self.watch);
        let is_doubtful = self.missing && self.failures > 0;
        if path::is_built_in(gvk) || (path::is_known(gvk) && !is_doubtful) {
            return Ok(());
        }
        self.api.learn_plural(gvk).await?;
        self.list = self.scope.listed(&self.watch);
        Ok(())
    }

    /// Watches until the server ends it.
    async fn follow(&mut self, mut version: String) -> Result<End, Failure> {
        let path = self
            .list
            .clone()
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("timeoutSeconds", OPEN_FOR)
            .query("resourceVersion", &version);
        let mut body: Body = self.api.open(&path, self.form.accept()).await?;
        if self.reported != Reported::Works {
            return Ok(End::Relist);
        }
        let (mut lines, mut idle) = (Lines::default(), IDLE);
        let mut since = Instant::now();
        loop {
            let frame = tokio::select! {
                frame = timeout_at(since + idle, body.frame()) => frame,
                () = sleep_until(self.hook_retries.again()), if !self.hook_retries.is_empty() => {
                    let seen = self.retry_hooks().await;
                    if !seen.is_empty() && self.tell(seen, false).await.is_none() {
                        return Ok(End::Stop);
                    }
                    continue;
                }
                templates = self.unasked() => {
                    self.hook_retries.ask(templates);
                    continue;
                }
            };
            since = Instant::now();
            let frame = match frame {
                Ok(Some(Ok(frame))) => frame,
                // Ended by the server, broken or timed out: all events were sent, so it can be resumed.
                Ok(None) => return Ok(End::Resume(version)),
                Ok(Some(Err(_))) | Err(_) => return Ok(End::Broken(version)),
            };
            let Ok(data) = frame.into_data() else { continue };
            lines.push(&data);
            let (mut events, mut broken) = (Vec::new(), false);
            let before = revision(&version);
            while let Some(line) = lines.next() {
                let Ok((kind, object)) = read::event(line) else {
                    warn!(cluster = self.api.name(), resource = %self.list.resource, "a watch event cannot be read; listing again");
                    broken = true;
                    break;
                };
                if kind == "BOOKMARK" {
                    idle = IDLE_WITH_BOOKMARKS;
                } else if kind == "ERROR" {
                    debug!(cluster = self.api.name(), resource = %self.list.resource, code = object["code"].as_u64(), "the server ended a watch");
                    broken = true;
                    break;
                }
                // Events may be late; the watch always resumes from the newest.
                if let Some(now) = object["metadata"]["resourceVersion"].as_str()
                    && revision(now) >= revision(&version)
                {
                    now.clone_into(&mut version);
                }
                if kind != "BOOKMARK" {
                    events.push((kind, object));
                }
            }
            let mut seen = self.events(events).await;
            let reached = revision(&version);
            if reached > before {
                self.reached = reached;
                seen.push(Observation::Reached {
                    watch: self.watch.clone(),
                    revision: reached,
                });
            }
            if !seen.is_empty() && self.tell(seen, false).await.is_none() {
                return Ok(End::Stop);
            }
            if broken || lines.is_too_long() {
                return Ok(End::Relist);
            }
        }
    }

    /// The templates to ask hooks about now, see [`InterpreterSnapshot::unasked_of`]; none for another kind of watch.
    async fn unasked(&self) -> BTreeSet<ResourceId> {
        match &self.watch {
            Watch::Templates(gvk) if self.interpretation.is_hooked() => {
                self.interpreters.unasked_of(gvk).await
            }
            _ => std::future::pending().await,
        }
    }

    /// Events that arrived together are read together: hooks are called for all of them concurrently.
    async fn events(&mut self, events: Vec<(String, Value)>) -> Vec<Observation> {
        let news = events.into_iter().map(|(kind, object)| match &*kind {
            "DELETED" => WatchEvent::Deleted(object),
            _ => WatchEvent::Object(object),
        });
        if self.interpretation.is_hooked() {
            return self.read_events(news).await;
        }
        let mut seen = Vec::new();
        for mut each in news {
            seen.extend(match &each {
                WatchEvent::Object(object) => self.project(&self.interpretation, object),
                WatchEvent::Deleted(object) => self.end(object),
            });
            self.wipe(each.object());
        }
        seen
    }

    fn end(&self, object: &Value) -> Option<Observation> {
        let meta = &object["metadata"];
        Some(Observation::Gone {
            which: observation::which(&self.watch, object)?,
            uid: meta["uid"].as_str().map(Into::into),
            revision: meta["resourceVersion"].as_str().map(revision),
        })
    }

    fn project(&self, interpretation: &Interpretation, object: &Value) -> Option<Observation> {
        let subject = observation::project(&self.watch, interpretation, object);
        if subject.is_none() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let part = misread::part(&self.watch, object);
            warn!(cluster = self.api.name(), resource = %self.list.resource, object = name, part, "an object cannot be parsed and is skipped; its last valid version stays in effect");
        }
        subject.map(Observation::Seen)
    }

    /// Objects of kinds with data are not left in memory: kubectl's annotation may quote all of it.
    fn wipe(&self, object: &mut Value) {
        match &self.watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) | Watch::Distributed(_, gvk, _)
                if is_secret(gvk) =>
            {
                wipe(object);
            }
            Watch::Distributions | Watch::Works => wipe(object),
            _ => {}
        }
    }

    async fn tell(&self, seen: Vec<Observation>, initial: bool) -> Option<()> {
        self.brain
            .send(Message::Watched {
                run: self.run,
                seen,
                initial,
            })
            .await
            .ok()
    }

    /// A watch that began then has ended: pauses if that was too early.
    async fn breathe(&mut self, began: Instant) {
        if began.elapsed() >= SHORTEST {
            (self.failures, self.short) = (0, 0);
        } else {
            self.short += 1;
            sleep(pause(self.short, LONGEST)).await;
        }
    }
}

fn is_secret(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && &*gvk.kind == "Secret"
}

#[cfg(test)]
mod tests;
