//! Admission webhooks as clients and webhooks see them, against webhooks on loopback with TLS of their own.

mod common;
#[path = "common/hook.rs"]
mod hook;

use common::{ask, ask_as, whole};
use entourage_apiserver::{Cluster, Options};
use hook::{Answer, Hook, allowed, patched};
use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
use serde_json::{Value, json};

const ADMIN: &str = "admin";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn cluster() -> Cluster {
    Cluster::new(Options {
        admin_token: ADMIN.to_owned(),
        ..Options::default()
    })
}

/// Registers one webhook; `more` is merged over the usual fields.
async fn register(cluster: &Cluster, kind: &str, name: &str, client: Value, rules: Value, more: Value) {
    let mut webhook = json!({"name": format!("{name}.example.com"), "clientConfig": client, "rules": rules,
        "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    for (key, value) in more.as_object().expect("fields") {
        webhook[key] = value.clone();
    }
    let path = format!(
        "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations",
        kind.to_lowercase()
    );
    let body = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"), "metadata": {"name": name}, "webhooks": [webhook]});
    let (code, answer) = ask(cluster, ADMIN, "POST", &path, &body).await;
    assert_eq!(code, 201, "{answer}");
}

fn rule(group: &str, version: &str, resource: &str, operations: &[&str]) -> Value {
    json!([{"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": operations}])
}

fn maps(operations: &[&str]) -> Value {
    rule("", "v1", "configmaps", operations)
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn a_validating_webhook_refuses_in_its_own_words() {
    let answers = json!({
        "reported": {"allowed": false, "status": {"message": "no such thing", "reason": "Forbidden", "code": 403,
            "details": {"causes": [{"message": "because"}]}}, "warnings": ["mind the gap"]},
        "reason": {"allowed": false, "status": {"reason": "Never"}},
        "unresponsive": {"allowed": false},
        "low": {"allowed": false, "status": {"code": 200, "status": "Success", "message": "x"}},
    });
    let hook = Hook::start("127.0.0.1", move |_, review| {
        let name = review["request"]["name"].as_str().expect("a name");
        Answer::Response(answers.get(name).cloned().unwrap_or(json!({"allowed": true})))
    })
    .await;
    let cluster = cluster();
    register(
        &cluster,
        "Validating",
        "v",
        hook.url("/check"),
        maps(&["CREATE"]),
        json!({}),
    )
    .await;
    let (code, warning, body) = whole(
        &cluster,
        ADMIN,
        "POST",
        MAPS,
        "application/json",
        &map("reported"),
    )
    .await;
    assert_eq!((code, warning.as_str()), (403, "299 - \"mind the gap\""));
    assert_eq!(
        body,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
            "reason": "Forbidden", "details": {"causes": [{"message": "because"}]},
            "message": "admission webhook \"v.example.com\" denied the request: no such thing"})
    );
    for (name, code, end) in [
        ("reason", 400, ": Never"),
        ("unresponsive", 400, " without explanation"),
        ("low", 400, ": x"),
    ] {
        let (got, body) = ask(&cluster, ADMIN, "POST", MAPS, &map(name)).await;
        let message = format!("admission webhook \"v.example.com\" denied the request{end}");
        assert_eq!((got, body["message"].as_str()), (code, Some(&*message)));
        let (code, _) = ask(&cluster, ADMIN, "GET", &format!("{MAPS}/{name}"), &Value::Null).await;
        assert_eq!(code, 404);
    }
    assert_eq!(ask(&cluster, ADMIN, "POST", MAPS, &map("fine")).await.0, 201);
    let (path, review) = hook.seen().pop().expect("a review");
    assert_eq!(path, "/check?timeout=10s");
    let request = &review["request"];
    assert_eq!(
        (&review["kind"], &review["apiVersion"]),
        (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
    );
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["namespace"], "default");
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(
        request["resource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    assert_eq!(request["requestKind"], request["kind"]);
    assert_eq!(request["userInfo"]["username"], "admin");
    assert_eq!(
        (&request["dryRun"], &request["oldObject"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(request["options"]["kind"], "CreateOptions");
    assert!(
        request["object"]["metadata"]["uid"].is_string(),
        "it is seen as it is stored"
    );
}

#[tokio::test]
async fn mutating_webhooks_change_the_object_one_after_the_other() {
    let hook = Hook::start("127.0.0.1", |path, review| {
        let data = &review["request"]["object"]["data"];
        if path.starts_with("/one") {
            patched(&json!([{"op": "add", "path": "/data/one", "value": data["two"].as_str().unwrap_or("first")}]))
        } else {
            let seen = data["one"].as_str().unwrap_or("nothing");
            patched(&json!([{"op": "add", "path": "/data/two", "value": format!("saw {seen}")}]))
        }
    })
    .await;
    let cluster = cluster();
    let all = maps(&["CREATE", "UPDATE"]);
    register(
        &cluster,
        "Mutating",
        "a-one",
        hook.url("/one"),
        all.clone(),
        json!({"reinvocationPolicy": "IfNeeded"}),
    )
    .await;
    register(&cluster, "Mutating", "b-two", hook.url("/two"), all, json!({})).await;
    let (code, body) = ask(&cluster, ADMIN, "POST", MAPS, &map("m")).await;
    assert_eq!(code, 201);
    // The first is asked again, because the second changed what it had seen.
    assert_eq!(
        body["data"],
        json!({"a": "1", "one": "saw first", "two": "saw first"})
    );
    let seen = hook.seen();
    let paths: Vec<&str> = seen
        .iter()
        .map(|(path, _)| path.split('?').next().expect("a path"))
        .collect();
    assert_eq!(paths, ["/one", "/two", "/one"]);
    assert_eq!(
        seen[0].1["request"]["object"]["metadata"]["uid"],
        Value::Null,
        "nothing is set yet"
    );
    assert!(body["metadata"]["uid"].is_string());
    // What webhooks wrote is nobody's.
    let owned = body["metadata"]["managedFields"].to_string();
    assert!(owned.contains("f:a") && !owned.contains("f:one"), "{owned}");
    let patch = json!({"data": {"b": "2"}});
    let (code, body) = ask_as(
        &cluster,
        ADMIN,
        "PATCH",
        &format!("{MAPS}/m"),
        "application/merge-patch+json",
        &patch,
    )
    .await;
    assert_eq!((code, &body["data"]["b"]), (200, &json!("2")));
    assert_eq!(
        hook.seen().last().expect("a review").1["request"]["oldObject"]["data"]["two"],
        "saw first"
    );
}

#[tokio::test]
async fn deletions_are_asked_about_too_and_nothing_can_be_changed_in_them() {
    let hook = Hook::start("127.0.0.1", |_, review| {
        match review["request"]["name"].as_str() {
            Some("kept") => Answer::Response(json!({"allowed": false, "status": {"message": "it stays"}})),
            Some("patched") => patched(&json!([{"op": "remove", "path": "/data"}])),
            _ => allowed(),
        }
    })
    .await;
    let cluster = cluster();
    for name in ["kept", "patched", "free"] {
        ask(&cluster, ADMIN, "POST", MAPS, &map(name)).await;
    }
    register(
        &cluster,
        "Mutating",
        "m",
        hook.url("/m"),
        maps(&["DELETE"]),
        json!({}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "v",
        hook.url("/v"),
        maps(&["DELETE"]),
        json!({}),
    )
    .await;
    let delete =
        async |name: &str| ask(&cluster, ADMIN, "DELETE", &format!("{MAPS}/{name}"), &Value::Null).await;
    let (code, body) = delete("kept").await;
    assert_eq!(
        (code, body["message"].as_str()),
        (
            400,
            Some("admission webhook \"m.example.com\" denied the request: it stays")
        )
    );
    let (code, body) = delete("patched").await;
    assert_eq!(code, 500);
    assert!(
        body["message"]
            .as_str()
            .expect("text")
            .contains("attempted to modify the object"),
        "{body}"
    );
    assert_eq!(delete("free").await.0, 200);
    let review = &hook.seen().pop().expect("a review").1["request"];
    assert_eq!(
        (&review["object"], &review["oldObject"]["data"]["a"]),
        (&Value::Null, &json!("1"))
    );
    assert_eq!(delete("missing").await.0, 404);
    // One that may not go stops the deletion of a collection.
    assert_eq!(ask(&cluster, ADMIN, "DELETE", MAPS, &Value::Null).await.0, 400);
    assert_eq!(
        ask(&cluster, ADMIN, "GET", &format!("{MAPS}/kept"), &Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn what_a_webhook_may_not_answer_is_a_failed_call_that_the_policy_decides_on() {
    let hook = Hook::start("127.0.0.1", |_, review| {
        let uid = review["request"]["uid"].clone();
        let whole = |response: Value| {
            Answer::Raw(
                200,
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
                    .to_string(),
            )
        };
        match review["request"]["name"].as_str().expect("a name") {
            "uid" => whole(json!({"uid": "other", "allowed": true})),
            "kind" => Answer::Raw(
                200,
                json!({"apiVersion": "v1", "kind": "Status", "response": {"uid": uid}}).to_string(),
            ),
            "nothing" => Answer::Raw(200, "{}".to_owned()),
            "patch" => whole(json!({"uid": uid, "allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
            "broken" => Answer::Raw(500, "out of order".to_owned()),
            "text" => Answer::Raw(200, "hello".to_owned()),
            "large" => Answer::Raw(200, " ".repeat(4 << 20)),
            "slow" => Answer::Silence,
            _ => allowed(),
        }
    })
    .await;
    let cluster = cluster();
    register(
        &cluster,
        "Validating",
        "v",
        hook.url("/v"),
        maps(&["CREATE"]),
        json!({"timeoutSeconds": 1}),
    )
    .await;
    let url = format!("https://{}/v?timeout=1s", hook.address);
    for (name, end) in [
        ("kind", "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Status".to_owned()),
        ("nothing", "received invalid webhook response: webhook response was absent".to_owned()),
        ("patch", "received invalid webhook response: validating webhook may not return response.patch".to_owned()),
        ("broken", "failed to call webhook: an error on the server (\"out of order\") has prevented the request from succeeding".to_owned()),
        ("slow", format!("failed to call webhook: Post {url:?}: context deadline exceeded")),
        ("large", "failed to call webhook: length limit exceeded".to_owned()),
    ] {
        let (code, body) = ask(&cluster, ADMIN, "POST", MAPS, &map(name)).await;
        let message = format!("Internal error occurred: failed calling webhook \"v.example.com\": {end}");
        assert_eq!((code, body["message"].as_str()), (500, Some(&*message)));
    }
    for name in ["uid", "text"] {
        assert_eq!(ask(&cluster, ADMIN, "POST", MAPS, &map(name)).await.0, 500);
    }
    register(
        &cluster,
        "Validating",
        "w",
        hook.url("/w"),
        rule("", "v1", "secrets", &["CREATE"]),
        json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"}),
    )
    .await;
    for name in ["uid", "kind", "nothing", "patch", "broken", "text"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        let (code, _) = ask(
            &cluster,
            ADMIN,
            "POST",
            "/api/v1/namespaces/default/secrets",
            &secret,
        )
        .await;
        assert_eq!(code, 201, "{name}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_itself_in_the_bundle_is_believed_also_if_it_is_an_authoritys() {
    let hook = Hook::start_with(authority("127.0.0.1"), |_, _| allowed()).await;
    let cluster = cluster();
    register(
        &cluster,
        "Validating",
        "own",
        hook.url("/"),
        maps(&["CREATE"]),
        json!({}),
    )
    .await;
    let (code, body) = ask(&cluster, ADMIN, "POST", MAPS, &map("a")).await;
    assert_eq!((code, hook.seen().len()), (201, 1), "{body}");
}

/// The parameters that `openssl req -x509` uses: a certificate with `CA:TRUE` that a server presents itself.
fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

#[tokio::test]
async fn nobody_is_believed_whose_certificate_the_bundle_does_not_vouch_for() {
    let (hook, other) = (
        Hook::start("127.0.0.1", |_, _| allowed()).await,
        Hook::start("elsewhere.example.com", |_, _| allowed()).await,
    );
    let (twin, misnamed) = (
        Hook::start_with(authority("127.0.0.1"), |_, _| allowed()).await,
        Hook::start_with(authority("elsewhere.example.com"), |_, _| allowed()).await,
    );
    let mut old = authority("127.0.0.1");
    old.not_after = date_time_ymd(2020, 1, 1);
    let expired = Hook::start_with(old, |_, _| allowed()).await;
    let another = Hook::start_with(authority("127.0.0.1"), |_, _| allowed()).await;
    let cluster = cluster();
    for (name, client, end) in [
        (
            "a",
            json!({"url": format!("https://{}/", hook.address), "caBundle": other.bundle}),
            "signed by unknown authority",
        ),
        (
            "b",
            json!({"url": format!("https://{}/", hook.address)}),
            "signed by unknown authority",
        ),
        (
            "c",
            json!({"url": format!("https://{}/", other.address), "caBundle": other.bundle}),
            "not valid for name",
        ),
        (
            "d",
            json!({"url": format!("https://{}/", twin.address), "caBundle": another.bundle}),
            "signed by unknown authority",
        ),
        ("e", misnamed.url("/"), "not valid for name"),
        (
            "f",
            expired.url("/"),
            "certificate has expired or is not yet valid",
        ),
    ] {
        register(
            &cluster,
            "Validating",
            name,
            client,
            maps(&["CREATE"]),
            json!({"objectSelector": {"matchLabels": {"for": name}}}),
        )
        .await;
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"for": name});
        let (code, body) = ask(&cluster, ADMIN, "POST", MAPS, &map).await;
        let message = body["message"].as_str().expect("text");
        assert_eq!(code, 500);
        assert!(
            message.contains("tls: failed to verify certificate: x509: ") && message.contains(end),
            "{message}"
        );
    }
    for hook in [hook, other, twin, misnamed, expired] {
        assert!(hook.seen().is_empty(), "{}", hook.address);
    }
}

#[tokio::test]
async fn a_service_is_found_through_its_endpoints_or_its_external_name() {
    let hook = Hook::start("hook.default.svc", |_, _| allowed()).await;
    let cluster = cluster();
    let client =
        json!({"service": {"name": "hook", "namespace": "default", "path": "/v"}, "caBundle": hook.bundle});
    register(&cluster, "Validating", "v", client, maps(&["CREATE"]), json!({})).await;
    let tried = async |end: &str| {
        let (code, body) = ask(&cluster, ADMIN, "POST", MAPS, &map("m")).await;
        let message = format!(
            "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \"https://hook.default.svc:443/v?timeout=10s\": {end}"
        );
        assert_eq!((code, body["message"].as_str()), (500, Some(&*message)));
    };
    tried("service \"hook\" not found").await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"ports": [{"port": 443, "targetPort": hook.address.port()}]}});
    assert_eq!(ask(&cluster, ADMIN, "POST", services, &service).await.0, 201);
    tried("no endpoints available for service \"hook\"").await;
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook"},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 7}]}]});
    // Loopback is no address of endpoints, so nothing of a test can stand there: the slice may name one.
    assert_eq!(
        ask(
            &cluster,
            ADMIN,
            "POST",
            "/api/v1/namespaces/default/endpoints",
            &endpoints
        )
        .await
        .0,
        201
    );
    let path = "/api/v1/namespaces/default/services/hook";
    assert_eq!(ask(&cluster, ADMIN, "DELETE", path, &Value::Null).await.0, 200);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"type": "ExternalName", "externalName": "localhost"}});
    assert_eq!(ask(&cluster, ADMIN, "POST", services, &service).await.0, 201);
    let client = json!({"service": {"name": "hook", "namespace": "default", "path": "/v", "port": hook.address.port()}, "caBundle": hook.bundle});
    register(
        &cluster,
        "Validating",
        "w",
        client,
        rule("", "v1", "secrets", &["CREATE"]),
        json!({}),
    )
    .await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let (code, body) = ask(
        &cluster,
        ADMIN,
        "POST",
        "/api/v1/namespaces/default/secrets",
        &secret,
    )
    .await;
    assert_eq!(code, 201, "{body}");
    assert_eq!(hook.seen().len(), 1);
}

#[tokio::test]
async fn rules_name_subresources_scopes_other_versions_and_conditions() {
    let hook = Hook::start("127.0.0.1", |path, review| {
        if path.starts_with("/scale") {
            assert_eq!(review["request"]["kind"]["kind"], "Scale");
            return patched(&json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]));
        }
        let by = path.split('?').next().expect("a path");
        Answer::Response(json!({"allowed": true, "warnings": [by]}))
    })
    .await;
    let cluster = cluster();
    let any = |resource: &str| rule("*", "*", resource, &["*"]);
    register(
        &cluster,
        "Validating",
        "a",
        hook.url("/scoped"),
        json!([{"apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*"], "operations": ["*"], "scope": "Cluster"}]),
        json!({}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "b",
        hook.url("/status"),
        any("*/status"),
        json!({}),
    )
    .await;
    register(
        &cluster,
        "Mutating",
        "c",
        hook.url("/scale"),
        any("deployments/scale"),
        json!({}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "d",
        hook.url("/v1"),
        rule("autoscaling", "v1", "horizontalpodautoscalers", &["*"]),
        json!({}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "e",
        hook.url("/exact"),
        rule("autoscaling", "v1", "horizontalpodautoscalers", &["*"]),
        json!({"matchPolicy": "Exact"}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "f",
        hook.url("/condition"),
        maps(&["*"]),
        json!({"matchConditions": [{"name": "big", "expression": "object.metadata.name == 'big'"}]}),
    )
    .await;
    register(
        &cluster,
        "Validating",
        "g",
        hook.url("/namespace"),
        maps(&["*"]),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}),
    )
    .await;
    let reported = async |method: &str, path: &str, body: Value| {
        let (code, warning, answer) = whole(&cluster, ADMIN, method, path, "application/json", &body).await;
        assert!(code < 300, "{answer}");
        (
            warning.trim_start_matches("299 - ").trim_matches('"').to_owned(),
            answer,
        )
    };
    assert_eq!(
        reported(
            "POST",
            "/api/v1/namespaces",
            json!({"metadata": {"name": "other"}})
        )
        .await
        .0,
        "/scoped"
    );
    assert_eq!(reported("POST", MAPS, map("small")).await.0, "");
    assert_eq!(reported("POST", MAPS, map("big")).await.0, "/condition");
    assert_eq!(
        reported("POST", "/api/v1/namespaces/other/configmaps", map("m"))
            .await
            .0,
        "/namespace"
    );
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    assert_eq!(reported("POST", deployments, deployment).await.0, "");
    let path = format!("{deployments}/d");
    let scale = reported("GET", &format!("{path}/scale"), Value::Null).await.1;
    assert_eq!(
        reported("PUT", &format!("{path}/scale"), scale).await.1["spec"]["replicas"],
        4
    );
    let deployment = reported("GET", &path, Value::Null).await.1;
    assert_eq!(deployment["spec"]["replicas"], 4);
    assert_eq!(
        reported("PUT", &format!("{path}/status"), deployment).await.0,
        "/status"
    );
    let hpa = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let (warning, _) = reported(
        "POST",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        hpa,
    )
    .await;
    assert_eq!(warning, "/v1");
    let review = &hook.seen().pop().expect("a review").1["request"];
    assert_eq!(
        (&review["kind"]["version"], &review["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
    assert_eq!(review["object"]["apiVersion"], "autoscaling/v1");
}

#[tokio::test]
async fn a_dry_run_says_that_it_is_one() {
    let hook = Hook::start("127.0.0.1", |_, _| allowed()).await;
    let cluster = cluster();
    register(
        &cluster,
        "Validating",
        "v",
        hook.url("/v"),
        maps(&["CREATE"]),
        json!({}),
    )
    .await;
    let path = format!("{MAPS}?dryRun=All");
    assert_eq!(ask(&cluster, ADMIN, "POST", &path, &map("m")).await.0, 201);
    assert_eq!(hook.seen()[0].1["request"]["dryRun"], true);
}

#[tokio::test]
async fn webhooks_are_not_asked_about_their_own_configurations_and_see_no_lock() {
    let hook = Hook::start("127.0.0.1", |_, _| Answer::Response(json!({"allowed": false}))).await;
    let cluster = cluster();
    register(
        &cluster,
        "Validating",
        "v",
        hook.url("/v"),
        rule("*", "*", "*/*", &["*"]),
        json!({}),
    )
    .await;
    assert_eq!(ask(&cluster, ADMIN, "POST", MAPS, &map("m")).await.0, 400);
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/v";
    assert_eq!(ask(&cluster, ADMIN, "DELETE", path, &Value::Null).await.0, 200);
    assert_eq!(ask(&cluster, ADMIN, "POST", MAPS, &map("m")).await.0, 201);
}

#[tokio::test]
async fn a_write_that_was_overtaken_while_the_webhook_thought_is_made_and_judged_again() {
    let cluster = cluster();
    let other = cluster.clone();
    let hook = Hook::start("127.0.0.1", move |_, review| {
        let (old, new) = (&review["request"]["oldObject"], &review["request"]["object"]);
        if old["data"]["a"] != "1" || new["data"]["a"] == "2" {
            return allowed();
        }
        // Another client writes while this webhook has not yet responded.
        let other = other.clone();
        Answer::After(Box::pin(async move {
            let (code, _) = merge(&other, json!({"data": {"a": "2"}})).await;
            assert_eq!(code, 200);
        }))
    })
    .await;
    ask(&cluster, ADMIN, "POST", MAPS, &map("m")).await;
    let all = maps(&["UPDATE", "DELETE"]);
    register(&cluster, "Validating", "v", hook.url("/v"), all, json!({})).await;
    let (code, body) = merge(&cluster, json!({"data": {"b": "1"}})).await;
    assert_eq!((code, &body["data"]), (200, &json!({"a": "2", "b": "1"})));
    assert_eq!(
        hook.seen().len(),
        3,
        "the first write, the one between, the first again"
    );
    merge(&cluster, json!({"data": {"a": "1"}})).await;
    let (code, _) = ask(&cluster, ADMIN, "DELETE", &format!("{MAPS}/m"), &Value::Null).await;
    assert_eq!(code, 200);
    let last = &hook.seen().pop().expect("a review").1["request"];
    assert_eq!(
        (&last["operation"], &last["oldObject"]["data"]["a"]),
        (&json!("DELETE"), &json!("2"))
    );
}

async fn merge(cluster: &Cluster, patch: Value) -> (u16, Value) {
    let path = format!("{MAPS}/m");
    ask_as(
        cluster,
        ADMIN,
        "PATCH",
        &path,
        "application/merge-patch+json",
        &patch,
    )
    .await
}
