//! The policy that claims a template: priorities, and preemption.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_claim_is_sticky_until_a_preempting_policy_is_really_higher,
    a_priority_that_is_lowered_while_nobody_watches_counts_after_the_restart,
    a_policy_of_the_namespace_takes_over_from_a_cluster_policy,
];

fn policy(name: &str, members: &[&str], fields: &Value) -> Value {
    let mut policy = manifests::policy_for(name, "Deployment", "myapp", members);
    for (key, value) in fields.as_object().into_iter().flatten() {
        policy["spec"][key] = value.clone();
    }
    policy
}

async fn until_claimed(scene: &Scene, by: &str) -> Result<()> {
    eventually(&format!("{by} holds the workload"), async || {
        let template = scene.get("Deployment", "myapp").await?;
        let claim = &template["metadata"]["annotations"]["propagationpolicy.karmada.io/name"];
        ensure!(claim == by, "{claim}");
        Ok(())
    })
    .await
}

async fn a_claim_is_sticky_until_a_preempting_policy_is_really_higher(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.apply(policy("low", &["member1"], &json!({}))).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene
        .apply(policy("high", &["member2"], &json!({"priority": 5})))
        .await?;
    scene.quiet().await?;
    until_claimed(scene, "low").await?;
    scene
        .apply(policy(
            "high",
            &["member2"],
            &json!({"priority": 5, "preemption": "Always"}),
        ))
        .await?;
    until_claimed(scene, "high").await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    scene.until_reported_once("PreemptPolicySucceed", "myapp").await?;
    scene.delete("PropagationPolicy", "high").await?;
    until_claimed(scene, "low").await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await
}

async fn a_priority_that_is_lowered_while_nobody_watches_counts_after_the_restart(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene
        .apply(policy("holder", &["member1"], &json!({"priority": 9})))
        .await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene
        .apply(policy(
            "waiting",
            &["member2"],
            &json!({"priority": 5, "preemption": "Always"}),
        ))
        .await?;
    scene.quiet().await?;
    scene.stop().await?;
    scene
        .apply(policy("holder", &["member1"], &json!({"priority": 1})))
        .await?;
    scene.start().await?;
    until_claimed(scene, "waiting").await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await
}

async fn a_policy_of_the_namespace_takes_over_from_a_cluster_policy(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    let mut everywhere = policy("", &["member1"], &json!({"priority": 100}));
    everywhere["kind"] = json!("ClusterPropagationPolicy");
    everywhere["metadata"]["name"] = json!(scene.own("everywhere"));
    everywhere["spec"]["resourceSelectors"][0]["namespace"] = json!(scene.ns);
    scene.apply(everywhere).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene
        .apply(policy("own", &["member3"], &json!({"preemption": "Always"})))
        .await?;
    until_claimed(scene, "own").await?;
    scene.until_held("Deployment", "myapp", &["member3"]).await?;
    let labels = scene.binding("myapp-deployment").await?["metadata"]["labels"].clone();
    ensure!(
        labels["clusterpropagationpolicy.karmada.io/permanent-id"].is_null(),
        "{labels}"
    );
    Ok(())
}
