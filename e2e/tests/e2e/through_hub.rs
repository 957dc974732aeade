//! `entourage proxy` before a hub, with the rights of `config/proxy`: a user of the hub on a member, and the commands that go this way.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

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

use super::{
    distribution_rights::until_granted,
    rights::{Right, forget, grant_but, of},
};

tests![
    a_user_of_the_hub_has_its_own_rights_on_a_member,
    each_right_of_the_proxy_that_is_denied_is_named_to_the_user,
];

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
    server.call("POST", BINDINGS, Some(binding)).await?;
    let user = binding["subjects"][0]["name"].as_str().context("a user")?;
    until_granted(server, user, "", &role["rules"]).await
}

async fn revoke(server: &Server, name: &str) -> Result<()> {
    for plural in [BINDINGS, ROLES] {
        match server.call("DELETE", &format!("{plural}/{name}"), None).await {
            Err(error) if status_code(&error) == 404 => {}
            gone => drop(gone?),
        }
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
    let name = scene.own("commands");
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
    Ok(())
}

/// `entourage proxy` before the hub, and a user of the hub who goes through it.
struct Through {
    front: Server,
    kubeconfig: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

/// Runs the proxy as this account.
async fn through(scene: &Scene, account: String) -> Result<Through> {
    let hub = scene.bed.fleet.hub.config();
    let mut config = hub.clone();
    config.auth_info.impersonate = Some(account);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let names = ["127.0.0.1".to_owned()];
    let (tls, _) = interpret::self_signed(&names, jiff::Timestamp::now()).map_err(|why| anyhow!(why))?;
    let stop = CancellationToken::new();
    let server = Arc::new(front(&config.into(), "karmada-cluster", &stop)?);
    let serving = AbortOnDropHandle::new(tokio::spawn(serve(listener, tls, server, stop)));

    let ns = &scene.ns;
    let robot =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": ns}});
    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    match scene.hub.call("POST", &accounts, Some(&robot)).await {
        Err(error) if status_code(&error) == 409 => {}
        made => drop(made?),
    }
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
    Ok(Through {
        front,
        kubeconfig,
        _serving: serving,
    })
}

/// The user of [`through`].
fn robot(scene: &Scene) -> String {
    format!("system:serviceaccount:{}:robot", scene.ns)
}

/// The right on the hub to reach members.
fn reaching() -> Value {
    json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["get"]}])
}

/// The right on a member to list its namespaces.
fn listing() -> Value {
    json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}])
}

const NAMESPACES: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api/v1/namespaces";

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
    let reached = reaches_a_member(scene).await;
    leave(scene).await?;
    reached
}

async fn reaches_a_member(scene: &Scene) -> Result<()> {
    scene.bed.join("member1", &["--impersonate", "everyone"]).await?;
    let account = "system:serviceaccount:karmada-system:entourage-proxy";
    let Through {
        front,
        kubeconfig,
        _serving,
    } = through(scene, account.to_owned()).await?;
    let (name, user) = (scene.own("robot"), robot(scene));

    // The hub decides first.
    let (code, words) = refused(front.call("GET", NAMESPACES, None).await)?;
    ensure!(code == 403 && words.contains("clusters/proxy"), "{words}");
    grant(&scene.hub, &granted(&name, &user, &reaching())).await?;
    // Then the member.
    let (code, words) = refused(front.call("GET", NAMESPACES, None).await)?;
    let member_says = format!("User \"{user}\" cannot list resource \"namespaces\"");
    ensure!(code == 403 && words.contains(&member_says), "{words}");
    let member = scene.member("member1")?.clone();
    grant(&member, &granted(&name, &user, &listing())).await?;
    let answer = front.call("GET", NAMESPACES, None).await?;
    ensure!(answer["kind"] == "NamespaceList", "{answer}");
    // All else is the hub's answer to the robot itself.
    let (code, words) = refused(front.call("GET", "/api/v1/namespaces", None).await)?;
    ensure!(code == 403 && words.contains(&member_says), "{words}");

    commands(scene, &user, &kubeconfig).await
}

/// Takes the rights of the robot and the way to the member away: other tests share both servers.
async fn leave(scene: &Scene) -> Result<()> {
    for name in ["robot", "commands"] {
        for server in [&scene.hub, scene.member("member1")?] {
            revoke(server, &scene.own(name)).await?;
        }
    }
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

/// The rights of `config/proxy`, each with the words of the answer to the user without it.
const RIGHTS: [(&str, &str, &str); 4] = [
    (
        "create",
        "tokenreviews.authentication.k8s.io",
        "may not create tokenreviews on the hub; run `kubectl apply -k config/proxy`",
    ),
    (
        "create",
        "subjectaccessreviews.authorization.k8s.io",
        "may not create subjectaccessreviews on the hub; run `kubectl apply -k config/proxy`",
    ),
    (
        "get",
        "clusters.cluster.karmada.io",
        "cluster member1 cannot be read on the hub",
    ),
    ("get", "secrets", "no connection to cluster member1"),
];

async fn each_right_of_the_proxy_that_is_denied_is_named_to_the_user(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let (all, account) = (
        of(include_str!("../../../config/proxy/role.yaml"))?,
        scene.own("proxy"),
    );
    let named = is_each_named(scene, &account, &all).await;
    leave(scene).await?;
    forget(scene, &account, &all).await?;
    named
}

async fn is_each_named(scene: &Scene, account: &str, all: &BTreeSet<Right>) -> Result<()> {
    scene.bed.join("member1", &["--impersonate", "everyone"]).await?;
    let (name, user) = (scene.own("robot"), robot(scene));
    grant(&scene.hub, &granted(&name, &user, &reaching())).await?;
    grant(scene.member("member1")?, &granted(&name, &user, &listing())).await?;
    let rows: BTreeSet<_> = RIGHTS
        .iter()
        .map(|(verb, resource, _)| (*verb, *resource))
        .collect();
    let rights: BTreeSet<_> = all.iter().map(|right| (&*right.verb, &*right.resource)).collect();
    ensure!(rows == rights, "granted: {rights:?}, in the table: {rows:?}");
    for (verb, resource, words) in RIGHTS {
        grant_but(scene, account, all, &[(verb, resource)]).await?;
        // A proxy that has reached the member keeps its connection.
        let through = through(scene, account.to_owned()).await?;
        let (code, text) = refused(through.front.call("GET", NAMESPACES, None).await)?;
        ensure!(code == 503 && text.contains(words), "{code} {text}");
        grant_but(scene, account, all, &[]).await?;
        let answer = through.front.call("GET", NAMESPACES, None).await?;
        ensure!(answer["kind"] == "NamespaceList", "{answer}");
    }
    Ok(())
}
