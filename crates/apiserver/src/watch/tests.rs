//! Tests of watches: their events, and their ends.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{
    auth::User,
    query::Query,
    resource::stored,
    server::{Server, tests_support::bare},
    store::Expect,
};

fn call(cluster: &Arc<Server>, query: &str) -> Call {
    Call {
        method: http::Method::GET,
        resource: cluster.kinds().find("", "v1", "configmaps").unwrap().clone(),
        namespace: "n".to_owned(),
        name: String::new(),
        subresource: String::new(),
        query: Query::parse(query),
        user: User::default(),
        agent: String::new(),
        content_type: None,
        body: bytes::Bytes::new(),
    }
}

async fn watch(cluster: &Arc<Server>, query: &str) -> Watch {
    start(&cluster.store, &call(cluster, query)).await.unwrap()
}

fn write(cluster: &Arc<Server>, key: &str, odd: bool) -> Revision {
    let name = key.split_once('/').unwrap().1;
    let labels = if odd { json!({"odd": "yes"}) } else { json!({}) };
    let store = &cluster.store;
    let expect = store
        .get("configmaps", key)
        .map_or(Expect::Absent, |entry| Expect::At(entry.revision));
    let entry = store.put("configmaps", key, expect, |revision| {
        let object =
            json!({"metadata": {"name": name, "labels": labels, "resourceVersion": revision.to_string()}});
        object.to_string().into()
    });
    entry.unwrap().revision
}

fn delete(cluster: &Arc<Server>, key: &str) -> Revision {
    let store = &cluster.store;
    let entry = store.get("configmaps", key).unwrap();
    store
        .delete("configmaps", key, entry.revision, |revision| {
            stored::encode(stored::decode(&entry.object), revision)
        })
        .unwrap()
        .revision
}

fn object(item: Item) -> crate::object::Object {
    match item {
        Item::Stored(entry) => stored::decode(&entry.object),
        Item::Made(object) => object,
    }
}

/// Type, name, labels, resourceVersion.
fn reported(frames: Vec<Frame>) -> Vec<String> {
    let text = |frame| match frame {
        Frame::Object(kind, item) => {
            let object = object(item);
            let metadata = &object["metadata"];
            format!(
                "{kind} {} {} {}",
                metadata["name"].as_str().unwrap(),
                if metadata["labels"]["odd"] == "yes" {
                    "odd"
                } else {
                    "even"
                },
                metadata["resourceVersion"].as_str().unwrap()
            )
        }
        Frame::Bookmark(revision, end) => format!("BOOKMARK {revision} {end}"),
        Frame::Error(status) => format!("ERROR {} {}", status.code, status.message),
    };
    frames.into_iter().map(text).collect()
}

#[tokio::test]
async fn a_selector_makes_changes_come_and_go() {
    let cluster = bare();
    let from = cluster.store.revision();
    let revisions = [
        write(&cluster, "n/a", false),
        write(&cluster, "n/a", true),
        write(&cluster, "n/a", true),
        write(&cluster, "n/a", false),
        write(&cluster, "n/a", true),
        delete(&cluster, "n/a"),
    ];
    let mut watch = watch(&cluster, &format!("resourceVersion={from}&labelSelector=odd")).await;
    let expected = ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"];
    let expected: Vec<String> = expected
        .iter()
        .zip(&revisions[1..])
        .map(|(kind, revision)| format!("{kind} a odd {revision}"))
        .collect();
    assert_eq!(reported(watch.next(&cluster.store).await.unwrap()), expected);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let cluster = bare();
    let at = cluster.store.revision();
    let query = format!("resourceVersion={at}&timeoutSeconds=90&allowWatchBookmarks=1");
    let mut watch = watch(&cluster, &query).await;
    let begun = Instant::now();
    for after in [60, 88] {
        assert_eq!(
            reported(watch.next(&cluster.store).await.unwrap()),
            [format!("BOOKMARK {at} false")]
        );
        assert_eq!((Instant::now() - begun).as_secs(), after);
    }
    assert!(watch.next(&cluster.store).await.is_none());
    assert_eq!((Instant::now() - begun).as_secs(), 90);
    assert!(watch.next(&cluster.store).await.is_none());
}

#[tokio::test]
async fn a_slow_watcher_learns_that_it_is_too_late_and_then_nothing() {
    let cluster = bare();
    let from = write(&cluster, "n/a", true);
    let mut watch = watch(&cluster, &format!("resourceVersion={from}")).await;
    let last = (0..5000).fold(from, |_, _| write(&cluster, "n/a", true));
    let frames = reported(watch.next(&cluster.store).await.unwrap());
    assert_eq!(
        frames,
        [format!(
            "ERROR 410 too old resource version: {from} ({})",
            last - 4096
        )]
    );
    assert!(watch.next(&cluster.store).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_of_the_future_is_an_error_after_three_seconds() {
    let cluster = bare();
    let query = "sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=99999";
    let mut watch = watch(&cluster, query).await;
    let begun = Instant::now();
    let frames = reported(watch.next(&cluster.store).await.unwrap());
    assert!(
        frames[0].starts_with("ERROR 504 Timeout: Too large resource version: 99999, current: "),
        "{frames:?}"
    );
    assert_eq!((Instant::now() - begun).as_secs(), 3);
    assert!(watch.next(&cluster.store).await.is_none());
}

#[tokio::test]
async fn a_watch_list_of_many_objects_comes_in_parts_and_ends_with_one_bookmark() {
    let cluster = bare();
    for at in 0..3 * BATCH {
        write(&cluster, &format!("n/{at:04}"), at % 2 == 0);
    }
    let query =
        "sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&labelSelector=odd";
    let mut watch = watch(&cluster, query).await;
    let mut frames = reported(watch.next(&cluster.store).await.unwrap());
    assert_eq!(frames.len(), BATCH);
    frames.extend(reported(watch.next(&cluster.store).await.unwrap()));
    assert_eq!(frames.len(), 3 * BATCH / 2 + 1);
    assert!(frames.last().unwrap().starts_with("BOOKMARK") && frames.last().unwrap().ends_with("true"));
}

#[tokio::test]
async fn other_collections_do_not_wake_a_watch() {
    let cluster = bare();
    let at = cluster.store.revision();
    let mut watch = watch(&cluster, &format!("resourceVersion={at}")).await;
    let mut next = tokio_test_task(&mut watch, &cluster.store);
    assert!(next.poll().is_pending());
    cluster
        .store
        .put("secrets", "n/a", Expect::Absent, |_| "{}".into())
        .unwrap();
    assert_eq!(next.woken(), 0);
    write(&cluster, "n/a", true);
    assert_eq!(next.woken(), 1);
    assert!(next.poll().is_ready());
}

/// A future polled by hand, and how often it was woken.
struct Polled<'a> {
    future: std::pin::Pin<Box<dyn Future<Output = Option<Vec<Frame>>> + 'a>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn tokio_test_task<'a>(watch: &'a mut Watch, store: &'a Store) -> Polled<'a> {
    Polled {
        future: Box::pin(watch.next(store)),
        wakes: Arc::default(),
    }
}

impl Polled<'_> {
    fn poll(&mut self) -> std::task::Poll<Option<Vec<Frame>>> {
        let waker = self.wakes.clone().into();
        self.future
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.wakes.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    #[test]
    fn a_watch_keeps_a_copy_true(
        steps in proptest::collection::vec((0..4_usize, proptest::bool::ANY, proptest::bool::weighted(0.2)), 0..80),
        from in 0..80_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let cluster = bare();
            let mut begun = None;
            for (at, (key, odd, gone)) in steps.iter().enumerate() {
                if at == from {
                    begun = Some(watch(&cluster, "labelSelector=odd&timeoutSeconds=0&resourceVersion=0").await);
                }
                let key = format!("n/{key}");
                if *gone && cluster.store.get("configmaps", &key).is_some() {
                    delete(&cluster, &key);
                } else {
                    write(&cluster, &key, *odd);
                }
            }
            let Some(mut watch) = begun else { return };
            let mut copy = BTreeMap::new();
            let wanted: BTreeMap<String, u64> = {
                let reply = list::list(&cluster.store, &call(&cluster, "labelSelector=odd")).await.unwrap();
                let crate::call::Reply::List { items, .. } = reply else { panic!() };
                items.into_iter().map(|item| match item {
                    crate::call::Item::Stored(entry) => (entry.key[2..].to_owned(), entry.revision),
                    crate::call::Item::Made(_) => panic!(),
                }).collect()
            };
            loop {
                let frames = tokio::time::timeout(Duration::from_millis(5), watch.next(&cluster.store)).await;
                let Ok(Some(frames)) = frames else { break };
                for frame in frames {
                    let Frame::Object(kind, item) = frame else { panic!() };
                    let object = object(item);
                    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                    let revision = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                    let known = if kind == "DELETED" { copy.remove(&name) } else { copy.insert(name, revision) };
                    assert_eq!(known.is_some(), kind != "ADDED");
                }
            }
            assert_eq!(copy, wanted);
        });
    }
}
