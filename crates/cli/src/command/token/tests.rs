//! `entourage token` against an in-memory hub.

use kube::config::Kubeconfig;
use serde_json::json;

use super::*;
use crate::{
    command::{Cli, Command},
    mock::Server,
};
use clap::Parser as _;

const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/edge1";

fn args(line: &str) -> CreateArgs {
    let line = format!("entourage token create {line}");
    match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
        Command::Token(TokenArgs {
            action: Action::Create(args),
        }) => *args,
        other => panic!("{other:?}"),
    }
}

/// The output, and the steps.
async fn created(hub: &Server, line: &str) -> Result<(String, String)> {
    created_with(hub, line, None).await
}

/// The same for a hub with this authority.
async fn created_with(hub: &Server, line: &str, authority: Option<String>) -> Result<(String, String)> {
    let (mut out, mut steps) = (Vec::new(), Vec::new());
    let args = args(line);
    let target = Target {
        client: hub.client(),
        place: "hub",
        dry_run: args.dry_run,
        out: &mut steps,
    };
    let address = Hub {
        server: "https://hub:6443".into(),
        authority,
    };
    create(&args, target, &address, &mut out).await?;
    Ok((String::from_utf8(out)?, String::from_utf8(steps)?))
}

#[tokio::test]
async fn a_token_comes_as_a_kubeconfig_and_the_hub_has_all_that_the_agent_needs() {
    let hub = Server::new("hub");
    let (out, steps) = created(&hub, "edge1 --region eu --labels env=prod")
        .await
        .unwrap();
    let read = Kubeconfig::from_yaml(&out).unwrap();
    assert_eq!(read.current_context.as_deref(), Some("edge1"));
    let cluster = hub.object(CLUSTER).unwrap();
    assert_eq!(cluster["spec"], json!({"syncMode": "Pull", "region": "eu"}));
    assert_eq!(cluster["metadata"]["labels"], json!({"env": "prod"}));
    for path in [
        "/api/v1/namespaces/karmada-cluster",
        "/api/v1/namespaces/karmada-es-edge1",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/entourage-agent-edge1",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/entourage-register-edge1",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/karmada-es-edge1/rolebindings/entourage-registered-edge1",
    ] {
        assert!(hub.object(path).is_some(), "{path}");
    }
    let user = read.auth_infos[0].auth_info.as_ref().unwrap();
    let token = user.token.as_ref().unwrap().expose_secret();
    let (id, secret) = token.split_once('.').unwrap();
    let stored = hub.object(&format!(
        "/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}"
    ));
    let stored = stored.unwrap();
    assert_eq!(stored["type"], "bootstrap.kubernetes.io/token");
    assert!(stored["data"]["expiration"].is_string());
    assert!(
        !steps.contains(secret) && steps.contains("next, where"),
        "{steps}"
    );
    // Again: the cluster is as it was, the token is another one.
    hub.take_writes();
    let (again, _) = created(&hub, "edge1").await.unwrap();
    assert_ne!(again, out);
    assert_eq!(hub.take_writes(), ["POST /api/v1/namespaces/kube-system/secrets"]);
}

#[tokio::test]
async fn a_token_that_never_ends_has_no_expiration() {
    let hub = Server::new("hub");
    created(&hub, "edge1 --ttl 0s --description spare").await.unwrap();
    let mut quiet = std::io::sink();
    let target = Target {
        client: hub.client(),
        place: "hub",
        dry_run: false,
        out: &mut quiet,
    };
    let known = bootstrap::list(&target, None).await.unwrap();
    let token = &known[0];
    assert_eq!((token.cluster.as_str(), token.expires.as_str()), ("edge1", ""));
    let table = view(&known).table(false, false);
    assert!(table.contains("never") && table.contains("spare"), "{table}");
}

#[tokio::test]
async fn the_kubeconfig_may_go_to_a_file_of_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("edge1.kubeconfig");
    let hub = Server::new("hub");
    let (out, steps) = created(&hub, &format!("edge1 --output {}", file.display()))
        .await
        .unwrap();
    assert!(
        out.is_empty() && steps.contains("edge1.kubeconfig"),
        "{out}{steps}"
    );
    Kubeconfig::read_from(&file).unwrap();
}

#[tokio::test]
async fn an_endless_time_is_refused_and_not_a_panic() {
    let hub = Server::new("hub");
    let error = created(&hub, "edge1 --ttl 99999999h")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("too long"), "{error}");
}

#[tokio::test]
async fn what_a_token_made_is_taken_off_the_hub_and_the_roles_of_others_stay() {
    let hub = Server::new("hub");
    created(&hub, "edge1").await.unwrap();
    created(&hub, "edge2").await.unwrap();
    hub.take_writes();
    let mut target = Target {
        client: hub.client(),
        place: "hub",
        dry_run: false,
        out: &mut std::io::sink(),
    };
    hub::remove(&mut target, "edge1").await.unwrap();
    let writes = hub.take_writes();
    assert!(
        writes.iter().all(|write| write.starts_with("DELETE")),
        "{writes:?}"
    );
    // A token; three bindings of the agent; the rights to renew and to register, each a role and a binding.
    assert_eq!(writes.len(), 8, "{writes:#?}");
    assert!(!writes.iter().any(|write| write.contains("edge2")), "{writes:#?}");
    hub::remove(&mut target, "edge1").await.unwrap();
    assert!(hub.take_writes().is_empty());
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_prints_no_token() {
    let hub = Server::new("hub");
    let (out, steps) = created(&hub, "edge1 --dry-run").await.unwrap();
    assert!(out.is_empty(), "{out}");
    assert!(steps.contains("created (dry run)"), "{steps}");
    assert!(hub.take_writes().is_empty());
}

#[tokio::test]
async fn a_cluster_in_push_mode_or_on_its_way_out_is_not_registered() {
    let hub = Server::new("hub");
    for (cluster, says) in [
        (
            json!({"metadata": {"name": "edge1"}, "spec": {"syncMode": "Push"}}),
            "entourage unjoin edge1",
        ),
        (
            json!({"metadata": {"name": "edge1", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"syncMode": "Pull"}}),
            "kubectl wait --for=delete",
        ),
    ] {
        hub.put(CLUSTER, cluster);
        let error = format!("{:#}", created(&hub, "edge1").await.unwrap_err());
        assert!(error.contains(says), "{error}");
    }
    assert!(hub.take_writes().is_empty());
}

#[tokio::test]
async fn the_command_that_registers_a_cluster_is_printed_and_the_hub_says_who_it_is() {
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertificateParams::default()
        .self_signed(&key)
        .unwrap()
        .pem();
    let register = "entourage register hub:6443 --cluster-name edge1 --token ";
    for (line, start, group) in [
        (
            "edge1 --print-register-command",
            register,
            "system:bootstrappers:entourage:edge1",
        ),
        (
            "--print-register-command",
            "karmadactl register hub:6443 --token ",
            "system:bootstrappers:karmada:default-cluster-token",
        ),
    ] {
        let hub = Server::new("hub");
        let (out, steps) = created_with(&hub, line, Some(authority.clone())).await.unwrap();
        let rest = out.strip_prefix(start).unwrap_or_else(|| panic!("{out}"));
        let (token, rest) = rest.split_once(' ').unwrap();
        let (id, secret) = token.split_once('.').unwrap();
        assert!(
            rest.starts_with("--discovery-token-ca-cert-hash sha256:"),
            "{rest}"
        );
        assert!(!steps.contains(secret), "{steps}");
        let stored = hub.object(&format!(
            "/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}"
        ));
        let data = &stored.unwrap()["data"];
        // "true" in base64.
        assert_eq!(data["usage-bootstrap-signing"], "dHJ1ZQ==");
        let groups = crate::join::token::decode(data["auth-extra-groups"].clone());
        assert_eq!(groups.as_deref(), Some(group));
        assert_eq!(hub.object(CLUSTER).is_some(), line.starts_with("edge1"));
        let published = hub
            .object("/api/v1/namespaces/kube-public/configmaps/cluster-info")
            .unwrap();
        let kubeconfig = published["data"]["kubeconfig"].as_str().unwrap();
        assert!(kubeconfig.contains("https://hub:6443"), "{kubeconfig}");
    }
}

#[tokio::test]
async fn a_hub_that_nobody_could_verify_gets_no_token() {
    let hub = Server::new("hub");
    let error = created(&hub, "edge1 --print-register-command")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("certificate-authority-data"), "{error}");
    assert!(hub.take_writes().is_empty());
}

#[test]
fn a_token_is_for_a_cluster_unless_a_command_for_karmadactl_is_printed() {
    for line in [
        "",
        "--print-register-command --region eu",
        "edge1 --print-register-command --output f",
    ] {
        let line = format!("entourage token create {line}");
        assert!(Cli::try_parse_from(line.split_whitespace()).is_err(), "{line}");
    }
}

#[tokio::test]
async fn the_name_of_karmadactls_user_is_no_name_of_a_cluster() {
    let hub = Server::new("hub");
    let error = created(&hub, "rbac-generator").await.unwrap_err().to_string();
    assert!(error.contains("reserved"), "{error}");
    assert!(hub.take_writes().is_empty());
}

#[test]
fn tokens_are_listed_in_the_formats_of_every_list_and_selected_by_their_fields() {
    let token = |id: &str, cluster: &str| Known {
        id: id.to_owned(),
        cluster: cluster.to_owned(),
        expires: String::new(),
        description: String::new(),
    };
    let known = [token("abc123", "edge1"), token("def456", "edge2")];
    for (flags, wanted) in [
        (
            "--no-headers",
            "abc123   edge1   never   -\ndef456   edge2   never   -\n",
        ),
        (
            "-o name",
            "secret/bootstrap-token-abc123\nsecret/bootstrap-token-def456\n",
        ),
        ("-o jsonpath={.items[*].cluster}", "edge1 edge2"),
        (
            "-o custom-columns=ID:.id --no-headers --field-selector cluster!=edge1",
            "def456\n",
        ),
        ("--field-selector cluster=edge3", "No bootstrap tokens found.\n"),
        ("-o name --field-selector cluster=edge3", ""),
    ] {
        let line = format!("entourage token list {flags}");
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::Token(TokenArgs {
            action: Action::List(args),
        }) = cli.command
        else {
            panic!("{line}");
        };
        assert_eq!(shown(&args, &known, Style::default()).unwrap(), wanted, "{line}");
    }
}
