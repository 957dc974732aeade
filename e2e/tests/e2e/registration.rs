//! Clusters that are registered by a bootstrap token: `entourage token`, `entourage register`, and the certificate of `entourage agent`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use entourage::command::{Cli, Command, register, token};
use entourage_api::names;
use entourage_e2e::{
    harness::{Scene, condition, eventually},
    servers::CommandProcess,
    tests,
};
use http::Request;
use kube::config::Kubeconfig;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{
    agent,
    distribution_rights::{granted, roles, unlimit},
};

tests![
    a_cluster_is_registered_by_a_token_and_its_agent_renews_its_certificate,
    a_cluster_is_registered_by_the_address_of_the_hub_a_token_and_a_hash,
    a_token_registers_its_own_cluster_and_no_other,
    a_deleted_token_registers_nothing,
];

const DEFAULT: &str = include_str!("../../../config/rbac/role.yaml");
const REGISTRATION: &str = include_str!("../../../config/rbac-registration/role.yaml");
const SIGNER: &str = include_str!("../../../config/rbac-discovery/role.yaml");

/// A hub whose controllers approve and sign with the rights of `config/rbac-registration` and `config/rbac-discovery`. Returns
/// what [`unlimit`] deletes.
async fn begin(scene: &mut Scene) -> Result<Vec<String>> {
    let (mut rules, mut namespaced) = roles(DEFAULT)?;
    rules.extend(roles(REGISTRATION)?.0);
    namespaced.extend(roles(SIGNER)?.1);
    scene.options.sign_cluster_info = true;
    let made = granted(scene, &rules, namespaced).await?;
    scene.options.approve_agents = true;
    scene.start().await?;
    Ok(made)
}

/// The clusters leave the hub, with their rights and tokens.
async fn end(scene: &mut Scene, made: &[String], clusters: &[&str]) -> Result<()> {
    for cluster in clusters {
        scene.bed.unjoin(cluster, &["--force"]).await?;
        for plural in ["clusterroles", "clusterrolebindings"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
            let all = scene.hub.call("GET", &path, None).await?;
            for name in ["register", "registered"] {
                let name = format!("entourage-{name}-{cluster}");
                let mut all = all["items"].as_array().into_iter().flatten();
                let is_it = |each: &Value| {
                    let held = each["metadata"]["name"].as_str().unwrap_or_default();
                    held == name || held == format!("{name}-certificate")
                };
                ensure!(!all.any(is_it), "{plural} {name} is left");
            }
        }
        // It has the rights of an agent that is set up by hand, too.
        scene
            .hub
            .delete("ClusterRole", "", &format!("entourage-agent-{cluster}"))
            .await?;
    }
    ensure!(
        !token(scene, &["list"]).await?.contains(clusters[0]),
        "a token is left"
    );
    scene.kill();
    unlimit(scene, made).await
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

/// `entourage token …` on the hub; what it printed.
async fn token(scene: &Scene, more: &[&str]) -> Result<String> {
    let hub = scene.bed.fleet.hub.kubeconfig_path();
    let mut line = vec!["entourage", "token"];
    line.extend(more);
    line.extend(["--kubeconfig", text(&hub)?]);
    let Command::Token(args) = Cli::try_parse_from(line)?.command else {
        unreachable!()
    };
    let (mut out, mut steps) = (Vec::new(), Vec::new());
    token::run(args, &mut out, &mut steps).await?;
    Ok(String::from_utf8(out)?)
}

/// `entourage token create`; the file with the kubeconfig.
async fn created(scene: &Scene, cluster: &str) -> Result<PathBuf> {
    let printed = token(
        scene,
        &[
            "create",
            cluster,
            "--region",
            "edge",
            "--description",
            "of a test",
        ],
    )
    .await?;
    let file = scene.bed.dir().join(format!("{cluster}-bootstrap.kubeconfig"));
    std::fs::write(&file, printed)?;
    // A real server learns of tokens and rights by watches of its own.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": "create", "group": "certificates.k8s.io", "resource": "certificatesigningrequests",
        }},
    });
    eventually("the hub knows the token and its rights", async || {
        let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())?;
        let reviewed: Value = client(&file).await?.request(request).await?;
        ensure!(reviewed["status"]["allowed"] == true, "{}", reviewed["status"]);
        Ok(())
    })
    .await?;
    Ok(file)
}

/// `entourage register` for the third member, with an agent outside of it.
async fn register(scene: &Scene, bootstrap: &Path, more: &[&str]) -> Result<(PathBuf, String)> {
    let member = scene.bed.fleet.members[2].kubeconfig_path();
    let file = scene.bed.dir().join(format!("{}-agent.kubeconfig", scene.ns));
    let mut line = vec![
        "entourage",
        "register",
        "--bootstrap-kubeconfig",
        text(bootstrap)?,
        "--kubeconfig",
        text(&member)?,
        "--hub-kubeconfig",
        text(&file)?,
    ];
    line.extend(more);
    let Command::Register(args) = Cli::try_parse_from(line)?.command else {
        unreachable!()
    };
    let mut out = Vec::new();
    register::run(*args, &mut out).await?;
    Ok((file.clone(), String::from_utf8(out)?))
}

/// The token in a kubeconfig of `entourage token create`.
fn secret_of(file: &Path) -> Result<String> {
    let read = Kubeconfig::read_from(file)?;
    let user = read.auth_infos[0].auth_info.as_ref().context("a user")?;
    let token = user.token.as_ref().context("a token")?;
    Ok(token.expose_secret().to_owned())
}

async fn a_cluster_is_registered_by_a_token_and_its_agent_renews_its_certificate(
    scene: &mut Scene,
) -> Result<()> {
    let made = begin(scene).await?;
    let cluster = scene.ns.clone();
    let works = scene.space_of(&names::execution_namespace(&cluster)).ns;
    let bootstrap = created(scene, &cluster).await?;
    let secret = secret_of(&bootstrap)?;
    let (id, hidden) = secret.split_once('.').context("two parts")?;
    let listed = token(scene, &["list"]).await?;
    let row = listed
        .lines()
        .find(|line| line.starts_with(id))
        .context("no row")?;
    ensure!(row.contains(&cluster) && row.contains("of a test"), "{listed}");
    ensure!(!listed.contains(hidden), "the secret part is shown");

    let (file, printed) = register(scene, &bootstrap, &[]).await?;
    ensure!(
        printed.contains("certificate of the agent") && printed.contains("entourage agent"),
        "{printed}"
    );
    let member = scene.bed.fleet.members[2].kubeconfig_path();
    // All of its time is no more than what must be left: the certificate is renewed at each check.
    let arguments = [
        "agent",
        "--cluster-name",
        &cluster,
        "--hub-kubeconfig",
        text(&file)?,
        "--kubeconfig",
        text(&member)?,
        "--health-addr=off",
        "--cluster-status-update-frequency=500ms",
        "--cert-rotation-checking-interval=5s",
        "--cert-rotation-remaining-time-threshold=1",
    ];
    let first = std::fs::read_to_string(&file)?;
    let mut process = CommandProcess::start("agent", scene.bed.dir(), &arguments)?;
    eventually("the cluster is ready", async || {
        process.check()?;
        let held = scene
            .hub
            .get("Cluster", "", &cluster)
            .await?
            .context("no Cluster")?;
        ensure!(
            condition(&held, "Ready")["status"] == "True",
            "{}",
            held["status"]
        );
        ensure!(held["spec"]["region"] == "edge", "{}", held["spec"]);
        Ok(())
    })
    .await?;
    eventually("the certificate is renewed", async || {
        process.check()?;
        let now = std::fs::read_to_string(&file)?;
        ensure!(now != first, "{}", process.output()?);
        Ok(())
    })
    .await?;
    // By the renewed certificate the agent applies and reports the Works of its cluster.
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.ns}});
    agent::create(scene, "shop", shop).await?;
    agent::create(scene, "config", agent::config("1")).await?;
    agent::applied(scene, "config").await?;
    agent::has(scene, Some("1")).await?;
    process.check()?;
    // It sees those of no other cluster, and no Secret.
    let own = client(&file).await?;
    let read = async |path: &str| {
        own.request_text(Request::get(path).body(Vec::new())?)
            .await
            .map_err(anyhow::Error::from)
    };
    read(&format!(
        "/apis/work.karmada.io/v1alpha1/namespaces/{works}/works"
    ))
    .await?;
    for path in [
        "/apis/work.karmada.io/v1alpha1/works",
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works",
        "/api/v1/namespaces/karmada-cluster/secrets",
    ] {
        let error = read(path)
            .await
            .err()
            .with_context(|| format!("the agent reads {path}"))?;
        ensure!(format!("{error:?}").contains("Forbidden"), "{path}: {error:?}");
    }
    let logged = [process.output()?, scene.bed.log.with(hidden).join("\n")];
    ensure!(
        logged.iter().all(|log| !log.contains(hidden)),
        "the token is logged"
    );
    for name in ["config", "shop"] {
        agent::delete(scene, name).await?;
    }
    agent::has(scene, None).await?;
    drop(process);
    end(scene, &made, &[&cluster]).await
}

/// A client with a kubeconfig.
async fn client(file: &Path) -> Result<kube::Client> {
    let config =
        kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &Default::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

async fn a_cluster_is_registered_by_the_address_of_the_hub_a_token_and_a_hash(
    scene: &mut Scene,
) -> Result<()> {
    let made = begin(scene).await?;
    let cluster = scene.ns.clone();
    let printed = token(scene, &["create", &cluster, "--print-register-command"]).await?;
    let words: Vec<&str> = printed.split_whitespace().collect();
    // It ends with the image of the agent.
    let given = words.strip_suffix(&["--image", "IMAGE"]).context("an image")?;
    let member = scene.bed.fleet.members[2].kubeconfig_path();
    let file = scene.bed.dir().join(format!("{cluster}-agent.kubeconfig"));
    let ran = async |given: &[&str]| -> Result<String> {
        let ends = ["--kubeconfig", text(&member)?, "--hub-kubeconfig", text(&file)?];
        let Command::Register(args) = Cli::try_parse_from(given.iter().chain(&ends))?.command else {
            unreachable!()
        };
        let mut out = Vec::new();
        register::run(*args, &mut out).await?;
        Ok(String::from_utf8(out)?)
    };
    // The last word is the hash: of another authority.
    let (hash, others) = given.split_last().context("a hash")?;
    let other = format!("sha256:{}", "0".repeat(64));
    let refused = ran(&[others, &[other.as_str()]].concat()).await;
    let error = format!("{:#}", refused.err().context("another authority is trusted")?);
    ensure!(error.contains("--discovery-token-ca-cert-hash"), "{error}");
    let done = ran(&[others, &[*hash]].concat()).await?;
    ensure!(
        done.contains("verified") && done.contains("certificate of the agent"),
        "{done}"
    );
    ensure!(client(&file).await?.apiserver_version().await.is_ok());
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public";
    for path in [
        "/api/v1/namespaces/kube-public/configmaps/cluster-info".to_owned(),
        format!("{rbac}/rolebindings/entourage-cluster-info"),
        format!("{rbac}/roles/entourage-cluster-info"),
    ] {
        scene.hub.call("DELETE", &path, None).await?;
    }
    end(scene, &made, &[&cluster]).await
}

async fn a_token_registers_its_own_cluster_and_no_other(scene: &mut Scene) -> Result<()> {
    let made = begin(scene).await?;
    let (one, other) = (scene.ns.clone(), scene.own("two"));
    let bootstrap = created(scene, &one).await?;
    created(scene, &other).await?;
    let refused = register(scene, &bootstrap, &["--cluster-name", &other, "--wait", "3s"]).await;
    let error = format!("{:#}", refused.err().context("another cluster was registered")?);
    ensure!(error.contains("is not approved after 3 s"), "{error}");
    end(scene, &made, &[&one, &other]).await
}

async fn a_deleted_token_registers_nothing(scene: &mut Scene) -> Result<()> {
    let made = begin(scene).await?;
    let cluster = scene.ns.clone();
    let bootstrap = created(scene, &cluster).await?;
    let secret = secret_of(&bootstrap)?;
    let printed = token(scene, &["delete", &secret]).await?;
    ensure!(
        printed.contains("deleted") && !printed.contains(&secret),
        "{printed}"
    );
    eventually("the token is no longer accepted", async || {
        let refused = register(scene, &bootstrap, &["--wait", "2s"]).await;
        let error = format!("{:#}", refused.err().context("a deleted token registers")?);
        ensure!(error.contains("credentials are not accepted"), "{error}");
        Ok(())
    })
    .await?;
    end(scene, &made, &[&cluster]).await
}
