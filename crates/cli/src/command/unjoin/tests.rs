//! Unjoins against in-memory servers.

use serde_json::json;

use super::*;
use crate::{
    command::{Cli, Command},
    mock::Server,
};

const CLUSTER_PATH: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";
const SECRET_PATH: &str = "/api/v1/namespaces/karmada-cluster/secrets/m1";

fn args(line: &str) -> UnjoinArgs {
    use clap::Parser as _;
    let line = format!("entourage unjoin {line}");
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Unjoin(args) => args,
        other => panic!("{other:?}"),
    }
}

/// A hub with the member m1.
fn hub() -> Server {
    let hub = Server::new("hub-id");
    hub.put(
        CLUSTER_PATH,
        json!({
            "metadata": {"name": "m1", "uid": "u1", "finalizers": ["karmada.io/cluster-controller"]},
            "spec": {"id": "member-id"},
        }),
    );
    let labels = json!({"app.kubernetes.io/managed-by": "entourage"});
    hub.put(SECRET_PATH, json!({"metadata": {"name": "m1", "labels": labels}}));
    let binding = json!({
        "metadata": {"name": "web-deployment", "namespace": "shop"},
        "spec": {"resource": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "clusters": [{"name": "m1"}]},
    });
    hub.put(
        "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment",
        binding,
    );
    let binding = json!({
        "metadata": {"name": "cfg-configmap", "namespace": "shop"},
        "spec": {
            "resource": {"kind": "ConfigMap", "namespace": "shop", "name": "cfg"},
            "requiredBy": [{"name": "web-deployment", "clusters": [{"name": "m1"}]}],
        },
    });
    hub.put(
        "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/cfg-configmap",
        binding,
    );
    hub
}

/// The same with controllers that remove the finalizer of a deleted Cluster.
fn hub_with_controllers() -> Server {
    hub().reacting(|_, path, objects| {
        if objects
            .get(path)
            .is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string())
        {
            objects.remove(path);
        }
    })
}

async fn unjoined(line: &str, hub: &Server, member: Option<&Server>) -> (Result<()>, String) {
    let mut out = Vec::new();
    let done = unjoin(&args(line), hub.client(), member.map(Server::client), &mut out).await;
    (done, String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn copies_stay_and_cluster_secret_and_account_go() {
    let (hub, member) = (hub_with_controllers(), Server::new("member-id"));
    member.put(
        "/api/v1/namespaces/karmada-cluster/serviceaccounts/entourage-hub",
        json!({"metadata": {}}),
    );
    let (done, out) = unjoined("m1", &hub, Some(&member)).await;
    done.unwrap();
    assert!(
        out.contains("m1 deleted: resources are kept; ownership metadata is removed"),
        "{out}"
    );
    assert!(out.contains("hub: secret/m1 deleted"), "{out}");
    assert!(
        out.contains("member: serviceaccount/entourage-hub deleted"),
        "{out}"
    );
    assert_eq!((hub.object(CLUSTER_PATH), hub.object(SECRET_PATH)), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_annotation_is_on_the_cluster_before_it_is_deleted() {
    for (line, on_unjoin) in [("m1", "Release"), ("m1 --remove-copies", "Remove")] {
        let hub = hub();
        let (done, _) = unjoined(line, &hub, None).await;
        let error = format!("{:#}", done.unwrap_err());
        assert!(
            error.contains("karmada.io/cluster-controller") && error.contains("--force"),
            "{error}"
        );
        let cluster = hub.object(CLUSTER_PATH).unwrap();
        assert_eq!(
            cluster["metadata"]["annotations"]["entourage.dev/on-unjoin"],
            on_unjoin
        );
        assert_eq!(
            hub.take_writes(),
            [format!("PATCH {CLUSTER_PATH}"), format!("DELETE {CLUSTER_PATH}")]
        );
        assert!(
            hub.object(SECRET_PATH).is_some(),
            "the controllers still need the credentials"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_a_member_is_reported_with_the_way_out() {
    let hub = hub();
    let (done, _) = unjoined("m1", &hub, None).await;
    let error = format!("{:#}", done.unwrap_err());
    let copies = "Copies that may exist there: ConfigMap shop/cfg, Deployment shop/web";
    assert!(
        error.contains("the member does not respond") && error.ends_with(copies),
        "{error}"
    );

    let hub = self::hub();
    let mut cluster = hub.object(CLUSTER_PATH).unwrap();
    let why = "copies may exist on m1 of kinds that the joined account may no longer list and watch: networking.k8s.io/v1 NetworkPolicy: `entourage join m1 --allow \
               networking.k8s.io/networkpolicies`";
    cluster["status"] = json!({"conditions": [
        {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": ""},
        {"type": "Released", "status": "False", "reason": "RightsMissing", "message": why},
    ]});
    hub.put(CLUSTER_PATH, cluster);
    let (done, _) = unjoined("m1", &hub, None).await;
    let error = format!("{:#}", done.unwrap_err());
    assert!(
        error.ends_with(why) && !error.contains("does not respond"),
        "{error}"
    );
}

#[tokio::test]
async fn force_gives_the_member_up_and_says_what_stays_there() {
    let hub = hub();
    let (done, out) = unjoined("m1 --force", &hub, None).await;
    done.unwrap();
    assert_eq!(hub.object(CLUSTER_PATH), None);
    let left = "copies that are kept on m1, with ownership metadata: 2\n  ConfigMap shop/cfg\n  Deployment \
        shop/web\n";
    assert!(out.contains(left), "{out}");
    let kept = "note: the member keeps the serviceaccount karmada-cluster/entourage-hub and its clusterrole";
    assert!(out.contains(kept), "{out}");
    assert!(
        out.contains("karmada-cluster/entourage-hub-impersonator, which may impersonate users"),
        "{out}"
    );
}

#[tokio::test]
async fn what_is_left_of_an_impersonator_is_removed_by_a_second_run() {
    let labels = || json!({"app.kubernetes.io/managed-by": "entourage"});
    let impersonator = "/api/v1/namespaces/karmada-cluster/secrets/m1-impersonator";
    let hub = Server::new("hub-id");
    hub.put(
        impersonator,
        json!({"metadata": {"name": "m1-impersonator", "labels": labels()}}),
    );
    let (done, out) = unjoined("m1", &hub, None).await;
    done.unwrap();
    assert_eq!(hub.object(impersonator), None, "{out}");

    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let name = "entourage-hub-impersonator";
    let paths = [
        format!("/api/v1/namespaces/karmada-cluster/serviceaccounts/{name}"),
        format!("{rbac}/clusterroles/{name}"),
        format!("{rbac}/clusterrolebindings/{name}"),
        format!("{rbac}/namespaces/shop/roles/{name}"),
        format!("{rbac}/namespaces/shop/rolebindings/{name}"),
    ];
    // One of the first three says that there are more.
    for first in 0..3 {
        let member = Server::new("member-id");
        for path in &paths[first..] {
            member.put(
                path,
                json!({"metadata": {"name": name, "namespace": "shop", "labels": labels()}}),
            );
        }
        let (done, out) = unjoined("m1", &Server::new("hub-id"), Some(&member)).await;
        done.unwrap();
        for path in &paths {
            assert_eq!(member.object(path), None, "{path}: {out}");
        }
    }
}

#[tokio::test]
async fn the_secret_of_a_cluster_that_is_called_like_an_impersonator_is_no_sign_of_another() {
    let hub = Server::new("hub-id");
    let path = "/api/v1/namespaces/karmada-cluster/secrets/m1-impersonator";
    let labels = json!({"app.kubernetes.io/managed-by": "entourage"});
    let annotations = json!({"entourage.dev/cluster": "m1-impersonator"});
    hub.put(
        path,
        json!({"metadata": {"name": "m1-impersonator", "labels": labels, "annotations": annotations}}),
    );
    let (done, _) = unjoined("m1", &hub, None).await;
    assert!(format!("{:#}", done.unwrap_err()).contains("not found"));
    assert!(hub.object(path).is_some());
}

#[tokio::test]
async fn an_unknown_member_is_an_error_that_names_those_there_are() {
    let hub = hub();
    let (done, _) = unjoined("nope", &hub, None).await;
    let error = format!("{:#}", done.unwrap_err());
    assert_eq!(error, "cluster \"nope\" not found; members: m1");
    assert_eq!(hub.take_writes(), Vec::<String>::new());
    let hub = Server::new("hub-id").reacting(|_, _, _| {});
    for member in [None, Some(&Server::new("member-id"))] {
        let (done, _) = unjoined("m1", &hub, member).await;
        let error = format!("{:#}", done.unwrap_err());
        assert_eq!(error, "cluster \"m1\" not found; the hub has no members");
    }
}

#[tokio::test]
async fn a_second_run_removes_what_the_first_one_left() {
    let hub = Server::new("hub-id").reacting(|_, _, _| {});
    let labels = crate::join::made_by_us();
    hub.put(SECRET_PATH, json!({"metadata": {"name": "m1", "labels": labels}}));
    let (done, out) = unjoined("m1", &hub, None).await;
    done.unwrap();
    assert!(out.contains("cluster.cluster.karmada.io/m1 not found"), "{out}");
    assert_eq!(hub.object(SECRET_PATH), None);
}

#[tokio::test]
async fn a_secret_that_somebody_else_made_is_kept() {
    let hub = hub_with_controllers();
    hub.put(SECRET_PATH, json!({"metadata": {"name": "m1"}}));
    let (done, out) = unjoined("m1", &hub, None).await;
    done.unwrap();
    assert!(
        out.contains("secret/m1 kept") && hub.object(SECRET_PATH).is_some(),
        "{out}"
    );
}

#[tokio::test]
async fn the_kubeconfig_of_another_member_is_refused_although_the_name_is_gone() {
    let hub = hub();
    let (done, _) = unjoined("m2", &hub, Some(&Server::new("member-id"))).await;
    let error = format!("{:#}", done.unwrap_err());
    assert!(error.contains("the member m1"), "{error}");
    let (done, _) = unjoined("m2", &hub, Some(&Server::new("hub-id"))).await;
    assert!(format!("{:#}", done.unwrap_err()).contains("leads to the hub"));
    assert_eq!(hub.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_kubeconfig_of_another_cluster_is_refused_before_anything_is_written() {
    let hub = hub();
    let (done, _) = unjoined("m1", &hub, Some(&Server::new("another-id"))).await;
    assert!(format!("{:#}", done.unwrap_err()).contains("leads to another cluster"));
    assert_eq!(hub.take_writes(), Vec::<String>::new());
}
