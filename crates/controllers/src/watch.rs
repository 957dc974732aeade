//! One list-and-watch of [`entourage_core::index::Index::demand`], kept running through every kind of end.
//!
//! An own loop instead of kube's watcher: items are projected one by one while a page is read, kinds that are not
//! interpreted are asked for as metadata with a fallback that old servers understand, what arrives together is handed
//! over together, and an outage is told once. Order of things:
//!
//! 1. list in pages (consistent: no resourceVersion is asked for); told is `Listing` before the first item, every
//!    item as `Seen`, then `Listed` with all of them;
//! 2. watch from the list's resourceVersion, with bookmarks, and tell how far that was `Reached`; resume from the last resourceVersion after an ordinary end,
//!    and after any other one if the server has come as far: one that was restored meanwhile takes a version that it has not
//!    reached and says nothing until it has. It is listed again, and so is everything else of that server when its watch ends;
//! 3. 410 or an ERROR event: list again. A failure to list, and the second in a row to open the watch, is told as
//!    `Lost`; after it a watch that opens is closed for a new list;
//! 4. what is not found is looked up anew (the server may call it otherwise by now), and if the server says what it serves
//!    instead, that is told as `Unserved`.
//!
//! Told is only what differs from what was told last, however often it is found again (`Told`): an outage that turns out
//! to be an upgrade is told as both, one after the other.
//!
//! Nothing is repeated without a pause: what lives shorter than `SHORTEST` counts as a failure.

use std::{collections::BTreeSet, time::Duration};

use entourage_core::{
    delivery::render::wipe,
    interpreter::Interpretation,
    object::{Gvk, ResourceId, Str, revision},
    observation::{self, Observation, Watch},
    simulation::misread_part,
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
        path::{self, Path},
        read,
    },
    error::{Class, Failure},
    inbox::Message,
    interpreter_snapshot::InterpreterSnapshot,
};

mod hear;
mod lines;
mod list;
mod outage;
mod state;

use hear::{News, Unheard};
use lines::Lines;
use outage::{LONGEST, pause};
use state::{End, Told};

/// Items asked for at a time: a page is in memory as a whole.
const PAGE: &str = "500";
/// The same where whole objects come.
const PAGE_WHOLE: &str = "250";
/// How long the server is asked to keep a watch open, in seconds.
const OPEN_FOR: &str = "290";
/// A watch that says nothing for this long is dead: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(305);
/// The same once the server has sent a bookmark: servers that do so send one a minute.
const IDLE_WITH_BOOKMARKS: Duration = Duration::from_secs(90);
/// The account may not do this.
const FORBIDDEN: u16 = 403;
/// A watch that ends sooner counts as a failure, so that a server that closes at once is not asked in a loop.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long a kind that was never listed may be kept waiting by a busy or silent server before that is told: at a start
/// nothing depends on what was told before, and an alarm would be false.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an answer to what a server serves counts while what is asked for is not found.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// A running list-and-watch.
pub struct Watcher {
    api: Api,
    /// Our hub's id.
    hub: Str,
    watch: Watch,
    /// How objects are read, and by what.
    interpreters: InterpreterSnapshot,
    interpretation: Interpretation,
    /// What hooks had no answer about.
    unheard: Unheard,
    /// Tells this run from an earlier one of the same watch, whose last words may still be under way.
    run: u64,
    brain: mpsc::Sender<Message>,
    list: Path,
    form: Form,
    /// Calls that failed in a row.
    failures: u32,
    /// Watches in a row that did not last, or did not open before that was told; each asks for a new list, so a call
    /// that succeeds in between does not end this row.
    short: u32,
    /// What was last told.
    told: Told,
    /// When the server was last asked what it serves.
    asked: Option<Instant>,
    /// The server did not serve the kind when it was last asked, or it may have begun to since it was asked what it
    /// serves: its definition may have been brought there by us a moment ago.
    missing: bool,
    /// Since when the first list is tried; `None` after it.
    waiting: Option<Instant>,
    /// The last watch broke or did not open: another server may answer now, or the same one restored from a backup.
    doubtful: bool,
    /// How often the server had been found to be restored when it was last listed.
    restores: usize,
    /// How far the server had come then, or had by what it told since.
    reached: u64,
}

/// How much is asked for.
fn form(watch: &Watch, interpretation: &Interpretation) -> Form {
    if observation::is_whole(watch, interpretation) {
        Form::Whole
    } else {
        Form::Metadata
    }
}

impl Watcher {
    /// A watch over this server; `hub` is our hub's id, which copies on members carry.
    #[must_use]
    pub fn new(api: Api, watch: Watch, run: u64, hub: &Str, brain: mpsc::Sender<Message>) -> Self {
        let interpretation = Interpretation::default();
        let form = form(&watch, &interpretation);
        let list = list::listed(&watch, hub);
        let missing = matches!(&watch, Watch::Copies(_, gvk) if !path::is_built_in(gvk));
        Self {
            api,
            hub: hub.clone(),
            watch,
            interpreters: InterpreterSnapshot::default(),
            interpretation,
            unheard: Unheard::default(),
            run,
            brain,
            list,
            form,
            failures: 0,
            short: 0,
            told: Told::Works,
            asked: None,
            missing,
            waiting: Some(Instant::now()),
            doubtful: false,
            restores: 0,
            reached: 0,
        }
    }

    /// What it reads is understood by what people taught us of its kind.
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
            (self.told, self.waiting, self.failures) = (Told::Works, None, 0);
            self.was_listed(restores, revision(&from));
            loop {
                let began = Instant::now();
                match self.resume(from.clone()).await {
                    Ok(End::Stop) => return,
                    Ok(End::Relist) => {
                        // It opened after an outage that was told: only a list ends that.
                        if self.told != Told::Works {
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

    /// Asks the server what the resources of a kind are called, unless that is known. What another watch learnt counts
    /// here too; what is known and not found is doubted: a definition made anew may have another name for them.
    async fn look_up(&mut self) -> Result<(), Failure> {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = &self.watch else {
            return Ok(());
        };
        self.list = list::listed(&self.watch, &self.hub);
        let is_doubtful = self.missing && self.failures > 0;
        if path::is_built_in(gvk) || (path::is_known(gvk) && !is_doubtful) {
            return Ok(());
        }
        let answer = match self.api.get(&Path::group_version(gvk), Form::Whole).await {
            // Then the list says whether what is known is right.
            Err(_) if path::is_known(gvk) => return Ok(()),
            Err(failure) if failure.class() == Class::Missing => return Err(Failure::not_served(gvk)),
            answer => answer?,
        };
        let resources = answer["resources"].as_array().into_iter().flatten();
        let plural = resources
            .filter(|each| each["kind"] == *gvk.kind)
            .filter_map(|each| each["name"].as_str())
            .find(|name| !name.contains('/'));
        let Some(plural) = plural else {
            return Err(Failure::not_served(gvk));
        };
        path::learn(gvk, plural);
        self.list = list::listed(&self.watch, &self.hub);
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
        if self.told != Told::Works {
            return Ok(End::Relist);
        }
        let (mut lines, mut idle) = (Lines::default(), IDLE);
        let mut since = Instant::now();
        loop {
            let frame = tokio::select! {
                frame = timeout_at(since + idle, body.frame()) => frame,
                () = sleep_until(self.unheard.again()), if !self.unheard.is_empty() => {
                    let seen = self.hear_again().await;
                    if !seen.is_empty() && self.tell(seen, false).await.is_none() {
                        return Ok(End::Stop);
                    }
                    continue;
                }
                templates = self.unasked() => {
                    self.unheard.ask(templates);
                    continue;
                }
            };
            since = Instant::now();
            let frame = match frame {
                Ok(Some(Ok(frame))) => frame,
                // Ended by the server, broken or dead: all that came is handed over, so it can be resumed.
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
                // Events may come late; the server is only ever asked to go on from the newest.
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

    /// Templates that hooks are to be asked about now, see [`InterpreterSnapshot::unasked_of`]; never any of another kind of watch.
    async fn unasked(&self) -> BTreeSet<ResourceId> {
        match &self.watch {
            Watch::Templates(gvk) if self.interpretation.is_hooked() => {
                self.interpreters.unasked_of(gvk).await
            }
            _ => std::future::pending().await,
        }
    }

    /// What came together is read together: hooks are asked about all of it at a time.
    async fn events(&mut self, events: Vec<(String, Value)>) -> Vec<Observation> {
        let news = events.into_iter().map(|(kind, object)| match &*kind {
            "DELETED" => News::Gone(object),
            _ => News::Object(object),
        });
        if self.interpretation.is_hooked() {
            return self.hear(news).await;
        }
        let mut seen = Vec::new();
        for mut each in news {
            seen.extend(match &each {
                News::Object(object) => self.project(&self.interpretation, object),
                News::Gone(object) => self.end(object),
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
            let part = misread_part(&self.watch, object);
            warn!(cluster = self.api.name(), resource = %self.list.resource, object = name, part, "an object cannot be read and is skipped; what it said before goes on to count");
        }
        subject.map(Observation::Seen)
    }

    /// What was read of kinds that hold data is not left in memory: kubectl's annotation may hold all of it.
    fn wipe(&self, object: &mut Value) {
        match &self.watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) | Watch::Distributed(_, gvk, _)
                if is_secret(gvk) =>
            {
                wipe(object);
            }
            Watch::Distributions => wipe(object),
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

    /// A watch that began then has ended: rests if that was too soon.
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
