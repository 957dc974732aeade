//! `clusters/NAME/proxy` of the hub of a fleet, over TLS as kubectl asks: whose rights count, streams, and what is said of failures.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{sync::Arc, time::Duration};

use entourage::{
    command::proxy::{front, serve},
    fleet::{Fleet, Place},
};
use entourage_controllers::Options;
use http::Request;
use http_body_util::{BodyExt as _, BodyStream};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The timeout of a condition, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A client of the hub over its port: the admin, or another user as whom the admin acts.
async fn hub(fleet: &Fleet, user: Option<&str>) -> Client {
    let kubeconfig = Kubeconfig::read_from(fleet.kubeconfig().unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.auth_info.impersonate = user.map(str::to_owned);
    // A refusal is looked at, and not sent again.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

fn through(member: &str, path: &str) -> String {
    format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy{path}")
}

/// Code and body of the response to a request with these headers; a body that is no JSON is a text.
async fn asked(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    let request = request
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = || json!(String::from_utf8_lossy(&bytes));
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

async fn got(client: &Client, path: &str) -> (u16, Value) {
    asked(client, "GET", path, &[], None).await
}

async fn created(client: &Client, path: &str, object: Value) {
    let (code, answer) = asked(client, "POST", path, &[], Some(object)).await;
    assert_eq!(code, 201, "{answer}");
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// Grants jane some rules, in all namespaces.
async fn grant(server: &Client, rules: Value) {
    created(
        server,
        &format!("{RBAC}/clusterroles"),
        json!({"metadata": {"name": "jane"}, "rules": rules}),
    )
    .await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"});
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"});
    created(
        server,
        &format!("{RBAC}/clusterrolebindings"),
        json!({"metadata": {"name": "jane"}, "roleRef": role, "subjects": [subject]}),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_the_hub_reaches_a_member_with_the_rights_that_it_has_there() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let member = fleet.member("member1").unwrap().client();
    let (admin, jane) = (hub(&fleet, None).await, hub(&fleet, Some("jane")).await);
    let config_maps = through("member1", CONFIG_MAPS);

    // The hub's admin is one of the member, too.
    let (code, list) = got(&admin, &config_maps).await;
    assert_eq!((code, &list["kind"]), (200, &json!("ConfigMapList")), "{list}");
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    created(&admin, &config_maps, object).await;
    let (code, _) = got(&member, &format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(code, 200, "it is on the member");

    // Discovery lists it, as Karmada's does.
    let (_, list) = got(&admin, "/apis/cluster.karmada.io/v1alpha1").await;
    let resources = list["resources"].as_array().unwrap();
    let listed = resources.iter().find(|one| one["name"] == "clusters/proxy");
    let kind = listed.map(|one| &one["kind"]);
    assert_eq!(kind, Some(&json!("ClusterProxyOptions")), "{list}");

    // First the hub decides, by clusters/proxy and the name of the cluster.
    let (code, answer) = got(&jane, &config_maps).await;
    assert_eq!(code, 403);
    assert!(message(&answer).contains(r#""clusters/proxy""#), "{answer}");
    let proxy = json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "resourceNames": ["member1"],
        "verbs": ["*"]}]);
    grant(&admin, proxy).await;

    // Then the member does, whatever else the caller writes.
    let written = [
        ("x-remote-user", "admin"),
        ("x-remote-group", "system:masters"),
        ("connection", "impersonate-user, authorization"),
    ];
    for headers in [&[][..], &written[..]] {
        let (code, answer) = asked(&jane, "GET", &config_maps, headers, None).await;
        assert_eq!(code, 403, "{headers:?}");
        let words = r#"User "jane" cannot list resource "configmaps""#;
        assert!(message(&answer).contains(words), "{headers:?}: {answer}");
    }
    grant(
        &member,
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]),
    )
    .await;
    let (code, one) = got(&jane, &through("member1", &format!("{CONFIG_MAPS}/a"))).await;
    assert_eq!((code, &one["data"]["k"]), (200, &json!("v")));
    let (code, answer) = got(&jane, &through("member1", "/api/v1/namespaces/default/secrets")).await;
    assert_eq!(code, 403, "{answer}");

    // A watch passes on each event when it happens.
    let request = Request::get(format!(
        "{config_maps}?watch=1&resourceVersion={}",
        one["metadata"]["resourceVersion"].as_str().unwrap()
    ));
    let response = jane.send(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    created(&member, CONFIG_MAPS, json!({"metadata": {"name": "later"}})).await;
    let mut frames = BodyStream::new(response.into_body());
    let first = tokio::time::timeout(PATIENCE, futures::StreamExt::next(&mut frames)).await;
    let first = first.unwrap().unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("later"))
    );
    drop(frames);
    fleet.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_chooses_as_whom_a_member_sees_them() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let (admin, jane) = (hub(&fleet, None).await, hub(&fleet, Some("jane")).await);
    let proxy =
        json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]}]);
    grant(&admin, proxy).await;
    let review = through("member1", "/apis/authentication.k8s.io/v1/selfsubjectreviews");
    let who = async |client: &Client, headers: &[(&str, &str)]| {
        let (code, answer) = asked(client, "POST", &review, headers, Some(json!({}))).await;
        (code, answer["status"]["userInfo"].clone())
    };
    let (code, info) = who(&jane, &[]).await;
    assert_eq!((code, &info["username"]), (201, &json!("jane")), "{info}");
    assert_eq!(info["groups"], json!(["system:authenticated"]));
    // The headers are the hub's to judge: the admin may act as somebody else, with extra and all.
    let headers = [
        ("impersonate-group", "devs"),
        ("impersonate-extra-acme.com%2fproject", "x"),
    ];
    let (code, info) = who(&jane, &headers).await;
    assert_eq!((code, &info["username"]), (201, &json!("jane")), "{info}");
    assert_eq!(info["groups"], json!(["devs", "system:authenticated"]));
    assert_eq!(info["extra"], json!({"acme.com/project": ["x"]}));
    // An account of the hub that may not is refused there.
    created(
        &admin,
        "/api/v1/namespaces/default/serviceaccounts",
        json!({"metadata": {"name": "robot"}}),
    )
    .await;
    let (_, token) = asked(
        &admin,
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/robot/token",
        &[],
        Some(json!({"spec": {}})),
    )
    .await;
    let kubeconfig = Kubeconfig::read_from(fleet.kubeconfig().unwrap()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.auth_info = kube::config::AuthInfo {
        token: Some(token["status"]["token"].as_str().unwrap().to_owned().into()),
        ..Default::default()
    };
    let robot = Client::try_from(config).unwrap();
    let binding = json!({"metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    created(&admin, &format!("{RBAC}/clusterrolebindings"), binding).await;
    let (code, info) = who(&robot, &[]).await;
    assert_eq!(
        (code, &info["username"]),
        (201, &json!("system:serviceaccount:default:robot")),
        "{info}"
    );
    for headers in [
        &[("impersonate-user", "admin")][..],
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "system:masters"),
        ],
    ] {
        let (code, answer) = asked(&robot, "POST", &review, headers, Some(json!({}))).await;
        assert_eq!(code, 403, "{headers:?}: {answer}");
    }
    fleet.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_does_not_answer_is_said_by_the_hub() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let admin = hub(&fleet, None).await;
    let (code, answer) = got(&admin, &through("nope", "/version")).await;
    assert_eq!(code, 404);
    assert_eq!(
        message(&answer),
        r#"clusters.cluster.karmada.io "nope" not found"#
    );

    fleet.disconnect("member1").unwrap();
    let (code, answer) = got(&admin, &through("member1", "/version")).await;
    assert_eq!((code, &answer["reason"]), (503, &json!("ServiceUnavailable")));
    let words = message(&answer);
    assert!(
        words.contains("cluster member1 did not respond") && words.contains("refused"),
        "{words}"
    );
    fleet.reconnect("member1").unwrap();
    let (code, version) = got(&admin, &through("member1", "/version")).await;
    assert_eq!(code, 200, "{version}");

    // A member that was joined without an impersonator.
    let cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/member1";
    let request = Request::patch(cluster).header("content-type", "application/merge-patch+json");
    let patch = json!({"spec": {"impersonatorSecretRef": null}})
        .to_string()
        .into_bytes();
    let patched = admin
        .send(request.body(Body::from(patch)).unwrap())
        .await
        .unwrap();
    assert_eq!(patched.status(), 200);
    let (code, answer) = got(&admin, &through("member1", "/version")).await;
    assert_eq!(code, 503);
    let words = message(&answer);
    assert!(
        words.contains("spec.impersonatorSecretRef") && words.contains("entourage join member1"),
        "{words}"
    );
    fleet.end().await.unwrap();
}

/// `karmadactl get`, `logs`, `exec` and `top` make the path the server of kubectl's own code: these are the requests that it sends then.
#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_karmadactl_are_answered_by_the_member() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let admin = hub(&fleet, None).await;
    let member = fleet.member("member1").unwrap().client();
    created(&member, CONFIG_MAPS, json!({"metadata": {"name": "a"}})).await;
    let spec = json!({"nodeName": "gone", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    created(&member, "/api/v1/namespaces/default/pods", pod).await;

    // It looks the cluster up first.
    let (code, cluster) = got(&admin, "/apis/cluster.karmada.io/v1alpha1/clusters/member1").await;
    assert_eq!((code, &cluster["kind"]), (200, &json!("Cluster")));
    let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let pods = "/api/v1/namespaces/default/pods";
    for (method, path, accept, code, kind) in [
        ("GET", "/version?timeout=32s", "*/*", 200, ""),
        ("GET", "/api?timeout=32s", discovery, 200, "APIGroupDiscoveryList"),
        (
            "GET",
            "/apis?timeout=32s",
            discovery,
            200,
            "APIGroupDiscoveryList",
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?limit=500").as_str(),
            table,
            200,
            "Table",
        ),
        (
            "GET",
            format!("{pods}/p").as_str(),
            "application/json",
            200,
            "Pod",
        ),
        // Its node is not there: a member with nodes changes the protocol here.
        (
            "POST",
            format!("{pods}/p/exec?command=date&container=c&stdout=true").as_str(),
            "*/*",
            404,
            "Status",
        ),
        (
            "GET",
            format!("{pods}/p/log?container=c").as_str(),
            "application/json",
            404,
            "Status",
        ),
        // No metrics server is there: `404 page not found`.
        (
            "GET",
            "/apis/metrics.k8s.io/v1beta1/nodes",
            "application/json",
            404,
            "",
        ),
    ] {
        let (found, answer) = asked(
            &admin,
            method,
            &through("member1", path),
            &[("accept", accept)],
            None,
        )
        .await;
        assert_eq!(found, code, "{path}: {answer}");
        assert_eq!(answer["kind"].as_str().unwrap_or_default(), kind, "{path}");
    }
    fleet.end().await.unwrap();
}

/// `entourage proxy` in this process.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_before_the_hub_adds_the_path_and_passes_on_all_else() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let kubeconfig = Kubeconfig::read_from(fleet.kubeconfig().unwrap()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let names = ["127.0.0.1".to_owned()];
    let (tls, _) = entourage_webhook::interpret::self_signed(&names, jiff::Timestamp::now()).unwrap();
    let stop = CancellationToken::new();
    let server = Arc::new(front(&config.clone().into(), "karmada-cluster", &stop).unwrap());
    let serving = tokio::spawn(serve(listener, tls, server, stop.clone()));
    let at = |token: Option<String>| {
        let mut config = config.clone();
        config.cluster_url = format!("https://{address}").parse().unwrap();
        (config.root_cert, config.accept_invalid_certs) = (None, true);
        config.auth_info = kube::config::AuthInfo {
            token: token.map(Into::into),
            ..Default::default()
        };
        Client::try_from(config).unwrap()
    };
    let review = through("member1", "/apis/authentication.k8s.io/v1/selfsubjectreviews");
    let post = async |client: &Client, path: &str, headers: &[(&str, &str)], object: Value| {
        asked(client, "POST", path, headers, Some(object)).await
    };

    // A robot of the hub, by its own token.
    let admin = hub(&fleet, None).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    created(&admin, accounts, json!({"metadata": {"name": "robot"}})).await;
    let (_, token) = post(
        &admin,
        &format!("{accounts}/robot/token"),
        &[],
        json!({"spec": {}}),
    )
    .await;
    let robot = at(Some(token["status"]["token"].as_str().unwrap().to_owned()));
    let (code, answer) = post(&robot, &review, &[], json!({})).await;
    assert_eq!(code, 403, "{answer}");
    assert!(message(&answer).contains("cannot create resource"), "{answer}");
    let rules =
        json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]}]);
    grant(&admin, rules).await;
    let binding = json!({"metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    created(&admin, &format!("{RBAC}/clusterrolebindings"), binding).await;
    let (code, answer) = post(&robot, &review, &[], json!({})).await;
    let name = &answer["status"]["userInfo"]["username"];
    assert_eq!(
        (code, name),
        (201, &json!("system:serviceaccount:default:robot")),
        "{answer}"
    );
    let (code, _) = got(&robot, &through("member1", CONFIG_MAPS)).await;
    assert_eq!(code, 403, "its rights on the member are its own");
    let (code, answer) = post(&robot, &review, &[("impersonate-user", "admin")], json!({})).await;
    assert_eq!(code, 403, "{answer}");

    // Without a token, or with one that the hub does not know, there is no way to a member.
    for token in [None, Some("wrong".to_owned())] {
        let (code, answer) = got(&at(token), &through("member1", "/version")).await;
        assert_eq!(code, 401, "{answer}");
    }
    // All else is the hub's answer, to the caller's own credentials.
    let (code, own) = post(
        &robot,
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        &[],
        json!({}),
    )
    .await;
    let name = &own["status"]["userInfo"]["username"];
    assert_eq!(
        (code, name),
        (201, &json!("system:serviceaccount:default:robot")),
        "{own}"
    );
    let (code, answer) = got(&robot, "/api/v1/secrets").await;
    assert_eq!(code, 403, "{answer}");
    stop.cancel();
    serving.await.unwrap();
    fleet.end().await.unwrap();
}
