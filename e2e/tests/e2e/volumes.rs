//! Claims hold data: they stay where they were bound, and end where a user ends them.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_bound_claim_stays_when_its_workload_moves_and_is_managed_again_when_it_returns,
    a_bound_claim_stays_when_its_workload_is_deleted_and_goes_when_its_user_deletes_it,
    a_bound_claim_goes_with_its_workload_where_the_policy_says_so,
    claims_and_volumes_that_are_deleted_on_the_hub_are_gone,
];

const CLAIM: &str = "PersistentVolumeClaim";
const RELEASED_FROM: &str = "entourage.dev/released-from";

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn workload() -> Value {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    manifests::workload("Deployment", "myapp", &json!({"volumes": volumes}))
}

fn policy(members: &[&str]) -> Value {
    let mut policy = manifests::policy_for("myapp", "Deployment", "myapp", members);
    policy["spec"]["propagateDeps"] = json!(true);
    policy
}

/// Binds the claim as the volume controller of a member does.
async fn bind(scene: &Scene, member: &str) -> Result<()> {
    let name = |claim: &mut Value| {
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
        claim["spec"]["volumeName"] = json!("some-volume");
    };
    scene.edit_on(member, CLAIM, "data", name).await?;
    let phase = |claim: &mut Value| claim["status"]["phase"] = json!("Bound");
    let server = scene.member(member)?;
    server.edit_status(CLAIM, &scene.ns, "data", phase).await?;
    scene
        .until_condition("data-persistentvolumeclaim", "FullyApplied", "True", "")
        .await?;
    scene.quiet().await?;
    Ok(())
}

async fn bound(scene: &mut Scene, policy: Value) -> Result<Value> {
    scene.start().await?;
    for object in [claim(), workload(), policy] {
        scene.apply(object).await?;
    }
    scene.until_held(CLAIM, "data", &["member1"]).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    bind(scene, "member1").await?;
    scene.copy("member1", CLAIM, "data").await
}

/// The claim on a member was released, and an annotation names the hub and the binding that it was released from.
async fn until_released(scene: &Scene, member: &str) -> Result<Value> {
    eventually("the claim is released", async || {
        let claim = scene.copy(member, CLAIM, "data").await?;
        let meta = &claim["metadata"];
        ensure!(meta["deletionTimestamp"].is_null(), "it is being deleted");
        ensure!(meta["labels"]["entourage.dev/hub"].is_null(), "{meta}");
        let trace = meta["annotations"][RELEASED_FROM].as_str().unwrap_or_default();
        let whose = format!("/{}/data-persistentvolumeclaim", scene.ns);
        ensure!(trace.ends_with(&whose), "{meta}");
        Ok(claim)
    })
    .await
}

/// Removes the finalizer of a claim that is being deleted on a member: no controller does it there.
async fn until_let_go(scene: &Scene, member: &str) -> Result<()> {
    eventually("the claim goes", async || {
        let Some(copy) = scene.on(member, CLAIM, "data").await? else {
            return Ok(());
        };
        let meta = &copy["metadata"];
        ensure!(meta["deletionTimestamp"].is_string(), "it stays: {meta}");
        let let_go = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
        scene.edit_on(member, CLAIM, "data", let_go).await?;
        anyhow::bail!("it is held by {}", meta["finalizers"])
    })
    .await
}

async fn a_bound_claim_stays_when_its_workload_moves_and_is_managed_again_when_it_returns(
    scene: &mut Scene,
) -> Result<()> {
    let before = bound(scene, policy(&["member1"])).await?;
    scene.apply(policy(&["member2"])).await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    until_released(scene, "member1").await?;
    let reported = scene.until_reported_once("VolumeRetained", "myapp").await?;
    ensure!(
        reported.to_string().contains("holds data on member1"),
        "{reported}"
    );
    scene.quiet().await?;
    scene.restart().await?;
    scene.apply(policy(&["member1"])).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    let claim = eventually("the claim is managed again", async || {
        let claim = scene.copy("member1", CLAIM, "data").await?;
        let meta = &claim["metadata"];
        ensure!(meta["labels"]["entourage.dev/hub"].is_string(), "{meta}");
        ensure!(meta["annotations"][RELEASED_FROM].is_null(), "{meta}");
        Ok(claim)
    })
    .await?;
    ensure!(claim["metadata"]["uid"] == before["metadata"]["uid"], "made anew");
    ensure!(claim["spec"] == before["spec"], "{}", claim["spec"]);
    // The one on member2 was never bound.
    until_let_go(scene, "member2").await
}

async fn a_bound_claim_stays_when_its_workload_is_deleted_and_goes_when_its_user_deletes_it(
    scene: &mut Scene,
) -> Result<()> {
    bound(scene, policy(&["member1"])).await?;
    scene.delete("Deployment", "myapp").await?;
    scene
        .until_gone("ResourceBinding", "data-persistentvolumeclaim")
        .await?;
    until_released(scene, "member1").await?;
    scene.apply(workload()).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    eventually("the claim is managed again", async || {
        let claim = scene.copy("member1", CLAIM, "data").await?;
        let labels = &claim["metadata"]["labels"];
        ensure!(labels["entourage.dev/hub"].is_string(), "{labels}");
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    scene.delete(CLAIM, "data").await?;
    // Only the hub's own controllers remove its finalizer there.
    scene.until_gone(CLAIM, "data").await?;
    until_let_go(scene, "member1").await?;
    scene
        .until_gone("ResourceBinding", "data-persistentvolumeclaim")
        .await
}

async fn a_bound_claim_goes_with_its_workload_where_the_policy_says_so(scene: &mut Scene) -> Result<()> {
    let mut policy = policy(&["member1"]);
    policy["metadata"]["annotations"]["entourage.dev/volume-retention"] = json!("Delete");
    bound(scene, policy).await?;
    scene.delete("Deployment", "myapp").await?;
    until_let_go(scene, "member1").await
}

async fn claims_and_volumes_that_are_deleted_on_the_hub_are_gone(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let volume = scene.own("volume");
    let hub = scene.hub.clone();
    scene.apply(claim()).await?;
    hub.create(&json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/x"},
        },
    }))
    .await?;
    scene.delete(CLAIM, "data").await?;
    hub.delete("PersistentVolume", "", &volume).await?;
    scene.until_gone(CLAIM, "data").await?;
    eventually("the volume is gone", async || {
        ensure!(
            hub.get("PersistentVolume", "", &volume).await?.is_none(),
            "it stays"
        );
        Ok(())
    })
    .await
}
