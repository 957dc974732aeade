//! Watches: positions in the store's events, from which frames are made.
//!
//! A watch has no queue. It reads the events behind its position when its client takes more, so a slow client costs
//! nothing but a late "too old". It sleeps on the tick of its own collection, its next bookmark and its end; a watch of a
//! custom resource also ends with its CRD, once all events are sent.

use std::{sync::Arc, time::Duration, vec};

use serde_json::Value;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Call, Item},
    list::{self, Options},
    object::metadata_mut,
    random,
    resource::{Resource, stored},
    selector::Selection,
    status::{Result, Status},
    store::{Entry, Event, Happened, Reader, Revision, Store},
};

#[cfg(test)]
mod tests;

/// The interval of bookmarks for a client that takes them.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// The time before its end at which a watch sends a last bookmark.
const FAREWELL: Duration = Duration::from_secs(2);

/// The default duration of a watch, in seconds; it may be up to twice as long, so that not all end at once.
const LASTS: u64 = 1800;

/// The longest that a watch lasts, in seconds.
const LONGEST: i64 = 10 * 365 * 24 * 3600;

/// The number of frames that are made at a time.
const BATCH: usize = 64;

/// A frame of a watch before it is negotiated and written.
pub(crate) enum Frame {
    /// ADDED, MODIFIED or DELETED with the object.
    Object(&'static str, Item),
    /// A bookmark at a revision; `true`: the initial events are over.
    Bookmark(Revision, bool),
    /// The end, with its reason.
    Error(Box<Status>),
}

crate::hidden::without_content!(Frame);

/// A watch. It has no queue, only a position.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The watched resource.
    pub resource: Arc<Resource>,
    prefix: String,
    selection: Selection,
    /// The steps before events are read.
    beginning: Beginning,
    at: Reader,
    ticks: watch::Receiver<Revision>,
    /// Cancelled when the resource is served no longer, or another one in its place.
    gone: CancellationToken,
    end: Instant,
    /// The time of the next bookmark, if the client takes them.
    bookmark: Option<Instant>,
    over: bool,
}

/// The beginning of a watch.
#[derive(Debug)]
enum Beginning {
    /// The present objects, once the store has reached a revision; then a bookmark, if the flag is set.
    Present(Revision, bool),
    /// The rest of the initial objects.
    Under(vec::IntoIter<Arc<Entry>>, bool),
    /// It has begun.
    Done,
}

/// Begins a watch.
pub(crate) async fn start(store: &Store, call: &Call) -> Result<Watch> {
    let options = Options::of(call, true)?;
    let resource = call.resource.clone();
    let asked = list::revision_of(&options.revision).map_err(Status::unforeseen)?;
    // Before the position is taken: nothing is missed between the two.
    let ticks = store.ticks_of(&resource.collection);
    let (beginning, at) = match options.initial_events {
        Some(true) => (Beginning::Present(asked, options.bookmarks), 0),
        // As if initial events were requested: the default of a watch that names no version, or 0.
        None if asked == 0 => (Beginning::Present(0, options.bookmarks), 0),
        Some(false) if asked == 0 => (Beginning::Done, store.revision()),
        _ => (Beginning::Done, asked),
    };
    let now = Instant::now();
    let end = now + lasts(options.timeout);
    Ok(Watch {
        prefix: list::prefix(call),
        selection: options.selection,
        beginning,
        at: store.reader(&resource.collection, at),
        ticks,
        gone: resource
            .custom
            .as_ref()
            .map_or_else(CancellationToken::new, |custom| custom.replaced.clone()),
        resource,
        end,
        bookmark: options.bookmarks.then(|| next_bookmark(now, end)),
        over: false,
    })
}

fn lasts(timeout: Option<i64>) -> Duration {
    let seconds = match timeout {
        Some(seconds) if seconds != 0 => seconds.clamp(0, LONGEST).unsigned_abs(),
        _ => LASTS + u64::from(u16::from_be_bytes([random::random()[0], random::random()[1]])) % LASTS,
    };
    Duration::from_secs(seconds)
}

/// A minute from now, or shortly before the end when that is earlier and still to come.
fn next_bookmark(now: Instant, end: Instant) -> Instant {
    let regular = now + BOOKMARKS;
    match end.checked_sub(FAREWELL) {
        Some(farewell) if farewell > now && farewell < regular => farewell,
        _ => regular,
    }
}

impl Watch {
    /// The next frames, at least one; `None` at the end.
    pub(crate) async fn next(&mut self, store: &Store) -> Option<Vec<Frame>> {
        if self.over {
            return None;
        }
        if let Some(frames) = self.begin(store).await {
            return Some(frames);
        }
        loop {
            let gone = self.gone.is_cancelled();
            if let Some(frames) = self.read(store) {
                return Some(frames);
            }
            if gone || self.end <= Instant::now() {
                self.over = true;
                return None;
            }
            let bookmark = self.bookmark.unwrap_or(self.end);
            tokio::select! {
                changed = self.ticks.changed() => changed.ok()?,
                () = self.gone.cancelled() => {}
                () = tokio::time::sleep_until(bookmark.min(self.end)) => {
                    let now = Instant::now();
                    if self.bookmark.is_some_and(|due| due <= now) {
                        self.bookmark = Some(next_bookmark(now, self.end));
                        let mut frames = self.read(store).unwrap_or_default();
                        if !self.over {
                            frames.push(Frame::Bookmark(self.at.at(), false));
                        }
                        return Some(frames);
                    }
                }
            }
        }
    }

    /// The next of the frames with which the watch begins; `None` when it has begun.
    async fn begin(&mut self, store: &Store) -> Option<Vec<Frame>> {
        if let Beginning::Present(revision, bookmark) = self.beginning {
            match self.present(store, revision).await {
                Ok(entries) => self.beginning = Beginning::Under(entries.into_iter(), bookmark),
                Err(status) => {
                    self.over = true;
                    return Some(vec![Frame::Error(status)]);
                }
            }
        }
        let Beginning::Under(entries, bookmark) = &mut self.beginning else {
            return None;
        };
        let mut frames = Vec::new();
        let mut looked = 0;
        for entry in entries.by_ref() {
            if self.selection.matches_stored(&self.resource, &entry) {
                frames.push(Frame::Object("ADDED", Item::Stored(entry)));
                if frames.len() == BATCH {
                    return Some(frames);
                }
            }
            looked += 1;
            if looked % BATCH == 0 {
                tokio::task::yield_now().await;
            }
        }
        if *bookmark {
            frames.push(Frame::Bookmark(self.at.at(), true));
        }
        self.beginning = Beginning::Done;
        (!frames.is_empty()).then_some(frames)
    }

    /// The present objects, once the store has reached `revision`; the position is set to that state.
    async fn present(&mut self, store: &Store, revision: Revision) -> Result<Vec<Arc<Entry>>> {
        list::reach(store, revision).await?;
        let page = store.list(&self.resource.collection, &self.prefix, None, 0);
        let committed = store.committed(page.revision).await;
        committed.map_err(|broken| Status::internal(&broken.to_string()))?;
        self.at.reached(page.revision);
        Ok(page.entries)
    }

    /// The next frames that the store's events make; `None` when there are none for now.
    fn read(&mut self, store: &Store) -> Option<Vec<Frame>> {
        loop {
            let read = store.events(&self.resource.collection, &self.prefix, self.at.at(), BATCH);
            let (events, reached) = match read {
                Ok(read) => read,
                Err(too_old) => {
                    self.over = true;
                    let message = format!("too old resource version: {} ({})", self.at.at(), too_old.0);
                    return Some(vec![Frame::Error(Status::expired(message))]);
                }
            };
            self.at.reached(reached);
            let frames: Vec<Frame> = events.iter().filter_map(|event| self.frame(event)).collect();
            if !frames.is_empty() {
                return Some(frames);
            }
            if events.len() < BATCH {
                return None;
            }
        }
    }

    /// The frame of an event for this watch: an object that begins to match is ADDED, one that ceases to is DELETED as it last
    /// matched.
    fn frame(&self, event: &Event) -> Option<Frame> {
        let selected = |entry: &Entry| self.selection.matches_stored(&self.resource, entry);
        let now = event.happened != Happened::Deleted && selected(&event.entry);
        match event.previous.as_deref().filter(|previous| selected(previous)) {
            None if !now => None,
            None => Some(Frame::Object("ADDED", Item::Stored(event.entry.clone()))),
            Some(_) if now => Some(Frame::Object("MODIFIED", Item::Stored(event.entry.clone()))),
            Some(last) => Some(Frame::Object("DELETED", self.last(event, last))),
        }
    }

    /// An object as it last matched, with the revision of what ended that.
    fn last(&self, event: &Event, last: &Entry) -> Item {
        // The store made just that of a deleted object; its own revision shows the definition by which it was written.
        if event.happened == Happened::Deleted && stored::is_shown_as_stored(&self.resource, last) {
            return Item::Stored(event.entry.clone());
        }
        let mut object = stored::shown(&self.resource, &last.object);
        let revision = Value::String(event.entry.revision.to_string());
        metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision);
        Item::Made(object)
    }
}
