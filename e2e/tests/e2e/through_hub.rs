//! `entourage proxy` before a hub, with the rights of `config/proxy`: a user of the hub on a member, and the commands that go this way.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Parser as _;
use entourage::{
    command::{
        Cli, Command, describe, exec, logs,
        proxy::{front, serve},
        top,
    },
    manifests::{apply, read},
};
use entourage_e2e::{
    harness::{Scene, Server, manifests, status_code},
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

/// The outputs of a command, and its error.
#[derive(Debug)]
struct Ran {
    out: String,
    err: String,
    error: Option<String>,
}

/// Runs a command for members.
async fn ran(kubeconfig: &Path, line: &[&str]) -> Result<Ran> {
    let kubeconfig = kubeconfig.to_str().context("a path that is text")?;
    let (name, more) = line.split_first().context("a command")?;
    let words = ["entourage", name, "--kubeconfig", kubeconfig];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = match Cli::try_parse_from(words.iter().chain(more))?.command {
        Command::Logs(args) => logs::run(*args, &mut out, &mut err).await,
        Command::Exec(args) => exec::run(args, &mut out, &mut err).await.map(drop),
        Command::Describe(args) => describe::run(args, &mut out).await,
        Command::Top(args) => top::run(args, &mut out, &mut err).await,
        other => return Err(anyhow!("{other:?}")),
    };
    Ok(Ran {
        out: String::from_utf8(out)?,
        err: String::from_utf8(err)?,
        error: done.err().map(|error| format!("{error:#}")),
    })
}

/// The commands for members, as the user of this kubeconfig. Members of this test have no nodes: a log is empty, and nothing runs.
async fn commands(scene: &Scene, user: &str, kubeconfig: &Path) -> Result<()> {
    let name = format!("{}-commands", scene.ns);
    let member = scene.member("member1")?.clone();
    for object in [
        manifests::deployment("web", &[]),
        manifests::policy_for("web", "Deployment", "web", &["member1"]),
    ] {
        scene.apply(object).await?;
    }
    scene.until_held("Deployment", "web", &["member1"]).await?;
    let pod = manifests::workload("Pod", "web", &json!({}));
    scene.apply_on("member1", pod).await?;

    let refused = ran(kubeconfig, &["logs", "web", "-C", "member1"]).await?;
    let words = refused.err.as_str();
    ensure!(
        words.contains(&format!("User \"{user}\" cannot get resource \"pods\""))
            && words.contains("on member1"),
        "{refused:?}"
    );
    let read = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]});
    let rules = json!([
        read("apps", &["deployments"]),
        read("", &["events"]),
        read(
            "work.karmada.io",
            &["resourcebindings", "clusterresourcebindings"]
        )
    ]);
    grant(&scene.hub, &granted(&name, user, &rules)).await?;
    let exec = json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]});
    let rules = json!([
        read("apps", &["deployments"]),
        read("", &["pods", "pods/log", "events"]),
        read("metrics.k8s.io", &["pods"]),
        exec
    ]);
    grant(&member, &granted(&name, user, &rules)).await?;

    let log = ran(kubeconfig, &["logs", "deploy/web"]).await?;
    ensure!(
        log.error.is_none() && log.out.is_empty() && log.err.is_empty(),
        "{log:?}"
    );
    let described = ran(kubeconfig, &["describe", "deploy/web"]).await?;
    let policy = format!("Policy:       PropagationPolicy {}/web", scene.ns);
    for part in [
        policy.as_str(),
        "Binding:      ResourceBinding web-deployment",
        "member1",
    ] {
        ensure!(described.out.contains(part), "{part}: {described:?}");
    }
    let described = ran(kubeconfig, &["describe", "deploy/web", "-C", "member1"]).await?;
    for part in ["Cluster:      member1", "image: nginx"] {
        ensure!(described.out.contains(part), "{part}: {described:?}");
    }
    let executed = ran(kubeconfig, &["exec", "web", "-C", "member1", "--", "true"]).await?;
    let error = executed.error.clone().unwrap_or_default();
    ensure!(error.contains("does not have a host assigned"), "{executed:?}");
    let measured = ran(kubeconfig, &["top", "pods", "-C", "member1"]).await?;
    let error = measured.error.clone().unwrap_or_default();
    ensure!(
        error == "no metrics of 1/1 clusters" && measured.err.contains("install metrics-server"),
        "{measured:?}"
    );
    revoke(&scene.hub, &name).await?;
    revoke(&member, &name).await
}

async fn a_user_of_the_hub_has_its_own_rights_on_a_member(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
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
    let kubeconfig = scene.bed.dir().join(format!("{ns}-through.kubeconfig"));
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "through",
        "clusters": [{"name": "through", "cluster": {"server": format!("https://{address}"), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "robot", "user": {"token": token}}],
        "contexts": [{"name": "through", "context": {"cluster": "through", "user": "robot", "namespace": ns}}],
    });
    std::fs::write(&kubeconfig, text.to_string())?;
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

    commands(scene, &user, &kubeconfig).await?;

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
