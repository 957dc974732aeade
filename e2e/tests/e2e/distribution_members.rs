//! ResourceDistributions and members: as targets, behind workloads, and for policies.

use anyhow::{Context, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    copies_are_in_the_namespaces_of_members_and_go_with_the_distribution,
    what_others_put_on_a_member_is_a_conflict_there,
    a_copy_follows_a_workload_that_needs_it_to_its_member,
    what_a_policy_takes_to_members_is_not_carried_out_on_the_hub,
];

/// Targets that name the test's namespace on members.
fn on_members(scene: &Scene, members: &[&str]) -> Value {
    let mut targets = included(&[&scene.ns]);
    targets["clusters"] = json!({"clusterNames": members});
    targets
}

async fn copies_are_in_the_namespaces_of_members_and_go_with_the_distribution(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let shared = manifests::secret("shared", "one");
    scene
        .distribute("rd", &shared, &on_members(scene, &["member1", "member2"]))
        .await?;
    scene
        .until_held("Secret", "shared", &["member1", "member2"])
        .await?;
    let stored = scene.until_counts("rd", 2, 2, 0).await?;
    let one = |name: &str| json!({"name": name, "desired": 1, "succeeded": 1, "failed": 0});
    assert_eq!(
        stored["status"]["clusters"],
        json!([one("member1"), one("member2")])
    );
    ensure!(scene.get("Secret", "shared").await.is_err(), "it is on the hub");
    let copy = scene.copy("member1", "Secret", "shared").await?;
    assert_eq!(copy["data"], json!({"key": "b25l"}));
    let meta = &copy["metadata"];
    ensure!(meta["ownerReferences"].is_null(), "{meta}");
    ensure!(
        meta["labels"]["entourage.dev/distributed-by"].is_string(),
        "{meta}"
    );
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");

    scene
        .edit_on("member2", "Secret", "shared", |live| live["data"] = json!({}))
        .await?;
    scene
        .until_copy("member2", "Secret", "shared", |copy| {
            ensure!(copy["data"]["key"] == "b25l", "not put right");
            Ok(())
        })
        .await?;
    scene.delete_on("member1", "Secret", "shared").await?;
    scene
        .until_held("Secret", "shared", &["member1", "member2"])
        .await?;
    scene
        .distribute("rd", &shared, &on_members(scene, &["member1", "member3"]))
        .await?;
    scene
        .until_held("Secret", "shared", &["member1", "member3"])
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    // The copies were deleted before the distribution was.
    assert_eq!(scene.holders("Secret", "shared").await?, [""; 0]);
    Ok(())
}

async fn what_others_put_on_a_member_is_a_conflict_there(scene: &mut Scene) -> Result<()> {
    let before = scene
        .apply_on("member2", manifests::config_map("shared", "theirs"))
        .await?;
    scene.start().await?;
    let shared = manifests::config_map("shared", "one");
    scene
        .distribute("rd", &shared, &on_members(scene, &["member1", "member2"]))
        .await?;
    let stored = scene.until_counts("rd", 2, 1, 1).await?;
    assert_eq!(
        stored["status"]["conflictingNamespaces"],
        json!([{"name": scene.ns, "cluster": "member2", "reason": "NotControlled"}])
    );
    let at = format!("member2/{}", scene.ns);
    scene.until_failure("rd", "ConflictOccurred", &at, &[&at]).await?;
    let spec = json!({
        "resource": shared, "targets": on_members(scene, &["member1", "member2"]),
        "writePolicy": "overwrite", "deletionPolicy": "Orphan",
    });
    scene.distribute_as("rd", spec).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    let adopted = scene.copy("member2", "ConfigMap", "shared").await?;
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(adopted["data"]["key"], "one");
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    for member in ["member1", "member2"] {
        let left = scene.copy(member, "ConfigMap", "shared").await?;
        assert_eq!(left["data"]["key"], "one");
        let meta = &left["metadata"];
        ensure!(meta["labels"]["entourage.dev/distributed-by"].is_null(), "{meta}");
        ensure!(
            !meta["annotations"].to_string().contains("resourcedistribution"),
            "{meta}"
        );
    }
    // An object that a policy of this hub delivers to a member is not taken over either.
    scene
        .apply(manifests::config_map("delivered", "by a policy"))
        .await?;
    scene
        .apply(manifests::policy_for("p", "ConfigMap", "delivered", &["member1"]))
        .await?;
    scene.until_held("ConfigMap", "delivered", &["member1"]).await?;
    let spec = json!({
        "resource": manifests::config_map("delivered", "by a distribution"),
        "targets": on_members(scene, &["member1"]), "writePolicy": "overwrite",
    });
    scene.distribute_as("late", spec).await?;
    scene.until_counts("late", 1, 0, 1).await?;
    scene.quiet().await?;
    let copy = scene.copy("member1", "ConfigMap", "delivered").await?;
    assert_eq!(copy["data"]["key"], "by a policy");
    Ok(())
}

async fn a_copy_follows_a_workload_that_needs_it_to_its_member(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    scene
        .distribute("rd", &manifests::secret("shared", "one"), &included(&[&ns]))
        .await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "shared"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1", "member2"])).await?;
    scene
        .until_held("Secret", "shared", &["member1", "member2"])
        .await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    // Both have ownership metadata on it, and neither removes that of the other.
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "neither writes against the other");
    scene
        .distribute("rd", &manifests::secret("shared", "two"), &included(&[&ns]))
        .await?;
    for member in ["member1", "member2"] {
        let copy = scene
            .until_copy(member, "Secret", "shared", |copy| {
                ensure!(copy["data"]["key"] == "dHdv", "the old one");
                Ok(())
            })
            .await?;
        let owners = &copy["metadata"]["ownerReferences"];
        ensure!(owners.is_null(), "{owners}");
    }
    scene.apply(manifests::policy(&["member3"])).await?;
    scene.until_held("Secret", "shared", &["member3"]).await?;
    scene.end_distribution("rd", "Background").await?;
    scene.until_held("Secret", "shared", &[]).await
}

async fn what_a_policy_takes_to_members_is_not_carried_out_on_the_hub(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let before = scene.get("ConfigMap", "shared").await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": scene.own("rds")},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": scene.own("rd")},
            ],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    });
    scene.apply(policy).await?;
    scene
        .until_distribution("rd", |stored| {
            let labels = &stored["metadata"]["labels"];
            ensure!(
                labels["clusterpropagationpolicy.karmada.io/permanent-id"].is_string(),
                "not claimed: {labels}"
            );
            let description = stored["status"]["description"].as_str().unwrap_or_default();
            ensure!(description.starts_with("Propagated to "), "{description}");
            Ok(())
        })
        .await?;
    // Existing copies stay as they are; no new ones are written.
    let late = scene.another_space().await?.ns;
    let change = manifests::config_map("shared", "two");
    scene.distribute("rd", &change, &included(&[&ns, &late])).await?;
    scene.quiet().await?;
    scene
        .until_in("ConfigMap", "shared", &[&ns, &late], &[&ns])
        .await?;
    let after = scene.get("ConfigMap", "shared").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    // Without the policy it is distributed by this hub again.
    scene
        .delete("ClusterPropagationPolicy", &scene.own("rds"))
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    eventually("both have what is new", async || {
        for ns in [&ns, &late] {
            let copy = scene.hub.get("ConfigMap", ns, "shared").await?;
            let copy = copy.context("not there")?;
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
        }
        Ok(())
    })
    .await
}
