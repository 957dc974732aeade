//! The end of ResourceDistributions.

use anyhow::{Context, Result, ensure};
use entourage_e2e::{
    harness::{Scene, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    one_that_is_deleted_takes_its_copies_along_and_nothing_else,
    one_that_is_deleted_in_the_foreground_ends,
    what_is_orphaned_stays_and_can_be_taken_over_by_another_of_the_name,
    one_that_is_deleted_and_made_again_has_its_copies_anew,
];

async fn one_that_is_deleted_takes_its_copies_along_and_nothing_else(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let c = scene.another_space().await?.ns;
    let mut theirs = manifests::secret("shared", "theirs");
    theirs["metadata"]["namespace"] = json!(c);
    scene.hub.create(&theirs).await?;
    scene.start().await?;
    let shared = manifests::secret("shared", "one");
    scene.distribute("rd", &shared, &included(&[&a, &b, &c])).await?;
    scene.until_counts("rd", 3, 2, 1).await?;
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    scene.until_in("Secret", "shared", &[&a, &b, &c], &[&c]).await
}

async fn one_that_is_deleted_in_the_foreground_ends(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    scene.start().await?;
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&a, &b])).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    scene.end_distribution("rd", "Foreground").await?;
    scene.until_ended("rd").await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[]).await?;
    scene.quiet().await?;
    let writes: Vec<String> = scene.writes();
    ensure!(
        !writes.iter().any(|write| write.contains("create configmaps")),
        "made again while they were being deleted: {writes:#?}"
    );
    Ok(())
}

async fn what_is_orphaned_stays_and_can_be_taken_over_by_another_of_the_name(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let before = scene.get("ConfigMap", "shared").await?;
    scene.end_distribution("rd", "Orphan").await?;
    scene.until_ended("rd").await?;
    scene.quiet().await?;
    let left = scene.get("ConfigMap", "shared").await?;
    assert_eq!(left["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(left["metadata"]["ownerReferences"], Value::Null);

    let mut spec = json!({"resource": manifests::config_map("shared", "two"), "targets": included(&[&ns])});
    scene.distribute_as("rd", spec.clone()).await?;
    scene
        .until_failure("rd", "ConflictOccurred", "overwrite", &[&ns])
        .await?;
    spec["writePolicy"] = json!("overwrite");
    scene.distribute_as("rd", spec).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let adopted = scene.get("ConfigMap", "shared").await?;
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(adopted["data"]["key"], "two");
    Ok(())
}

async fn one_that_is_deleted_and_made_again_has_its_copies_anew(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    scene
        .distribute("rd", &manifests::config_map("shared", "one"), &included(&[&ns]))
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let former = scene.get("ConfigMap", "shared").await?;
    scene.end_distribution("rd", "Background").await?;
    let again = scene
        .distribute("rd", &manifests::config_map("shared", "two"), &included(&[&ns]))
        .await?;
    scene
        .until_collected("ConfigMap", &ns, "shared", &former["metadata"]["uid"])
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let copy = scene
        .until_there("ConfigMap", &ns, "shared", |copy| {
            let owner = copy["metadata"]["ownerReferences"].get(0).context("no owner")?;
            ensure!(owner["uid"] == again["metadata"]["uid"], "{owner}");
            Ok(())
        })
        .await?;
    assert_eq!(copy["data"]["key"], "two");
    Ok(())
}
