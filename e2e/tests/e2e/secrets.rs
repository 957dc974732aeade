//! Secrets: those that are propagated, those that never are, and that nothing else shows their content (invariant I5).

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Canary, Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_secret_is_seen_by_nobody_on_its_way,
    a_token_secret_is_never_propagated
];

fn workload() -> Value {
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "keys"}}]});
    manifests::workload("Deployment", "myapp", &pod)
}

/// Delivered on member1; in conflict on member2, then refused there because the foreign one cannot be changed; refused
/// by a quota on member3. Then rotated, put back by hand, and revoked.
async fn a_secret_is_seen_by_nobody_on_its_way(scene: &mut Scene) -> Result<()> {
    scene.bed.log.everything();
    let (canary, rotated) = (Canary::new("first"), Canary::new("second"));
    let mut foreign = manifests::secret("keys", &Canary::new("foreign").value);
    foreign["immutable"] = json!(true);
    scene.apply_on("member2", foreign).await?;
    scene.forbid_on("member3", "Secret").await?;
    scene.start().await?;

    let mut secret = manifests::secret("keys", &canary.value);
    // kubectl's own record holds the whole Secret.
    secret["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": manifests::secret("keys", &canary.value).to_string(),
    });
    scene.apply(secret).await?;
    scene.apply(workload()).await?;
    scene
        .apply(manifests::policy(&["member1", "member2", "member3"]))
        .await?;
    scene
        .until_condition(
            "keys-secret",
            "FullyApplied",
            "False",
            "is not managed by this hub",
        )
        .await?;
    scene
        .until_condition("keys-secret", "FullyApplied", "False", "member3 refused")
        .await?;
    // The status may be from before the answer of member1.
    let data = scene.get("Secret", "keys").await?["data"].clone();
    let is_whole = |copy: &Value| {
        ensure!(copy["data"] == data, "the data differs");
        Ok(())
    };
    scene.until_copy("member1", "Secret", "keys", is_whole).await?;
    canary.assert_only_in_data(&scene.copy("member1", "Secret", "keys").await?)?;
    canary.assert_kept(scene).await?;

    let mut overwrite = manifests::policy(&["member1", "member2", "member3"]);
    overwrite["spec"]["conflictResolution"] = json!("Overwrite");
    scene.apply(overwrite).await?;
    scene
        .until_binding("keys-secret", |binding| {
            let text = binding["status"].to_string();
            ensure!(text.contains("member2 refused"), "{text}");
            Ok(())
        })
        .await?;
    canary.assert_kept(scene).await?;

    scene.apply(manifests::secret("keys", &rotated.value)).await?;
    let wanted = scene.get("Secret", "keys").await?["data"].clone();
    let as_wanted = |copy: &Value| {
        ensure!(copy["data"] == wanted, "the data differs");
        Ok(())
    };
    scene.until_copy("member1", "Secret", "keys", as_wanted).await?;
    scene
        .edit_on("member1", "Secret", "keys", |live| live["data"] = json!({}))
        .await?;
    scene.until_copy("member1", "Secret", "keys", as_wanted).await?;
    scene.delete("Secret", "keys").await?;
    scene.until_held("Secret", "keys", &["member2"]).await?;
    for kept in [&canary, &rotated, &Canary::new("foreign")] {
        kept.assert_kept(scene).await?;
    }
    Ok(())
}

async fn a_token_secret_is_never_propagated(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene
        .apply(json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"},
        }))
        .await?;
    scene
        .apply(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "keys", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        }))
        .await?;
    scene.apply(workload()).await?;
    scene.apply(manifests::policy(&["member1", "member2"])).await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    let reported = scene
        .until_condition(
            "myapp-deployment",
            "DependenciesReady",
            "False",
            "is never propagated",
        )
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("keys") && message.contains("member"),
        "{message}"
    );
    scene.quiet().await?;
    assert_eq!(scene.holders("Secret", "keys").await?, [""; 0]);
    ensure!(scene.binding("keys-secret").await.is_err(), "it has a binding");
    Ok(())
}
