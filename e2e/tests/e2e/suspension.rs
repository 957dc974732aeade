//! Suspension: delivery is held back, to every cluster or to some.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_suspended_workload_stays_as_it_is_with_its_dependencies_until_it_goes_on,
    a_shared_dependency_goes_where_a_workload_that_is_not_suspended_needs_it,
];

fn policy(name: &str, workload: &str, members: &[&str], suspension: &Value) -> Value {
    let mut policy = manifests::policy_for(name, "Deployment", workload, members);
    policy["spec"]["propagateDeps"] = json!(true);
    policy["spec"]["suspension"] = suspension.clone();
    policy
}

async fn a_suspended_workload_stays_as_it_is_with_its_dependencies_until_it_goes_on(
    scene: &mut Scene,
) -> Result<()> {
    let [deployment, _, config] = manifests::example();
    scene.start().await?;
    scene.apply(deployment).await?;
    scene.apply(config).await?;
    let suspended = |members: &[&str], how: &Value| policy("myapp-propagation", "myapp", members, how);
    scene
        .apply(suspended(
            &["member1", "member2"],
            &json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}}),
        ))
        .await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.until_held("ConfigMap", "my-config", &["member1"]).await?;
    scene
        .until_condition("myapp-deployment", "Dispatching", "False", "member2")
        .await?;
    scene.quiet().await?;
    ensure!(scene.holders("ConfigMap", "my-config").await? == ["member1"]);
    let reported = scene
        .until_reported_once("WorkDispatching", "myapp-deployment")
        .await?;
    ensure!(reported["type"] == "Normal", "{reported}");
    // Moved while all of it is held back: it stays where it is, and is not restored there either.
    scene
        .apply(suspended(&["member3"], &json!({"dispatching": true})))
        .await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await? == ["member1"]);
    scene.delete_on("member1", "Deployment", "myapp").await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await?.is_empty());
    scene.restart().await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await?.is_empty());
    scene.apply(manifests::policy(&["member3"])).await?;
    scene.until_settled(&["member3"]).await
}

async fn a_shared_dependency_goes_where_a_workload_that_is_not_suspended_needs_it(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::config_map("shared", "a")).await?;
    for name in ["one", "two"] {
        scene.apply(manifests::deployment(name, &["shared"])).await?;
    }
    let both = ["member1", "member2"];
    scene
        .apply(policy("one", "one", &both, &json!({"dispatching": true})))
        .await?;
    scene
        .apply(policy(
            "two",
            "two",
            &both,
            &json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}}),
        ))
        .await?;
    scene.until_held("Deployment", "two", &["member1"]).await?;
    scene.quiet().await?;
    ensure!(scene.holders("ConfigMap", "shared").await? == ["member1"]);
    ensure!(scene.holders("Deployment", "one").await?.is_empty());
    // The suspended workload still depends on it there: it is neither deleted nor propagated to another cluster.
    scene.delete("Deployment", "two").await?;
    scene.until_held("Deployment", "two", &[]).await?;
    scene.quiet().await?;
    ensure!(scene.holders("ConfigMap", "shared").await? == ["member1"]);
    scene.delete("Deployment", "one").await?;
    scene.until_held("ConfigMap", "shared", &[]).await
}
