//! Policies that change or end.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, manifests},
    tests,
};
use serde_json::json;

tests![
    a_moved_policy_brings_dependencies_first_and_takes_the_workload_first,
    propagate_deps_off_on_and_off_again,
    two_reasons_hold_a_dependency_and_each_ends_without_the_other,
    a_deleted_policy_leaves_copies_and_dependencies_keep_following,
];

async fn a_moved_policy_brings_dependencies_first_and_takes_the_workload_first(
    scene: &mut Scene,
) -> Result<()> {
    scene.example().await?;
    scene.faults.recorder().reset();
    scene.apply(manifests::policy(&["member2", "member3"])).await?;
    scene.until_settled(&["member2", "member3"]).await?;
    let (ns, writes) = (&scene.ns, scene.writes());
    let made: Vec<String> = writes
        .iter()
        .filter(|write| write.ends_with(": 201"))
        .cloned()
        .collect();
    let config = Scene::position(&made, &format!("member3 create configmaps {ns}/"))?;
    let workload = Scene::position(&made, &format!("member3 create deployments.apps {ns}/"))?;
    ensure!(config < workload, "{writes:#?}");
    let workload = Scene::position(&writes, &format!("member1 delete deployments.apps {ns}/myapp"))?;
    let config = Scene::position(&writes, &format!("member1 delete configmaps {ns}/my-config"))?;
    ensure!(workload < config, "{writes:#?}");
    Ok(())
}

async fn propagate_deps_off_on_and_off_again(scene: &mut Scene) -> Result<()> {
    let mut off = manifests::policy(&["member1", "member2"]);
    off["spec"]["propagateDeps"] = json!(false);
    scene.start().await?;
    let [deployment, on, config] = manifests::example();
    for object in [deployment, off.clone(), config] {
        scene.apply(object).await?;
    }
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    scene
        .until_condition("myapp-deployment", "FullyApplied", "True", "")
        .await?;
    assert_eq!(
        *condition(&scene.binding("myapp-deployment").await?, "DependenciesReady"),
        json!(null)
    );
    assert_eq!(scene.holders("ConfigMap", "my-config").await?, [""; 0]);

    scene.apply(on).await?;
    scene.until_settled(&["member1", "member2"]).await?;

    scene.apply(off).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    eventually("nothing of following is left on the binding", async || {
        let binding = scene.binding("myapp-deployment").await?;
        let meta = &binding["metadata"];
        ensure!(
            meta["finalizers"] == json!(["karmada.io/binding-controller"]),
            "{}",
            meta["finalizers"]
        );
        ensure!(
            meta["annotations"]["resourcebinding.karmada.io/dependencies"].is_null(),
            "{}",
            meta["annotations"]
        );
        ensure!(
            condition(&binding, "DependenciesReady").is_null(),
            "{}",
            binding["status"]
        );
        Ok(())
    })
    .await?;
    assert_eq!(
        scene.holders("Deployment", "myapp").await?,
        ["member1", "member2"]
    );
    Ok(())
}

async fn two_reasons_hold_a_dependency_and_each_ends_without_the_other(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let own = |members: &[&str]| manifests::policy_for("config", "ConfigMap", "my-config", members);
    scene.apply(own(&["member3"])).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2", "member3"])
        .await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.until_held("ConfigMap", "my-config", &["member3"]).await?;
    scene
        .apply(manifests::deployment("myapp", &["my-config"]))
        .await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2", "member3"])
        .await?;
    scene.apply(own(&["member1"])).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2"])
        .await?;
    let binding = scene.binding("my-config-configmap").await?;
    assert_eq!(binding["spec"]["clusters"].as_array().map(Vec::len), Some(1));
    assert_eq!(binding["spec"]["requiredBy"].as_array().map(Vec::len), Some(1));
    Ok(())
}

/// The same as in Karmada: the copies of a deleted policy stay, and later changes of the templates are still delivered.
async fn a_deleted_policy_leaves_copies_and_dependencies_keep_following(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.delete("PropagationPolicy", "myapp-propagation").await?;
    scene.until_gone("PropagationPolicy", "myapp-propagation").await?;
    let template = scene.get("Deployment", "myapp").await?;
    ensure!(
        !template["metadata"]
            .to_string()
            .contains("propagationpolicy.karmada.io/name\":\"myapp"),
        "{template}"
    );
    scene
        .apply(manifests::deployment("myapp", &["my-config", "second"]))
        .await?;
    scene.apply(manifests::config_map("second", "x")).await?;
    scene
        .until_held("ConfigMap", "second", &["member1", "member2"])
        .await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2"])
        .await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    scene.apply(manifests::config_map("my-config", "edited")).await?;
    for member in ["member1", "member2"] {
        scene
            .until_copy(member, "ConfigMap", "my-config", |copy| {
                ensure!(copy["data"]["key"] == "edited", "{}", copy["data"]);
                Ok(())
            })
            .await?;
    }
    Ok(())
}
