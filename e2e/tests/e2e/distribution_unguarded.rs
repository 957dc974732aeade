//! ResourceDistributions that are stored without validation: no webhook, and no rules of the server either. The
//! controllers alone keep what is there safe (ResourceDistribution reference 2, holes 3 to 6).

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    with_no_webhook_an_edit_that_cannot_be_carried_out_leaves_the_copies_as_they_are,
    with_no_webhook_a_rename_overwrites_nothing_and_the_old_copies_go_with_the_distribution,
];

/// Has the hub take whatever its schema lets through: on the embedded lane each test has a hub of its own, and the servers of
/// the other one know no rules.
async fn unguarded(scene: &Scene) -> Result<()> {
    if !scene.bed.is_embedded() {
        return Ok(());
    }
    let strip = |live: &mut Value| without_rules(&mut live["spec"]["versions"]);
    let name = "resourcedistributions.apps.kruise.io";
    scene
        .hub
        .edit("CustomResourceDefinition", "", name, strip)
        .await?;
    // A distribution that the rules refused is accepted once the server has read the definition again.
    let probe = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": scene.own("probe")},
        "spec": {"resource": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "targets": {}},
    });
    eventually("the rules are gone", async || {
        scene.hub.create(&probe).await.map(drop)
    })
    .await?;
    scene
        .hub
        .delete("ResourceDistribution", "", &scene.own("probe"))
        .await
}

fn without_rules(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("x-kubernetes-validations");
            map.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

async fn with_no_webhook_an_edit_that_cannot_be_carried_out_leaves_the_copies_as_they_are(
    scene: &mut Scene,
) -> Result<()> {
    unguarded(scene).await?;
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    scene.start().await?;
    let shared = manifests::config_map("shared", "one");
    let targets = included(&[&a, &b]);
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    let before = [
        scene.until_there("ConfigMap", &a, "shared", |_| Ok(())).await?,
        scene.until_there("ConfigMap", &b, "shared", |_| Ok(())).await?,
    ];
    scene.quiet().await?;
    let with = |field: &str, value: Value| {
        let mut resource = shared.clone();
        resource[field] = value;
        resource
    };
    let hostile = [
        (with("metadata", json!({"generateName": "bad-"})), "generateName"),
        (
            with("metadata", json!({"name": "shared", "generateName": "bad-"})),
            "generateName",
        ),
        (with("items", json!([{}])), "a list"),
        (
            with("data", json!({"key": {"a": "structure"}})),
            "is not a string",
        ),
        (with("kind", json!("Pod")), "Pod"),
    ];
    for (resource, says) in &hostile {
        scene.distribute("rd", resource, &targets).await?;
        scene
            .until_distribution("rd", |stored| {
                let status = &stored["status"];
                let description = status["description"].as_str().unwrap_or_default();
                ensure!(
                    description.starts_with("Nothing is written") && description.contains(says),
                    "{description} does not say {says}"
                );
                Ok(())
            })
            .await?;
    }
    scene.distribute("rd", &shared, &json!({})).await?;
    scene
        .until_distribution("rd", |stored| {
            let description = stored["status"]["description"].as_str().unwrap_or_default();
            ensure!(description.contains("2 copies are kept"), "{description}");
            Ok(())
        })
        .await?;
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart takes nothing away either");
    for (ns, before) in [&a, &b].into_iter().zip(&before) {
        let after = scene.until_there("ConfigMap", ns, "shared", |_| Ok(())).await?;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["data"], shared["data"]);
        let names = scene.hub.list("ConfigMap", ns, "").await?;
        let made = names.iter().filter(|each| {
            let name = each["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("bad")
        });
        assert_eq!(made.count(), 0);
    }
    // After the correction it continues with the copies that it had.
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    let after = scene.get("ConfigMap", "shared").await?;
    assert_eq!(after["metadata"]["uid"], before[0]["metadata"]["uid"]);
    Ok(())
}

async fn with_no_webhook_a_rename_overwrites_nothing_and_the_old_copies_go_with_the_distribution(
    scene: &mut Scene,
) -> Result<()> {
    unguarded(scene).await?;
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let mut theirs = manifests::config_map("renamed", "theirs");
    theirs["metadata"]["namespace"] = json!(b);
    scene.hub.create(&theirs).await?;
    scene.start().await?;
    let targets = included(&[&a, &b]);
    scene
        .distribute("rd", &manifests::config_map("shared", "one"), &targets)
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    let old = scene.get("ConfigMap", "shared").await?;
    // Another kind is another name, too.
    for renamed in [
        manifests::config_map("renamed", "two"),
        manifests::secret("renamed", "three"),
    ] {
        scene.distribute("rd", &renamed, &targets).await?;
        scene
            .until_distribution("rd", |stored| {
                let reported = stored["status"]["description"].as_str().unwrap_or_default();
                ensure!(
                    reported.contains("ConfigMap shared is what it has distributed"),
                    "{reported}"
                );
                ensure!(stored["status"]["observedGeneration"] == stored["metadata"]["generation"]);
                Ok(())
            })
            .await?;
        scene.quiet().await?;
        let kept = scene.get("ConfigMap", "shared").await?;
        ensure!(
            kept["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"],
            "{kept:#}"
        );
        scene.until_in("ConfigMap", "renamed", &[&a, &b], &[&b]).await?;
        scene.until_in("Secret", "renamed", &[&a, &b], &[]).await?;
    }
    let foreign = scene.until_there("ConfigMap", &b, "renamed", |_| Ok(())).await?;
    ensure!(foreign["data"] == theirs["data"], "{foreign:#}");
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[]).await?;
    scene.until_in("ConfigMap", "renamed", &[&a, &b], &[&b]).await?;
    Ok(())
}
