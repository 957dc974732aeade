//! Lazy activation: what such a policy says waits for the template's next change (Karmada reference 7.1, lazy cases 5, 6).

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_lazy_policy_that_is_there_first_acts_at_once_and_its_changes_wait,
    a_lazy_policy_that_comes_later_waits_for_the_workload_to_be_touched,
];

fn lazy(members: &[&str], propagate_deps: bool) -> Value {
    let mut policy = manifests::policy(members);
    policy["spec"]["activationPreference"] = json!("Lazy");
    policy["spec"]["propagateDeps"] = json!(propagate_deps);
    policy
}

async fn touch(scene: &Scene, value: &str) -> Result<()> {
    let annotate = |live: &mut Value| live["metadata"]["annotations"]["touched"] = json!(value);
    scene.hub.edit("Deployment", &scene.ns, "myapp", annotate).await?;
    Ok(())
}

async fn a_lazy_policy_that_is_there_first_acts_at_once_and_its_changes_wait(
    scene: &mut Scene,
) -> Result<()> {
    let [deployment, _, config] = manifests::example();
    scene.start().await?;
    scene.apply(lazy(&["member1"], true)).await?;
    scene.apply(deployment).await?;
    scene.apply(config).await?;
    scene.until_settled(&["member1"]).await?;
    scene.apply(lazy(&["member2"], true)).await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await? == ["member1"]);
    scene.restart().await?;
    scene.quiet().await?;
    ensure!(
        scene.holders("Deployment", "myapp").await? == ["member1"],
        "a restart is no touch"
    );
    touch(scene, "1").await?;
    scene.until_settled(&["member2"]).await
}

async fn a_lazy_policy_that_comes_later_waits_for_the_workload_to_be_touched(
    scene: &mut Scene,
) -> Result<()> {
    let [deployment, _, config] = manifests::example();
    scene.start().await?;
    let created = scene.apply(deployment).await?["metadata"]["creationTimestamp"].clone();
    scene.apply(config).await?;
    // The order of the two is that of their creationTimestamps, which are whole seconds.
    entourage_e2e::harness::eventually("a second has passed", async || {
        let probe = scene.apply(manifests::config_map("clock", "")).await?;
        scene.delete("ConfigMap", "clock").await?;
        ensure!(probe["metadata"]["creationTimestamp"] != created);
        Ok(())
    })
    .await?;
    scene.apply(lazy(&["member1"], false)).await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await?.is_empty());
    ensure!(
        scene.get("Deployment", "myapp").await?["metadata"]["annotations"]["propagationpolicy.karmada.io/name"]
            == "myapp-propagation",
        "it claims"
    );
    touch(scene, "1").await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.apply(lazy(&["member1"], true)).await?;
    scene.quiet().await?;
    ensure!(
        scene.holders("ConfigMap", "my-config").await?.is_empty(),
        "not touched since"
    );
    touch(scene, "2").await?;
    scene.until_settled(&["member1"]).await
}
