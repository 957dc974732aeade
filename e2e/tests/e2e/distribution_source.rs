//! ResourceDistributions of an existing object, and the search for a leaked Secret during distribution.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Canary, Scene, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    an_object_is_distributed_when_its_owner_consents_and_its_copies_follow_it,
    a_distributed_secret_is_seen_by_nobody_on_its_way,
];

const CONSENT: &str = "entourage.dev/distribution-allowed";

/// Waits until the copies hold this, and are otherwise as they should be.
async fn until_hold(scene: &Scene, namespaces: [&str; 2], data: Value) -> Result<()> {
    for ns in namespaces {
        let copy = scene
            .until_there("Secret", ns, "shared", |copy| {
                ensure!(copy["data"] == data, "other data");
                Ok(())
            })
            .await?;
        assert_eq!(copy["metadata"]["labels"], json!({"app": "x"}));
        ensure!(
            copy["metadata"]["annotations"][CONSENT].is_null(),
            "consent travels"
        );
    }
    Ok(())
}

async fn an_object_is_distributed_when_its_owner_consents_and_its_copies_follow_it(
    scene: &mut Scene,
) -> Result<()> {
    let (home, a) = (scene.ns.clone(), scene.another_space().await?.ns);
    let b = scene.another_space().await?.ns;
    scene.start().await?;
    let spec = json!({
        "resourceFrom": {"kind": "Secret", "namespace": home, "name": "shared"}, "targets": included(&[&home, &a, &b]),
    });
    scene.distribute_as("rd", spec).await?;
    scene
        .until_failure("rd", "GetResourceFailed", "does not exist", &[&a, &b])
        .await?;
    scene.apply(manifests::secret("shared", "one")).await?;
    scene
        .until_failure("rd", "GetResourceFailed", CONSENT, &[&a, &b])
        .await?;
    scene.quiet().await?;
    scene.until_in("Secret", "shared", &[&a, &b], &[]).await?;

    let mut source = manifests::secret("shared", "one");
    source["metadata"]["annotations"] = json!({CONSENT: format!("another, {}", scene.own("rd"))});
    source["metadata"]["labels"] = json!({"app": "x"});
    scene.apply(source).await?;
    // The namespace of the source is not one of its targets.
    scene.until_counts("rd", 2, 2, 0).await?;
    until_hold(scene, [&a, &b], json!({"key": "b25l"})).await?;
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    let rotate = |live: &mut Value| live["data"] = json!({"key": "dHdv"});
    scene.hub.edit("Secret", &home, "shared", rotate).await?;
    until_hold(scene, [&a, &b], json!({"key": "dHdv"})).await?;

    // Without consent, or without the source, existing copies stay.
    let withdraw = |live: &mut Value| {
        live["metadata"]["annotations"] = json!({});
        live["data"] = json!({"key": "bm8="});
    };
    scene.hub.edit("Secret", &home, "shared", withdraw).await?;
    scene
        .until_failure("rd", "GetResourceFailed", CONSENT, &[&a, &b])
        .await?;
    scene.delete("Secret", "shared").await?;
    scene
        .until_failure("rd", "GetResourceFailed", "does not exist", &[&a, &b])
        .await?;
    scene.quiet().await?;
    until_hold(scene, [&a, &b], json!({"key": "dHdv"})).await
}

/// Delivered in one namespace, in conflict in another, taken over there, refused by a member's quota, rotated, restored
/// after a manual edit, and written with an error.
async fn a_distributed_secret_is_seen_by_nobody_on_its_way(scene: &mut Scene) -> Result<()> {
    scene.bed.log.everything();
    let (first, second) = (Canary::new("first"), Canary::new("second"));
    let (wrong, foreign) = (Canary::new("wrong"), Canary::new("foreign"));
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let mut theirs = manifests::secret("shared", &foreign.value);
    theirs["metadata"]["namespace"] = json!(b);
    scene.hub.create(&theirs).await?;
    scene.forbid_on("member3", "Secret").await?;
    scene.start().await?;
    let kept = async |name: &str, scene: &Scene| {
        let stored = scene.until_distribution(name, |_| Ok(())).await?;
        for canary in [&first, &second, &wrong, &foreign] {
            ensure!(
                !canary.is_in(&stored["status"].to_string()),
                "the status of {name} holds the canary"
            );
            canary.assert_kept(scene).await?;
        }
        Ok::<(), anyhow::Error>(())
    };

    let mut targets = included(&[&a, &b]);
    scene
        .distribute("rd", &manifests::secret("shared", &first.value), &targets)
        .await?;
    scene.until_counts("rd", 2, 1, 1).await?;
    first.assert_only_in_data(&scene.get("Secret", "shared").await?)?;
    let mut spec = json!({
        "resource": manifests::secret("shared", &second.value), "targets": targets, "writePolicy": "overwrite",
    });
    scene.distribute_as("rd", spec.clone()).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene
        .hub
        .edit("Secret", &b, "shared", |live| live["data"] = json!({}))
        .await?;
    scene
        .until_there("Secret", &b, "shared", |copy| {
            ensure!(second.is_in(&copy["data"].to_string()), "not put right");
            Ok(())
        })
        .await?;
    kept("rd", scene).await?;

    targets["clusters"] = json!({"clusterNames": ["member3"]});
    let refused = manifests::secret("refused", &first.value);
    scene.distribute("there", &refused, &targets).await?;
    let at = format!("member3/{a}");
    scene
        .until_distribution("there", |stored| {
            let found = &stored["status"]["conditions"][1];
            let failed = found["failedNamespaces"].as_array().cloned().unwrap_or_default();
            ensure!(
                found["status"] == "True" && failed.contains(&json!(at)),
                "{found}"
            );
            Ok(())
        })
        .await?;
    kept("there", scene).await?;
    scene.delete_on("member3", "ResourceQuota", "none").await?;

    // No base64, a key that is none, and a type that is no text.
    spec["resource"] = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"}, "type": {"x": wrong.value},
        "data": {wrong.value.clone(): wrong.value, "..": wrong.value},
    });
    scene.distribute_as("rd", spec).await?;
    scene.until_reported("rd", "DistributionInvalid").await?;
    kept("rd", scene).await
}
