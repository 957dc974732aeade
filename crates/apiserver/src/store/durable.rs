//! The file behind a store: one writer thread that commits whatever has queued up in one transaction.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
};

use bytes::Bytes;
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
    TableHandle as _,
};
use tokio::sync::watch;

use super::{Entry, FIRST, Revision, advance, collection::Collection};

/// Revision, first revision, checksum, object.
type Row<'a> = (u64, u64, u32, &'a [u8]);

/// Collection and key → what is stored under them.
pub(super) const OBJECTS: TableDefinition<'_, (&str, &str), Row<'_>> = TableDefinition::new("objects");

/// The facts about the whole store: `format` and `revision`. Part of the first commit, so a file without it is not a store.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("entourage-store");

/// The layout that this program writes. 2: rows have checksums.
const FORMAT: u64 = 2;

/// Pages that are kept in memory, in bytes: little, the objects are in memory anyway.
const CACHE: usize = 2 << 20;

const PRIVATE: u32 = 0o600;

/// Writes that go into one transaction, at most: bounds how long the first of them waits.
const BATCH: usize = 4096;

/// The reason why a file cannot be used as a store. The text names the file, the cause and the remedy.
#[derive(Debug)]
pub struct OpenError {
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    InUse,
    Foreign,
    OtherFormat(u64),
    Damaged(String),
    Unreadable(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cause, remedy) = match &self.cause {
            Cause::InUse => (
                "another process has it open".to_owned(),
                "stop that process, or choose another file",
            ),
            Cause::Foreign => (
                "it is not a store of this program".to_owned(),
                "choose another file, or move this one away",
            ),
            Cause::OtherFormat(format) => (
                format!("it has format {format}, and this version reads format {FORMAT}"),
                "use the version that wrote it, or move it away to begin with an empty store",
            ),
            Cause::Damaged(what) => (
                format!("it is damaged: {what}"),
                "restore it from a copy, or move it away to begin with an empty store",
            ),
            Cause::Unreadable(what) => (
                what.clone(),
                "see that its directory exists, is writable and has space left",
            ),
        };
        write!(
            f,
            "cannot open the store {}: {cause}; {remedy}",
            self.path.display()
        )
    }
}

impl std::error::Error for OpenError {}

/// The file cannot be written any more: nothing that is written now survives.
#[derive(Clone, Debug)]
pub struct Broken(Arc<str>);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the store cannot be written: {}; make room for it and start again",
            self.0
        )
    }
}

impl std::error::Error for Broken {}

/// One write on its way to the file.
pub(super) struct Write {
    pub(super) collection: Arc<str>,
    /// The state after it, or of a deletion the last.
    pub(super) entry: Arc<Entry>,
    pub(super) gone: bool,
    /// Woken when it is committed.
    pub(super) tick: Arc<watch::Sender<Revision>>,
}

/// A file that was opened and read.
pub(super) struct Opened {
    database: Database,
    revision: Revision,
}

type Objects = BTreeMap<Arc<str>, Collection>;

/// Opens or makes the file and reads all of it.
pub(super) fn open(path: &Path) -> Result<(Opened, Revision, Objects), OpenError> {
    let error = |cause| OpenError {
        path: path.to_owned(),
        cause,
    };
    let file = path.to_owned();
    // On a thread of its own: what a damaged file makes panic does not take the program with it.
    let read = thread::Builder::new()
        .name("store-open".to_owned())
        .spawn(move || read(&file))
        .map_err(|failed| error(Cause::Unreadable(failed.to_string())))?
        .join();
    match read {
        Ok(read) => read.map_err(error),
        Err(_) => Err(error(Cause::Damaged(
            "its pages contradict each other".to_owned(),
        ))),
    }
}

/// A file that holds Secrets: only its owner may read it.
fn private(file: fs::File) -> io::Result<fs::File> {
    file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
    Ok(file)
}

/// Makes the file with an empty store in it. It gets its name after its first commit: whatever interrupts this, there is
/// a file that can be opened or none, and never one in the place of another's.
fn make(path: &Path) -> Result<(), Cause> {
    let io = |failed| Cause::from(redb::Error::Io(failed));
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}.new", crate::random::new_uid()));
    let unfinished = PathBuf::from(unfinished);
    let made = || {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&unfinished)
            .map_err(io)?;
        let database = Database::builder().create_file(file)?;
        commit(&database, FIRST, &[]).map_err(|failed| Cause::Unreadable(failed.to_string()))?;
        drop(database);
        match fs::hard_link(&unfinished, path) {
            // Another process was faster: its file stays.
            Err(failed) if failed.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // Some file systems know no second names.
            Err(_) => fs::rename(&unfinished, path).map_err(io),
            Ok(()) => Ok(()),
        }
    };
    let result = made();
    let _ = fs::remove_file(&unfinished);
    result?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    // The name is as lasting as what is committed under it.
    fs::File::open(directory.unwrap_or(Path::new(".")))
        .and_then(|directory| directory.sync_all())
        .map_err(io)
}

fn read(path: &Path) -> Result<(Opened, Revision, Objects), Cause> {
    let io = |failed| Cause::from(redb::Error::Io(failed));
    if let Err(failed) = fs::metadata(path)
        && failed.kind() == io::ErrorKind::NotFound
    {
        make(path)?;
    }
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(io)?;
    if file.metadata().map_err(io)?.len() == 0 {
        // An empty file would be taken for a new one.
        return Err(Cause::Damaged("it is empty".to_owned()));
    }
    let file = private(file).map_err(io)?;
    let database = Database::builder().set_cache_size(CACHE).create_file(file)?;
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let names: Vec<String> = transaction
        .list_tables()
        .map_err(redb::Error::from)?
        .map(|table| table.name().to_owned())
        .collect();
    if !names.iter().any(|name| name == ABOUT.name()) {
        return Err(Cause::Foreign);
    }
    let about = transaction.open_table(ABOUT).map_err(redb::Error::from)?;
    let fact = |key| -> Result<Option<u64>, Cause> {
        Ok(about
            .get(key)
            .map_err(redb::Error::from)?
            .map(|value| value.value()))
    };
    match fact("format")? {
        Some(FORMAT) => {}
        Some(other) => return Err(Cause::OtherFormat(other)),
        None => return Err(Cause::Damaged("its format is not reported".to_owned())),
    }
    let revision =
        fact("revision")?.ok_or_else(|| Cause::Damaged("its revision is not reported".to_owned()))?;
    let mut objects = Objects::new();
    let table = transaction.open_table(OBJECTS).map_err(redb::Error::from)?;
    for row in table.iter().map_err(redb::Error::from)? {
        let (key, value) = row.map_err(redb::Error::from)?;
        let (collection, key) = key.value();
        let (at, created, sum, object) = value.value();
        let sound = at <= revision && created <= at && sum == checksum(collection, key, at, created, object);
        if !sound {
            return Err(Cause::Damaged(format!("{collection} {key} cannot be read")));
        }
        if !objects.contains_key(collection) {
            objects.insert(Arc::from(collection), Collection::default());
        }
        if let Some(found) = objects.get_mut(collection) {
            found.insert(Arc::new(Entry {
                key: key.to_owned(),
                revision: at,
                created,
                object: Bytes::copy_from_slice(object),
            }));
        }
    }
    drop((about, table, transaction));
    Ok((Opened { database, revision }, revision, objects))
}

/// The checksum of a row (CRC-32): the database checks its pages only after a crash.
pub(super) fn checksum(
    collection: &str,
    key: &str,
    revision: Revision,
    created: Revision,
    object: &[u8],
) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    // A field without an end of its own comes with its length, or as the last.
    for text in [collection, key] {
        sum.update(&(text.len() as u64).to_le_bytes());
        sum.update(text.as_bytes());
    }
    for number in [revision, created] {
        sum.update(&number.to_le_bytes());
    }
    sum.update(object);
    sum.finalize()
}

impl From<DatabaseError> for Cause {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            other => redb::Error::from(other).into(),
        }
    }
}

impl From<redb::Error> for Cause {
    fn from(error: redb::Error) -> Self {
        match error {
            // Not even the first bytes are those of a store.
            redb::Error::Io(io) if io.kind() == io::ErrorKind::InvalidData => Self::Foreign,
            redb::Error::Io(io) if io.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Damaged("it ends too early".to_owned())
            }
            redb::Error::Io(io) => Self::Unreadable(io.to_string()),
            redb::Error::UpgradeRequired(_) => Self::Foreign,
            redb::Error::TableTypeMismatch { .. } | redb::Error::TableDoesNotExist(_) => Self::Foreign,
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// One transaction with these writes, which are in order; the last of a key counts.
fn commit(database: &Database, revision: Revision, writes: &[Write]) -> Result<(), Box<redb::Error>> {
    let whole = |error: redb::Error| Box::new(error);
    let transaction = database.begin_write().map_err(|error| whole(error.into()))?;
    {
        let mut last: BTreeMap<(&str, &str), &Write> = BTreeMap::new();
        for write in writes {
            last.insert((&*write.collection, write.entry.key.as_str()), write);
        }
        let mut objects = transaction
            .open_table(OBJECTS)
            .map_err(|error| whole(error.into()))?;
        for (key, Write { entry, gone, .. }) in last {
            let (revision, created) = (entry.revision, entry.created);
            let sum = checksum(key.0, key.1, revision, created, &entry.object);
            let done = if *gone {
                objects.remove(key).map(drop)
            } else {
                objects
                    .insert(key, (revision, created, sum, &*entry.object))
                    .map(drop)
            };
            done.map_err(|error: StorageError| whole(error.into()))?;
        }
        let mut about = transaction
            .open_table(ABOUT)
            .map_err(|error| whole(error.into()))?;
        for (key, value) in [("format", FORMAT), ("revision", revision)] {
            about.insert(key, value).map_err(|error| whole(error.into()))?;
        }
    }
    transaction.commit().map_err(|error| whole(error.into()))
}

#[derive(Debug)]
struct Progress {
    committed: Revision,
    broken: Option<Broken>,
}

/// The way to the writer thread. Dropping it commits what is queued and closes the file.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Write>>,
    progress: watch::Receiver<Progress>,
    #[cfg(test)]
    reported: Arc<watch::Sender<Progress>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Opened {
    /// Starts the writer; it advances `tick` and the ticks of the writes after each commit.
    pub(super) fn start(self, tick: Arc<watch::Sender<Revision>>) -> Writer {
        let (queue, writes) = mpsc::channel();
        let (reported, progress) = watch::channel(Progress {
            committed: self.revision,
            broken: None,
        });
        let reported = Arc::new(reported);
        let teller = reported.clone();
        #[cfg(test)]
        let kept = reported.clone();
        let spawned = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || run(&self.database, &writes, &reported, &tick));
        let thread = spawned
            .inspect_err(|error| broken(&teller, &format!("its thread cannot be started: {error}")))
            .ok();
        Writer {
            queue: Some(queue),
            progress,
            #[cfg(test)]
            reported: kept,
            thread,
        }
    }
}

fn run(
    database: &Database,
    writes: &mpsc::Receiver<Write>,
    reported: &watch::Sender<Progress>,
    tick: &watch::Sender<Revision>,
) {
    while let Ok(first) = writes.recv() {
        let mut batch = vec![first];
        batch.extend(writes.try_iter().take(BATCH - 1));
        let Some(revision) = batch.last().map(|write| write.entry.revision) else {
            continue;
        };
        if let Err(error) = commit(database, revision, &batch) {
            broken(reported, &error.to_string());
            return;
        }
        reported.send_modify(|progress| progress.committed = revision);
        // The store's own first: who is woken by a collection's tick reads up to it.
        advance(tick, revision);
        for write in &batch {
            advance(&write.tick, write.entry.revision);
        }
    }
}

fn broken(reported: &watch::Sender<Progress>, why: &str) {
    tracing::error!("the store cannot be written: {why}");
    reported.send_modify(|progress| progress.broken = Some(Broken(why.into())));
}

impl Writer {
    /// Queues a write. Those of one key must come in the order of their revisions.
    pub(super) fn write(&self, write: Write) {
        if let Some(queue) = &self.queue {
            // A writer that is gone has recorded the reason.
            let _ = queue.send(write);
        }
    }

    /// The reason why nothing can be written any more.
    pub(super) fn broken(&self) -> Option<Broken> {
        self.progress.borrow().broken.clone()
    }

    /// As when a commit fails.
    #[cfg(test)]
    pub(super) fn break_now(&self) {
        broken(&self.reported, "as a test wants it");
    }

    pub(super) async fn committed(&self, revision: Revision) -> Result<(), Broken> {
        let mut progress = self.progress.clone();
        let reached = progress
            .wait_for(|progress| progress.committed >= revision || progress.broken.is_some())
            .await;
        match reached {
            Ok(progress) if progress.committed >= revision => Ok(()),
            Ok(progress) => Err(progress
                .broken
                .clone()
                .unwrap_or_else(|| Broken("it is closed".into()))),
            Err(_) => Err(Broken("its writer is gone".into())),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
