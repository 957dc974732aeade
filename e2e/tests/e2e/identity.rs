//! The identity of the physical cluster behind a Cluster.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    nothing_is_written_through_the_younger_of_two_clusters,
    another_cluster_behind_the_endpoint_is_left_alone_until_that_is_meant,
];

async fn nothing_is_written_through_the_younger_of_two_clusters(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.until_cluster("member3", "True", "").await?;
    let older = scene
        .hub
        .get("Cluster", "", "member3")
        .await?
        .context("member3")?;
    // Each Cluster has credentials of its own, for the same cluster.
    let mut secret = scene
        .hub
        .get("Secret", "karmada-cluster", "member3")
        .await?
        .context("joined")?;
    secret["metadata"] = json!({"name": "zz-twice", "namespace": "karmada-cluster"});
    scene.hub.apply(&secret).await?;
    let mut spec = older["spec"].clone();
    spec.as_object_mut().context("spec")?.remove("id");
    spec["secretRef"]["name"] = json!("zz-twice");
    scene
        .hub
        .create(
            &json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "zz-twice"}, "spec": spec}),
        )
        .await?;
    let ready = scene
        .until_cluster("zz-twice", "False", "Cluster member3")
        .await?;
    ensure!(ready["reason"] == "ClusterIDConflict", "{ready}");
    let younger = scene
        .hub
        .get("Cluster", "", "zz-twice")
        .await?
        .context("zz-twice")?;
    assert_eq!(younger["spec"]["id"], older["spec"]["id"], "it is filled in");
    let [deployment, _, config] = manifests::example();
    let mut policy = manifests::policy(&["member1", "zz-twice"]);
    policy["spec"]["placement"]["clusterTolerations"] = json!([{"operator": "Exists"}]);
    for object in [deployment, policy, config] {
        scene.apply(object).await?;
    }
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.restart().await?;
    scene.quiet().await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.until_held("ConfigMap", "my-config", &["member1"]).await?;
    let ready = scene
        .until_cluster("zz-twice", "False", "Cluster member3")
        .await?;
    ensure!(ready["reason"] == "ClusterIDConflict", "{ready}");
    scene.hub.delete("Cluster", "", "zz-twice").await?;
    eventually("the younger Cluster is gone", async || {
        let left = scene.hub.get("Cluster", "", "zz-twice").await?;
        ensure!(left.is_none(), "{}", left.unwrap_or_default()["status"]);
        Ok(())
    })
    .await?;
    scene.hub.delete("Secret", "karmada-cluster", "zz-twice").await?;
    scene.until_cluster("member3", "True", "").await.map(drop)
}

async fn another_cluster_behind_the_endpoint_is_left_alone_until_that_is_meant(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    for object in [deployment, manifests::policy(&["member1", "member3"]), config] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member3"]).await?;
    let real = scene
        .hub
        .get("Cluster", "", "member3")
        .await?
        .context("member3")?;
    // It looks as if another cluster responds than the one that was joined.
    let another = |cluster: &mut Value| cluster["spec"]["id"] = json!("the-one-that-was-joined");
    scene.hub.edit("Cluster", "", "member3", another).await?;
    let ready = scene
        .until_cluster("member3", "False", "join member3 --replace")
        .await?;
    ensure!(ready["reason"] == "ClusterIDChanged", "{ready}");
    let before = scene.copy("member3", "ConfigMap", "my-config").await?;
    scene.apply(manifests::config_map("my-config", "two")).await?;
    scene
        .until_copy("member1", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await?;
    scene.restart().await?;
    scene.quiet().await?;
    assert_eq!(scene.copy("member3", "ConfigMap", "my-config").await?, before);
    let refused = scene.bed.join("member3", &[]).await;
    let refused = refused
        .err()
        .map(|error| format!("{error:#}"))
        .unwrap_or_default();
    ensure!(refused.contains("--replace"), "{refused:?}");
    scene
        .bed
        .join("member3", &["--replace", "--wait", "30s", "--admin"])
        .await?;
    scene.bed.remember().await?;
    let now = scene
        .hub
        .get("Cluster", "", "member3")
        .await?
        .context("member3")?;
    assert_eq!(now["spec"]["id"], real["spec"]["id"]);
    scene
        .until_copy("member3", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await?;
    scene.until_settled(&["member1", "member3"]).await
}
