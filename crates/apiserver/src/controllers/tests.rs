//! The controllers as a cluster runs them: one task beside the requests, on a clock that moves when everybody waits.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Loop;
use crate::{
    Cluster, Options,
    call::{Call, Reply},
    endpoint::{self, Answer},
    object::{Object, field, finalizers, metadata},
    query::Query,
    resource::Surroundings as _,
    server::Server,
    status::Result,
};

fn cluster() -> Cluster {
    Cluster::new(Options::default())
}

/// A request for a core resource. `path`: `namespace/name/subresource`, without the namespace where there is none.
async fn ask(cluster: &Cluster, method: Method, plural: &str, path: &str, body: Value) -> Result<Reply> {
    let resource = cluster
        .inner()
        .kinds()
        .find("", "v1", plural)
        .cloned()
        .expect("a core resource");
    let mut words = path.split('/');
    let mut next = || words.next().unwrap_or_default().to_owned();
    let call = Call {
        method,
        namespace: if resource.namespaced {
            next()
        } else {
            String::new()
        },
        name: next(),
        subresource: next(),
        resource,
        query: Query::parse(""),
        user: crate::auth::User::default(),
        agent: "test/1".to_owned(),
        content_type: None,
        body: if body.is_null() {
            bytes::Bytes::new()
        } else {
            body.to_string().into()
        },
    };
    match endpoint::answer(&**cluster.inner(), &call).await? {
        Answer::Reply(reply) => Ok(reply),
        Answer::Watch(_) => panic!("no watch was asked for"),
    }
}

async fn create(cluster: &Cluster, namespace: &str, metadata: Value) -> String {
    let name = metadata["name"].as_str().unwrap_or_default().to_owned();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    ask(cluster, Method::POST, "configmaps", namespace, body)
        .await
        .expect("created");
    let object = config_map(cluster, &format!("{namespace}/{name}")).expect("stored");
    field(&object, "uid").to_owned()
}

async fn delete(cluster: &Cluster, key: &str, policy: &str) {
    let body = json!({"propagationPolicy": policy});
    ask(cluster, Method::DELETE, "configmaps", key, body)
        .await
        .expect("deleted");
}

async fn namespace(cluster: &Cluster, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    ask(cluster, Method::POST, "namespaces", "", body)
        .await
        .expect("created");
}

fn config_map(cluster: &Cluster, key: &str) -> Option<Object> {
    cluster.inner().get("configmaps", key)
}

fn owner(name: &str, uid: &str, blocks: bool) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks}])
}

/// Waits for a state of the cluster, looking whenever something was written.
async fn until(cluster: &Cluster, what: &str, reached: impl Fn(&Server) -> bool) {
    let inner: &Arc<Server> = cluster.inner();
    let mut ticks = inner.store.ticks();
    let waiting = async {
        while !reached(inner) {
            ticks.changed().await.expect("the store is there");
        }
    };
    timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

async fn until_gone(cluster: &Cluster, key: &str) {
    until(cluster, &format!("{key} is gone"), |inner| {
        inner.get("configmaps", key).is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_its_service_account_again() {
    let cluster = cluster();
    namespace(&cluster, "a").await;
    let there = |inner: &Server| inner.get("serviceaccounts", "a/default");
    until(&cluster, "it is made", |inner| there(inner).is_some()).await;
    let first = there(cluster.inner()).expect("made");
    ask(
        &cluster,
        Method::DELETE,
        "serviceaccounts",
        "a/default",
        Value::Null,
    )
    .await
    .expect("deleted");
    until(&cluster, "it is made again", |inner| {
        there(inner).is_some_and(|account| field(&account, "uid") != field(&first, "uid"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dependents_of_dependents_go_with_the_owner() {
    let cluster = cluster();
    let root = create(&cluster, "default", json!({"name": "root"})).await;
    let leaf = json!({"name": "middle", "ownerReferences": owner("root", &root, false)});
    let middle = create(&cluster, "default", leaf).await;
    let leaf = json!({"name": "leaf", "ownerReferences": owner("middle", &middle, false)});
    create(&cluster, "default", leaf).await;
    delete(&cluster, "default/root", "Background").await;
    until_gone(&cluster, "default/leaf").await;
    assert!(config_map(&cluster, "default/middle").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_foreground_owner_goes_after_what_blocks_it() {
    let cluster = cluster();
    let uid = create(&cluster, "default", json!({"name": "owner"})).await;
    for (name, blocks) in [("blocker", true), ("other", false)] {
        let metadata = json!({"name": name, "ownerReferences": owner("owner", &uid, blocks),
            "finalizers": ["example.com/hold"]});
        create(&cluster, "default", metadata).await;
    }
    delete(&cluster, "default/owner", "Foreground").await;
    for key in ["default/blocker", "default/other"] {
        until(&cluster, "dependents are terminating", |inner| {
            inner
                .get("configmaps", key)
                .is_some_and(|object| !field(&object, "deletionTimestamp").is_empty())
        })
        .await;
    }
    let waits = config_map(&cluster, "default/owner").expect("it waits");
    assert_eq!(finalizers(&waits).collect::<Vec<_>>(), ["foregroundDeletion"]);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "blocker"}});
    ask(&cluster, Method::PUT, "configmaps", "default/blocker", body)
        .await
        .expect("released");
    until_gone(&cluster, "default/owner").await;
    assert!(
        config_map(&cluster, "default/other").is_some(),
        "it does not block"
    );
}

#[tokio::test(start_paused = true)]
async fn owners_in_a_circle_do_not_wait_for_each_other() {
    let cluster = cluster();
    let first = create(&cluster, "default", json!({"name": "first"})).await;
    let metadata = json!({"name": "second", "ownerReferences": owner("first", &first, true)});
    let second = create(&cluster, "default", metadata).await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "first", "ownerReferences": owner("second", &second, true)}});
    ask(&cluster, Method::PUT, "configmaps", "default/first", body)
        .await
        .expect("changed");
    delete(&cluster, "default/first", "Foreground").await;
    until_gone(&cluster, "default/first").await;
    until_gone(&cluster, "default/second").await;
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_know_no_owner() {
    let cluster = cluster();
    let uid = create(&cluster, "default", json!({"name": "owner"})).await;
    let metadata = json!({"name": "kept", "ownerReferences": owner("owner", &uid, true)});
    create(&cluster, "default", metadata).await;
    delete(&cluster, "default/owner", "Orphan").await;
    until_gone(&cluster, "default/owner").await;
    let kept = config_map(&cluster, "default/kept").expect("it stays");
    assert_eq!(metadata_of(&kept, "ownerReferences"), None);
}

fn metadata_of<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    metadata(object).get(name)
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_all_that_is_in_it_once_it_is_released() {
    let cluster = cluster();
    namespace(&cluster, "a").await;
    create(&cluster, "a", json!({"name": "plain"})).await;
    create(
        &cluster,
        "a",
        json!({"name": "held", "finalizers": ["example.com/hold"]}),
    )
    .await;
    ask(&cluster, Method::DELETE, "namespaces", "a", Value::Null)
        .await
        .expect("deleted");
    until(&cluster, "what remains is reported", |inner| {
        let namespace = inner.get("namespaces", "a").unwrap_or_default();
        Value::Object(namespace)
            .to_string()
            .contains("configmaps. has 1 resource instances")
    })
    .await;
    assert!(config_map(&cluster, "a/plain").is_none());
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}});
    ask(&cluster, Method::PUT, "configmaps", "a/held", body)
        .await
        .expect("released");
    until(&cluster, "the namespace is gone", |inner| {
        inner.get("namespaces", "a").is_none()
    })
    .await;
    let rest = cluster.inner().list("serviceaccounts", "a/");
    assert_eq!(rest, Vec::<Object>::new());
}

async fn protected(cluster: &Cluster) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec});
    ask(cluster, Method::POST, "persistentvolumeclaims", "default", claim)
        .await
        .expect("created");
    let spec = json!({
        "containers": [{"name": "web", "image": "nginx"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    });
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
    ask(cluster, Method::POST, "pods", "default", pod)
        .await
        .expect("created");
    ask(
        cluster,
        Method::DELETE,
        "persistentvolumeclaims",
        "default/data",
        Value::Null,
    )
    .await
    .expect("accepted");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_claim_stays_while_a_pod_uses_it_and_goes_then() {
    let cluster = Cluster::new(Options {
        storage_protection: true,
        ..Options::default()
    });
    protected(&cluster).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stands = |inner: &Server| inner.get("persistentvolumeclaims", "default/data").is_some();
    assert!(stands(cluster.inner()));
    let now = json!({"gracePeriodSeconds": 0});
    ask(&cluster, Method::DELETE, "pods", "default/web", now)
        .await
        .expect("deleted");
    until(&cluster, "the claim is gone", |inner| !stands(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn without_storage_protection_a_deleted_claim_stays() {
    let cluster = cluster();
    protected(&cluster).await;
    let now = json!({"gracePeriodSeconds": 0});
    ask(&cluster, Method::DELETE, "pods", "default/web", now)
        .await
        .expect("deleted");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        cluster
            .inner()
            .get("persistentvolumeclaims", "default/data")
            .is_some()
    );
}

#[test]
fn a_start_with_an_existing_store_does_what_was_left_undone() {
    // Outside of a runtime no task is started: what is stored here is what another process left.
    let cluster = cluster();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let metadata = json!({"name": "dangling", "ownerReferences": owner("ghost", "1", false)});
        create(&cluster, "default", metadata).await;
        let owned = create(&cluster, "default", json!({"name": "owner"})).await;
        let metadata = json!({"name": "kept", "ownerReferences": owner("owner", &owned, false)});
        create(&cluster, "default", metadata).await;
    });
    let mut state = Loop::new();
    while state.turn(&**cluster.inner()) {}
    assert!(config_map(&cluster, "default/dangling").is_none());
    assert!(config_map(&cluster, "default/kept").is_some());
    assert!(
        cluster
            .inner()
            .get("serviceaccounts", "kube-system/default")
            .is_some()
    );
}

#[tokio::test]
async fn the_last_clone_of_a_cluster_ends_its_controllers() {
    let cluster = cluster();
    let inner = Arc::downgrade(cluster.inner());
    tokio::task::yield_now().await;
    drop(cluster);
    let gone = async {
        while inner.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), gone)
        .await
        .expect("nobody holds it");
}
