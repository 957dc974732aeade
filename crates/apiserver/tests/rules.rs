//! Behaviour of a kube-apiserver where a shortcut would be easy to take, tested as a client sees it.

mod common;

use entourage_apiserver::{Cluster, Options, StandIns};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn cluster() -> Cluster {
    Cluster::new(Options {
        admin_token: "admin".to_owned(),
        // It acts where a test starts the stand-in of workloads.
        stand_ins: StandIns {
            replica_sets: true,
            ..StandIns::default()
        },
        ..Options::default()
    })
}

/// The answer to a request of the admin: its code, its first warning, its body. A PATCH is a merge patch.
async fn whole(cluster: &Cluster, method: &str, path: &str, body: Value) -> (u16, String, Value) {
    let media = match (method, path.contains("fieldManager=")) {
        ("PATCH", true) => "application/apply-patch+yaml",
        ("PATCH", false) => "application/merge-patch+json",
        _ => "application/json",
    };
    common::whole(cluster, "admin", method, path, media, &body).await
}

async fn ask(cluster: &Cluster, method: &str, path: &str, body: Value) -> (u16, Value) {
    let (code, _, body) = whole(cluster, method, path, body).await;
    (code, body)
}

async fn make(cluster: &Cluster, path: &str, body: Value) -> Value {
    let (code, made) = ask(cluster, "POST", path, body).await;
    assert_eq!(code, 201, "{made}");
    made
}

/// Waits until a GET answers as wanted.
async fn until(cluster: &Cluster, path: &str, wanted: impl Fn(u16, &Value) -> bool) {
    common::until(cluster, "admin", path, wanted).await;
}

#[tokio::test]
async fn a_deletion_that_a_webhook_refuses_deletes_nothing() {
    let cluster = cluster();
    make(&cluster, MAPS, json!({"metadata": {"name": "kept"}})).await;
    let hook = json!({"metadata": {"name": "guard"}, "webhooks": [{
        "name": "guard.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}],
    }]});
    make(
        &cluster,
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        hook,
    )
    .await;
    let kept = format!("{MAPS}/kept");
    for body in [Value::Null, json!({}), json!({"propagationPolicy": "Background"})] {
        let (code, answer) = ask(&cluster, "DELETE", &kept, body).await;
        assert_eq!(code, 500, "{answer}");
        assert_eq!(ask(&cluster, "GET", &kept, Value::Null).await.0, 200);
    }
    let (code, _) = ask(
        &cluster,
        "DELETE",
        &kept,
        json!({"preconditions": {"uid": "other"}}),
    )
    .await;
    assert_eq!(code, 409, "what is wrong with the request is reported first");
    assert_eq!(
        ask(&cluster, "DELETE", &format!("{MAPS}/none"), json!({}))
            .await
            .0,
        404
    );
}

#[expect(clippy::needless_pass_by_value, reason = "literals read best as they are")]
fn crd(plural: &str, kind: &str, schema: Value) -> Value {
    json!({"metadata": {"name": format!("{plural}.t.example.com")},
        "spec": {"group": "t.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}})
}

/// A custom resource that keeps everything; answers the path of its collection in the default namespace.
async fn custom_resource(cluster: &Cluster, plural: &str, kind: &str, schema: Value) -> String {
    make(cluster, CRDS, crd(plural, kind, schema)).await;
    let path = format!("/apis/t.example.com/v1/namespaces/default/{plural}");
    until(cluster, &path, |code, _| code == 200).await;
    until(cluster, &format!("{CRDS}/{plural}.t.example.com"), |_, crd| {
        crd["status"]["conditions"][1]["status"] == "True"
    })
    .await;
    path
}

fn open() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn of(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "t.example.com/v1", "kind": kind, "metadata": {"name": name}})
}

fn owned_by(owner: &Value) -> Value {
    json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"]}])
}

#[tokio::test]
async fn dependents_of_the_objects_of_a_kind_go_with_the_kind() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    let owner = make(&cluster, &cups, of("Cup", "mine")).await;
    make(
        &cluster,
        MAPS,
        json!({"metadata": {"name": "saucer", "ownerReferences": owned_by(&owner)}}),
    )
    .await;
    let crd = format!("{CRDS}/cups.t.example.com");
    assert_eq!(ask(&cluster, "DELETE", &crd, Value::Null).await.0, 200);
    until(&cluster, &format!("{MAPS}/saucer"), |code, _| code == 404).await;
}

#[tokio::test]
async fn an_owner_of_a_kind_that_comes_later_is_looked_for_then() {
    let cluster = cluster();
    let owner =
        json!({"apiVersion": "t.example.com/v1", "kind": "Cup", "metadata": {"name": "ghost", "uid": "1"}});
    make(
        &cluster,
        MAPS,
        json!({"metadata": {"name": "saucer", "ownerReferences": owned_by(&owner)}}),
    )
    .await;
    custom_resource(&cluster, "cups", "Cup", open()).await;
    until(&cluster, &format!("{MAPS}/saucer"), |code, _| code == 404).await;
}

#[tokio::test]
async fn a_token_secret_that_somebody_holds_stays_without_its_account() {
    let cluster = cluster();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    make(&cluster, accounts, json!({"metadata": {"name": "robot"}})).await;
    let secret = json!({"type": "kubernetes.io/service-account-token", "metadata": {"name": "key",
        "finalizers": ["example.com/hold"], "annotations": {"kubernetes.io/service-account.name": "robot"}}});
    make(&cluster, "/api/v1/namespaces/default/secrets", secret).await;
    let path = "/api/v1/namespaces/default/secrets/key";
    until(&cluster, path, |_, secret| secret["data"]["token"].is_string()).await;
    ask(&cluster, "DELETE", &format!("{accounts}/robot"), Value::Null).await;
    until(&cluster, path, |_, secret| {
        secret["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    let released = json!({"metadata": {"finalizers": null}});
    assert_eq!(ask(&cluster, "PATCH", path, released).await.0, 200);
    assert_eq!(ask(&cluster, "GET", path, Value::Null).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_create_by_apply_or_put_the_later_one_changes() {
    let cluster = cluster();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for round in 0..150 {
        let mut tasks = tokio::task::JoinSet::new();
        for who in 0..4 {
            let cluster = cluster.clone();
            tasks.spawn(async move {
                let name = format!("n{round}");
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                    "data": {format!("k{who}"): "v"}});
                let path = format!("{MAPS}/{name}?fieldManager=m{who}");
                let applied = ask(&cluster, "PATCH", &path, map).await;
                let put = ask(
                    &cluster,
                    "PUT",
                    &format!("{leases}/{name}"),
                    json!({"metadata": {"name": name}}),
                )
                .await;
                [applied, put]
            });
        }
        for (code, body) in tasks.join_all().await.into_iter().flatten() {
            assert!(matches!(code, 200 | 201), "{body}");
        }
        let (_, map) = ask(&cluster, "GET", &format!("{MAPS}/n{round}"), Value::Null).await;
        assert_eq!(
            map["data"].as_object().map(serde_json::Map::len),
            Some(4),
            "{map}"
        );
    }
}

fn bounded() -> Value {
    json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "!has(self.status) || self.status.used <= self.spec.most", "message": "more is used than there may be"},
        {"rule": "!has(self.status) || !has(oldSelf.status) || self.status.used >= oldSelf.status.used", "message": "less is used than before"}],
        "required": ["spec"], "properties": {
            "spec": {"type": "object", "required": ["most"], "properties": {"most": {"type": "integer"}}},
            "status": {"type": "object", "required": ["used"], "properties": {"used": {"type": "integer"},
                "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}}})
}

#[tokio::test]
async fn rules_of_the_whole_object_hold_for_its_status_too() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", bounded()).await;
    let mut cup = of("Cup", "mine");
    cup["spec"] = json!({"most": 3});
    make(&cluster, &cups, cup).await;
    let status = format!("{cups}/mine/status");
    for (used, wanted, message) in [
        (4, 422, "more is used than there may be"),
        (2, 200, ""),
        (1, 422, "less is used than before"),
        (3, 200, ""),
    ] {
        let (code, answer) = ask(&cluster, "PATCH", &status, json!({"status": {"used": used}})).await;
        assert_eq!(code, wanted, "{used}: {answer}");
        assert!(answer.to_string().contains(message), "{answer}");
    }
}

#[tokio::test]
async fn what_was_twice_in_a_set_before_it_was_one_may_stay() {
    let cluster = cluster();
    let mut schema = bounded();
    let list = |schema: &mut Value, kind: &str| {
        schema["properties"]["status"]["properties"]["names"]["x-kubernetes-list-type"] = json!(kind);
        schema["properties"]["spec"]["properties"]["names"] =
            schema["properties"]["status"]["properties"]["names"].clone();
    };
    list(&mut schema, "atomic");
    let cups = custom_resource(&cluster, "cups", "Cup", schema.clone()).await;
    let mut cup = of("Cup", "mine");
    cup["spec"] = json!({"most": 9, "names": ["a", "a"]});
    make(&cluster, &cups, cup.clone()).await;
    let (path, status) = (format!("{cups}/mine"), format!("{cups}/mine/status"));
    let twice = json!({"status": {"used": 1, "names": ["a", "a"]}});
    assert_eq!(ask(&cluster, "PATCH", &status, twice).await.0, 200);
    list(&mut schema, "set");
    let change = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true,
        "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}});
    let (code, answer) = ask(&cluster, "PATCH", &format!("{CRDS}/cups.t.example.com"), change).await;
    assert_eq!(code, 200, "{answer}");
    // Served when a new object is held to it.
    cup["metadata"]["name"] = json!("other");
    while ask(&cluster, "POST", &format!("{cups}?dryRun=All"), cup.clone())
        .await
        .0
        == 201
    {
        tokio::task::yield_now().await;
    }
    for (path, change) in [
        (&path, json!({"spec": {"most": 8}})),
        (&path, json!({"metadata": {"labels": {"a": "b"}}})),
        (&status, json!({"status": {"used": 2}})),
    ] {
        let (code, answer) = ask(&cluster, "PATCH", path, change).await;
        assert_eq!(code, 200, "{answer}");
    }
}

#[tokio::test]
async fn an_apply_that_is_wrong_all_over_is_reported_in_a_few_words() {
    let cluster = cluster();
    let path = format!("{MAPS}/m?fieldManager=me");
    let data: serde_json::Map<String, Value> =
        (0..20_000).map(|at| (format!("key-{at}"), json!(at))).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let long = "x".repeat(100_000);
    for (field, value) in [("data", json!(data)), (long.as_str(), json!(1))] {
        let mut map = map.clone();
        map[field] = value.clone();
        let (code, answer) = ask(&cluster, "PATCH", &path, map.clone()).await;
        assert_eq!(code, 500);
        assert!(
            answer.to_string().len() < 64 << 10,
            "{}",
            answer.to_string().len()
        );
    }
}

fn stood_in(cluster: &Cluster) {
    entourage_apiserver::workloads::start(cluster, entourage_apiserver::workloads::Stages::default());
}

fn replica_set(name: &str, replicas: u64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

#[tokio::test]
async fn what_was_refused_to_a_workload_is_tried_again() {
    let cluster = cluster();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    make(
        &cluster,
        quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}),
    )
    .await;
    let status = json!({"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}});
    assert_eq!(
        ask(&cluster, "PATCH", &format!("{quotas}/q/status"), status)
            .await
            .0,
        200
    );
    stood_in(&cluster);
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    make(&cluster, sets, replica_set("web", 3)).await;
    until(&cluster, &format!("{sets}/web"), |_, set| {
        set["status"]["readyReplicas"] == 1
    })
    .await;
    assert_eq!(
        ask(&cluster, "DELETE", &format!("{quotas}/q"), Value::Null)
            .await
            .0,
        200
    );
    until(&cluster, &format!("{sets}/web"), |_, set| {
        set["status"]["readyReplicas"] == 3
    })
    .await;
}

#[tokio::test]
async fn objects_of_a_crd_that_serves_no_version_go_with_it() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    make(&cluster, &cups, of("Cup", "mine")).await;
    let mut held = of("Cup", "held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    held["extra"] = json!({"kept": true});
    make(&cluster, &cups, held).await;
    let crd_path = format!("{CRDS}/cups.t.example.com");
    let hidden = json!({"spec": {"versions": [{"name": "v1", "served": false, "storage": true,
        "schema": {"openAPIV3Schema": open()}}]}});
    assert_eq!(ask(&cluster, "PATCH", &crd_path, hidden).await.0, 200);
    until(&cluster, &cups, |code, _| code == 404).await;
    assert_eq!(ask(&cluster, "DELETE", &crd_path, Value::Null).await.0, 200);
    let store = cluster.store();
    let collection = "t.example.com/cups";
    until(&cluster, &crd_path, |_, crd| {
        crd.to_string().contains("InstanceDeletionInProgress")
    })
    .await;
    let left = store.list(collection, "", None, 0).entries;
    assert_eq!(left.len(), 1);
    let text = String::from_utf8_lossy(&left[0].object).into_owned();
    assert!(
        text.contains("deletionTimestamp") && text.contains("kept"),
        "{text}"
    );
    // As if its owner had removed the finalizer.
    store
        .delete(collection, &left[0].key, left[0].revision, |_| {
            left[0].object.clone()
        })
        .expect("there");
    until(&cluster, &crd_path, |code, _| code == 404).await;
}

#[tokio::test]
async fn objects_that_hold_up_a_crd_are_asked_to_go_once() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    let mut held = of("Cup", "held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    make(&cluster, &cups, held).await;
    let crd_path = format!("{CRDS}/cups.t.example.com");
    assert_eq!(ask(&cluster, "DELETE", &crd_path, Value::Null).await.0, 200);
    let path = format!("{cups}/held");
    until(&cluster, &path, |_, cup| {
        cup["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    let (code, _) = ask(
        &cluster,
        "PATCH",
        &path,
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    assert_eq!(code, 200);
    until(&cluster, &crd_path, |code, _| code == 404).await;
}

#[tokio::test]
async fn the_status_of_a_workload_changes_neither_its_labels_nor_its_owners() {
    let cluster = cluster();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let mut deployment = replica_set("web", 1);
    deployment["metadata"]["labels"] = json!({"kept": "yes"});
    make(&cluster, deployments, deployment).await;
    let change = json!({"metadata": {"labels": {"kept": "no", "new": "yes"}, "annotations": {"a": "b"}},
        "status": {"observedGeneration": 1}});
    let (code, answer) = ask(&cluster, "PATCH", &format!("{deployments}/web/status"), change).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["metadata"]["labels"], json!({"kept": "yes"}));
    assert_eq!(answer["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(answer["metadata"]["generation"], 1);
    let scale = json!({"spec": {"replicas": 2}});
    assert_eq!(
        ask(&cluster, "PATCH", &format!("{deployments}/web/scale"), scale)
            .await
            .0,
        200
    );
    let (_, answer) = ask(&cluster, "GET", &format!("{deployments}/web"), Value::Null).await;
    assert_eq!(answer["metadata"]["generation"], 2);

    let pods = "/api/v1/namespaces/default/pods";
    let owner = make(
        &cluster,
        MAPS,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}}),
    )
    .await;
    let pod = json!({"metadata": {"name": "p", "ownerReferences": owned_by(&owner)},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    make(&cluster, pods, pod).await;
    let change = json!({"metadata": {"ownerReferences": null}, "status": {"message": "m"}});
    let (code, answer) = ask(&cluster, "PATCH", &format!("{pods}/p/status"), change).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["metadata"]["ownerReferences"], owned_by(&owner));
}

#[tokio::test]
async fn the_status_of_some_kinds_changes_no_metadata_of_users() {
    let cluster = cluster();
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let schema = json!({"metadata": {"name": "own", "labels": {"kept": "yes"}},
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}}});
    make(&cluster, schemas, schema).await;
    let change = json!({"metadata": {"labels": {"kept": "no"}, "annotations": {"a": "b"}, "finalizers": ["example.com/f"]},
        "status": {"conditions": [{"type": "Dangling", "status": "False"}]}});
    let (code, answer) = ask(&cluster, "PATCH", &format!("{schemas}/own/status"), change).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["metadata"]["labels"], json!({"kept": "yes"}));
    assert!(answer["metadata"]["annotations"].is_null() && answer["metadata"]["finalizers"].is_null());
    assert_eq!(answer["status"]["conditions"][0]["type"], "Dangling");
}

#[tokio::test]
async fn a_crd_does_not_replace_a_built_in_kind() {
    let cluster = cluster();
    let name = "roles.rbac.authorization.k8s.io";
    let crd = json!({"metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": "rbac.authorization.k8s.io", "scope": "Namespaced", "names": {"plural": "roles", "kind": "Mole"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": open()}}]}});
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    make(
        &cluster,
        roles,
        json!({"metadata": {"name": "reader"}, "rules": []}),
    )
    .await;
    make(&cluster, CRDS, crd).await;
    let path = format!("{CRDS}/{name}");
    until(&cluster, &path, |_, crd| {
        crd["status"]["conditions"][1]["status"] == "True"
    })
    .await;
    let (_, list) = ask(&cluster, "GET", roles, Value::Null).await;
    assert_eq!(list["kind"], "RoleList");
    assert_eq!(ask(&cluster, "DELETE", &path, Value::Null).await.0, 200);
    until(&cluster, &path, |code, _| code == 404).await;
    assert_eq!(
        ask(&cluster, "GET", &format!("{roles}/reader"), Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn a_mutating_policy_does_not_write_the_status_of_an_object() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    let policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let policy = json!({"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["t.example.com"], "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"], "resources": ["cups"]}]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
            "[JSONPatch{op: 'add', path: '/status', value: {'used': 1}}, JSONPatch{op: 'add', path: '/seen', value: true}]"}}]}});
    make(&cluster, policies, policy).await;
    make(
        &cluster,
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}}),
    )
    .await;
    let made = make(&cluster, &cups, of("Cup", "mine")).await;
    assert_eq!((&made["seen"], &made["status"]), (&json!(true), &Value::Null));
    let (code, made) = ask(&cluster, "PATCH", &format!("{cups}/mine"), json!({"other": 1})).await;
    assert_eq!(
        (code, &made["other"], &made["status"]),
        (200, &json!(1), &Value::Null)
    );
}

#[tokio::test]
async fn a_policy_that_only_warns_of_a_deletion_is_observed() {
    let cluster = cluster();
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""],
        "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "false", "message": "a pity"}]}});
    make(
        &cluster,
        &format!("{admission}/validatingadmissionpolicies"),
        policy,
    )
    .await;
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Warn"]}});
    make(
        &cluster,
        &format!("{admission}/validatingadmissionpolicybindings"),
        binding,
    )
    .await;
    make(&cluster, MAPS, json!({"metadata": {"name": "m"}})).await;
    let (code, warning, _) = whole(&cluster, "DELETE", &format!("{MAPS}/m"), Value::Null).await;
    assert_eq!(code, 200);
    assert!(warning.contains("a pity"), "{warning}");
}

#[tokio::test]
async fn a_finalizer_of_one_word_on_a_custom_resource_is_warned_of_once() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    let mut cup = of("Cup", "mine");
    cup["metadata"]["finalizers"] = json!(["hold"]);
    let (code, warning, _) = whole(&cluster, "POST", &cups, cup).await;
    assert_eq!(code, 201);
    assert!(
        warning.contains("prefer a domain-qualified finalizer name"),
        "{warning}"
    );
    let path = format!("{cups}/mine");
    let (_, warning, _) = whole(&cluster, "PATCH", &path, json!({"a": 1})).await;
    assert_eq!(warning, "");
    let more = json!({"metadata": {"finalizers": ["hold", "example.com/hold"]}});
    let (_, warning, _) = whole(&cluster, "PATCH", &path, more).await;
    assert_eq!(warning, "");
}

#[tokio::test]
async fn a_custom_resource_that_is_too_large_as_it_is_stored_is_refused() {
    let cluster = cluster();
    let cups = custom_resource(&cluster, "cups", "Cup", open()).await;
    let mut cup = of("Cup", "mine");
    cup["text"] = json!("<".repeat(300_000));
    let (code, answer) = ask(&cluster, "POST", &cups, cup.clone()).await;
    assert_eq!(
        (code, &answer["message"]),
        (500, &json!("etcdserver: request is too large"))
    );
    cup["text"] = json!("x".repeat(300_000));
    make(&cluster, &cups, cup).await;
}

#[tokio::test]
async fn metadata_of_embedded_objects_is_validated_as_that_of_any_object() {
    let cluster = cluster();
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "one": embedded, "many": {"type": "array", "items": embedded}}}}});
    let cups = custom_resource(&cluster, "cups", "Cup", schema).await;
    let inner = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    let cup = |spec: Value| {
        let mut cup = of("Cup", "mine");
        cup["spec"] = spec;
        cup
    };
    for (metadata, field, says) in [
        (
            json!({"name": "a/b"}),
            "name",
            "Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            json!({"name": ".."}),
            "name",
            "Invalid value: \"..\": may not be '..'",
        ),
        (
            json!({"generateName": "a%"}),
            "generateName",
            "Invalid value: \"a%\": may not contain '%'",
        ),
        (
            json!({"namespace": "A"}),
            "namespace",
            "Invalid value: \"A\": a lowercase RFC 1123 label",
        ),
        (
            json!({"labels": {"a b": "c"}}),
            "labels",
            "Invalid value: \"a b\": name part must consist of",
        ),
        (
            json!({"labels": {"a": "b c"}}),
            "labels",
            "Invalid value: \"b c\": a valid label must be",
        ),
        (
            json!({"annotations": {"/": "c"}}),
            "annotations",
            "Invalid value: \"/\": prefix part must be non-empty",
        ),
        (
            json!({"finalizers": ["a b"]}),
            "finalizers",
            "Invalid value: \"a b\": name part must consist of",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]}),
            "ownerReferences.uid",
            "Invalid value: \"\": must not be empty",
        ),
        (
            json!({"generation": -1}),
            "generation",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
    ] {
        for (spec, path) in [
            (json!({"one": inner(metadata.clone())}), "spec.one"),
            (
                json!({"many": [inner(json!({})), inner(metadata.clone())]}),
                "spec.many[1]",
            ),
        ] {
            let (code, reported) = ask(&cluster, "POST", &cups, cup(spec)).await;
            assert_eq!(code, 422, "{reported}");
            let causes = reported["details"]["causes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let cause = causes
                .iter()
                .find(|cause| cause["field"] == format!("{path}.metadata.{field}"));
            let text = cause.map(|cause| cause["message"].to_string().replace("\\\"", "\""));
            assert!(
                text.as_ref().is_some_and(|text| text.contains(says)),
                "{metadata}: {reported}"
            );
        }
    }
    // Names are those of any kind, and neither name nor namespace must be there.
    for metadata in [
        json!({"name": "Not_Valid", "namespace": "team", "labels": {"a": "b"}}),
        json!({}),
        json!(null),
    ] {
        let (code, reported) = ask(
            &cluster,
            "POST",
            &format!("{cups}?dryRun=All"),
            cup(json!({"one": inner(metadata)})),
        )
        .await;
        assert_eq!(code, 201, "{reported}");
    }
    // An update is checked like a create, what was there before included.
    make(&cluster, &cups, cup(json!({"one": inner(json!({"name": "a"}))}))).await;
    let worse = json!({"spec": {"one": {"metadata": {"labels": {"a": "b c"}}}}});
    let (code, reported) = ask(&cluster, "PATCH", &format!("{cups}/mine"), worse).await;
    assert_eq!(code, 422, "{reported}");
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_default_one() {
    const CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
    const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let cluster = cluster();
    let ingress = |metadata: Value, class: Value| {
        let mut spec = json!({"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}});
        if class.is_string() {
            spec["ingressClassName"] = class;
        }
        json!({"metadata": metadata, "spec": spec})
    };
    let old = json!({"kubernetes.io/ingress.class": "old"});
    make(
        &cluster,
        INGRESSES,
        ingress(json!({"name": "before"}), Value::Null),
    )
    .await;
    for (name, is_default) in [("b", "true"), ("a", "true"), ("0", "false")] {
        let annotations = json!({"ingressclass.kubernetes.io/is-default-class": is_default});
        let class = json!({"metadata": {"name": name, "annotations": annotations},
            "spec": {"controller": "example.com/ingress"}});
        make(&cluster, CLASSES, class).await;
    }
    make(
        &cluster,
        INGRESSES,
        ingress(json!({"name": "without"}), Value::Null),
    )
    .await;
    make(&cluster, INGRESSES, ingress(json!({"name": "with"}), json!("0"))).await;
    make(
        &cluster,
        INGRESSES,
        ingress(json!({"name": "annotated", "annotations": old}), Value::Null),
    )
    .await;
    for (name, class) in [
        ("before", Value::Null),
        ("with", json!("0")),
        ("annotated", Value::Null),
    ] {
        let (_, made) = ask(&cluster, "GET", &format!("{INGRESSES}/{name}"), Value::Null).await;
        assert_eq!(made["spec"]["ingressClassName"], class, "{name}");
    }
    // Of two the newer one, and of the same second the first by name.
    let (_, made) = ask(&cluster, "GET", &format!("{INGRESSES}/without"), Value::Null).await;
    let class = made["spec"]["ingressClassName"].as_str();
    assert!(matches!(class, Some("a")), "{made}");
}

#[tokio::test]
async fn a_negative_grace_period_is_one_second() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let cluster = cluster();
    let spec = json!({"nodeName": "node", "containers": [{"name": "a", "image": "a"}]});
    make(&cluster, PODS, json!({"metadata": {"name": "a"}, "spec": spec})).await;
    let path = format!("{PODS}/a");
    for (asked, given) in [(30, 30), (-1, 1), (-5, 1)] {
        let (code, answer) = ask(&cluster, "DELETE", &path, json!({"gracePeriodSeconds": asked})).await;
        assert_eq!(code, 200, "{answer}");
        let (code, pod) = ask(&cluster, "GET", &path, Value::Null).await;
        assert_eq!(code, 200, "{pod}");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], given, "{asked}");
    }
}

#[tokio::test]
async fn an_object_has_the_defaults_of_the_version_that_it_is_stored_as() {
    let cluster = cluster();
    let version = |name: &str, stored: bool, own: Value| {
        let mut fields = json!({"keep": {"type": "string"}});
        fields[if stored { "old" } else { "new" }] = own;
        let spec = json!({"type": "object", "properties": fields});
        json!({"name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let mut rings = crd("rings", "Ring", open());
    rings["spec"]["versions"] = json!([
        version("v1", true, json!({"type": "string"})),
        version("v2", false, json!({"type": "string", "default": "n"})),
    ]);
    make(&cluster, CRDS, rings).await;
    let paths = ["v1", "v2"].map(|version| format!("/apis/t.example.com/{version}/namespaces/default/rings"));
    for path in &paths {
        until(&cluster, path, |code, _| code == 200).await;
    }
    let mut ring = of("Ring", "a");
    ring["spec"] = json!({"keep": "k", "old": "o"});
    make(&cluster, &paths[0], ring).await;
    let one = format!("{}/a", paths[1]);
    let (_, shown) = ask(&cluster, "GET", &one, Value::Null).await;
    assert_eq!(shown["spec"], json!({"keep": "k"}));
    assert_eq!(
        shown["metadata"]["managedFields"][0]["apiVersion"],
        "t.example.com/v1"
    );
    // The default of v2 is no field of v1: who owned what cannot be told any more.
    let (code, changed) = ask(&cluster, "PATCH", &one, json!({"spec": {"keep": "l"}})).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(changed["spec"], json!({"keep": "l"}));
    assert_eq!(changed["metadata"]["managedFields"], Value::Null);
}

#[tokio::test]
async fn a_deletion_has_its_preconditions_from_the_query_too() {
    let cluster = cluster();
    make(&cluster, MAPS, json!({"metadata": {"name": "a"}})).await;
    for query in ["resourceVersion=0", "uid=other"] {
        let (code, answer) = ask(&cluster, "DELETE", &format!("{MAPS}/a?{query}"), Value::Null).await;
        assert_eq!(code, 409, "{query}: {answer}");
    }
    assert_eq!(
        ask(&cluster, "DELETE", &format!("{MAPS}?uid="), Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn swagger_says_nothing_of_the_fields_of_a_custom_resource_that_keeps_unknown_ones() {
    let cluster = cluster();
    custom_resource(&cluster, "opens", "Open", open()).await;
    let name = "com.example.t.v1.Open";
    until(&cluster, "/openapi/v2", |_, document| {
        document["definitions"][name].is_object()
    })
    .await;
    let (_, document) = ask(&cluster, "GET", "/openapi/v2", Value::Null).await;
    // kubectl before 1.25 would refuse each field that is not named, and it is named by nobody.
    let kind = json!([{"group": "t.example.com", "version": "v1", "kind": "Open"}]);
    assert_eq!(
        document["definitions"][name],
        json!({"type": "object", "x-kubernetes-group-version-kind": kind})
    );
}
