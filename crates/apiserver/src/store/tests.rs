//! The store against a model, in memory and in a file.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
};

use bytes::Bytes;
use proptest::prelude::*;

use super::{Entry, Expect, FIRST, Happened, Revision, Store, TooOld, durable};

/// A place for one test's file, removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let unique = crate::random::new_uid();
        let path = std::env::temp_dir().join(format!("entourage-store-{name}-{unique}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("objects.redb")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A write of the model: which collection, which key, and whether it deletes.
#[derive(Clone, Debug)]
struct Step {
    collection: &'static str,
    key: &'static str,
    delete: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        prop::sample::select(&["pods", "secrets"][..]),
        prop::sample::select(&["a/x", "a/y", "a-b/x", "b/x", "b/z"][..]),
        prop::bool::weighted(0.3),
    );
    let step = step.prop_map(|(collection, key, delete)| Step {
        collection,
        key,
        delete,
    });
    prop::collection::vec(step, 0..60)
}

fn object(revision: Revision) -> Bytes {
    Bytes::from(format!("{{\"r\":{revision}}}"))
}

/// Plays a step; the new revision, if it did anything.
fn play(store: &Store, step: &Step) -> Option<Revision> {
    let found = store.get(step.collection, step.key);
    let done = match (step.delete, found) {
        (true, None) => return None,
        (true, Some(entry)) => store.delete(step.collection, step.key, entry.revision, object),
        (false, None) => store.put(step.collection, step.key, Expect::Absent, object),
        (false, Some(entry)) => store.put(step.collection, step.key, Expect::At(entry.revision), object),
    };
    Some(done.unwrap().revision)
}

type Model = BTreeMap<(&'static str, &'static str), Revision>;

/// The entries of a collection below a prefix: keys and revisions.
fn seen(entries: &[std::sync::Arc<Entry>]) -> Vec<(String, Revision)> {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.revision))
        .collect()
}

fn wanted(model: &Model, collection: &str, prefix: &str) -> Vec<(String, Revision)> {
    model
        .iter()
        .filter(|((of, key), _)| *of == collection && key.starts_with(prefix))
        .map(|((_, key), revision)| ((*key).to_owned(), *revision))
        .collect()
}

/// The states after each write, by revision.
fn history(store: &Store, steps: &[Step]) -> BTreeMap<Revision, Model> {
    let mut state = Model::new();
    let mut history = BTreeMap::from([(store.revision(), state.clone())]);
    for step in steps {
        if let Some(revision) = play(store, step) {
            if step.delete {
                state.remove(&(step.collection, step.key));
            } else {
                state.insert((step.collection, step.key), revision);
            }
            history.insert(revision, state.clone());
        }
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_state_can_be_listed_as_it_was_page_by_page(steps in steps(), limit in 1_usize..4) {
        let store = Store::new();
        for (revision, model) in history(&store, &steps) {
            for (collection, prefix) in [("pods", ""), ("pods", "a/"), ("secrets", "b/"), ("none", "")] {
                let whole = store.list_at(collection, prefix, None, 0, revision).unwrap();
                prop_assert_eq!(whole.revision, revision);
                prop_assert_eq!(seen(&whole.entries), wanted(&model, collection, prefix));
                let mut pages = Vec::new();
                let mut after = None;
                loop {
                    let page = store.list_at(collection, prefix, after.as_deref(), limit, revision).unwrap();
                    prop_assert_eq!(page.remaining, whole.entries.len() - pages.len() - page.entries.len());
                    pages.extend(seen(&page.entries));
                    if page.remaining == 0 {
                        break;
                    }
                    after = pages.last().map(|(key, _)| key.clone());
                }
                prop_assert_eq!(pages, seen(&whole.entries));
            }
        }
    }

    #[test]
    fn a_list_and_the_events_after_it_make_every_later_list(steps in steps(), batch in 1_usize..5) {
        let store = Store::new();
        let history = history(&store, &steps);
        let last = wanted(history.values().next_back().unwrap(), "pods", "a/");
        for revision in history.keys() {
            let mut state: BTreeMap<String, Revision> =
                seen(&store.list_at("pods", "a/", None, 0, *revision).unwrap().entries).into_iter().collect();
            let mut at = *revision;
            loop {
                let (events, reached) = store.events("pods", "a/", at, batch).unwrap();
                for event in &events {
                    let key = event.entry.key.clone();
                    prop_assert_eq!(event.previous.as_ref().map(|entry| entry.revision), state.get(&key).copied());
                    match event.happened {
                        Happened::Deleted => state.remove(&key),
                        Happened::Added | Happened::Modified => state.insert(key, event.entry.revision),
                    };
                }
                at = reached;
                if events.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(at, store.revision());
            prop_assert_eq!(&state.into_iter().collect::<Vec<_>>(), &last);
        }
    }

    #[test]
    fn a_compacted_store_forgets_what_is_older_and_nothing_else(steps in steps(), at in 0_u64..70) {
        let store = Store::new();
        let history = history(&store, &steps);
        store.compact(at);
        let floor = at.clamp(FIRST, store.revision());
        for (revision, model) in history {
            let found = store.list_at("pods", "", None, 0, revision);
            if revision < floor {
                prop_assert_eq!(found.unwrap_err(), TooOld(floor));
                prop_assert!(store.events("none", "", revision, 0).is_err());
            } else {
                prop_assert_eq!(seen(&found.unwrap().entries), wanted(&model, "pods", ""));
                prop_assert!(store.events("pods", "", revision, 0).is_ok());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_file_holds_what_memory_held(before in steps(), after in steps()) {
        let place = Place::new("model");
        let memory = Store::new();
        let mut reopened = FIRST;
        for part in [before, after] {
            let store = Store::open(&place.file()).unwrap();
            prop_assert_eq!(store.revision(), memory.revision());
            if reopened > FIRST {
                prop_assert_eq!(store.list_at("pods", "", None, 0, reopened - 1).unwrap_err(), TooOld(reopened));
                prop_assert!(store.events("pods", "", reopened, 0).unwrap().0.is_empty());
            }
            for step in part {
                prop_assert_eq!(play(&store, &step), play(&memory, &step));
            }
            reopened = store.revision();
        }
        let store = Store::open(&place.file()).unwrap();
        for collection in ["pods", "secrets"] {
            prop_assert_eq!(
                store.list(collection, "", None, 0).entries,
                memory.list(collection, "", None, 0).entries
            );
        }
    }
}

#[test]
fn the_revision_before_the_first_is_too_old_in_every_collection() {
    let store = Store::new();
    assert_eq!(store.events("pods", "", 1, 0).unwrap_err(), TooOld(FIRST));
    assert_eq!(store.list_at("pods", "", None, 0, 1).unwrap_err(), TooOld(FIRST));
}

#[test]
fn a_position_of_the_future_hears_nothing_and_does_not_go_back() {
    let store = Store::new();
    store.put("pods", "a", Expect::Absent, object).unwrap();
    let (events, reached) = store.events("pods", "", 1000, 0).unwrap();
    assert!(events.is_empty());
    assert_eq!(reached, 1000);
}

#[test]
fn large_objects_shorten_what_is_remembered() {
    let store = Store::new();
    let large = Bytes::from(vec![b' '; 1 << 20]);
    let mut at = store
        .put("pods", "a", Expect::Absent, |_| large.clone())
        .unwrap()
        .revision;
    for _ in 0..200 {
        at = store
            .put("pods", "a", Expect::At(at), |_| Bytes::from(large.to_vec()))
            .unwrap()
            .revision;
    }
    assert!(store.events("pods", "", at - 64, 0).is_ok());
    assert!(store.events("pods", "", at - 100, 0).is_err());
    assert!(store.events("secrets", "", at - 100, 0).is_ok());
}

#[test]
fn the_states_before_count_in_what_is_remembered() {
    let store = Store::new();
    let large = |_| Bytes::from(vec![b' '; 1 << 18]);
    let put = |key: usize, expect| {
        store
            .put("pods", &format!("{key}"), expect, large)
            .unwrap()
            .revision
    };
    // Each object once more: the first half of the events shares its states with the second.
    let made: Vec<Revision> = (0..100).map(|key| put(key, Expect::Absent)).collect();
    let changed: Vec<Revision> = (0..100).map(|key| put(key, Expect::At(made[key]))).collect();
    assert!(store.events("pods", "", changed[99] - 64, 0).is_ok());
    assert!(store.events("pods", "", changed[20], 0).is_err());
}

#[test]
fn what_a_reader_has_yet_to_read_is_kept_longer_than_what_all_have_read() {
    let store = Store::new();
    let large = |_| Bytes::from(vec![b' '; 1 << 16]);
    let first = store.put("pods", "a", Expect::Absent, large).unwrap().revision;
    let write = |times: u64| {
        let from = store.revision();
        (from..from + times).for_each(|at| drop(store.put("pods", "a", Expect::At(at), large).unwrap()));
    };
    let (reader, of_all) = (store.reader("pods", first), store.reader_of_all(first));
    write(200);
    let late = store.events("pods", "", first, 0).unwrap().0;
    assert_eq!(late.len(), 200);
    reader.reached(first + 200);
    write(1);
    assert!(store.changes(first).is_ok(), "somebody else has yet to read it");
    of_all.reached(first + 100);
    write(1);
    assert!(store.events("pods", "", first + 99, 0).is_err());
    assert!(store.events("pods", "", first + 100, 0).is_ok());
    drop((reader, of_all));
    write(1);
    assert!(store.events("pods", "", first + 120, 0).is_err());
    assert!(store.events("pods", "", store.revision() - 64, 0).is_ok());
}

#[test]
fn a_write_wakes_only_those_who_watch_its_collection() {
    let store = Store::new();
    let mut pods = store.ticks_of("pods");
    let mut secrets = store.ticks_of("secrets");
    pods.borrow_and_update();
    secrets.borrow_and_update();
    store.put("pods", "a", Expect::Absent, object).unwrap();
    assert!(pods.has_changed().unwrap());
    assert!(!secrets.has_changed().unwrap());
}

#[test]
fn a_debugged_entry_does_not_show_the_object() {
    let store = Store::new();
    let entry = store
        .put("secrets", "a", Expect::Absent, |_| {
            Bytes::from_static(b"\"hunter2\"")
        })
        .unwrap();
    assert!(!format!("{entry:?} {store:?}").contains("hunter2"));
}

#[tokio::test]
async fn watchers_of_a_file_see_a_write_when_it_is_committed() {
    let place = Place::new("commit");
    let store = Store::open(&place.file()).unwrap();
    let mut ticks = store.ticks_of("pods");
    let from = store.revision();
    let entry = store.put("pods", "a", Expect::Absent, object).unwrap();
    store.committed(entry.revision).await.unwrap();
    ticks
        .wait_for(|revision| *revision >= entry.revision)
        .await
        .unwrap();
    assert_eq!(store.events("pods", "", from, 0).unwrap().0.len(), 1);
}

#[test]
fn a_file_is_used_by_one_store_at_a_time() {
    let place = Place::new("lock");
    let store = Store::open(&place.file()).unwrap();
    let refused = Store::open(&place.file()).unwrap_err().to_string();
    assert!(refused.contains("another process has it open"), "{refused}");
    drop(store);
    Store::open(&place.file()).unwrap();
}

#[test]
fn what_is_no_store_is_refused_with_a_remedy() {
    let place = Place::new("foreign");
    std::fs::write(place.file(), "kind: ConfigMap\n".repeat(1000)).unwrap();
    let refused = Store::open(&place.file()).unwrap_err().to_string();
    assert!(refused.contains("objects.redb"), "{refused}");
    assert!(refused.contains("not a store of this program"), "{refused}");
    assert!(refused.contains("move this one away"), "{refused}");

    let other = place.0.join("other.redb");
    let database = redb::Database::create(&other).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(redb::TableDefinition::<&str, u64>::new("others"))
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = Store::open(&other).unwrap_err().to_string();
    assert!(refused.contains("not a store of this program"), "{refused}");

    let refused = Store::open(&place.0.join("none/objects.redb"))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("directory exists"), "{refused}");
}

#[test]
fn an_existing_file_without_a_store_is_refused_and_left_as_it_is() {
    let place = Place::new("emptied");
    drop(Store::open(&place.file()).unwrap());
    std::fs::File::create(place.file()).unwrap();
    let refused = Store::open(&place.file()).unwrap_err().to_string();
    assert!(refused.contains("it is empty"), "{refused}");
    assert!(refused.contains("move it away"), "{refused}");
    assert_eq!(std::fs::metadata(place.file()).unwrap().len(), 0);

    let bare = place.0.join("bare.redb");
    drop(redb::Database::create(&bare).unwrap());
    let refused = Store::open(&bare).unwrap_err().to_string();
    assert!(refused.contains("not a store of this program"), "{refused}");
}

#[test]
fn a_new_file_has_its_name_when_it_can_be_opened_and_leaves_nothing_else() {
    let place = Place::new("new");
    // The file of a process that was killed while it created one.
    std::fs::write(place.0.join("objects.redb.dead.new"), "").unwrap();
    let store = Store::open(&place.file()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&place.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["objects.redb", "objects.redb.dead.new"]);
    drop(store);
    Store::open(&place.file()).unwrap();
}

#[test]
fn many_that_make_the_same_file_end_up_with_one_store() {
    let place = Place::new("race");
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Store::open(&place.file())))
            .collect();
        let opened: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        opened
    });
    let refused = opened.iter().filter_map(|opened| opened.as_ref().err());
    for refused in refused.map(ToString::to_string) {
        assert!(refused.contains("another process has it open"), "{refused}");
    }
    assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
}

#[test]
fn a_row_that_was_changed_behind_the_store_is_refused() {
    let place = Place::new("row");
    let store = Store::open(&place.file()).unwrap();
    let kept = store.put("pods", "a/b", Expect::Absent, object).unwrap();
    drop(store);
    let database = redb::Database::create(place.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut objects = transaction.open_table(durable::OBJECTS).unwrap();
        let sum = durable::checksum("pods", "a/b", kept.revision, kept.created, &kept.object);
        let row = (kept.revision, kept.created, sum, &b"{}"[..]);
        objects.insert(("pods", "a/b"), row).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let refused = Store::open(&place.file()).unwrap_err().to_string();
    assert!(refused.contains("it is damaged: pods a/b"), "{refused}");
}

#[test]
fn a_damaged_file_is_refused_or_read_but_never_panics() {
    let place = Place::new("damage");
    {
        let store = Store::open(&place.file()).unwrap();
        for at in 0..50 {
            let key = format!("a/{at}");
            store
                .put("pods", &key, Expect::Absent, |_| Bytes::from(vec![b'1'; 2000]))
                .unwrap();
        }
    }
    let sound = std::fs::read(place.file()).unwrap();
    let mut refused = 0;
    for at in (0..sound.len()).step_by(sound.len() / 60) {
        let mut damaged = sound.clone();
        let end = (at + 64).min(damaged.len());
        damaged[at..end].fill(0xa5);
        std::fs::write(place.file(), &damaged).unwrap();
        match Store::open(&place.file()) {
            Err(_) => refused += 1,
            // The objects that it read are those that were written.
            Ok(store) => {
                for entry in store.list("pods", "", None, 0).entries {
                    assert_eq!(entry.object, vec![b'1'; 2000], "{at}");
                }
            }
        }
        std::fs::write(place.file(), &sound[..at]).unwrap();
        refused += usize::from(Store::open(&place.file()).is_err());
    }
    assert!(refused > 20, "{refused}");
}

/// Set for the process that [`what_was_acknowledged_survives_a_kill`] kills.
const VICTIM: &str = "ENTOURAGE_STORE_VICTIM";

/// Not a test of its own: the process that is killed. It prints each write that is committed.
#[tokio::test]
async fn victim_of_the_kill() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    let store = Store::open(path.as_ref()).unwrap();
    for at in 0.. {
        let entry = store
            .put("pods", &format!("a/{at}"), Expect::Absent, object)
            .unwrap();
        if at % 3 == 0 {
            store.committed(entry.revision).await.unwrap();
            let mut out = std::io::stdout().lock();
            writeln!(out, "committed {}", entry.revision).unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let place = Place::new("kill");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::victim_of_the_kill", "--nocapture"])
        .env(VICTIM, place.file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged: Revision = 0;
    for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, revision)) = line.split_once("committed ") {
            acknowledged = revision.parse().unwrap();
        }
        if acknowledged > 60 {
            break;
        }
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let store = Store::open(&place.file()).unwrap();
    assert!(store.revision() >= acknowledged);
    let entries = store.list("pods", "", None, 0).entries;
    assert_eq!(entries.len() as u64, store.revision() - FIRST);
    for entry in entries {
        assert_eq!(entry.object, object(entry.revision));
    }
}
