//! Fetches are shared, but never too old ones.

use entourage_core::{object::Gvk, observation::Server};
use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::client::tests::{Reply, api, status};

fn id() -> ResourceId {
    ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "a")
}

/// A hub that serves version 1, 2, 3 … of the object.
fn hub() -> (Sources, crate::client::tests::Log) {
    let version = AtomicU64::new(0);
    let (hub, log) = api(Server::Hub, move |_| {
        let version = version.fetch_add(1, Ordering::Relaxed) + 1;
        Reply::Json(
            200,
            json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version.to_string()}}),
        )
    });
    (Sources::new(hub), log)
}

#[tokio::test(start_paused = true)]
async fn deliveries_to_many_members_share_one_get() {
    let (sources, log) = hub();
    let id = id();
    let fetched = join_all((0..30).map(|_| sources.fetch(&id))).await;
    assert_eq!(log.lines(), ["GET /api/v1/namespaces/ns/configmaps/a"]);
    assert_eq!(
        fetched.iter().filter(|each| each.as_ref().unwrap().first).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_delivery_fetches_again_and_nothing_is_kept() {
    let (sources, log) = hub();
    sources.fetch(&id()).await.unwrap();
    tokio::time::sleep(SHARED * 2).await;
    assert!(sources.0.flights.is_empty());
    assert_eq!(
        &*sources.fetch(&id()).await.unwrap().source.meta.resource_version,
        "2"
    );
    assert_eq!(log.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_older_than_what_was_seen_is_shared() {
    let (sources, log) = hub();
    sources.fetch(&id()).await.unwrap();
    sources.saw(&id(), 1);
    sources.fetch(&id()).await.unwrap();
    assert_eq!(log.lines().len(), 1, "it is the version that was seen");
    sources.saw(&id(), 2);
    assert_eq!(
        &*sources.fetch(&id()).await.unwrap().source.meta.resource_version,
        "2"
    );
    assert_eq!(log.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_under_way_is_repeated_when_something_newer_was_seen() {
    let (sources, log) = hub();
    let id = id();
    let (fetched, ()) = tokio::join!(sources.fetch(&id), async { sources.saw(&id, 2) });
    assert_eq!(&*fetched.unwrap().source.meta.resource_version, "2");
    assert_eq!(log.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_kept() {
    let answers = AtomicU64::new(0);
    let (hub, log) = api(Server::Hub, move |_| {
        match answers.fetch_add(1, Ordering::Relaxed) {
            0 => status(404, "NotFound"),
            _ => Reply::Json(200, json!({"metadata": {"resourceVersion": "1"}})),
        }
    });
    let sources = Sources::new(hub);
    assert_eq!(
        sources.fetch(&id()).await.err().map(|each| each.code()),
        Some(404)
    );
    assert!(sources.fetch(&id()).await.is_ok());
    assert_eq!(log.lines().len(), 2);
}
