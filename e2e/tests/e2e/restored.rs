//! A hub whose etcd is put back to an older snapshot, as docs/guides/backup.md says.

use anyhow::{Context as _, Result, bail, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    servers::TestCluster,
    tests,
};
use serde_json::{Value, json};

tests![Real: a_hub_that_is_put_back_to_a_snapshot_takes_nothing_away_that_came_after_it];

/// A workload with a dependency for member1: what is written after the snapshot.
fn later() -> [Value; 3] {
    let mut policy = manifests::policy_for("later", "Deployment", "later", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(true);
    [
        manifests::config_map("later", "a"),
        manifests::deployment("later", &["later"]),
        policy,
    ]
}

async fn apply_later(scene: &Scene) -> Result<()> {
    for object in later() {
        scene.apply(object).await?;
    }
    Ok(())
}

/// The uids of the copies of [`later`] on member1.
async fn copies(scene: &Scene) -> Result<[Value; 2]> {
    let uid = async |kind: &str| -> Result<Value> {
        let copy = scene.on("member1", kind, "later").await?;
        Ok(copy.context("it is gone")?["metadata"]["uid"].clone())
    };
    Ok([uid("Deployment").await?, uid("ConfigMap").await?])
}

async fn until_config(scene: &Scene, value: &str) -> Result<()> {
    scene
        .until_copy("member1", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"]["key"] == value, "{}", copy["data"]);
            Ok(())
        })
        .await
        .map(drop)
}

async fn a_hub_that_is_put_back_to_a_snapshot_takes_nothing_away_that_came_after_it(
    scene: &mut Scene,
) -> Result<()> {
    scene.example().await?;
    scene.apply(manifests::config_map("my-config", "before")).await?;
    until_config(scene, "before").await?;
    scene.until_settled(&["member1", "member2"]).await?;
    scene.stop().await?;
    let snapshot = scene.bed.dir().join(format!("{}-snapshot", scene.ns));
    hub(scene)?.snapshot(&snapshot).await?;

    scene.start().await?;
    apply_later(scene).await?;
    scene
        .until_condition("later-deployment", "FullyApplied", "True", "")
        .await?;
    scene.apply(manifests::config_map("my-config", "after")).await?;
    until_config(scene, "after").await?;
    let made = copies(scene).await?;
    scene.stop().await?;
    hub(scene)?.restore(&snapshot).await?;

    // Nothing is known of what came after: it stays. What was edited is as it was.
    scene.start().await?;
    until_config(scene, "before").await?;
    scene.quiet().await?;
    let gone = scene.hub.get("Deployment", &scene.ns, "later").await?;
    ensure!(gone.is_none(), "the hub was not put back");
    ensure!(copies(scene).await? == made, "the copies stay as they are");
    scene.until_settled(&["member1", "member2"]).await?;

    // Applied again, it is taken into use as it is.
    apply_later(scene).await?;
    scene
        .until_condition("later-deployment", "FullyApplied", "True", "")
        .await?;
    ensure!(copies(scene).await? == made, "the copies are taken into use");
    let deletions: Vec<String> = scene.writes();
    let deletions: Vec<&String> = deletions
        .iter()
        .filter(|write| write.starts_with("member") && write.contains(" delete "))
        .collect();
    ensure!(deletions.is_empty(), "{deletions:?}");
    std::fs::remove_dir_all(&snapshot).context("the snapshot")
}

fn hub(scene: &Scene) -> Result<&entourage_e2e::servers::RealCluster> {
    match &scene.bed.fleet.hub {
        TestCluster::Real(cluster) => Ok(cluster),
        TestCluster::Embedded(_) => bail!("an embedded hub has no etcd"),
    }
}
