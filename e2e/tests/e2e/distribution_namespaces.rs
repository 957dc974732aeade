//! ResourceDistributions and namespaces that are missing or end; and targets that mean none any more.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, included, manifests},
    tests,
};
use serde_json::{Value, json};

use super::distribution::{labelled, relabel};

tests![
    a_namespace_that_ends_counts_until_it_is_gone,
    a_namespace_that_is_named_may_come_later,
    targets_that_cease_to_mean_anything_take_nothing_away_until_somebody_confirms,
    copies_are_where_selected_workloads_live,
];

async fn a_namespace_that_ends_counts_until_it_is_gone(scene: &mut Scene) -> Result<()> {
    let group = json!({"group": scene.ns});
    let (a, b) = (labelled(scene, &group).await?, labelled(scene, &group).await?);
    // A finalizer keeps the namespace terminating.
    let mut anchor = manifests::config_map("anchor", "x");
    anchor["metadata"]["namespace"] = json!(b);
    anchor["metadata"]["finalizers"] = json!(["e2e.entourage.dev/anchor"]);
    scene.hub.create(&anchor).await?;
    scene.start().await?;
    let targets = json!({"namespaceLabelSelector": {"matchLabels": group}});
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene.hub.delete("Namespace", "", &b).await?;
    let reported = scene
        .until_failure("rd", "NamespaceNotExists", "is being deleted", &[&b])
        .await?;
    assert_eq!(reported["count"], 1);
    scene.until_counts("rd", 2, 1, 1).await?;
    // New copies are written where that is possible.
    scene
        .distribute("rd", &manifests::config_map("shared", "two"), &targets)
        .await?;
    scene
        .until_there("ConfigMap", &a, "shared", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[&a]).await?;
    let let_go = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
    scene.hub.edit("ConfigMap", &b, "anchor", let_go).await?;
    eventually("the namespace is gone", async || {
        ensure!(scene.hub.get("Namespace", "", &b).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let stored = scene.until_counts("rd", 1, 1, 0).await?;
    let last = &stored["status"]["conditions"][5];
    ensure!(
        last["status"] == "False" && last["failedNamespace"].is_null(),
        "{last}"
    );
    Ok(())
}

async fn a_namespace_that_is_named_may_come_later(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let (here, late) = (scene.ns.clone(), scene.own("late"));
    let shared = manifests::config_map("shared", "one");
    scene
        .distribute("rd", &shared, &included(&[&here, &late]))
        .await?;
    scene.until_counts("rd", 2, 1, 1).await?;
    scene
        .until_failure("rd", "NamespaceNotExists", &late, &[&late])
        .await?;
    let reported = scene.until_reported("rd", "DistributionFailed").await?;
    ensure!(reported.contains("create it"), "{reported}");
    scene
        .hub
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": late}}))
        .await?;
    scene.space_of(&late);
    scene.until_counts("rd", 2, 2, 0).await?;
    scene
        .until_in("ConfigMap", "shared", &[&here, &late], &[&here, &late])
        .await
}

async fn targets_that_cease_to_mean_anything_take_nothing_away_until_somebody_confirms(
    scene: &mut Scene,
) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    scene.start().await?;
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&a, &b])).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene.distribute("rd", &shared, &json!({})).await?;
    let says_so = |stored: &Value| {
        let description = stored["status"]["description"].as_str().unwrap_or_default();
        ensure!(
            description.contains("2 copies are kept")
                && description.contains("entourage.dev/allow-empty-targets"),
            "{description}"
        );
        Ok(())
    };
    scene.until_distribution("rd", says_so).await?;
    scene.until_reported("rd", "DistributionHeld").await?;
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart takes nothing away either");
    scene
        .until_in("ConfigMap", "shared", &[&a, &b], &[&a, &b])
        .await?;
    let confirm = |live: &mut Value| {
        live["metadata"]["annotations"]["entourage.dev/allow-empty-targets"] = json!("true");
    };
    scene.edit_distribution("rd", confirm).await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[]).await?;
    scene.until_counts("rd", 0, 0, 0).await?;
    // Namespaces that stop being targets one by one do not count as targets emptied by mistake.
    let group = json!({"group": scene.ns});
    relabel(scene, &b, &group).await?;
    scene
        .distribute(
            "other",
            &shared,
            &json!({"namespaceSelector": {"matchLabels": group}}),
        )
        .await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[&b]).await?;
    scene.until_counts("other", 1, 1, 0).await?;
    relabel(scene, &b, &json!({})).await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[]).await
}

async fn copies_are_where_selected_workloads_live(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    scene.apply(manifests::deployment("web", &[])).await?;
    scene.start().await?;
    let targets = json!({"workloadLabelSelector": {"app": "web"}});
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[&a]).await?;
    let mut there = manifests::workload("StatefulSet", "web", &json!({}));
    there["metadata"]["namespace"] = json!(b);
    scene.hub.create(&there).await?;
    scene
        .until_in("ConfigMap", "shared", &[&a, &b], &[&a, &b])
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    // One that is replaced takes nothing away.
    let copy = scene.get("ConfigMap", "shared").await?;
    scene.delete("Deployment", "web").await?;
    scene.quiet().await?;
    scene.apply(manifests::deployment("web", &[])).await?;
    scene.quiet().await?;
    let after = scene.get("ConfigMap", "shared").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        copy["metadata"]["resourceVersion"]
    );
    Ok(())
}
