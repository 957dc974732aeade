//! Objects on a member that are not ours.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    abort_leaves_a_foreign_object_alone_and_overwrite_adopts_it,
    a_foreign_object_is_never_deleted,
];

fn theirs() -> Value {
    let mut object = manifests::config_map("my-config", "theirs");
    object["metadata"]["labels"] = json!({"owner": "somebody"});
    object
}

async fn abort_leaves_a_foreign_object_alone_and_overwrite_adopts_it(scene: &mut Scene) -> Result<()> {
    let before = scene.apply_on("member1", theirs()).await?;
    scene.start().await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    let told = scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "Overwrite")
        .await?;
    let message = told["message"].as_str().unwrap_or_default();
    for part in ["ConfigMap", "my-config", "member1"] {
        ensure!(message.contains(part), "{part} is not in {message:?}");
    }
    // The workload is not held back by it, and the other member has everything.
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    let ours = scene.copy("member2", "ConfigMap", "my-config").await?;
    assert_eq!(ours["data"], scene.get("ConfigMap", "my-config").await?["data"]);
    scene.quiet().await?;
    let after = scene.copy("member1", "ConfigMap", "my-config").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    scene.until_told_once("SyncFailed", "my-config-configmap").await?;

    let mut overwrite = manifests::policy(&["member1", "member2"]);
    overwrite["spec"]["conflictResolution"] = json!("Overwrite");
    scene.apply(overwrite).await?;
    scene.until_settled(&["member1", "member2"]).await?;
    let adopted = scene.copy("member1", "ConfigMap", "my-config").await?;
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(adopted["data"], ours["data"], "foreign data does not stay");
    assert_eq!(
        adopted["metadata"]["labels"]["owner"], "somebody",
        "foreign labels do"
    );
    Ok(())
}

async fn a_foreign_object_is_never_deleted(scene: &mut Scene) -> Result<()> {
    let before = scene.apply_on("member1", theirs()).await?;
    scene.start().await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "Overwrite")
        .await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    scene.delete("Deployment", "myapp").await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    scene.until_held("ConfigMap", "my-config", &["member1"]).await?;
    let after = scene.copy("member1", "ConfigMap", "my-config").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    Ok(())
}
