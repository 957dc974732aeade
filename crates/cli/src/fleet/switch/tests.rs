//! The switch in front of an embedded cluster.

use std::time::Duration;

use entourage_apiserver::{Cluster, Options};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::WatchParams};

use super::Switch;

/// The time that an expected event may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn behind(switch: &Switch) -> Client {
    let cluster = Cluster::new(Options {
        admin_token: "secret".to_owned(),
        ..Options::default()
    });
    Client::new(switch.guard(cluster.service().with_token("secret")), "default")
}

#[tokio::test]
async fn a_cluster_that_is_cut_off_refuses_requests_until_it_is_mended() {
    let switch = Switch::default();
    let client = behind(&switch);
    client.apiserver_version().await.unwrap();
    switch.disconnect();
    let error = client.apiserver_version().await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    switch.reconnect();
    client.apiserver_version().await.unwrap();
}

#[tokio::test]
async fn an_open_watch_ends_when_its_cluster_is_cut_off_however_soon_that_is_mended() {
    let switch = Switch::default();
    let namespaces: Api<Namespace> = Api::all(behind(&switch));
    let mut watch = Box::pin(namespaces.watch(&WatchParams::default(), "0").await.unwrap());
    let first = watch.try_next().await.unwrap();
    assert!(first.is_some(), "it is open");
    switch.disconnect();
    switch.reconnect();
    let ended = tokio::time::timeout(PATIENCE, async {
        while let Some(event) = watch.next().await {
            if event.is_err() {
                return true;
            }
        }
        false
    });
    assert!(ended.await.expect("it ends"), "with an error");
    namespaces.list(&kube::api::ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_switch_cuts_off_its_own_cluster_alone() {
    let (one, other) = (Switch::default(), Switch::default());
    let (cut, open) = (behind(&one), behind(&other));
    one.disconnect();
    cut.apiserver_version().await.unwrap_err();
    open.apiserver_version().await.unwrap();
}
