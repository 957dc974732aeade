//! Contended copies of a ResourceDistribution: another writer changes or deletes them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    what_an_injector_keeps_putting_into_a_copy_is_taken_out_ever_more_rarely_and_reported,
    what_keeps_deleting_a_copy_has_it_made_again_ever_more_rarely_and_reported,
    what_a_resource_asks_an_injector_for_stays,
];

/// The interval of the other writer.
const ROUNDS: usize = 5;

/// The pauses of one, two and four seconds before the last three rounds, each since the correction before; a tenth of a second
/// less, since times are in whole milliseconds.
const PAUSES: Duration = Duration::from_millis(6_900);

/// The writes of copies in a namespace of the hub so far.
fn copies_written(scene: &Scene) -> Vec<String> {
    let is_copy =
        |write: &String| write.starts_with("hub ") && write.contains(&format!(" configmaps {}/", scene.ns));
    scene.writes().into_iter().filter(is_copy).collect()
}

/// Succeeds if the status was written once, and not with every round.
fn status_written_once(scene: &Scene) -> Result<()> {
    let mut statuses = scene.writes();
    statuses.retain(|write| write.contains("resourcedistributions.apps.kruise.io/status"));
    ensure!(statuses.len() == 1, "{statuses:#?}");
    Ok(())
}

async fn what_an_injector_keeps_putting_into_a_copy_is_taken_out_ever_more_rarely_and_reported(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let targets = included(&[&ns]);
    scene
        .distribute("rd", &manifests::config_map("shared", "one"), &targets)
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    let inject = |live: &mut Value| {
        live["metadata"]["annotations"]["injector.example.com/done"] = json!("true");
        live["data"]["ca.crt"] = json!("injected");
    };
    let began = Instant::now();
    for _ in 0..ROUNDS {
        scene.hub.edit("ConfigMap", &ns, "shared", inject).await?;
        scene
            .until_there("ConfigMap", &ns, "shared", |copy| {
                ensure!(copy["data"] == json!({"key": "one"}), "{}", copy["data"]);
                Ok(())
            })
            .await?;
    }
    ensure!(began.elapsed() > PAUSES, "put right after {:?}", began.elapsed());
    scene
        .until_failure("rd", "UpdateResourceFailed", "keeps changing data", &[&ns])
        .await?;
    let reported = scene.until_reported("rd", "DistributionFailed").await?;
    ensure!(
        reported.contains("keeps changing data") && reported.contains(&ns),
        "{reported}"
    );
    scene.until_counts("rd", 1, 0, 1).await?;
    scene.quiet().await?;
    let update = format!("hub update configmaps {ns}/shared: 200");
    assert_eq!(copies_written(scene), vec![update; ROUNDS]);
    status_written_once(scene)?;
    let copy = scene.get("ConfigMap", "shared").await?;
    assert_eq!(
        copy["metadata"]["annotations"]["injector.example.com/done"],
        "true"
    );
    // New content is written without a delay.
    scene
        .distribute("rd", &manifests::config_map("shared", "two"), &targets)
        .await?;
    let stored = scene.until_counts("rd", 1, 1, 0).await?;
    assert_eq!(condition(&stored, "UpdateResourceFailed")["status"], "False");
    assert_eq!(
        scene.get("ConfigMap", "shared").await?["data"],
        json!({"key": "two"})
    );
    Ok(())
}

async fn what_keeps_deleting_a_copy_has_it_made_again_ever_more_rarely_and_reported(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    scene
        .distribute("rd", &manifests::config_map("shared", "one"), &included(&[&ns]))
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let before = scene.get("ConfigMap", "shared").await?["metadata"]["uid"].clone();
        scene.hub.delete("ConfigMap", &ns, "shared").await?;
        scene
            .until_there("ConfigMap", &ns, "shared", |copy| {
                ensure!(copy["metadata"]["uid"] != before, "the same");
                Ok(())
            })
            .await?;
    }
    ensure!(began.elapsed() > PAUSES, "made again after {:?}", began.elapsed());
    scene
        .until_failure("rd", "UpdateResourceFailed", "keeps deleting it", &[&ns])
        .await?;
    let reported = scene.until_reported("rd", "DistributionFailed").await?;
    ensure!(reported.contains("keeps deleting it"), "{reported}");
    scene.quiet().await?;
    let create = format!("hub create configmaps {ns}/: 201");
    assert_eq!(copies_written(scene), vec![create; ROUNDS]);
    status_written_once(scene)
}

async fn what_a_resource_asks_an_injector_for_stays(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let asking = |value: &str| {
        let mut object = manifests::config_map("shared", value);
        object["metadata"]["annotations"] = json!({"service.beta.openshift.io/inject-cabundle": "true"});
        object
    };
    scene.distribute("rd", &asking("one"), &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let inject = |live: &mut Value| live["data"]["service-ca.crt"] = json!("injected");
    scene.hub.edit("ConfigMap", &ns, "shared", inject).await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    scene
        .hub
        .edit("ConfigMap", &ns, "shared", |live| {
            live["data"]["service-ca.crt"] = json!("rotated");
        })
        .await?;
    scene.quiet().await?;
    assert_eq!(copies_written(scene), [""; 0]);
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.distribute("rd", &asking("two"), &included(&[&ns])).await?;
    scene
        .until_there("ConfigMap", &ns, "shared", |copy| {
            ensure!(
                copy["data"] == json!({"key": "two", "service-ca.crt": "rotated"}),
                "{}",
                copy["data"]
            );
            Ok(())
        })
        .await?;
    Ok(())
}
