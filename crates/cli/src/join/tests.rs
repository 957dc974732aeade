//! Joins against in-memory servers.

use serde_json::{Value, json};

use super::*;
use crate::{
    command::{Cli, Command},
    mock::Server,
};

const TOKEN_SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/entourage-hub-token";
const HUB_SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/m1";
const IMPERSONATOR_SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/m1-impersonator";
const IMPERSONATOR_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/entourage-hub-impersonator";
const IMPERSONATOR_ACCOUNT: &str =
    "/api/v1/namespaces/karmada-cluster/serviceaccounts/entourage-hub-impersonator";
const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";

/// `entourage join <line>` parsed.
fn args(line: &str) -> JoinArgs {
    use clap::Parser as _;
    let line = format!("entourage join {line} --cluster-kubeconfig unused");
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Join(args) => args,
        other => panic!("{other:?}"),
    }
}

fn reached() -> Reach {
    Reach {
        endpoint: "https://member:6443".into(),
        ca_bundle: Some("PEM".into()),
    }
}

/// A hub whose controllers report every Cluster as ready at once.
fn hub() -> Server {
    Server::new("hub-id").reacting(|_, path, objects| {
        if let Some(cluster) = objects.get_mut(path).filter(|_| path.contains("/clusters/")) {
            cluster["status"] = json!({
                "kubernetesVersion": "v1.20.2",
                "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "ok"}],
            });
        }
    })
}

/// A member with a token controller.
fn member(id: &str) -> Server {
    Server::new(id).reacting(|_, path, objects| {
        if let Some(secret) = objects.get_mut(path).filter(|secret| secret["type"].is_string()) {
            secret["data"] = json!({"token": encoded("good-controller")});
        }
    })
}

fn encoded(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}

async fn joined(line: &str, hub: &Server, member: &Server) -> (Result<()>, String) {
    let mut out = Vec::new();
    let done = join(&args(line), hub.client(), member.client(), &reached(), &mut out).await;
    (done, String::from_utf8(out).unwrap())
}

async fn refused(line: &str, hub: &Server, member: &Server) -> String {
    let (done, _) = joined(line, hub, member).await;
    format!("{:#}", done.unwrap_err())
}

#[tokio::test]
async fn a_join_leaves_an_account_there_and_a_cluster_here() {
    let (hub, member) = (hub(), member("member-id"));
    let (done, out) = joined(
        "m1 --labels env=prod --region eu --zone a --zone b",
        &hub,
        &member,
    )
    .await;
    done.unwrap();
    assert!(
        out.contains("member: serviceaccount/entourage-hub created"),
        "{out}"
    );
    assert!(
        out.contains("hub: cluster.cluster.karmada.io/m1 is ready (v1.20.2)"),
        "{out}"
    );
    assert!(out.contains("next: "), "{out}");
    let cluster = hub.object(CLUSTER).unwrap();
    let spec = json!({
        "id": "member-id", "syncMode": "Push", "apiEndpoint": "https://member:6443", "region": "eu",
        "secretRef": {"namespace": "karmada-cluster", "name": "m1"}, "zones": ["a", "b"],
        "insecureSkipTLSVerification": false,
    });
    assert_eq!(
        (&cluster["spec"], &cluster["metadata"]["labels"]),
        (&spec, &json!({"env": "prod"}))
    );
    let secret = hub.object(HUB_SECRET).unwrap();
    assert_eq!(
        secret["data"],
        json!({"token": encoded("good-controller"), "caBundle": encoded("PEM")})
    );
    assert!(!out.contains("good-controller"), "{out}");
    let annotations = json!({
        "entourage.dev/api-endpoint": "https://member:6443", "entourage.dev/cluster": "m1",
    });
    assert_eq!(secret["metadata"]["annotations"], annotations);
}

#[tokio::test]
async fn the_secret_says_where_its_token_may_be_sent_and_follows_the_flags() {
    let (hub, member) = (hub(), member("member-id"));
    let proxied = "m1 --proxy-url http://user:canary@proxy:3128 --insecure-skip-tls-verification";
    joined(proxied, &hub, &member).await.0.unwrap();
    let annotations = || hub.object(HUB_SECRET).unwrap()["metadata"]["annotations"].clone();
    let wanted = json!({
        "entourage.dev/api-endpoint": "https://member:6443", "entourage.dev/cluster": "m1",
        "entourage.dev/proxy-url": "http://proxy:3128", "entourage.dev/insecure-skip-tls-verification": "true",
    });
    assert_eq!(annotations(), wanted);
    // Without the flag the proxy is kept; it is still the one that the Secret names.
    joined("m1 --insecure-skip-tls-verification", &hub, &member)
        .await
        .0
        .unwrap();
    assert_eq!(annotations(), wanted);
    // A change of the Cluster by another writer is not adopted silently.
    let mut cluster = hub.object(CLUSTER).unwrap();
    cluster["spec"]["proxyURL"] = json!("http://evil:3128");
    hub.put(CLUSTER, cluster);
    let error = refused("m1", &hub, &member).await;
    assert!(error.contains("--proxy-url"), "{error}");
    let mut plain = args("m1");
    plain.proxy_url = Some(String::new());
    let mut out = Vec::new();
    join(&plain, hub.client(), member.client(), &reached(), &mut out)
        .await
        .unwrap();
    let wanted = json!({"entourage.dev/api-endpoint": "https://member:6443", "entourage.dev/cluster": "m1"});
    assert_eq!(annotations(), wanted);
    assert_eq!(hub.object(CLUSTER).unwrap()["spec"].get("proxyURL"), None);
}

#[tokio::test]
async fn a_second_join_never_narrows_rights_unless_requested() {
    let (hub, member) = (hub(), member("member-id"));
    let role = || {
        let role = member
            .object("/apis/rbac.authorization.k8s.io/v1/clusterroles/entourage-hub")
            .unwrap();
        role["rules"].to_string()
    };
    joined("m1 --allow namespaces,x.io/widgets", &hub, &member)
        .await
        .0
        .unwrap();
    let (done, out) = joined("m1", &hub, &member).await;
    done.unwrap();
    assert!(role().contains("widgets"), "{}", role());
    assert!(
        out.contains("namespaces, x.io/widgets") && out.contains("--rights=minimal"),
        "{out}"
    );
    let (done, out) = joined("m1 --allow namespaces --rights=minimal", &hub, &member).await;
    done.unwrap();
    assert!(!role().contains("widgets") && !out.contains("keeps"), "{out}");
    joined("m1 --admin", &hub, &member).await.0.unwrap();
    joined("m1", &hub, &member).await.0.unwrap();
    assert!(role().contains("\"*\""), "{}", role());
}

#[tokio::test]
async fn a_second_join_writes_nothing() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1 --labels env=prod", &hub, &member).await.0.unwrap();
    hub.take_writes();
    member.take_writes();
    let (done, out) = joined("m1 --labels env=prod", &hub, &member).await;
    done.unwrap();
    assert_eq!(
        (hub.take_writes(), member.take_writes()),
        (vec![], vec![]),
        "{out}"
    );
    assert!(
        out.contains("unchanged") && !out.contains("created") && !out.contains("configured"),
        "{out}"
    );
}

#[tokio::test]
async fn a_second_join_with_other_labels_says_configured() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1 --labels env=prod", &hub, &member).await.0.unwrap();
    hub.take_writes();
    let (done, out) = joined("m1 --labels env=test", &hub, &member).await;
    done.unwrap();
    assert_eq!(hub.take_writes(), [format!("PATCH {CLUSTER}")]);
    assert!(out.contains("cluster.cluster.karmada.io/m1 configured"), "{out}");
}

#[tokio::test]
async fn a_token_that_the_member_refuses_is_replaced() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1", &hub, &member).await.0.unwrap();
    hub.put(
        HUB_SECRET,
        json!({"metadata": {"name": "m1", "labels": made_by_us()}, "data": {"token": encoded("revoked")}}),
    );
    joined("m1", &hub, &member).await.0.unwrap();
    assert_eq!(
        hub.object(HUB_SECRET).unwrap()["data"]["token"],
        encoded("good-controller")
    );
}

#[tokio::test]
async fn a_secret_that_somebody_else_made_is_refused_before_anything_is_written() {
    let (hub, member) = (hub(), member("member-id"));
    hub.put(
        HUB_SECRET,
        json!({"metadata": {"name": "m1"}, "data": {"token": encoded("good-for-something-else")}}),
    );
    let error = refused("m1", &hub, &member).await;
    assert!(error.contains("not made by `entourage join`"), "{error}");
    assert_eq!((hub.take_writes(), member.take_writes()), (vec![], vec![]));
}

#[tokio::test]
async fn a_secret_without_its_cluster_is_not_believed() {
    let (hub, member) = (hub(), member("member-id"));
    hub.put(
        HUB_SECRET,
        json!({"metadata": {"name": "m1", "labels": made_by_us()}, "data": {"token": encoded("good-for-another")}}),
    );
    joined("m1", &hub, &member).await.0.unwrap();
    assert_eq!(
        hub.object(HUB_SECRET).unwrap()["data"]["token"],
        encoded("good-controller")
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_token_controller_a_token_is_requested() {
    let (hub, member) = (hub(), Server::new("member-id"));
    let (done, out) = joined("m1", &hub, &member).await;
    done.unwrap();
    let secret = hub.object(HUB_SECRET).unwrap();
    assert_eq!(secret["data"]["token"], encoded("good-requested"));
    assert_eq!(
        secret["metadata"]["annotations"]["entourage.dev/token-expires"],
        "2099-01-01T00:00:00Z"
    );
    assert!(out.contains("valid until 2099-01-01T00:00:00Z"), "{out}");
    assert_eq!(
        member.object(TOKEN_SECRET),
        None,
        "the Secret that nobody fills is not left behind"
    );
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let (hub, member) = (hub(), member("member-id"));
    let (done, out) = joined("m1 --dry-run", &hub, &member).await;
    done.unwrap();
    assert_eq!((hub.take_writes(), member.take_writes()), (vec![], vec![]));
    assert!(
        out.contains("hub: cluster.cluster.karmada.io/m1 created (dry run)"),
        "{out}"
    );
}

#[tokio::test]
async fn a_name_that_stands_for_another_cluster_is_refused() {
    let hub = hub();
    joined("m1", &hub, &member("member-id")).await.0.unwrap();
    let other = member("another-id");
    let error = refused("m1", &hub, &other).await;
    assert!(
        error.contains("is the name of another cluster") && error.contains("unjoin m1"),
        "{error}"
    );
    assert_eq!(other.take_writes(), Vec::<String>::new());
    // With the flag: the token of the other cluster is not sent to it.
    joined("m1 --replace", &hub, &other).await.0.unwrap();
    assert_eq!(hub.object(CLUSTER).unwrap()["spec"]["id"], "another-id");
}

#[tokio::test]
async fn a_member_is_not_joined_under_a_second_name() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1", &hub, &member).await.0.unwrap();
    let error = refused("m2", &hub, &member).await;
    assert!(error.contains("already a member, as m1"), "{error}");
}

#[tokio::test]
async fn a_member_that_leaves_is_given_the_rights_that_it_waits_for_and_no_more() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1", &hub, &member).await.0.unwrap();
    let mut cluster = hub.object(CLUSTER).unwrap();
    cluster["metadata"]["deletionTimestamp"] = json!("2026-11-21T00:00:00Z");
    hub.put(CLUSTER, cluster);
    hub.take_writes();
    let error = refused("m1", &hub, &member).await;
    assert!(
        error.contains("is being removed") && error.contains("--allow"),
        "{error}"
    );
    member.take_writes();

    let (done, out) = joined("m1 --allow networking.k8s.io/networkpolicies", &hub, &member).await;
    done.unwrap();
    assert!(out.contains("nothing else was changed"), "{out}");
    assert_eq!(hub.take_writes(), [""; 0]);
    let wrote = member.take_writes();
    assert!(
        wrote.len() == 1 && wrote[0].contains("clusterroles/entourage-hub"),
        "{wrote:?}"
    );
    let other = self::member("other-id");
    let error = refused("m1 --admin", &hub, &other).await;
    assert!(error.contains("is the name of another cluster"), "{error}");
}

#[tokio::test]
async fn a_hub_is_not_its_own_member() {
    let error = refused("m1", &hub(), &member("hub-id")).await;
    assert!(error.contains("its own member"), "{error}");
}

#[tokio::test]
async fn a_hub_without_the_kind_gets_the_command_that_adds_it() {
    let hub = hub().without("/apis/cluster.karmada.io");
    let error = refused("m1", &hub, &member("member-id")).await;
    assert!(error.contains("entourage crds --apply"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_nobody_looks_at_is_reported() {
    let (hub, member) = (Server::new("hub-id"), member("member-id"));
    let error = refused("m1", &hub, &member).await;
    assert!(error.contains("is `entourage controllers` running"), "{error}");
    joined("m1 --wait 0s", &hub, &member).await.0.unwrap();
}

#[test]
fn a_certificate_is_written_as_pem() {
    let text = pem(&[7; 60]).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[1].len(), lines[2].len()), (4, 64, 16));
    assert_eq!(
        (lines[0], lines[3]),
        ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")
    );
}

#[test]
fn verification_is_skipped_only_when_asked_for() {
    crate::install_tls_provider();
    let mut config = Config::new("https://127.0.0.1:6443".parse().unwrap());
    config.accept_invalid_certs = true;
    assert!(
        reach(&args("m1"), &config)
            .unwrap_err()
            .to_string()
            .contains("--insecure-skip-tls-verification")
    );
    let reached = reach(&args("m1 --insecure-skip-tls-verification"), &config).unwrap();
    assert_eq!(
        (reached.endpoint.as_str(), reached.ca_bundle),
        ("https://127.0.0.1:6443", None)
    );
    config.accept_invalid_certs = false;
    let plain = args("m1 --api-endpoint http://10.0.0.1");
    let error = reach(&plain, &config).unwrap_err().to_string();
    assert!(error.contains("not encrypted"), "{error}");
    assert!(is_loopback(&reached.endpoint) && !is_loopback("https://10.0.0.1"));
}

#[tokio::test]
async fn an_impersonator_is_made_for_whom_the_flag_names_and_kept_until_it_names_nobody() {
    let (hub, member) = (hub(), member("member-id"));
    let reference = || hub.object(CLUSTER).unwrap()["spec"]["impersonatorSecretRef"].clone();
    let (done, _) = joined("m1", &hub, &member).await;
    done.unwrap();
    assert_eq!(reference(), Value::Null, "not without being asked");
    assert_eq!(member.object(IMPERSONATOR_ROLE), None);

    let (done, out) = joined("m1 --impersonate user:jane,group:devs", &hub, &member).await;
    done.unwrap();
    assert!(
        out.contains("member: serviceaccount/entourage-hub-impersonator created"),
        "{out}"
    );
    assert_eq!(
        reference(),
        json!({"namespace": "karmada-cluster", "name": "m1-impersonator"})
    );
    let rules = member.object(IMPERSONATOR_ROLE).unwrap()["rules"].to_string();
    assert!(rules.contains("jane") && rules.contains("devs"), "{rules}");
    let secret = hub.object(IMPERSONATOR_SECRET).unwrap();
    assert_eq!(secret["data"]["token"], encoded("good-controller"));
    assert_eq!(secret["metadata"]["annotations"]["entourage.dev/cluster"], "m1");
    assert_eq!(
        secret["metadata"]["annotations"]["entourage.dev/api-endpoint"],
        "https://member:6443"
    );
    assert!(!out.contains("good-controller"), "{out}");

    // Without the flag nothing changes; with fewer names there are fewer rights.
    hub.take_writes();
    member.take_writes();
    let (done, _) = joined("m1", &hub, &member).await;
    done.unwrap();
    assert_eq!(hub.take_writes(), Vec::<String>::new());
    assert_eq!(
        member
            .take_writes()
            .iter()
            .filter(|each| each.contains("impersonator"))
            .count(),
        0
    );
    let (done, _) = joined("m1 --impersonate user:jane", &hub, &member).await;
    done.unwrap();
    let rules = member.object(IMPERSONATOR_ROLE).unwrap()["rules"].to_string();
    assert!(rules.contains("jane") && !rules.contains("devs"), "{rules}");

    let (done, out) = joined("m1 --impersonate nobody", &hub, &member).await;
    done.unwrap();
    assert_eq!(reference(), Value::Null, "{out}");
    assert_eq!(
        (hub.object(IMPERSONATOR_SECRET), member.object(IMPERSONATOR_ROLE)),
        (None, None),
        "{out}"
    );
}

#[tokio::test]
async fn whom_the_controllers_have_every_right_for_everyone_may_be_impersonated() {
    let (hub, member) = (hub(), member("member-id"));
    let (done, _) = joined("m1 --admin", &hub, &member).await;
    done.unwrap();
    let rules = member.object(IMPERSONATOR_ROLE).unwrap()["rules"].clone();
    assert_eq!(
        rules[0]["resources"],
        json!(["users", "groups", "serviceaccounts"])
    );
    assert_eq!(rules[0]["resourceNames"], Value::Null);
}

#[tokio::test]
async fn what_was_said_about_impersonation_is_not_widened_by_admin_alone() {
    for (whom, names) in [("nobody", None), ("user:jane", Some("jane"))] {
        let (hub, member) = (hub(), member("member-id"));
        let rules = || {
            let role = member.object(IMPERSONATOR_ROLE);
            role.map(|role| role["rules"].to_string())
        };
        let (done, _) = joined(&format!("m1 --impersonate {whom}"), &hub, &member).await;
        done.unwrap();
        for _ in 0..2 {
            let (done, out) = joined("m1 --admin", &hub, &member).await;
            done.unwrap();
            assert_eq!(rules().is_some(), names.is_some(), "{whom}: {out}");
            if let (Some(rules), Some(names)) = (rules(), names) {
                assert!(rules.contains(names) && !rules.contains("groups"), "{rules}");
            }
        }
        let annotations = hub.object(HUB_SECRET).unwrap()["metadata"]["annotations"].clone();
        assert_eq!(annotations["entourage.dev/impersonate"], whom);
        // Who says otherwise gets it.
        let (done, _) = joined("m1 --admin --impersonate everyone", &hub, &member).await;
        done.unwrap();
        assert!(rules().unwrap().contains("groups"));
    }
}

#[tokio::test]
async fn an_earlier_choice_of_whom_to_impersonate_counts_after_the_cluster_was_deleted() {
    for whom in ["nobody", "user:jane"] {
        let (hub, member) = (hub(), member("member-id"));
        let (done, _) = joined(&format!("m1 --impersonate {whom}"), &hub, &member).await;
        done.unwrap();
        hub.remove(CLUSTER);
        let (done, out) = joined("m1 --admin", &hub, &member).await;
        done.unwrap();
        let rules = member
            .object(IMPERSONATOR_ROLE)
            .map(|role| role["rules"].to_string());
        assert!(
            rules.is_none_or(|rules| !rules.contains("groups")),
            "{whom}: {out}"
        );
    }
}

#[tokio::test]
async fn nobody_takes_the_account_off_although_the_hub_has_no_secret_of_it() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1 --impersonate user:jane", &hub, &member)
        .await
        .0
        .unwrap();
    hub.remove(IMPERSONATOR_SECRET);
    let (done, out) = joined("m1 --impersonate nobody", &hub, &member).await;
    done.unwrap();
    assert_eq!(
        (
            member.object(IMPERSONATOR_ROLE),
            member.object(IMPERSONATOR_ACCOUNT)
        ),
        (None, None),
        "{out}"
    );
    let cluster = hub.object(CLUSTER).unwrap();
    assert_eq!(cluster["spec"]["impersonatorSecretRef"], Value::Null);
}

#[tokio::test]
async fn an_account_whose_secret_is_not_for_the_member_is_taken_off() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1 --impersonate user:jane", &hub, &member)
        .await
        .0
        .unwrap();
    // Without its Cluster nothing says which member the Secret is for.
    hub.remove(CLUSTER);
    let (done, out) = joined("m1", &hub, &member).await;
    done.unwrap();
    assert!(
        out.contains("is not for this member") && out.contains("--impersonate"),
        "{out}"
    );
    assert_eq!(
        (
            member.object(IMPERSONATOR_ROLE),
            member.object(IMPERSONATOR_ACCOUNT),
            hub.object(IMPERSONATOR_SECRET)
        ),
        (None, None, None)
    );
}

#[tokio::test]
async fn a_join_renews_the_token_of_the_impersonator() {
    let (hub, member) = (hub(), member("member-id"));
    joined("m1 --impersonate user:jane", &hub, &member)
        .await
        .0
        .unwrap();
    let rules = member.object(IMPERSONATOR_ROLE).unwrap()["rules"].clone();
    // token, its end
    let cases = [
        (encoded("revoked"), Value::Null),
        (encoded("good-old"), json!("2020-01-01T00:00:00Z")),
        (Value::Null, Value::Null),
    ];
    for (token, expires) in cases {
        let mut annotations = json!({"entourage.dev/cluster": "m1"});
        if expires.is_string() {
            annotations["entourage.dev/token-expires"] = expires.clone();
        }
        let metadata = json!({"name": "m1-impersonator", "labels": made_by_us(), "annotations": annotations});
        hub.put(
            IMPERSONATOR_SECRET,
            json!({"metadata": metadata, "data": {"token": token}}),
        );
        joined("m1", &hub, &member).await.0.unwrap();
        let secret = hub.object(IMPERSONATOR_SECRET).unwrap();
        assert_eq!(secret["data"]["token"], encoded("good-controller"), "{expires}");
        let annotations = &secret["metadata"]["annotations"];
        assert_eq!(annotations["entourage.dev/token-expires"], Value::Null);
        let role = member.object(IMPERSONATOR_ROLE).unwrap();
        assert_eq!(role["rules"], rules, "the rights stay");
    }
    member.remove(IMPERSONATOR_ACCOUNT);
    let error = refused("m1", &hub, &member).await;
    assert!(
        error.contains("entourage-hub-impersonator") && error.contains("--impersonate"),
        "{error}"
    );
}

#[tokio::test]
async fn service_accounts_are_impersonated_by_roles_of_their_namespaces() {
    let (hub, member) = (hub(), member("member-id"));
    let both = "m1 --impersonate user:system:serviceaccount:shop:robot,user:system:serviceaccount:ops:robot";
    let error = refused(both, &hub, &member).await;
    assert!(error.contains("no namespace ops"), "{error}");
    for namespace in ["shop", "ops"] {
        member.put(
            &format!("/api/v1/namespaces/{namespace}"),
            json!({"metadata": {"name": namespace}}),
        );
    }
    joined(both, &hub, &member).await.0.unwrap();
    let of = |kind: &str, namespace: &str| {
        let group = "/apis/rbac.authorization.k8s.io/v1";
        member.object(&format!(
            "{group}/namespaces/{namespace}/{kind}/entourage-hub-impersonator"
        ))
    };
    for namespace in ["shop", "ops"] {
        let role = of("roles", namespace).unwrap();
        let rule = json!({
            "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["robot"], "verbs": ["impersonate"],
        });
        assert_eq!(role["rules"], json!([rule]));
        let subject = json!({
            "kind": "ServiceAccount", "name": "entourage-hub-impersonator", "namespace": "karmada-cluster",
        });
        let binding = of("rolebindings", namespace).unwrap();
        assert_eq!(binding["subjects"], json!([subject]));
    }
    let everywhere = member.object(IMPERSONATOR_ROLE).unwrap()["rules"].to_string();
    assert!(
        !everywhere.contains("users") && !everywhere.contains("serviceaccounts"),
        "{everywhere}"
    );
    // Fewer names are fewer rights.
    let one = "m1 --impersonate user:system:serviceaccount:shop:robot";
    joined(one, &hub, &member).await.0.unwrap();
    assert_eq!((of("roles", "ops"), of("rolebindings", "ops")), (None, None));
    assert!(of("roles", "shop").is_some());
    joined("m1 --impersonate nobody", &hub, &member).await.0.unwrap();
    assert_eq!((of("roles", "shop"), of("rolebindings", "shop")), (None, None));
}

#[tokio::test]
async fn the_secret_of_a_cluster_that_is_called_like_an_impersonator_is_left_alone() {
    let (hub, member) = (hub(), member("member-id"));
    let (done, _) = joined("m1 --admin", &hub, &member).await;
    done.unwrap();
    let error = refused("m1-impersonator", &hub, &self::member("other-id")).await;
    assert!(error.contains("is for cluster m1"), "{error}");
}
