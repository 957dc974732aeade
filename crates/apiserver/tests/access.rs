//! Authorization of requests.

mod common;

use common::{ask, ask_as};
use entourage_apiserver::{Cluster, Options, User};
use serde_json::{Value, json};

const ADMIN: &str = "the-admin";
const JANE: &str = "jane-token";
const JOHN: &str = "john-token";

/// A cluster in which jane may do `verbs` with `resources` of `group`, and john as well, and create them, too.
async fn cluster(group: &str, resources: &[&str], verbs: &[&str]) -> Cluster {
    let cluster = Cluster::new(Options {
        admin_token: ADMIN.to_owned(),
        tokens: vec![
            (JANE.to_owned(), User::new("jane", &[])),
            (JOHN.to_owned(), User::new("john", &[])),
        ],
        ..Options::default()
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (user, more) in [("jane", None), ("john", Some("create"))] {
        let verbs: Vec<&str> = verbs.iter().copied().chain(more).collect();
        let role = json!({"metadata": {"name": user},
            "rules": [{"apiGroups": [group], "resources": resources, "verbs": verbs}]});
        let binding = json!({"metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
        for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let (code, made) = ask(&cluster, ADMIN, "POST", &format!("{rbac}/{plural}"), &object).await;
            assert_eq!(code, 201, "{made}");
        }
    }
    cluster
}

/// Serves `foos.example.com`.
async fn serve_foos(cluster: &Cluster) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"metadata": {"name": "foos.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, made) = ask(cluster, ADMIN, "POST", path, &crd).await;
    assert_eq!(code, 201, "{made}");
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    while ask(cluster, ADMIN, "GET", foos, &Value::Null).await.0 != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_may_only_watch_can_neither_create_nor_delete_by_the_old_watch_paths() {
    let cluster = cluster("example.com", &["foos"], &["watch"]).await;
    serve_foos(&cluster).await;
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}});
    assert_eq!(ask(&cluster, ADMIN, "POST", foos, &foo).await.0, 201);
    let watch = "/apis/example.com/v1/watch/namespaces/default/foos";
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for path in [watch.to_owned(), format!("{watch}/x")] {
            let (code, answer) = ask(&cluster, JANE, method, &path, &foo).await;
            assert_eq!(code, 405, "{method} {path}: {answer}");
        }
    }
    assert_eq!(
        ask(&cluster, ADMIN, "GET", &format!("{foos}/x"), &Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn who_may_only_update_and_patch_cannot_create_by_them() {
    let resources = ["leases", "foos"];
    for group in ["coordination.k8s.io", "example.com"] {
        let cluster = cluster(group, &resources, &["get", "update", "patch"]).await;
        serve_foos(&cluster).await;
        let (plural, kind) = if group == "example.com" {
            ("foos", "Foo")
        } else {
            ("leases", "Lease")
        };
        let path = format!("/apis/{group}/v1/namespaces/default/{plural}/x");
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "x"}});
        let apply = format!("{path}?fieldManager=m");
        let yaml = "application/apply-patch+yaml";
        for dry in ["", "&dryRun=All"] {
            let path = format!("{apply}{dry}");
            let (code, answer) = ask_as(&cluster, JANE, "PATCH", &path, yaml, &object).await;
            assert_eq!(code, 403, "{answer}");
            assert_eq!(
                answer["message"],
                format!("{plural}.{group} \"x\" is forbidden: ")
            );
        }
        if kind == "Lease" {
            let (code, answer) = ask(&cluster, JANE, "PUT", &path, &object).await;
            assert_eq!(code, 403, "{answer}");
        }
        assert_eq!(ask(&cluster, ADMIN, "GET", &path, &Value::Null).await.0, 404);
        let (code, answer) = ask_as(&cluster, JOHN, "PATCH", &apply, yaml, &object).await;
        assert_eq!(code, 201, "{answer}");
        let (code, answer) = ask_as(&cluster, JANE, "PATCH", &apply, yaml, &object).await;
        assert_eq!(code, 200, "what is there may be changed: {answer}");
    }
}

#[tokio::test]
async fn a_review_tells_for_which_of_the_audiences_a_token_is_good() {
    let cluster = cluster("", &["pods"], &["get"]).await;
    let review = "/apis/authentication.k8s.io/v1/tokenreviews";
    let account = "/api/v1/namespaces/default/serviceaccounts";
    ask(
        &cluster,
        ADMIN,
        "POST",
        account,
        &json!({"metadata": {"name": "robot"}}),
    )
    .await;
    let path = format!("{account}/robot/token");
    let spec = json!({"spec": {"audiences": ["a", "b"]}});
    let (code, made) = ask(&cluster, ADMIN, "POST", &path, &spec).await;
    assert_eq!(code, 201, "{made}");
    let robot = made["status"]["token"].as_str().expect("a token").to_owned();
    let server = "https://kubernetes.default.svc";
    // Token, audiences asked for, those it is good for: none, and it is good for nothing.
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (&robot, &["c", "b"], &["b"]),
        (&robot, &["c"], &[]),
        (&robot, &[], &[]),
        (JANE, &[], &[server]),
        (JANE, &["other", server], &[server]),
        (JANE, &["other"], &[]),
    ];
    for (token, asked, good) in cases {
        let spec = json!({"spec": {"token": token, "audiences": asked}});
        let (code, answer) = ask(&cluster, ADMIN, "POST", review, &spec).await;
        assert_eq!(code, 201, "{answer}");
        let status = &answer["status"];
        assert_eq!(status["authenticated"] == true, !good.is_empty(), "{asked:?}");
        let reported = status["audiences"].as_array().cloned().unwrap_or_default();
        assert_eq!(reported, good, "{asked:?}");
    }
}

#[tokio::test]
async fn a_role_made_of_others_grants_what_they_grant() {
    let cluster = cluster("", &["pods"], &["get"]).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    serve_foos(&cluster).await;
    let binding = json!({"metadata": {"name": "editor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    let path = format!("{rbac}/clusterrolebindings");
    assert_eq!(ask(&cluster, ADMIN, "POST", &path, &binding).await.0, 201);
    assert_eq!(ask(&cluster, JANE, "GET", foos, &Value::Null).await.0, 403);
    // What people may view those may who edit.
    let role = json!({"metadata": {"name": "foos", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["foos"], "verbs": ["list"]}]});
    let roles = format!("{rbac}/clusterroles");
    assert_eq!(ask(&cluster, ADMIN, "POST", &roles, &role).await.0, 201);
    let until = async |code: u16| {
        while ask(&cluster, JANE, "GET", foos, &Value::Null).await.0 != code {
            tokio::task::yield_now().await;
        }
    };
    until(200).await;
    let path = format!("{roles}/foos");
    assert_eq!(ask(&cluster, ADMIN, "DELETE", &path, &Value::Null).await.0, 200);
    until(403).await;
}

#[tokio::test]
async fn the_roles_that_a_cluster_begins_with_are_what_their_controller_would_make_of_them() {
    let cluster = cluster("", &["pods"], &["get"]).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    // The controller was at work when this one has its rules.
    let other = json!({"metadata": {"name": "other"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]}});
    assert_eq!(ask(&cluster, ADMIN, "POST", roles, &other).await.0, 201);
    loop {
        let (_, other) = ask(&cluster, ADMIN, "GET", &format!("{roles}/other"), &Value::Null).await;
        if other["rules"].as_array().is_some_and(|rules| !rules.is_empty()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    for name in ["admin", "edit", "view"] {
        let (_, role) = ask(&cluster, ADMIN, "GET", &format!("{roles}/{name}"), &Value::Null).await;
        assert_eq!(
            role["metadata"]["managedFields"],
            Value::Null,
            "{name} was written again"
        );
        assert!(role["aggregationRule"].is_object());
    }
}

#[tokio::test]
async fn nobody_gets_more_by_roles_that_aggregate_others() {
    let group = "rbac.authorization.k8s.io";
    let cluster = cluster(group, &["clusterroles"], &["get", "update", "patch"]).await;
    let roles = format!("/apis/{group}/v1/clusterroles");
    let role = json!({"metadata": {"name": "mine"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let (code, answer) = ask(&cluster, JOHN, "POST", &roles, &role).await;
    assert_eq!(code, 403, "{answer}");
    assert_eq!(
        answer["message"],
        "clusterroles.rbac.authorization.k8s.io \"mine\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
    );
    assert_eq!(ask(&cluster, ADMIN, "POST", &roles, &role).await.0, 201);
    // Nor by a label that makes another role part of one's own.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let merge = "application/merge-patch+json";
    for name in ["cluster-admin", "mine"] {
        let path = format!("{roles}/{name}");
        assert_eq!(
            ask_as(&cluster, JANE, "PATCH", &path, merge, &label).await.0,
            403,
            "{name}"
        );
    }
    let path = format!("{roles}/jane");
    let (code, answer) = ask_as(&cluster, JANE, "PATCH", &path, merge, &label).await;
    assert_eq!(code, 200, "what one has may be given: {answer}");
}
