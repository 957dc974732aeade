//! Autoscalers on members: `--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer`.
//!
//! No autoscaler runs on the members: the tests set the replicas that one would.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, eventually_within, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    the_members_of_a_workload_that_a_propagated_autoscaler_scales_keep_their_replicas,
    the_replicas_of_a_template_are_what_its_members_have,
];

const BOTH: &[&str] = &["member1", "member2"];
/// Longer than the steps of autoscalers are collected.
const COLLECTED: Duration = Duration::from_secs(60);
const RETAIN: &str = "resourcetemplate.karmada.io/retain-replicas";
const SCALED_BY: &str = "entourage.dev/scaled-by";

/// An autoscaler of the version that every server has.
fn autoscaler(target: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "by-load"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
                 "minReplicas": 1, "maxReplicas": 50},
    })
}

fn path(scene: &Scene, name: &str) -> String {
    let namespace = &scene.ns;
    format!("/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers{name}")
}

async fn propagate_autoscaler(scene: &Scene, target: &str) -> Result<()> {
    let mut policy = manifests::policy_for("scaling", "HorizontalPodAutoscaler", "by-load", BOTH);
    policy["spec"]["resourceSelectors"][0]["apiVersion"] = json!("autoscaling/v1");
    scene.apply(policy).await?;
    let body = autoscaler(target);
    scene.hub.call("POST", &path(scene, ""), Some(&body)).await?;
    Ok(())
}

/// A Deployment whose replicas are divided evenly.
async fn divided(scene: &Scene, replicas: i64, labels: Value) -> Result<()> {
    let mut workload = manifests::deployment("web", &[]);
    workload["spec"]["replicas"] = json!(replicas);
    workload["metadata"]["labels"] = labels;
    scene.apply(workload).await?;
    let mut policy = manifests::policy_for("web", "Deployment", "web", BOTH);
    let rules = BOTH
        .iter()
        .map(|name| json!({"targetCluster": {"clusterNames": [name]}, "weight": 1}));
    policy["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": rules.collect::<Vec<_>>()},
    });
    scene.apply(policy).await?;
    scene.until_held("Deployment", "web", BOTH).await
}

async fn until_label(scene: &Scene, label: &Value, by: &Value) -> Result<()> {
    eventually("the template has the label", async || {
        let found = scene.get("Deployment", "web").await?;
        let meta = &found["metadata"];
        ensure!(
            (&meta["labels"][RETAIN], &meta["annotations"][SCALED_BY]) == (label, by),
            "{meta}"
        );
        Ok(())
    })
    .await
}

async fn scale(scene: &Scene, member: &str, to: i64) -> Result<()> {
    let change = |live: &mut Value| live["spec"]["replicas"] = json!(to);
    scene.edit_on(member, "Deployment", "web", change).await?;
    Ok(())
}

async fn until_replicas(scene: &Scene, member: &str, wanted: i64) -> Result<()> {
    eventually(&format!("{member} has {wanted} replicas"), async || {
        let copy = scene.copy(member, "Deployment", "web").await?;
        ensure!(copy["spec"]["replicas"] == wanted, "{}", copy["spec"]["replicas"]);
        Ok(())
    })
    .await
}

async fn until_sum(scene: &Scene, sum: i64, shares: &Value) -> Result<()> {
    eventually_within(
        COLLECTED,
        &format!("the template has {sum} replicas"),
        async || {
            let found = scene.get("Deployment", "web").await?;
            ensure!(found["spec"]["replicas"] == sum, "{}", found["spec"]["replicas"]);
            let binding = scene.binding("web-deployment").await?;
            ensure!(
                binding["spec"]["clusters"] == *shares,
                "{}",
                binding["spec"]["clusters"]
            );
            Ok(())
        },
    )
    .await
}

async fn the_members_of_a_workload_that_a_propagated_autoscaler_scales_keep_their_replicas(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.mark_scale_targets = true;
    scene.start().await?;
    divided(scene, 2, json!({"app": "web"})).await?;
    propagate_autoscaler(scene, "web").await?;
    until_label(scene, &json!("true"), &json!("by-load")).await?;
    scene.quiet().await?;
    scale(scene, "member1", 4).await?;
    scene.quiet().await?;
    until_replicas(scene, "member1", 4).await?;
    let template = scene.get("Deployment", "web").await?;
    ensure!(
        template["spec"]["replicas"] == 2,
        "{}",
        template["spec"]["replicas"]
    );
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(
        wrote == 0,
        "{wrote} writes after a restart: {:#?}",
        scene.writes()
    );

    scene
        .hub
        .call("DELETE", &path(scene, "/by-load"), None)
        .await
        .context("the end of the autoscaler")?;
    until_label(scene, &Value::Null, &Value::Null).await?;
    until_replicas(scene, "member1", 1).await
}

async fn the_replicas_of_a_template_are_what_its_members_have(scene: &mut Scene) -> Result<()> {
    scene.options.sync_replicas = true;
    scene.start().await?;
    divided(scene, 2, json!({ "app": "web", RETAIN: "true" })).await?;
    scale(scene, "member1", 7).await?;
    scale(scene, "member2", 3).await?;
    until_sum(
        scene,
        10,
        &json!([{"name": "member1", "replicas": 7}, {"name": "member2", "replicas": 3}]),
    )
    .await?;
    scene.quiet().await?;
    until_replicas(scene, "member1", 7).await?;
    until_replicas(scene, "member2", 3).await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(
        wrote == 0,
        "{wrote} writes after a restart: {:#?}",
        scene.writes()
    );

    // A user's number is set back; the members never see it.
    let change = |live: &mut Value| live["spec"]["replicas"] = json!(50);
    scene.hub.edit("Deployment", &scene.ns, "web", change).await?;
    until_sum(
        scene,
        10,
        &json!([{"name": "member1", "replicas": 7}, {"name": "member2", "replicas": 3}]),
    )
    .await?;
    scene.quiet().await?;
    until_replicas(scene, "member1", 7).await
}
