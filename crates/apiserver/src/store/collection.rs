//! A collection: the objects of one kind, and their latest events.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{Arc, OnceLock, Weak, atomic::AtomicU64},
};

use tokio::sync::watch;

use super::{Entry, Event, Happened, Page, Revision, TooOld, reader::slowest};

/// Events that a collection keeps for watchers and for earlier states, at most.
const EVENTS: usize = 4096;

/// Bytes of former states that those events keep alive, at most; of large objects fewer events are kept.
const BYTES: usize = 32 << 20;

/// The same limit for events that every reader has read: they are for clients that reconnect, and for lists in pages.
const SPARE: usize = 1 << 20;

/// Events that are kept however large they are.
const LEAST: usize = 64;

/// One collection.
#[derive(Debug, Default)]
pub(super) struct Collection {
    objects: BTreeMap<String, Arc<Entry>>,
    events: VecDeque<Arc<Event>>,
    /// Bytes of the states that only `events` keep alive.
    bytes: usize,
    /// The positions of the readers of the events.
    readers: Vec<Weak<AtomicU64>>,
    /// Events up to this revision may have been dropped.
    floor: Revision,
    /// Created for the first watch or write: most kinds have neither watchers nor objects.
    tick: OnceLock<Arc<watch::Sender<Revision>>>,
}

/// The bytes that an event keeps alive: the state before it, and the last one of a deleted object. Any other state is the present
/// one, or that before another event.
fn weight(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |entry| entry.object.len());
    match event.happened {
        Happened::Deleted => previous + event.entry.object.len(),
        Happened::Added | Happened::Modified => previous,
    }
}

impl Collection {
    pub(super) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.objects.get(key)
    }

    pub(super) fn insert(&mut self, entry: Arc<Entry>) {
        self.objects.insert(entry.key.clone(), entry);
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.objects.remove(key);
    }

    pub(super) fn tick(&self) -> &Arc<watch::Sender<Revision>> {
        self.tick.get_or_init(|| Arc::new(watch::Sender::new(0)))
    }

    pub(super) fn page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page {
        let mut page = Page::empty();
        let mut found = self.within(prefix, after).map(|(_, entry)| entry);
        if limit > 0 {
            page.entries.extend(found.by_ref().take(limit).cloned());
            page.remaining = found.count();
        } else {
            page.entries.extend(found.cloned());
        }
        page
    }

    pub(super) fn page_at(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        revision: Revision,
    ) -> Result<Page, TooOld> {
        if revision < self.floor {
            return Err(TooOld(self.floor));
        }
        if self
            .events
            .back()
            .is_none_or(|last| last.entry.revision <= revision)
        {
            return Ok(self.page(prefix, after, limit));
        }
        let mut state: BTreeMap<&str, &Arc<Entry>> = self
            .within(prefix, after)
            .map(|(key, entry)| (key.as_str(), entry))
            .collect();
        for event in self.events.iter().rev() {
            if event.entry.revision <= revision {
                break;
            }
            let key = event.entry.key.as_str();
            if !key.starts_with(prefix) || after.is_some_and(|after| key <= after) {
                continue;
            }
            match &event.previous {
                Some(previous) => state.insert(key, previous),
                None => state.remove(key),
            };
        }
        let mut page = Page::empty();
        let total = state.len();
        let limit = if limit == 0 { total } else { limit };
        page.entries.extend(state.into_values().take(limit).cloned());
        page.remaining = total - page.entries.len();
        Ok(page)
    }

    /// Events behind `revision` and up to `last`.
    pub(super) fn events(
        &self,
        prefix: &str,
        revision: Revision,
        last: Revision,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, Revision), TooOld> {
        if revision < self.floor {
            return Err(TooOld(self.floor));
        }
        let start = self
            .events
            .partition_point(|event| event.entry.revision <= revision);
        let mut events = Vec::new();
        for event in self.events.range(start..) {
            if event.entry.revision > last {
                break;
            }
            if event.entry.key.starts_with(prefix) {
                events.push(event.clone());
                if events.len() == limit {
                    return Ok((events, event.entry.revision));
                }
            }
        }
        Ok((events, last.max(revision)))
    }

    /// Adds an event, and drops old ones beyond the limits. `reported`: the position of the slowest reader of all collections.
    pub(super) fn remember(&mut self, event: Event, reported: Revision) {
        self.bytes += weight(&event);
        self.events.push_back(Arc::new(event));
        while self.events.len() > EVENTS || self.bytes > BYTES && self.events.len() > LEAST {
            self.forget_one();
        }
        if self.bytes <= SPARE {
            return;
        }
        let reported = slowest(&mut self.readers).min(reported);
        while self.bytes > SPARE && self.events.len() > LEAST && self.begins_before(reported) {
            self.forget_one();
        }
    }

    fn begins_before(&self, reported: Revision) -> bool {
        self.events
            .front()
            .is_some_and(|event| event.entry.revision <= reported)
    }

    pub(super) fn follow(&mut self, reader: Weak<AtomicU64>) {
        self.readers.push(reader);
    }

    /// Drops the events up to `floor`.
    pub(super) fn forget(&mut self, floor: Revision) {
        while self
            .events
            .front()
            .is_some_and(|event| event.entry.revision <= floor)
        {
            self.forget_one();
        }
        self.floor = self.floor.max(floor);
    }

    fn forget_one(&mut self) {
        if let Some(gone) = self.events.pop_front() {
            self.floor = gone.entry.revision;
            self.bytes -= weight(&gone);
        }
    }

    fn within<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<Entry>)> + use<'a> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.objects
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }
}
