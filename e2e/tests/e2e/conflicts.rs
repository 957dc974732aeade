//! Objects that already exist on a member and are not managed by this hub.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    abort_leaves_a_foreign_object_alone_and_overwrite_adopts_it,
    a_foreign_object_is_never_deleted,
    an_object_copied_from_another_member_is_left_alone_and_reported,
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
    let reported = scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "Overwrite")
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
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
    scene
        .until_reported_once("SyncFailed", "my-config-configmap")
        .await?;

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

async fn an_object_copied_from_another_member_is_left_alone_and_reported(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    // The object of `kubectl get -o yaml` on one member, as `kubectl apply` on another one creates it.
    let mut copied = Vec::new();
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
        let mut object = scene.copy("member1", kind, name).await?;
        object.as_object_mut().context("an object")?.remove("status");
        let meta = object["metadata"].as_object_mut().context("metadata")?;
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            meta.remove(field);
        }
        scene.apply_on("member3", object).await?;
        copied.push((kind, name));
    }
    let ns = scene.ns.clone();
    eventually("member3 reports what was copied", async || {
        let cluster = scene
            .hub
            .get("Cluster", "", "member3")
            .await?
            .context("member3")?;
        let report = cluster["metadata"]["annotations"]["entourage.dev/copied-objects"].as_str();
        let report = report.unwrap_or_default();
        for named in ["Deployment", "ConfigMap"].map(|kind| format!("{kind} {ns}/")) {
            ensure!(report.contains(&named), "{named} is not in {report:?}");
        }
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    scene.restart().await?;
    scene.quiet().await?;
    scene.delete("Deployment", "myapp").await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    for (kind, name) in copied {
        scene.until_held(kind, name, &["member3"]).await?;
        let there = scene.copy("member3", kind, name).await?;
        assert_eq!(
            there["metadata"]["annotations"]["work.karmada.io/namespace"],
            "karmada-es-member1"
        );
        scene.member("member3")?.delete(kind, &ns, name).await?;
    }
    eventually("member3 reports nothing any more", async || {
        let cluster = scene
            .hub
            .get("Cluster", "", "member3")
            .await?
            .context("member3")?;
        let annotations = &cluster["metadata"]["annotations"];
        let report = &annotations["entourage.dev/copied-objects"];
        ensure!(report.is_null(), "{report}");
        Ok(())
    })
    .await
}
