//! Allow-lists of Secrets: a namespace says where its Secrets go, and revokes them.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Canary, Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![a_secret_goes_where_its_namespace_lists_it_and_leaves_what_the_list_leaves_out,];

const KEY: &str = "entourage.dev/secrets-to";

async fn list(scene: &Scene, text: Option<&str>) -> Result<()> {
    let edit = |live: &mut Value| match text {
        Some(text) => live["metadata"]["annotations"][KEY] = json!(text),
        None => live["metadata"]["annotations"] = Value::Null,
    };
    scene.hub.edit("Namespace", "", &scene.ns, edit).await?;
    Ok(())
}

async fn a_secret_goes_where_its_namespace_lists_it_and_leaves_what_the_list_leaves_out(
    scene: &mut Scene,
) -> Result<()> {
    let canary = Canary::new("listed");
    list(scene, Some("member1")).await?;
    scene.start().await?;
    scene.apply(manifests::secret("keys", &canary.value)).await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "keys"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1", "member2"])).await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    scene.until_held("Secret", "keys", &["member1"]).await?;
    for binding in ["keys-secret", "myapp-deployment"] {
        let type_ = if binding == "keys-secret" {
            "FullyApplied"
        } else {
            "DependenciesReady"
        };
        scene.until_condition(binding, type_, "False", KEY).await?;
    }
    scene
        .until_binding("keys-secret", |binding| {
            let mut all = binding["status"]["aggregatedStatus"]
                .as_array()
                .into_iter()
                .flatten();
            let item = all.find(|item| item["clusterName"] == "member2");
            ensure!(
                item.is_some_and(|item| item["appliedReason"] == "NotAllowed"),
                "{}",
                binding["status"]
            );
            Ok(())
        })
        .await?;
    list(scene, Some("member1,member2")).await?;
    scene
        .until_held("Secret", "keys", &["member1", "member2"])
        .await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    // The owner revokes it on one member, while the workload there still needs it.
    list(scene, Some("member2")).await?;
    scene.until_held("Secret", "keys", &["member2"]).await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    list(scene, Some("member2,*")).await?;
    scene
        .until_condition("keys-secret", "FullyApplied", "False", "cannot be read")
        .await?;
    scene.until_held("Secret", "keys", &["member2"]).await?;
    list(scene, None).await?;
    scene
        .until_held("Secret", "keys", &["member1", "member2"])
        .await?;
    canary.assert_kept(scene).await
}
