//! `entourage register` against in-memory servers.

use serde_json::json;

use super::*;
use crate::mock::Server;

const CLUSTER_PATH: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/edge1";

/// A hub that sets this status of each CertificateSigningRequest.
fn signing(status: Value) -> Server {
    Server::new("hub").reacting(move |method, path, objects| {
        if method == "POST"
            && path.contains("certificatesigningrequests/")
            && let Some(request) = objects.get_mut(path)
        {
            request["status"] = status.clone();
        }
    })
}

async fn obtained(hub: &Server) -> Answer {
    let pending = certificate::request(&hub.client(), "edge1", 3600).await.unwrap();
    let answer = certificate::wait(&hub.client(), &pending, Duration::from_millis(700)).await;
    answer.unwrap()
}

#[tokio::test]
async fn a_certificate_is_asked_for_in_the_name_of_the_agent() {
    // "cert" in base64.
    let hub =
        signing(json!({"certificate": "Y2VydA==", "conditions": [{"type": "Approved", "status": "True"}]}));
    let Answer::Issued(issued) = obtained(&hub).await else {
        panic!("no certificate");
    };
    assert_eq!(issued.certificate, "cert");
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    assert_eq!(hub.take_writes(), [format!("POST {path}")]);
    let request = (0..9).find_map(|revision| hub.object(&format!("{path}/entourage-agent-edge1-{revision}")));
    let spec = &request.unwrap()["spec"];
    assert_eq!(spec["signerName"], "kubernetes.io/kube-apiserver-client");
    assert_eq!(spec["usages"], json!(["digital signature", "client auth"]));
    assert_eq!(spec["expirationSeconds"], 3600);
}

#[tokio::test]
async fn a_request_that_is_not_signed_says_who_must_act() {
    let condition = |type_: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": "No", "message": "way"}]});
    for (status, says) in [
        (json!({}), "kubectl certificate approve entourage-agent-edge1-"),
        (condition("Approved"), "csrsigning"),
        (condition("Denied"), "No: way"),
    ] {
        let error = match obtained(&signing(status)).await {
            Answer::Late(why) | Answer::Refused(why) => why,
            Answer::Issued(_) => panic!("{says}"),
        };
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn another_cluster_than_the_hubs_is_not_registered() {
    let hub = Server::new("hub");
    for (spec, says) in [
        (None, "entourage token create edge1"),
        (Some(json!({"syncMode": "Push"})), "not in Pull mode"),
        (
            Some(json!({"syncMode": "Pull", "id": "other"})),
            "under another name",
        ),
    ] {
        if let Some(spec) = spec {
            hub.put(CLUSTER_PATH, json!({"metadata": {"name": "edge1"}, "spec": spec}));
        }
        let error = check(&hub.client(), "edge1", "member")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
    for spec in [
        json!({"syncMode": "Pull"}),
        json!({"syncMode": "Pull", "id": "member"}),
    ] {
        hub.put(CLUSTER_PATH, json!({"metadata": {"name": "edge1"}, "spec": spec}));
        check(&hub.client(), "edge1", "member").await.unwrap();
    }
}

#[tokio::test]
async fn the_agent_is_written_once_and_then_only_its_kubeconfig() {
    let member = Server::new("member");
    let agent = Agent {
        cluster: "edge1".into(),
        namespace: "karmada-system".into(),
        image: "entourage:1".into(),
    };
    let path = "/apis/apps/v1/namespaces/karmada-system/deployments/entourage-agent";
    let mut out = Vec::new();
    for (kubeconfig, existed, writes) in [
        ("canary-1", false, 8),
        ("canary-1", true, 0),
        ("canary-2", true, 1),
    ] {
        let mut target = Target {
            client: member.client(),
            place: "member",
            dry_run: false,
            out: &mut out,
        };
        let found = member::ensure(&mut target, &agent, &SecretString::from(kubeconfig))
            .await
            .unwrap();
        let written = member.take_writes();
        // Defaults of the server, and what its users added, are not written over.
        let mut deployment = member.object(path).unwrap();
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] =
            json!([{"name": "HTTPS_PROXY", "value": "http://p"}]);
        member.put(path, deployment);
        assert_eq!((found, written.len()), (existed, writes), "{written:?}");
    }
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("deployment.apps/entourage-agent created") && !out.contains("canary"),
        "{out}"
    );
}

#[test]
fn a_hub_is_named_by_a_kubeconfig_or_by_its_address_with_a_token_and_a_hash() {
    use clap::Parser as _;

    use crate::command::{Cli, Command};

    let hash = format!("sha256:{}", "0a".repeat(32));
    let flags =
        format!("--token canary.canary --discovery-token-ca-cert-hash {hash} --cluster-name edge1 --image i");
    let read = |line: &str| {
        let line = format!("entourage register {line}");
        Cli::try_parse_from(line.split_whitespace())
    };
    let Command::Register(args) = read(&format!("hub:6443 {flags}")).unwrap().command else {
        unreachable!()
    };
    assert!(!format!("{args:?}").contains("canary"), "{args:?}");
    assert_eq!(args.discovery_token_ca_cert_hash.len(), 1);
    for wrong in [
        flags.clone(),
        format!("hub:6443 --bootstrap-kubeconfig b {flags}"),
        "hub:6443 --token canary.canary --cluster-name edge1 --image i".to_owned(),
        format!("hub:6443 --discovery-token-ca-cert-hash {hash} --cluster-name edge1 --image i"),
        format!("hub:6443 --token canary.canary --discovery-token-ca-cert-hash {hash} --image i"),
        "--bootstrap-kubeconfig b --token canary.canary --image i".to_owned(),
    ] {
        let error = read(&wrong).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
    }
}
