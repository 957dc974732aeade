//! The requirements on real servers of the tests built on them. Needs `KUBEBUILDER_ASSETS`; without it, says so and passes.

use std::{path::Path, time::Duration};

use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use serde_json::json;
use tokio::time;

use super::{Assets, Fleet, RealCluster, TestCluster};

#[tokio::test]
async fn a_fleet_does_what_tests_ask_of_it() {
    let Some(assets) = Assets::from_env() else {
        eprintln!("skipped: KUBEBUILDER_ASSETS is not set");
        return;
    };
    let dir = std::env::temp_dir().join(format!("entourage-e2e-live-{}", std::process::id()));
    let fleet = Fleet::start(&assets, 1, &dir).await.unwrap();
    let processes: Vec<u32> = fleet
        .clusters()
        .flat_map(|cluster| {
            let pids = real(cluster).pids();
            [pids.etcd, pids.apiserver, pids.controller_manager]
        })
        .map(Option::unwrap)
        .collect();

    clusters_are_strangers_to_each_other(&fleet).await;
    let member = &fleet.members[0];
    the_garbage_collector_works(&member.client()).await;
    custom_resources_are_served(&member.client()).await;
    both_kinds_of_tokens_are_handed_out(real(member)).await;
    a_paused_member_hangs_and_comes_back(real(member)).await;
    a_stopped_member_refuses_and_comes_back_with_its_data(real(member)).await;

    fleet.shutdown();
    for pid in processes {
        assert!(
            !Path::new(&format!("/proc/{pid}")).exists(),
            "process {pid} was left behind"
        );
    }
    std::fs::remove_dir_all(dir).unwrap();
}

async fn clusters_are_strangers_to_each_other(fleet: &Fleet) {
    let mut config = fleet.members[0].config();
    config.auth_info = fleet.hub.config().auth_info;
    let namespaces = Api::<Namespace>::all(Client::try_from(config).unwrap());
    assert_eq!(status(namespaces.get("default").await.unwrap_err()), 401);
}

async fn the_garbage_collector_works(client: &Client) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owner = maps
        .create(&PostParams::default(), &named("owner"))
        .await
        .unwrap();
    let mut owned: ConfigMap = named("owned");
    let reference: OwnerReference = owner.owner_ref(&()).unwrap();
    owned.metadata.owner_references = Some(vec![reference]);
    maps.create(&PostParams::default(), &owned).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    eventually("the owned object goes", async || {
        maps.get_opt("owned").await.unwrap().is_none()
    })
    .await;
}

/// A server built from mismatched parts dies here: every custom resource is encoded map by map.
async fn custom_resources_are_served(client: &Client) {
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "things.test.entourage.dev" },
        "spec": {
            "group": "test.entourage.dev",
            "names": { "plural": "things", "kind": "Thing" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    }))
    .unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let kind = GroupVersionKind::gvk("test.entourage.dev", "v1", "Thing");
    let resource = ApiResource::from_gvk_with_plural(&kind, "things");
    let things: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    eventually("the kind is served", async || {
        things.list(&ListParams::default()).await.is_ok()
    })
    .await;
    for number in 0..100 {
        let mut thing = DynamicObject::new(&format!("thing-{number}"), &resource);
        thing.metadata.labels = Some(
            (0..5)
                .map(|label| (format!("label-{label}"), "x".to_owned()))
                .collect(),
        );
        thing.data = json!({ "spec": { "a": { "b": number }, "c": ["d"] } });
        things.create(&PostParams::default(), &thing).await.unwrap();
    }
    assert_eq!(
        things.list(&ListParams::default()).await.unwrap().items.len(),
        100
    );
}

async fn both_kinds_of_tokens_are_handed_out(member: &RealCluster) {
    let client = member.client();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts
        .create(&PostParams::default(), &named("guest"))
        .await
        .unwrap();
    let request = TokenRequest::default();
    let answer = accounts
        .create_token_request("guest", &PostParams::default(), &request)
        .await
        .unwrap();
    assert_token_of_guest(member, answer.status.unwrap().token.unwrap()).await;

    let secrets: Api<Secret> = Api::default_namespaced(client);
    let secret = json!({
        "metadata": { "name": "guest", "annotations": { "kubernetes.io/service-account.name": "guest" } },
        "type": "kubernetes.io/service-account-token",
    });
    secrets
        .create(&PostParams::default(), &serde_json::from_value(secret).unwrap())
        .await
        .unwrap();
    let data = async || secrets.get("guest").await.unwrap().data.unwrap_or_default();
    eventually("the token Secret is filled", async || {
        data().await.contains_key("token")
    })
    .await;
    let data = data().await;
    assert!(
        data["ca.crt"].0 == member.ca_pem().as_bytes(),
        "ca.crt is not the authority's certificate"
    );
    assert_token_of_guest(member, String::from_utf8(data["token"].0.clone()).unwrap()).await;
}

/// Known to the API server (not 401) and without rights (403).
async fn assert_token_of_guest(member: &RealCluster, token: String) {
    let mut config = member.config();
    config.auth_info.token = Some(token.into());
    let maps = Api::<ConfigMap>::default_namespaced(Client::try_from(config).unwrap());
    assert_eq!(status(maps.list(&ListParams::default()).await.unwrap_err()), 403);
}

async fn a_paused_member_hangs_and_comes_back(member: &RealCluster) {
    let namespaces: Api<Namespace> = Api::all(member.client());
    member.pause().unwrap();
    let answer = time::timeout(Duration::from_millis(300), namespaces.get("default")).await;
    assert!(answer.is_err(), "a paused API server answered");
    member.resume().unwrap();
    namespaces.get("default").await.unwrap();
}

async fn a_stopped_member_refuses_and_comes_back_with_its_data(member: &RealCluster) {
    let maps: Api<ConfigMap> = Api::default_namespaced(member.client());
    maps.create(&PostParams::default(), &named("kept")).await.unwrap();
    let before = member.pids();
    member.stop_apiserver();
    assert_eq!(member.pids().apiserver, None);
    assert!(member.pause().is_err());
    let error = maps.get("kept").await.unwrap_err();
    assert!(
        !matches!(error, kube::Error::Api(_)),
        "a stopped API server answered: {error}"
    );
    member.start_apiserver().await.unwrap();
    assert!(member.start_apiserver().await.is_err());
    maps.get("kept").await.unwrap();
    let after = member.pids();
    assert_eq!(
        (before.etcd, before.controller_manager),
        (after.etcd, after.controller_manager)
    );
    assert_ne!(before.apiserver, after.apiserver);
}

#[tokio::test]
async fn a_cluster_that_cannot_start_says_why() {
    let dir = std::env::temp_dir().join(format!("entourage-e2e-broken-{}", std::process::id()));
    let assets = Assets::at(dir.join("assets"));
    std::fs::create_dir_all(assets.dir()).unwrap();
    for (name, script) in [
        ("etcd", "echo no space on device; exit 4"),
        ("kube-apiserver", "echo Kubernetes v1.20.2"),
        ("kube-controller-manager", ""),
    ] {
        let path = assets.dir().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let error = RealCluster::start(&assets, "broken", &dir.join("broken"))
        .await
        .unwrap_err();
    let text = format!("{error:#}");
    for part in [
        "starting cluster broken",
        "until etcd listens",
        "exit status: 4",
        "no space on device",
    ] {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn starting_can_be_spawned_on_another_thread() {
    fn assert_send<T: Send>(_: &T) {}
    assert_send(&Fleet::start(
        &Assets::at("/nonexistent"),
        1,
        Path::new("/nonexistent"),
    ));
}

fn named<K: serde::de::DeserializeOwned>(name: &str) -> K {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

fn status(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer of an API server: {other}"),
    }
}

async fn eventually(what: &str, look: impl AsyncFn() -> bool) {
    let looks = async {
        while !look().await {
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(
        time::timeout(Duration::from_secs(30), looks).await.is_ok(),
        "not within 30 s: {what}"
    );
}

fn real(cluster: &TestCluster) -> &RealCluster {
    match cluster {
        TestCluster::Real(cluster) => cluster,
        TestCluster::Embedded(_) => panic!("{} is embedded", cluster.name()),
    }
}
