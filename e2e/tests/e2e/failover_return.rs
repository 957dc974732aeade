//! The objects that a failover propagates besides the workload, and the return.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

use crate::failover::{are_ready, report, taint, until_placed};

tests![
    a_workload_hands_its_state_on_waits_for_its_data_and_goes_home,
    what_a_restored_workload_needs_is_not_taken_from_under_it,
];

const CLAIM: &str = "PersistentVolumeClaim";
const BINDING: &str = "myapp-deployment";
const ALIAS: &str = "app.example.com/ready-before";

fn policy() -> Value {
    let mut policy = manifests::policy_for("myapp", "Deployment", "myapp", &["member1", "member2"]);
    policy["metadata"]["annotations"] =
        json!({"entourage.dev/fail-back": "1s", "entourage.dev/wait-for-data": "true"});
    policy["spec"]["propagateDeps"] = json!(true);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": "Directly", "statePreservation": {"rules": [
        {"aliasLabelName": ALIAS, "jsonPath": "{.readyReplicas}"},
    ]}}});
    policy
}

/// Marks a claim on a member as restored, as a backup tool does.
async fn fill(scene: &Scene, member: &str) -> Result<()> {
    let now = k8s_openapi::jiff::Timestamp::now();
    let now = k8s_openapi::jiff::Timestamp::from_second(now.as_second() + 1)?.to_string();
    let note =
        |claim: &mut Value| claim["metadata"]["annotations"]["entourage.dev/data-restored-at"] = json!(now);
    scene.edit_on(member, CLAIM, "data", note).await?;
    Ok(())
}

async fn until_ready_on(scene: &Scene, member: &str) -> Result<()> {
    scene
        .until_copy(member, "Deployment", "myapp", |_| Ok(()))
        .await?;
    report(scene, member, 1).await?;
    scene.until_condition(BINDING, "Healthy", "True", "").await?;
    Ok(())
}

async fn a_workload_hands_its_state_on_waits_for_its_data_and_goes_home(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    are_ready(scene).await?;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let claim = json!({
        "apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let workload = manifests::workload("Deployment", "myapp", &json!({"volumes": volumes}));
    for object in [claim, workload, policy()] {
        scene.apply(object).await?;
    }
    until_ready_on(scene, "member1").await?;
    scene.quiet().await?;

    taint(scene, "member1", true).await?;
    until_placed(scene, "member2", &[]).await?;
    scene
        .until_condition(
            BINDING,
            "DependenciesReady",
            "False",
            "entourage.dev/data-restored-at",
        )
        .await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    scene.restart().await?;
    scene.quiet().await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    fill(scene, "member2").await?;
    until_ready_on(scene, "member2").await?;
    let copy = scene.copy("member2", "Deployment", "myapp").await?;
    ensure!(copy["metadata"]["labels"][ALIAS] == "1", "{}", copy["metadata"]);
    scene.quiet().await?;

    taint(scene, "member1", false).await?;
    until_placed(scene, "member1", &["member2"]).await?;
    scene
        .until_condition(BINDING, "DependenciesReady", "False", "not on member1")
        .await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    fill(scene, "member1").await?;
    until_ready_on(scene, "member1").await?;
    until_placed(scene, "member1", &[]).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.quiet().await?;
    Ok(())
}

/// A backup of a member is restored there after the workload was evicted.
async fn what_a_restored_workload_needs_is_not_taken_from_under_it(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let mut backup = scene.copy("member1", "Deployment", "myapp").await?;
    backup.as_object_mut().context("an object")?.remove("status");
    let meta = backup["metadata"].as_object_mut().context("metadata")?;
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
    ] {
        meta.remove(field);
    }
    let pods = json!({"volumes": [{"name": "c", "configMap": {"name": "my-config"}}]});
    let mut other = manifests::policy_for("other", "Deployment", "other", &["member1"]);
    other["spec"]["propagateDeps"] = json!(true);
    for object in [
        manifests::workload("Deployment", "other", &pods),
        other,
        manifests::policy(&["member2"]),
    ] {
        scene.apply(object).await?;
    }
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    scene.until_held("Deployment", "other", &["member1"]).await?;
    scene.quiet().await?;
    scene.apply_on("member1", backup).await?;
    scene.quiet().await?;
    scene.restart().await?;
    scene.delete("Deployment", "other").await?;
    scene.until_gone("ResourceBinding", "other-deployment").await?;
    scene.quiet().await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2"])
        .await?;
    // The user who restored the workload deletes it: then it is no longer scheduled to this cluster.
    scene.delete_on("member1", "Deployment", "myapp").await?;
    eventually("the dependency goes, too", async || {
        scene.until_held("ConfigMap", "my-config", &["member2"]).await
    })
    .await?;
    scene.quiet().await?;
    Ok(())
}
