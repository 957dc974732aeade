//! Removal: the objects that are deleted, their order, and those that stay.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_dropped_reference_takes_the_copy_and_the_binding_along,
    a_deleted_workload_takes_everything_along_and_leaves_nothing,
    a_revoked_dependency_goes_after_the_grace_and_every_workload_is_reported,
    a_dependency_that_is_back_in_time_never_leaves_its_members,
    preserved_resources_stay_without_our_marks,
    a_revoked_dependency_is_released_where_it_is_preserved,
    a_move_never_preserves,
    a_binding_deleted_by_hand_is_made_again_and_nothing_is_touched,
];

const ID: &str = "resourcebinding.karmada.io/permanent-id";

async fn a_dropped_reference_takes_the_copy_and_the_binding_along(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.faults.recorder().reset();
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    assert_eq!(
        scene.holders("Deployment", "myapp").await?,
        ["member1", "member2"]
    );
    let writes = scene.writes();
    for member in ["member1", "member2"] {
        // The workload's copy stops needing it before it goes.
        let update = Scene::position(
            &writes,
            &format!("{member} update deployments.apps {}/myapp", scene.ns),
        )?;
        let delete = Scene::position(
            &writes,
            &format!("{member} delete configmaps {}/my-config", scene.ns),
        )?;
        ensure!(update < delete, "{writes:#?}");
    }
    Ok(())
}

async fn a_deleted_workload_takes_everything_along_and_leaves_nothing(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.faults.recorder().reset();
    scene.delete("Deployment", "myapp").await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    scene.get("ConfigMap", "my-config").await?;
    let writes = scene.writes();
    for member in ["member1", "member2"] {
        let workload = Scene::position(
            &writes,
            &format!("{member} delete deployments.apps {}/myapp", scene.ns),
        )?;
        let config = Scene::position(
            &writes,
            &format!("{member} delete configmaps {}/my-config", scene.ns),
        )?;
        ensure!(workload < config, "{writes:#?}");
    }
    Ok(())
}

/// The same as in a single cluster: a revoked Secret must be deleted. The grace period is counted from the binding's
/// deletionTimestamp, which has whole seconds.
async fn a_revoked_dependency_goes_after_the_grace_and_every_workload_is_reported(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.deletion_grace = Duration::from_secs(3);
    scene.example().await?;
    scene
        .apply(manifests::deployment("another", &["my-config"]))
        .await?;
    let mut policy = manifests::policy_for("another", "Deployment", "another", &["member2"]);
    policy["spec"]["propagateDeps"] = json!(true);
    scene.apply(policy).await?;
    scene
        .until_condition("another-deployment", "DependenciesReady", "True", "")
        .await?;

    let deleted = Instant::now();
    scene.delete("ConfigMap", "my-config").await?;
    // Both conditions are set at once, before anything is removed.
    let says = format!("ConfigMap {}/my-config", scene.ns);
    for name in ["myapp", "another"] {
        let binding = format!("{name}-deployment");
        let reported = scene
            .until_condition(&binding, "DependenciesReady", "False", &says)
            .await?;
        assert_eq!(reported["reason"], "DependencyMissing");
    }
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    let after = deleted.elapsed();
    ensure!(after >= Duration::from_secs(2), "gone after {after:?}");
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    for name in ["myapp", "another"] {
        let events = scene
            .events("SyncScheduleResultToDependenciesFailed", name)
            .await?;
        let reported: Vec<&Value> = events
            .iter()
            .filter(|event| event.to_string().contains(&says))
            .collect();
        ensure!(
            reported.len() == 1 && reported[0]["type"] == "Warning" && reported[0]["count"] == 1,
            "{events:#?}"
        );
        ensure!(
            !scene.holders("Deployment", name).await?.is_empty(),
            "{name} is gone"
        );
    }
    Ok(())
}

async fn a_dependency_that_is_back_in_time_never_leaves_its_members(scene: &mut Scene) -> Result<()> {
    scene.options.deletion_grace = Duration::from_secs(10);
    scene.example().await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    let before = scene.binding("my-config-configmap").await?;
    let mut copies = Vec::new();
    for member in ["member1", "member2"] {
        copies.push(scene.copy(member, "ConfigMap", "my-config").await?["metadata"]["uid"].clone());
    }
    let [_, _, config] = manifests::example();
    scene.delete("ConfigMap", "my-config").await?;
    // It is being deleted, or is deleted: its deletion may be observed before the ConfigMap's, and then it is only released.
    eventually("the garbage collector ends the binding", async || {
        let binding = scene
            .hub
            .get("ResourceBinding", &scene.ns, "my-config-configmap")
            .await?;
        ensure!(
            binding.is_none_or(|binding| binding["metadata"]["deletionTimestamp"].is_string()),
            "the binding is not ending"
        );
        Ok(())
    })
    .await?;
    let config = scene.apply(config).await?;
    scene
        .until_binding("my-config-configmap", |binding| {
            ensure!(
                binding["metadata"]["uid"] != before["metadata"]["uid"],
                "still the old binding"
            );
            Ok(())
        })
        .await?;
    scene.until_settled(&["member1", "member2"]).await?;
    scene.quiet().await?;
    let after = scene.binding("my-config-configmap").await?;
    assert_eq!(after["metadata"]["labels"][ID], before["metadata"]["labels"][ID]);
    assert_eq!(after["spec"]["resource"]["uid"], config["metadata"]["uid"]);
    for (member, uid) in ["member1", "member2"].into_iter().zip(copies) {
        let copy = scene.copy(member, "ConfigMap", "my-config").await?;
        assert_eq!(copy["metadata"]["uid"], uid);
        assert_eq!(
            copy["metadata"]["annotations"]["resourcetemplate.karmada.io/uid"],
            config["metadata"]["uid"]
        );
    }
    ensure!(
        !scene
            .writes()
            .iter()
            .any(|write| write.starts_with("member") && write.contains(" delete "))
    );
    Ok(())
}

async fn preserving(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for mut object in manifests::example() {
        if object["kind"] == "PropagationPolicy" {
            object["spec"]["preserveResourcesOnDeletion"] = json!(true);
        }
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await
}

/// Succeeds if a copy has no ownership metadata.
pub(crate) fn unmarked(copy: &Value) -> Result<()> {
    let mut meta = copy["metadata"].clone();
    if let Some(meta) = meta.as_object_mut() {
        meta.remove("managedFields");
    }
    let text = meta.to_string();
    ensure!(
        !text.contains("karmada.io") && !text.contains("entourage.dev"),
        "{text}"
    );
    Ok(())
}

async fn preserved_resources_stay_without_our_marks(scene: &mut Scene) -> Result<()> {
    preserving(scene).await?;
    scene.delete("Deployment", "myapp").await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    for member in ["member1", "member2"] {
        for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
            let copy = scene.copy(member, kind, name).await?;
            unmarked(&copy)?;
        }
        assert_eq!(
            scene.copy(member, "Deployment", "myapp").await?["metadata"]["labels"],
            json!({"app": "myapp"})
        );
    }
    Ok(())
}

async fn a_revoked_dependency_is_released_where_it_is_preserved(scene: &mut Scene) -> Result<()> {
    preserving(scene).await?;
    scene.delete("ConfigMap", "my-config").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    for member in ["member1", "member2"] {
        unmarked(&scene.copy(member, "ConfigMap", "my-config").await?)?;
    }
    Ok(())
}

async fn a_move_never_preserves(scene: &mut Scene) -> Result<()> {
    preserving(scene).await?;
    let mut policy = manifests::policy(&["member3"]);
    policy["spec"]["preserveResourcesOnDeletion"] = json!(true);
    scene.apply(policy).await?;
    scene.until_held("Deployment", "myapp", &["member3"]).await?;
    scene.until_held("ConfigMap", "my-config", &["member3"]).await
}

async fn a_binding_deleted_by_hand_is_made_again_and_nothing_is_touched(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    for name in ["myapp-deployment", "my-config-configmap"] {
        scene.faults.recorder().reset();
        let before = scene.binding(name).await?;
        scene.delete("ResourceBinding", name).await?;
        let after = scene
            .until_binding(name, |binding| {
                ensure!(
                    binding["metadata"]["uid"] != before["metadata"]["uid"],
                    "still the old binding"
                );
                Ok(())
            })
            .await?;
        assert_eq!(after["metadata"]["labels"][ID], before["metadata"]["labels"][ID]);
        scene.until_settled(&["member1", "member2"]).await?;
        scene.quiet().await?;
        let touched: Vec<String> = scene
            .writes()
            .into_iter()
            .filter(|write| write.starts_with("member"))
            .collect();
        ensure!(touched.is_empty(), "{name}: {touched:#?}");
    }
    Ok(())
}
