//! A cluster in a file: what was answered is there again in the next process, credentials included.

mod common;

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use common::ask;
use entourage_apiserver::{Cluster, Options, listener::Authority};
use serde_json::{Value, json};

fn options(file: &Path) -> Options {
    Options {
        admin_token: "admin".to_owned(),
        data: Some(file.to_owned()),
        ..Options::default()
    }
}

fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("entourage-reopened-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

#[tokio::test]
async fn a_cluster_opened_again_has_its_objects_and_believes_its_tokens() {
    let dir = directory("objects");
    let file = dir.join("cluster.store");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

    let cluster = Cluster::open(options(&file)).expect("a new store");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let (status, made) = ask(
        &cluster,
        "admin",
        "POST",
        "/api/v1/namespaces/default/secrets",
        &secret,
    )
    .await;
    assert_eq!(status, 201, "{made}");
    let account = json!({"metadata": {"name": "robot"}});
    ask(
        &cluster,
        "admin",
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        &account,
    )
    .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let (status, token) = ask(&cluster, "admin", "POST", path, &json!({"spec": {}})).await;
    assert_eq!(status, 201, "{token}");
    let token = token["status"]["token"].as_str().expect("a token").to_owned();
    assert_eq!(ask(&cluster, &token, "POST", who, &review).await.0, 201);
    let mode = std::fs::metadata(&file).expect("the file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "it holds Secrets");
    drop(cluster);

    let cluster = Cluster::open(options(&file)).expect("the same store");
    let (_, again) = ask(
        &cluster,
        "admin",
        "GET",
        "/api/v1/namespaces/default/secrets/s",
        &Value::Null,
    )
    .await;
    assert_eq!(again, made);
    let (status, user) = ask(&cluster, &token, "POST", who, &review).await;
    assert_eq!(status, 201, "{user}");
    assert_eq!(
        user["status"]["userInfo"]["username"],
        "system:serviceaccount:default:robot"
    );
    drop(cluster);
    std::fs::remove_dir_all(dir).expect("it is ours");
}

#[tokio::test]
async fn a_secret_with_a_token_gets_the_new_authority_and_keeps_its_token() {
    let dir = directory("authority");
    let file = dir.join("cluster.store");
    let [first, second] = [(); 2].map(|()| Authority::new().expect("an authority"));
    let with = |authority: &Authority| Options {
        authority: Some(authority.clone()),
        ..options(&file)
    };
    let secrets = "/api/v1/namespaces/default/secrets";
    let path = format!("{secrets}/robot");
    // The data of the Secret once its `ca.crt` is this.
    let filled = async |cluster: &Cluster, authority: &Authority| loop {
        let (_, secret) = ask(cluster, "admin", "GET", &path, &Value::Null).await;
        if secret["data"]["ca.crt"] == BASE64_STANDARD.encode(&authority.certificate) {
            return secret["data"].clone();
        }
        tokio::task::yield_now().await;
    };

    let cluster = Cluster::open(with(&first)).expect("a new store");
    let account = json!({"metadata": {"name": "robot"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(ask(&cluster, "admin", "POST", accounts, &account).await.0, 201);
    let secret = json!({"type": "kubernetes.io/service-account-token", "metadata": {"name": "robot",
        "annotations": {"kubernetes.io/service-account.name": "robot"}}});
    assert_eq!(ask(&cluster, "admin", "POST", secrets, &secret).await.0, 201);
    let before = filled(&cluster, &first).await;
    drop(cluster);

    let cluster = Cluster::open(with(&second)).expect("the same store");
    let after = filled(&cluster, &second).await;
    assert_eq!(after["token"], before["token"]);
    drop(cluster);
    std::fs::remove_dir_all(dir).expect("it is ours");
}
