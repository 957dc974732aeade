//! `entourage proxy` before a hub, with the rights of `config/proxy`: a user of the hub on a member.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, anyhow, ensure};
use entourage::{
    command::proxy::{front, serve},
    manifests::{apply, read},
};
use entourage_e2e::{
    harness::{Scene, Server, status_code},
    tests,
};
use entourage_webhook::interpret;
use kube::config::AuthInfo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

tests![a_user_of_the_hub_has_its_own_rights_on_a_member];

/// The objects that grant a user some rights in all namespaces.
fn granted(name: &str, user: &str, rules: &Value) -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let metadata = json!({"name": name});
    [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }),
    ]
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

async fn grant(server: &Server, [role, binding]: &[Value; 2]) -> Result<()> {
    server.call("POST", ROLES, Some(role)).await?;
    server.call("POST", BINDINGS, Some(binding)).await.map(drop)
}

async fn revoke(server: &Server, name: &str) -> Result<()> {
    for plural in [BINDINGS, ROLES] {
        server.call("DELETE", &format!("{plural}/{name}"), None).await?;
    }
    Ok(())
}

/// The code and the words of a refusal.
fn refused(answer: Result<Value>) -> Result<(u16, String)> {
    match answer {
        Ok(answer) => Err(anyhow!("not refused: {answer}")),
        Err(error) => Ok((status_code(&error), format!("{error:#}"))),
    }
}

async fn a_user_of_the_hub_has_its_own_rights_on_a_member(scene: &mut Scene) -> Result<()> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let files = [
        "namespaces/namespaces.yaml",
        "proxy/service_account.yaml",
        "proxy/role.yaml",
        "proxy/role_binding.yaml",
    ];
    for manifest in &read(&files.map(|file| config.join(file)))? {
        apply(&scene.hub.client, manifest).await?;
    }
    scene.bed.join("member1", &["--impersonate", "everyone"]).await?;

    let hub = scene.bed.fleet.hub.config();
    let mut account = hub.clone();
    account.auth_info.impersonate = Some("system:serviceaccount:karmada-system:entourage-proxy".to_owned());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let names = ["127.0.0.1".to_owned()];
    let (tls, _) = interpret::self_signed(&names, jiff::Timestamp::now()).map_err(|why| anyhow!(why))?;
    let stop = CancellationToken::new();
    let server = Arc::new(front(&account.into(), "karmada-cluster", &stop)?);
    let _serving = AbortOnDropHandle::new(tokio::spawn(serve(listener, tls, server, stop)));

    let ns = scene.ns.clone();
    let robot =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": ns}});
    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    scene.hub.call("POST", &accounts, Some(&robot)).await?;
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let token = scene
        .hub
        .call("POST", &format!("{accounts}/robot/token"), Some(&asked))
        .await?;
    let token = token["status"]["token"].as_str().context("a token")?.to_owned();
    let mut through = hub;
    through.cluster_url = format!("https://{address}").parse()?;
    (through.root_cert, through.accept_invalid_certs) = (None, true);
    through.auth_info = AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    };
    let front = Server {
        name: "front".to_owned(),
        client: kube::Client::try_from(through)?,
    };
    let user = format!("system:serviceaccount:{ns}:robot");
    let namespaces = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api/v1/namespaces";

    // The hub decides first.
    let (code, words) = refused(front.call("GET", namespaces, None).await)?;
    ensure!(code == 403 && words.contains("clusters/proxy"), "{words}");
    let proxy =
        json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["get"]}]);
    grant(&scene.hub, &granted(&ns, &user, &proxy)).await?;
    // Then the member.
    let (code, words) = refused(front.call("GET", namespaces, None).await)?;
    let member_says = format!("User \"{user}\" cannot list resource \"namespaces\"");
    ensure!(code == 403 && words.contains(&member_says), "{words}");
    let member = scene.member("member1")?.clone();
    let list = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]);
    grant(&member, &granted(&ns, &user, &list)).await?;
    let answer = front.call("GET", namespaces, None).await?;
    ensure!(answer["kind"] == "NamespaceList", "{answer}");
    // All else is the hub's answer to the robot itself.
    let (code, words) = refused(front.call("GET", "/api/v1/namespaces", None).await)?;
    ensure!(code == 403 && words.contains(&member_says), "{words}");

    revoke(&scene.hub, &ns).await?;
    revoke(&member, &ns).await?;
    scene.bed.join("member1", &["--impersonate", "nobody"]).await?;
    let cluster = scene
        .hub
        .get("Cluster", "", "member1")
        .await?
        .context("a Cluster")?;
    ensure!(
        cluster["spec"]["impersonatorSecretRef"].is_null(),
        "{}",
        cluster["spec"]
    );
    Ok(())
}
