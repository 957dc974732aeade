//! Bundles of an in-memory hub, with a canary in every payload.

use serde_json::json;

use super::{
    archive::tests::{Entry, unpacked},
    *,
};
use crate::mock::{Server, scripted};

const CANARY: &str = "hunter2-canary";

/// A hub with the canary in every place that may hold a payload.
fn hub() -> Server {
    let server = Server::new("hub");
    server.put(
        "/version",
        json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
    );
    server.put("/apis", json!({"groups": [{"name": "work.karmada.io"}]}));
    server.put("/metrics", json!("up 1"));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"},
        "data": {"password": CANARY}, "stringData": {"password": CANARY}});
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": secret.to_string()});
    for (path, object) in [
        ("/api/v1/namespaces/shop/secrets/login", secret.clone()),
        (
            "/api/v1/namespaces/shop/configmaps/settings",
            json!({"metadata": {"name": "settings", "namespace": "shop"}, "data": {"a": CANARY}}),
        ),
        (
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1",
            json!({"metadata": {"name": "m1"}, "spec": {"apiEndpoint": "https://10.0.0.1:6443",
                "proxyHeader": {"Authorization": CANARY}, "secretRef": {"name": "m1", "namespace": "karmada-cluster"}},
                "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "ClusterNotReachable"}]}}),
        ),
        (
            "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment",
            json!({"metadata": {"name": "web-deployment", "namespace": "shop", "annotations": annotations},
                "spec": {"resource": {"kind": "Deployment", "name": "web"}},
                "status": {"aggregatedStatus": [{"clusterName": "m1", "status": {"note": CANARY}}]}}),
        ),
        (
            "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/w",
            json!({"metadata": {"name": "w", "namespace": "karmada-es-m1"},
                "spec": {"workload": {"manifests": [secret]}}}),
        ),
        (
            "/apis/policy.karmada.io/v1alpha1/namespaces/shop/overridepolicies/o",
            json!({"metadata": {"name": "o", "namespace": "shop"}, "spec": {"overrideRules": [
                {"overriders": {"plaintext": [{"path": "/data/a", "operator": "add", "value": CANARY}]}}]}}),
        ),
        (
            "/apis/apps.kruise.io/v1alpha1/resourcedistributions/d",
            json!({"metadata": {"name": "d"}, "spec": {"resource": secret}}),
        ),
        (
            "/api/v1/namespaces/shop/events/ours",
            json!({"metadata": {"name": "ours", "namespace": "shop"}, "reason": "SyncWorkFailed",
                "source": {"component": "entourage"}, "message": "forbidden"}),
        ),
        (
            "/api/v1/namespaces/shop/events/others",
            json!({"metadata": {"name": "others", "namespace": "shop"}, "source": {"component": "kubelet"}, "message": CANARY}),
        ),
        (
            "/api/v1/namespaces/shop/events/karmadas",
            json!({"metadata": {"name": "karmadas", "namespace": "shop"}, "involvedObject": {"kind": "Secret", "name": "login"},
                "source": {"component": "karmada-controller-manager"}, "message": format!("data: Invalid value: {CANARY}")}),
        ),
        (
            "/api/v1/namespaces/karmada-system/pods/entourage-controllers-0",
            json!({"metadata": {"name": "entourage-controllers-0", "namespace": "karmada-system"},
                "spec": {"containers": [{"name": "controllers", "env": [{"name": "HTTPS_PROXY", "value": CANARY}]}]},
                "status": {"containerStatuses": [{"name": "controllers", "restartCount": 1}]}}),
        ),
        (
            "/api/v1/namespaces/karmada-system/pods/entourage-controllers-0/log",
            json!(format!(
                "leading authorization: Bearer {CANARY} password={CANARY} end"
            )),
        ),
        (
            "/api/v1/namespaces/karmada-system/pods/entourage-webhook-0",
            json!({"metadata": {"name": "entourage-webhook-0", "namespace": "karmada-system",
                "labels": {"app.kubernetes.io/name": "entourage-webhook"}}}),
        ),
        (
            "/api/v1/namespaces/karmada-system/pods/https:entourage-webhook-0:8443/proxy/metrics",
            json!("entourage_webhook_reviews_total 1"),
        ),
        (
            "/api/v1/namespaces/karmada-system/pods/entourage-controllers-0:8080/proxy/metrics",
            json!("entourage_events_dropped_total 0"),
        ),
    ] {
        server.put(path, object);
    }
    server
}

async fn bundled(server: &Server) -> (Vec<Entry>, String) {
    bundled_by(&server.client()).await
}

async fn bundled_by(client: &Client) -> (Vec<Entry>, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bundle.tar.gz");
    let args = SupportBundleArgs {
        hub: HubArgs::default(),
        host_kubeconfig: None,
        host_context: None,
        namespace: "karmada-system".to_owned(),
        logs_since: Duration::from_secs(3600),
        logs_tail: 100,
        output: Some(file.clone()),
    };
    let mut out = Vec::new();
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    support_bundle(&args, client, client, now, &mut out)
        .await
        .unwrap();
    (unpacked(&file), String::from_utf8(out).unwrap())
}

fn text<'a>(entries: &'a [Entry], path: &str) -> &'a str {
    let entry = entries.iter().find(|entry| entry.path == path);
    std::str::from_utf8(&entry.unwrap_or_else(|| panic!("no {path}")).content).unwrap()
}

#[tokio::test]
async fn no_payload_is_in_a_bundle() {
    let (entries, printed) = bundled(&hub()).await;
    for entry in &entries {
        let content = String::from_utf8_lossy(&entry.content);
        assert!(!content.contains("canary"), "{}: {content}", entry.path);
        assert!(!entry.path.contains("canary"), "{}", entry.path);
    }
    assert!(!printed.contains("canary"), "{printed}");
}

#[tokio::test]
async fn a_bundle_has_what_support_asks_for() {
    let (entries, printed) = bundled(&hub()).await;
    for (path, needle) in [
        ("version.json", "v1.36.2"),
        ("preflight.json", "\"definitions\""),
        ("hub/apis.json", "work.karmada.io"),
        ("hub/clusters.cluster.karmada.io.json", "ClusterNotReachable"),
        ("hub/resourcebindings.work.karmada.io.json", "web-deployment"),
        ("hub/works.work.karmada.io.json", "login"),
        ("hub/overridepolicies.policy.karmada.io.json", "/data/a"),
        ("hub/resourcedistributions.apps.kruise.io.json", "login"),
        ("hub/events.json", "SyncWorkFailed"),
        ("hub/events.json", "karmada-controller-manager"),
        ("hub/secrets.json", "login"),
        ("hub/configmaps.json", "settings"),
        ("hub/metrics.txt", "up 1"),
        ("host/pods.json", "HTTPS_PROXY"),
        ("host/entourage-controllers-0.controllers.log", "leading"),
        ("host/entourage-controllers-0.controllers.previous.log", "leading"),
        ("host/entourage-webhook-0.metrics.txt", "reviews_total"),
        (
            "host/entourage-controllers-0.metrics.txt",
            "entourage_events_dropped_total",
        ),
    ] {
        let content = text(&entries, path);
        assert!(content.contains(needle), "{path}: {content}");
    }
    assert!(!text(&entries, "hub/events.json").contains("kubelet"));
    assert!(printed.contains(&format!("{} files", entries.len())), "{printed}");
}

#[tokio::test]
async fn what_cannot_be_read_is_listed() {
    let server = hub().forbidding("GET", "/apis/work.karmada.io/v1alpha1/works");
    let (entries, printed) = bundled(&server).await;
    assert!(text(&entries, "unread.txt").contains("hub/works.work.karmada.io.json"));
    assert!(
        printed.contains("not read: hub/works.work.karmada.io.json"),
        "{printed}"
    );
}

/// A hub does not fit into memory: each page is written as it comes.
#[tokio::test]
async fn each_page_of_objects_is_a_file() {
    const WORKS: &str = "GET /apis/work.karmada.io/v1alpha1/works?";
    let client = scripted(|call| {
        let page = |name: &str, next: &str| {
            let secret = json!({"kind": "Secret", "metadata": {"name": name}, "data": {"a": CANARY}});
            json!({"metadata": {"continue": next}, "items": [{"metadata": {"name": name, "namespace": "karmada-es-m1"},
                "spec": {"workload": {"manifests": [secret]}}}]})
        };
        let body = match call {
            "GET /version" => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
            _ if call.starts_with(WORKS) && call.contains("continue=more") => page("second", ""),
            _ if call.starts_with(WORKS) => page("first", "more"),
            _ => json!({"metadata": {}, "items": []}),
        };
        (200, body.to_string())
    });
    let (entries, _) = bundled_by(&client).await;
    for (path, name) in [
        ("hub/works.work.karmada.io.json", "first"),
        ("hub/works.work.karmada.io.2.json", "second"),
    ] {
        let content = text(&entries, path);
        let works: serde_json::Value = serde_json::from_str(content).unwrap();
        assert_eq!(works[0]["metadata"]["name"], name, "{content}");
        assert_eq!(works[0]["kind"], "Work");
        assert_eq!(
            works[0]["spec"]["workload"]["manifests"][0]["metadata"]["name"],
            name
        );
        assert_eq!(works.as_array().map(Vec::len), Some(1));
        assert!(!content.contains("canary"), "{content}");
    }
}
