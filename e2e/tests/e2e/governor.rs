//! Deletions that no edit explains are paused above a budget, until a user resumes them.

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use entourage::command::{Cli, Command, resume};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    deletions_that_no_edit_explains_pause_and_go_on_when_released,
    what_a_user_deletes_is_not_limited,
];

/// More than the least budget.
const MANY: usize = 25;

/// ConfigMaps that a policy propagates to member1, and one that exists to the end: else the hub would look empty.
async fn many(scene: &mut Scene) -> Result<()> {
    let mut policy = manifests::policy_for("many", "ConfigMap", "", &["member1"]);
    policy["spec"]["resourceSelectors"][0] = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"many": "yes"}},
    });
    let selectors = policy["spec"]["resourceSelectors"]
        .as_array_mut()
        .context("selectors")?;
    selectors.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "stays"}));
    scene.apply(policy).await?;
    scene.apply(manifests::config_map("stays", "a")).await?;
    for n in 0..MANY {
        let mut object = manifests::config_map(&format!("many{n:02}"), "a");
        object["metadata"]["labels"] = json!({"many": "yes"});
        scene.apply(object).await?;
    }
    scene.start().await?;
    until_left(scene, MANY).await?;
    eventually("the one that stays is there", async || {
        let there = scene
            .member("member1")?
            .get("ConfigMap", &scene.ns, "stays")
            .await?;
        ensure!(there.is_some(), "it is not there");
        Ok(())
    })
    .await
}

async fn left(scene: &Scene) -> Result<usize> {
    let all = scene
        .member("member1")?
        .list("ConfigMap", &scene.ns, "many=yes")
        .await?;
    Ok(all.len())
}

async fn until_left(scene: &Scene, count: usize) -> Result<()> {
    eventually(&format!("{count} are left"), async || {
        let left = left(scene).await?;
        ensure!(left == count, "{left} are left");
        Ok(())
    })
    .await
}

async fn delete_all(scene: &Scene) -> Result<()> {
    for n in 0..MANY {
        scene.delete("ConfigMap", &format!("many{n:02}")).await?;
    }
    Ok(())
}

async fn paused(scene: &Scene) -> Result<Value> {
    let cluster = scene
        .hub
        .get("Cluster", "", "member1")
        .await?
        .context("no Cluster")?;
    let all = cluster["status"]["conditions"]
        .as_array()
        .context("no conditions")?;
    let found = all.iter().find(|each| each["type"] == "RemovalsPaused");
    Ok(found.cloned().unwrap_or_default())
}

async fn deletions_that_no_edit_explains_pause_and_go_on_when_released(scene: &mut Scene) -> Result<()> {
    many(scene).await?;
    scene.stop().await?;
    delete_all(scene).await?;
    scene.start().await?;
    let held = eventually("deletions are paused, and counted", async || {
        let paused = paused(scene).await?;
        let message = paused["message"].as_str().unwrap_or_default();
        ensure!(
            paused["status"] == "True" && message.contains(". 5 deletions wait"),
            "{paused}"
        );
        Ok(paused)
    })
    .await?;
    ensure!(held["reason"] == "UnexplainedRemovals", "{held}");
    ensure!(left(scene).await? == MANY - 20);
    scene.restart().await?;
    scene.quiet().await?;
    ensure!(left(scene).await? == MANY - 20, "the pause outlives the process");
    ensure!(paused(scene).await? == held);
    let kubeconfig = scene.bed.fleet.hub.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().context("text")?;
    let Command::Resume(args) =
        Cli::try_parse_from(["entourage", "resume", "member1", "--kubeconfig", kubeconfig])?.command
    else {
        unreachable!()
    };
    let mut out = Vec::new();
    resume::run(args, &mut out).await?;
    let out = String::from_utf8(out)?;
    ensure!(out.contains("deletions resumed"), "{out}");
    until_left(scene, 0).await?;
    let over = paused(scene).await?;
    ensure!(
        over["status"] == "False" && over["reason"] == "RemovalsResumed",
        "{over}"
    );
    Ok(())
}

async fn what_a_user_deletes_is_not_limited(scene: &mut Scene) -> Result<()> {
    many(scene).await?;
    delete_all(scene).await?;
    until_left(scene, 0).await?;
    ensure!(paused(scene).await?["status"] != "True");
    Ok(())
}
