//! The store of objects under keys, with revisions and watches, as etcd is for a kube-apiserver: in memory or in one file.
//!
//! Every write gets the next revision of the whole store. A collection (all ConfigMaps) keeps its objects in the byte
//! order of their keys (`namespace/name`) and its latest events, from which watches are served and earlier states are
//! reconstructed. A watcher has a position, not a queue: a slow one costs nothing and gets an error when the events it needs are
//! gone.
//!
//! With a file behind it ([`Store::open`]) a write is visible at once to those who write, but counts only when it is
//! committed: responses wait for [`Store::committed`], and watchers see nothing that a crash could undo.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, atomic::AtomicU64},
};

use bytes::Bytes;
use tokio::sync::watch;

mod collection;
mod durable;
mod reader;
#[cfg(test)]
mod tests;

use collection::Collection;
pub(crate) use durable::{Broken, OpenError};
pub(crate) use reader::Reader;

/// A revision of the store: grows by one with each write.
pub(crate) type Revision = u64;

/// The revision of an empty store. Not 1: clients request 1 as a revision that is long gone.
const FIRST: Revision = 2;

/// One object as stored.
#[derive(PartialEq, Eq)]
pub struct Entry {
    /// `namespace/name`, or `name` of what has no namespace.
    pub key: String,
    /// Revision of the last write.
    pub revision: Revision,
    /// Revision of the first write.
    pub created: Revision,
    /// The object as JSON, resourceVersion included.
    pub object: Bytes,
}

/// Debug output omits the object: it may be a Secret.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.key, self.revision)
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It came.
    Added,
    /// It changed.
    Modified,
    /// It went.
    Deleted,
}

/// One write.
#[derive(Debug)]
pub struct Event {
    /// The type.
    pub happened: Happened,
    /// The state after it; for a deletion the last state, with the revision of the deletion.
    pub entry: Arc<Entry>,
    /// The state before it.
    pub previous: Option<Arc<Entry>>,
}

/// One write, and where it happened.
#[derive(Clone, Debug)]
pub struct Change {
    /// Collection of the object.
    pub collection: String,
    /// The write.
    pub event: Arc<Event>,
}

/// The precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing under the key.
    Absent,
    /// The object as last written with this revision.
    At(Revision),
}

/// The write found something else: this.
#[derive(Debug)]
pub struct Mismatch(pub Option<Arc<Entry>>);

/// The requested revision is no longer kept; the oldest that is.
#[derive(Debug, PartialEq, Eq)]
pub struct TooOld(pub Revision);

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects, in order of their keys.
    pub entries: Vec<Arc<Entry>>,
    /// Objects behind the last one.
    pub remaining: usize,
    /// The store's revision that this is the state of.
    pub revision: Revision,
}

/// The store. Cheap to share behind an `Arc`; every method holds the lock only for the time in its comment.
#[derive(Debug)]
pub struct Store {
    inner: RwLock<State>,
    /// The last revision that watchers may see, for those who wait for any write.
    tick: Arc<watch::Sender<Revision>>,
    /// The file behind the store, if there is one.
    durable: Option<durable::Writer>,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    /// Events up to this revision are dropped in every collection.
    floor: Revision,
    collections: BTreeMap<Arc<str>, Collection>,
    /// The positions of the readers of all collections.
    readers: Vec<Weak<AtomicU64>>,
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// An empty store in memory. A few hundred bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::with(FIRST, BTreeMap::new(), |_| None)
    }

    /// The store of a file, which is created if it does not exist. Reads all objects; their earlier states are forgotten, so
    /// that revisions before the last one are too old.
    ///
    /// # Errors
    /// The file is in use, is damaged, is not a store, or cannot be read or written; the text names the remedy.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let (opened, revision, objects) = durable::open(path)?;
        Ok(Self::with(revision, objects, |tick| Some(opened.start(tick))))
    }

    fn with(
        revision: Revision,
        objects: BTreeMap<Arc<str>, Collection>,
        durable: impl FnOnce(Arc<watch::Sender<Revision>>) -> Option<durable::Writer>,
    ) -> Self {
        let tick = Arc::new(watch::Sender::new(revision));
        Self {
            durable: durable(tick.clone()),
            inner: RwLock::new(State {
                revision,
                floor: revision,
                collections: objects,
                readers: Vec::new(),
            }),
            tick,
        }
    }

    /// The last revision. O(1).
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.read().revision
    }

    /// True if the objects survive the process.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    /// Ends when everything up to `revision` would survive a crash; in memory at once.
    ///
    /// # Errors
    /// The file cannot be written any more; what was written since is lost with the process.
    pub async fn committed(&self, revision: Revision) -> Result<(), Broken> {
        match &self.durable {
            Some(writer) => writer.committed(revision).await,
            None => Ok(()),
        }
    }

    /// The reason why no write would survive now; `None` if there is none, and in memory. O(1).
    #[must_use]
    pub fn broken(&self) -> Option<Broken> {
        self.durable.as_ref().and_then(durable::Writer::broken)
    }

    #[cfg(test)]
    pub(crate) fn break_now(&self) {
        if let Some(writer) = &self.durable {
            writer.break_now();
        }
    }

    /// The object under `key`. O(log n).
    #[must_use]
    pub fn get(&self, collection: &str, key: &str) -> Option<Arc<Entry>> {
        self.read().collections.get(collection)?.get(key).cloned()
    }

    /// The objects whose key begins with `prefix`, behind the key `after`, at most `limit` (0: all). O(what is returned + what remains).
    #[must_use]
    pub fn list(&self, collection: &str, prefix: &str, after: Option<&str>, limit: usize) -> Page {
        let inner = self.read();
        inner
            .collections
            .get(collection)
            .map_or_else(Page::empty, |found| found.page(prefix, after, limit))
            .at(inner.revision)
    }

    /// The same as it was at `revision`, by undoing what came later. O(objects + events since); like [`Store::list`] when nothing
    /// came later.
    ///
    /// # Errors
    /// That state is forgotten.
    pub fn list_at(
        &self,
        collection: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        revision: Revision,
    ) -> Result<Page, TooOld> {
        let inner = self.read();
        if revision < inner.floor {
            return Err(TooOld(inner.floor));
        }
        let page = match inner.collections.get(collection) {
            Some(found) => found.page_at(prefix, after, limit, revision)?,
            None => Page::empty(),
        };
        Ok(page.at(revision))
    }

    /// Writes what `make` makes of the new revision, if what is there is what is expected. O(log n), and `make` runs under the lock.
    pub fn put(
        &self,
        collection: &str,
        key: &str,
        expect: Expect,
        make: impl FnOnce(Revision) -> Bytes,
    ) -> Result<Arc<Entry>, Mismatch> {
        let mut inner = self.write();
        let revision = inner.revision + 1;
        let (name, found) = inner.collection(collection);
        let previous = found.get(key).cloned();
        match (expect, &previous) {
            (Expect::Absent, None) => {}
            (Expect::At(wanted), Some(entry)) if entry.revision == wanted => {}
            _ => return Err(Mismatch(previous)),
        }
        let entry = Arc::new(Entry {
            key: key.to_owned(),
            revision,
            created: previous.as_ref().map_or(revision, |previous| previous.created),
            object: make(revision),
        });
        found.insert(entry.clone());
        let happened = if previous.is_some() {
            Happened::Modified
        } else {
            Happened::Added
        };
        let event = Event {
            happened,
            entry: entry.clone(),
            previous,
        };
        self.done(inner, &name, event);
        Ok(entry)
    }

    /// Deletes the object as last written with `at`; `last` is its last state with the new revision. O(log n).
    pub fn delete(
        &self,
        collection: &str,
        key: &str,
        at: Revision,
        last: impl FnOnce(Revision) -> Bytes,
    ) -> Result<Arc<Entry>, Mismatch> {
        let mut inner = self.write();
        let revision = inner.revision + 1;
        let (name, found) = inner.collection(collection);
        let previous = match found.get(key) {
            Some(entry) if entry.revision == at => entry.clone(),
            other => return Err(Mismatch(other.cloned())),
        };
        found.remove(key);
        let entry = Arc::new(Entry {
            key: key.to_owned(),
            revision,
            created: previous.created,
            object: last(revision),
        });
        let event = Event {
            happened: Happened::Deleted,
            entry: entry.clone(),
            previous: Some(previous),
        };
        self.done(inner, &name, event);
        Ok(entry)
    }

    /// Records the event, and wakes watchers: at once in memory, after the commit with a file.
    fn done(&self, mut inner: RwLockWriteGuard<'_, State>, collection: &Arc<str>, event: Event) {
        let revision = event.entry.revision;
        inner.revision = revision;
        let gone = event.happened == Happened::Deleted;
        let entry = event.entry.clone();
        let reported = reader::slowest(&mut inner.readers);
        let (_, found) = inner.collection(collection);
        found.remember(event, reported);
        let tick = found.tick().clone();
        if let Some(writer) = &self.durable {
            // Under the lock: the queue has the order of the revisions.
            writer.write(durable::Write {
                collection: collection.clone(),
                entry,
                gone,
                tick,
            });
            return;
        }
        drop(inner);
        advance(&tick, revision);
        advance(&self.tick, revision);
    }

    /// A reader of the events of `collection` behind `at`.
    pub(crate) fn reader(&self, collection: &str, at: Revision) -> Reader {
        let (reader, position) = Reader::new(at);
        self.write().collection(collection).1.follow(position);
        reader
    }

    /// A reader of the events of all collections behind `at`.
    pub(crate) fn reader_of_all(&self, at: Revision) -> Reader {
        let (reader, position) = Reader::new(at);
        self.write().readers.push(position);
        reader
    }

    /// The first events of `collection` behind `revision`, at most `limit` (0: all) of those whose key begins with `prefix`, in order,
    /// and the revision that they reach: they are all events up to it. O(events looked at).
    ///
    /// # Errors
    /// The events behind `revision` are no longer kept.
    pub fn events(
        &self,
        collection: &str,
        prefix: &str,
        revision: Revision,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, Revision), TooOld> {
        let inner = self.read();
        let last = match &self.durable {
            Some(_) => *self.tick.borrow(),
            None => inner.revision,
        };
        if revision < inner.floor {
            return Err(TooOld(inner.floor));
        }
        match inner.collections.get(collection) {
            Some(found) => found.events(prefix, revision, last, limit),
            None => Ok((Vec::new(), last.max(revision))),
        }
    }

    /// The events of all collections behind `revision`, in order, each with its collection, and the revision they reach.
    /// O(collections + events behind `revision`).
    pub fn changes(&self, revision: Revision) -> Result<(Vec<Change>, Revision), TooOld> {
        let inner = self.read();
        if revision < inner.floor {
            return Err(TooOld(inner.floor));
        }
        let last = match &self.durable {
            Some(_) => *self.tick.borrow(),
            None => inner.revision,
        };
        let mut changes = Vec::new();
        for (name, found) in &inner.collections {
            let (events, _) = found.events("", revision, last, 0)?;
            changes.extend(events.into_iter().map(|event| Change {
                collection: name.to_string(),
                event,
            }));
        }
        changes.sort_unstable_by_key(|change| change.event.entry.revision);
        Ok((changes, last))
    }

    /// Names of the collections that hold or held objects, sorted.
    #[must_use]
    pub fn collections(&self) -> Vec<String> {
        self.read().collections.keys().map(ToString::to_string).collect()
    }

    /// Changes with each revision of the store. For those who wait for a revision or need every write.
    #[must_use]
    pub fn ticks(&self) -> watch::Receiver<Revision> {
        self.tick.subscribe()
    }

    /// Changes with each revision of `collection`.
    #[must_use]
    pub fn ticks_of(&self, collection: &str) -> watch::Receiver<Revision> {
        if let Some(found) = self.read().collections.get(collection) {
            return found.tick().subscribe();
        }
        let mut inner = self.write();
        let (_, found) = inner.collection(collection);
        found.tick().subscribe()
    }

    /// Drops the states before `revision`, which become too old for lists and watches. O(events dropped).
    pub fn compact(&self, revision: Revision) {
        let mut inner = self.write();
        let floor = revision.min(inner.revision).max(inner.floor);
        inner.floor = floor;
        for collection in inner.collections.values_mut() {
            collection.forget(floor);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The collection of that name, which is made when it is not there.
    fn collection(&mut self, name: &str) -> (Arc<str>, &mut Collection) {
        let name = match self.collections.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => Arc::from(name),
        };
        let found = self.collections.entry(name.clone()).or_default();
        (name, found)
    }
}

impl Page {
    const fn empty() -> Self {
        Self {
            entries: Vec::new(),
            remaining: 0,
            revision: 0,
        }
    }

    fn at(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }
}

/// Two writers may come out of the lock in the other order: a tick never goes back.
fn advance(tick: &watch::Sender<Revision>, revision: Revision) {
    tick.send_if_modified(|seen| {
        let newer = revision > *seen;
        *seen = revision.max(*seen);
        newer
    });
}
