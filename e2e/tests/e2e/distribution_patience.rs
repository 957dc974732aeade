//! ResourceDistributions where it takes half a minute: a namespace waits so long for its workload to come back.

use std::time::Duration;

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually_within, manifests},
    tests,
};
use serde_json::json;

tests![Embedded: a_copy_goes_when_the_selected_workload_stays_away];

async fn a_copy_goes_when_the_selected_workload_stays_away(scene: &mut Scene) -> Result<()> {
    scene.apply(manifests::deployment("web", &[])).await?;
    scene.start().await?;
    let targets = json!({"workloadLabelSelector": {"app": "web"}});
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.delete("Deployment", "web").await?;
    eventually_within(
        Duration::from_secs(60),
        "the copy goes after its workload",
        async || {
            let copy = scene.hub.get("ConfigMap", &scene.ns, "shared").await?;
            ensure!(copy.is_none(), "it is there");
            Ok(())
        },
    )
    .await?;
    scene.until_counts("rd", 0, 0, 0).await?;
    Ok(())
}
