//! ResourceDistributions whose name is already taken by an object that is not managed by this hub.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    somebody_elses_object_is_left_alone_and_the_other_namespaces_are_written,
    a_strict_distribution_writes_nothing_while_there_is_a_conflict,
    a_conflict_after_the_fact_freezes_a_strict_distribution,
    overwrite_takes_over_what_nobody_controls_and_nothing_else,
    of_two_distributions_the_first_wins_until_it_goes,
];

/// An unmanaged object in a namespace of the hub.
async fn theirs(scene: &Scene, ns: &str, mut object: Value) -> Result<Value> {
    object["metadata"]["namespace"] = json!(ns);
    object["metadata"]["labels"] = json!({"owner": "somebody"});
    scene.hub.create(&object).await
}

async fn unchanged(scene: &Scene, before: &Value) -> Result<()> {
    let meta = &before["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default();
    let kind = before["kind"].as_str().unwrap_or_default();
    let after = scene.hub.get(kind, text("namespace"), text("name")).await?;
    let version = after.map(|after| after["metadata"]["resourceVersion"].clone());
    ensure!(
        version == Some(meta["resourceVersion"].clone()),
        "{kind} {meta} was changed"
    );
    Ok(())
}

async fn somebody_elses_object_is_left_alone_and_the_other_namespaces_are_written(
    scene: &mut Scene,
) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let before = theirs(scene, &b, manifests::config_map("shared", "theirs")).await?;
    scene.start().await?;
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&a, &b])).await?;
    let stored = scene.until_counts("rd", 2, 1, 1).await?;
    assert_eq!(scene.get("ConfigMap", "shared").await?["data"], shared["data"]);
    let reported = scene
        .until_failure("rd", "ConflictOccurred", "overwrite", &[&b])
        .await?;
    assert_eq!(reported["count"], 1);
    assert_eq!(
        stored["status"]["conflictingNamespaces"],
        json!([{"name": b, "reason": "NotControlled"}])
    );
    let reported = scene.until_reported("rd", "DistributionConflict").await?;
    ensure!(reported.contains(&b), "{reported}");
    scene.quiet().await?;
    unchanged(scene, &before).await?;

    scene.hub.delete("ConfigMap", &b, "shared").await?;
    let stored = scene.until_counts("rd", 2, 2, 0).await?;
    assert_eq!(stored["status"]["conflictingNamespaces"], Value::Null);
    assert_eq!(stored["status"]["conditions"][4]["status"], "False");
    Ok(())
}

async fn a_strict_distribution_writes_nothing_while_there_is_a_conflict(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let before = theirs(scene, &b, manifests::config_map("shared", "theirs")).await?;
    scene.start().await?;
    let spec = json!({
        "resource": manifests::config_map("shared", "one"), "targets": included(&[&a, &b]), "writePolicy": "strict",
    });
    scene.distribute_as("rd", spec).await?;
    let stored = scene.until_counts("rd", 2, 0, 2).await?;
    let description = stored["status"]["description"].as_str().unwrap_or_default();
    ensure!(description.contains("nothing is written"), "{description}");
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[&b]).await?;
    unchanged(scene, &before).await?;
    // Open again: all of them.
    scene.hub.delete("ConfigMap", &b, "shared").await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene.until_in("ConfigMap", "shared", &[&a, &b], &[&a, &b]).await
}

async fn a_conflict_after_the_fact_freezes_a_strict_distribution(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let (c, d) = (scene.another_space().await?.ns, scene.another_space().await?.ns);
    theirs(scene, &c, manifests::config_map("shared", "theirs")).await?;
    scene.start().await?;
    let spec = |value: &str, namespaces: &[&str], policy: &str| {
        json!({
            "resource": manifests::config_map("shared", value), "targets": included(namespaces), "writePolicy": policy,
        })
    };
    scene
        .distribute_as("rd", spec("one", &[&a, &d], "strict"))
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    // c conflicts: b is not written, a keeps what it has, d goes all the same.
    scene
        .distribute_as("rd", spec("two", &[&a, &b, &c], "strict"))
        .await?;
    scene.until_counts("rd", 3, 0, 3).await?;
    scene
        .until_in("ConfigMap", "shared", &[&a, &b, &d], &[&a])
        .await?;
    scene.quiet().await?;
    assert_eq!(scene.get("ConfigMap", "shared").await?["data"]["key"], "one");
    scene.until_in("ConfigMap", "shared", &[&b, &d], &[]).await?;
    // Without the gate the other namespaces are written at once.
    scene
        .distribute_as("rd", spec("two", &[&a, &b, &c], "ignore"))
        .await?;
    scene.until_counts("rd", 3, 2, 1).await?;
    for ns in [&a, &b] {
        let copy = scene.until_there("ConfigMap", ns, "shared", |_| Ok(())).await?;
        assert_eq!(copy["data"]["key"], "two");
    }
    Ok(())
}

async fn overwrite_takes_over_what_nobody_controls_and_nothing_else(scene: &mut Scene) -> Result<()> {
    let (a, b) = (scene.ns.clone(), scene.another_space().await?.ns);
    let c = scene.another_space().await?.ns;
    let free = theirs(scene, &a, manifests::secret("shared", "theirs")).await?;
    let mut holder = manifests::config_map("holder", "x");
    holder["metadata"]["namespace"] = json!(b);
    let holder = scene.hub.create(&holder).await?;
    let mut held = manifests::secret("shared", "theirs");
    held["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "uid": holder["metadata"]["uid"], "controller": true,
    }]);
    let held = theirs(scene, &b, held).await?;
    let mut typed = manifests::secret("shared", "theirs");
    typed["type"] = json!("example.com/theirs");
    let typed = theirs(scene, &c, typed).await?;

    scene.start().await?;
    let spec = json!({
        "resource": manifests::secret("shared", "ours"), "targets": included(&[&a, &b, &c]),
        "writePolicy": "overwrite", "deletionPolicy": "Orphan",
    });
    scene.distribute_as("rd", spec).await?;
    let stored = scene.until_counts("rd", 3, 2, 1).await?;
    assert_eq!(
        stored["status"]["conflictingNamespaces"],
        json!([{"name": b, "owner": "ConfigMap holder", "reason": "ControlledByOther"}])
    );
    let wanted = json!({"key": "b3Vycw=="});
    let adopted = scene.get("Secret", "shared").await?;
    assert_eq!(adopted["data"], wanted);
    assert_eq!(adopted["metadata"]["uid"], free["metadata"]["uid"]);
    assert_eq!(adopted["metadata"]["labels"]["owner"], "somebody");
    let replaced = scene.until_there("Secret", &c, "shared", |_| Ok(())).await?;
    assert_eq!(
        (&replaced["data"], &replaced["type"]),
        (&wanted, &json!("Opaque"))
    );
    ensure!(
        replaced["metadata"]["uid"] != typed["metadata"]["uid"],
        "the type of a Secret does not change"
    );
    scene.quiet().await?;
    unchanged(scene, &held).await?;

    // Objects that were taken over may be kept: they have no owner then.
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    for ns in [&a, &c] {
        let left = scene.until_there("Secret", ns, "shared", |_| Ok(())).await?;
        assert_eq!(left["data"], wanted);
        assert_eq!(left["metadata"]["ownerReferences"], Value::Null);
        ensure!(
            !left["metadata"]["annotations"]
                .to_string()
                .contains("resourcedistribution"),
            "{}",
            left["metadata"]
        );
    }
    unchanged(scene, &held).await
}

async fn of_two_distributions_the_first_wins_until_it_goes(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let targets = included(&[&ns]);
    scene
        .distribute("first", &manifests::config_map("shared", "first"), &targets)
        .await?;
    scene.until_counts("first", 1, 1, 0).await?;
    let spec = json!({
        "resource": manifests::config_map("shared", "second"), "targets": targets, "writePolicy": "overwrite",
    });
    scene.distribute_as("second", spec).await?;
    let stored = scene.until_counts("second", 1, 0, 1).await?;
    let owner = format!("ResourceDistribution {}", scene.own("first"));
    assert_eq!(
        stored["status"]["conflictingNamespaces"][0]["owner"],
        json!(owner)
    );
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "who wins does not change");
    let first = scene.get("ConfigMap", "shared").await?;
    assert_eq!(first["data"]["key"], "first");
    scene.end_distribution("first", "Background").await?;
    scene
        .until_collected("ConfigMap", &scene.ns, "shared", &first["metadata"]["uid"])
        .await?;
    scene.until_counts("second", 1, 1, 0).await?;
    assert_eq!(scene.get("ConfigMap", "shared").await?["data"]["key"], "second");
    Ok(())
}
