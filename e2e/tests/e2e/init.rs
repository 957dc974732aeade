//! `entourage init`, `preflight` and `support-bundle` on hubs that run.

use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use entourage::command::{Cli, Command, init, preflight, support_bundle};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_hub_is_set_up_once_and_a_second_run_changes_nothing,
    a_role_that_somebody_else_changed_is_refused_and_taken_over_on_request,
    a_hub_passes_what_its_control_plane_needs,
    a_support_bundle_has_bindings_and_no_payload,
];

/// The role of a part that no other test sets up.
const ROLE: &str = "entourage-propagate-apiservices";

/// A command line with the kubeconfig of the hub, parsed.
fn parsed(scene: &Scene, line: &[&str]) -> Result<Command> {
    let hub = scene.bed.fleet.hub.kubeconfig_path();
    let mut all = vec!["entourage"];
    all.extend(line);
    all.extend(["--kubeconfig", hub.to_str().context("text")?]);
    Ok(Cli::try_parse_from(all)?.command)
}

/// `entourage init`; the lines.
async fn initialise(scene: &Scene, more: &[&str]) -> Result<String> {
    let mut line = vec!["init", "--parts", "apiservices"];
    line.extend(more);
    let Command::Init(args) = parsed(scene, &line)? else {
        unreachable!()
    };
    let mut out = Vec::new();
    init::run(*args, &mut out).await?;
    Ok(String::from_utf8(out)?)
}

/// The next test, or the next run on the same servers, sets it up again.
async fn remove_role(scene: &Scene) -> Result<()> {
    scene.hub.delete("ClusterRole", "", ROLE).await
}

async fn a_hub_is_set_up_once_and_a_second_run_changes_nothing(scene: &mut Scene) -> Result<()> {
    let dry = initialise(scene, &["--dry-run"]).await?;
    ensure!(
        dry.contains(&format!("{ROLE} created (dry run)")) && dry.contains("would be written"),
        "{dry}"
    );
    ensure!(scene.hub.get("ClusterRole", "", ROLE).await?.is_none(), "written");

    let first = initialise(scene, &[]).await?;
    ensure!(
        first.contains(&format!("clusterrole.rbac.authorization.k8s.io/{ROLE} created")),
        "{first}"
    );
    let role = scene.hub.get("ClusterRole", "", ROLE).await?;
    let second = initialise(scene, &[]).await?;
    ensure!(second.trim_end().ends_with("no changes."), "{second}");
    ensure!(
        !second.contains("created") && !second.contains("configured"),
        "{second}"
    );
    assert_eq!(scene.hub.get("ClusterRole", "", ROLE).await?, role);
    remove_role(scene).await
}

async fn a_role_that_somebody_else_changed_is_refused_and_taken_over_on_request(
    scene: &mut Scene,
) -> Result<()> {
    scene
        .hub
        .apply(
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": ROLE}, "rules": []}),
        )
        .await?;
    let foreign = scene.hub.get("ClusterRole", "", ROLE).await?;
    let refused = initialise(scene, &[]).await;
    let error = format!("{:#}", refused.err().context("it was taken over")?);
    ensure!(error.contains(ROLE) && error.contains("--take-over"), "{error}");
    assert_eq!(scene.hub.get("ClusterRole", "", ROLE).await?, foreign);

    initialise(scene, &["--take-over"]).await?;
    let role = scene.hub.get("ClusterRole", "", ROLE).await?.context("gone")?;
    ensure!(
        role["rules"].as_array().is_some_and(|rules| !rules.is_empty()),
        "{role}"
    );
    let again = initialise(scene, &[]).await?;
    ensure!(again.trim_end().ends_with("no changes."), "{again}");
    remove_role(scene).await
}

async fn a_hub_passes_what_its_control_plane_needs(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let Command::Preflight(args) = parsed(scene, &["preflight", "--probe", "-o", "json"])? else {
        unreachable!()
    };
    let mut out = Vec::new();
    preflight::run(args, &mut out).await?;
    let report: Value = serde_json::from_slice(&out)?;
    let findings = report["findings"].as_array().context("findings")?;
    for check in [
        "version",
        "clock",
        "rights",
        "definitions",
        "controllers",
        "karmada",
    ] {
        let mut of_check = findings.iter().filter(|finding| finding["check"] == check);
        ensure!(of_check.clone().count() > 0, "no {check}: {report:#}");
        ensure!(
            of_check.all(|finding| finding["level"] == "OK"),
            "{check}: {report:#}"
        );
    }
    Ok(())
}

async fn a_support_bundle_has_bindings_and_no_payload(scene: &mut Scene) -> Result<()> {
    const CANARY: &str = "hunter2-canary";
    scene.start().await?;
    let mut deployment = manifests::deployment("web", &[]);
    deployment["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "PASSWORD", "value": CANARY}]);
    deployment["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "login", "secret": {"secretName": "login"}}]);
    let mut policy = manifests::policy_for("web", "Deployment", "web", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(true);
    for object in [manifests::secret("login", CANARY), policy, deployment] {
        scene.apply(object).await?;
    }
    scene.until_held("Secret", "login", &["member1"]).await?;

    let file = scene.bed.dir().join(format!("{}.tar.gz", scene.ns));
    let path = file.to_str().context("text")?;
    let Command::SupportBundle(args) = parsed(scene, &["support-bundle", "--output", path])? else {
        unreachable!()
    };
    let mut out = Vec::new();
    support_bundle::run(args, &mut out).await?;
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&file)?).read_to_end(&mut content)?;
    let content = String::from_utf8_lossy(&content);
    ensure!(content.contains("web-deployment"), "no binding");
    ensure!(
        content.contains("hub/clusters.cluster.karmada.io.json"),
        "no clusters"
    );
    let encoded = serde_json::to_value(k8s_openapi::ByteString(CANARY.as_bytes().to_vec()))?;
    for secret in [CANARY, encoded.as_str().context("text")?] {
        ensure!(!content.contains(secret), "{secret} is in the bundle");
    }
    Ok(())
}
