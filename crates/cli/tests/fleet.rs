//! A fleet as a library: what one run leaves for the next.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::time::Duration;

use entourage::{
    apply::CLUSTER,
    fleet::{Fleet, Place},
    wait::{Waited, until},
};
use entourage_controllers::Options;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject},
};
use tempfile::TempDir;

/// The timeout of a condition, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_the_last_run_did_not_finish_does_not_bar_the_next() {
    entourage::install_tls_provider();
    let dir = TempDir::new().unwrap();
    let place = Place::Kept(dir.path().join("fleet"));
    let mut fleet = Fleet::start(2, &place, Options::default()).await.unwrap();
    let clusters = |fleet: &Fleet| Api::<DynamicObject>::all_with(fleet.hub.client(), &CLUSTER.resource());
    let uid = async |fleet: &Fleet| clusters(fleet).get("member2").await.unwrap().metadata.uid;
    let before = uid(&fleet).await;
    // The finalizer comes from the controllers.
    let api = clusters(&fleet);
    let held = |cluster: Option<&DynamicObject>| cluster.is_some_and(|one| one.metadata.finalizers.is_some());
    let waited = until(&api, "member2", PATIENCE, held).await.unwrap();
    assert!(matches!(waited, Waited::Met(_)), "{waited:?}");
    fleet.stop_controllers().await.unwrap();
    let left = api.delete("member2", &DeleteParams::default()).await.unwrap();
    assert!(left.is_left(), "it is held by its finalizer");
    drop(api);
    fleet.end().await.unwrap();

    let fleet = Fleet::start(2, &place, Options::default()).await.unwrap();
    assert_ne!(uid(&fleet).await, before, "it was removed and joined anew");
    fleet.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_somebody_else_took_is_replaced_and_the_kubeconfig_says_so() {
    entourage::install_tls_provider();
    let dir = TempDir::new().unwrap();
    let place = Place::Kept(dir.path().join("fleet"));
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let address = fleet.hub.address;
    fleet.end().await.unwrap();
    // The listeners end by themselves, a moment later.
    let free = async {
        loop {
            if let Ok(taken) = std::net::TcpListener::bind(address) {
                return taken;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let taken = tokio::time::timeout(PATIENCE, free)
        .await
        .expect("the port is given back");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    assert_ne!(fleet.hub.address, address);
    let kubeconfig = std::fs::read_to_string(fleet.kubeconfig().unwrap()).unwrap();
    assert!(kubeconfig.contains(&fleet.hub.endpoint()));
    drop(taken);
    fleet.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_fleet_shows_a_token() {
    entourage::install_tls_provider();
    let fleet = Fleet::start(1, &Place::Temporary("entourage-test-"), Options::default())
        .await
        .unwrap();
    let kubeconfig = std::fs::read_to_string(fleet.kubeconfig().unwrap()).unwrap();
    let tokens: Vec<&str> = kubeconfig
        .lines()
        .filter_map(|line| line.trim().strip_prefix("token: "))
        .collect();
    assert_eq!(tokens.len(), 2, "of the hub and of the member");
    let shown = format!("{fleet:?}");
    assert!(
        tokens
            .iter()
            .all(|token| token.len() >= 32 && !shown.contains(token))
    );
    fleet.end().await.unwrap();
}
