//! FederatedResourceQuotas: limits of a namespace over all clusters, as users of Karmada write them.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_quota_is_a_resource_quota_on_each_assigned_cluster_and_reports_what_is_used_there,
    a_workload_beyond_the_quota_of_its_namespace_waits_until_there_is_enough,
];

const KIND: &str = "FederatedResourceQuota";

fn quota(overall: &Value, assignments: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": KIND, "metadata": {"name": "team"},
        "spec": {"overall": overall, "staticAssignments": assignments},
    })
}

/// Waits until a field of the quota's status is this.
async fn until_status(scene: &Scene, field: &str, wanted: &Value) -> Result<()> {
    eventually(&format!("status.{field} is {wanted}"), async || {
        let status = scene.get(KIND, "team").await?["status"].clone();
        ensure!(status[field] == *wanted, "{status}");
        Ok(())
    })
    .await
}

/// Writes the status as the quota controller of a member would, which does not run here.
async fn report(scene: &Scene, member: &str, used: &Value) -> Result<()> {
    let change = |live: &mut Value| {
        live["status"] = json!({"hard": live["spec"]["hard"], "used": used});
    };
    let server = scene.member(member)?;
    server
        .edit_status("ResourceQuota", &scene.ns, "team", change)
        .await?;
    Ok(())
}

async fn end(scene: &Scene) -> Result<()> {
    scene.delete(KIND, "team").await?;
    eventually("the quota is gone", async || {
        let left = scene.hub.get(KIND, &scene.ns, "team").await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await
}

async fn a_quota_is_a_resource_quota_on_each_assigned_cluster_and_reports_what_is_used_there(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let assignments = json!([
        {"clusterName": "member2", "hard": {"cpu": 6}},
        {"clusterName": "member1", "hard": {"cpu": "4", "memory": "4Gi"}},
    ]);
    scene
        .apply(quota(&json!({"cpu": 10, "memory": "10Gi"}), &assignments))
        .await?;
    eventually("both have their ResourceQuota", async || {
        let holders = scene.holders("ResourceQuota", "team").await?;
        ensure!(holders == ["member1", "member2"], "{holders:?}");
        Ok(())
    })
    .await?;
    report(scene, "member1", &json!({"cpu": "1500m", "memory": "1Gi"})).await?;
    report(scene, "member2", &json!({"cpu": "2"})).await?;
    until_status(scene, "overallUsed", &json!({"cpu": "3500m", "memory": "1Gi"})).await?;
    let listed = json!([
        {"clusterName": "member1", "hard": {"cpu": "4", "memory": "4Gi"}, "used": {"cpu": "1500m", "memory": "1Gi"}},
        {"clusterName": "member2", "hard": {"cpu": "6"}, "used": {"cpu": "2"}},
    ]);
    until_status(scene, "aggregatedStatus", &listed).await?;
    for reason in [
        "SyncFederatedResourceQuotaSucceed",
        "CollectFederatedResourceQuotaStatusSucceed",
        "CollectFederatedResourceQuotaOverallStatusSucceed",
    ] {
        scene.until_reported_once(reason, "team").await?;
    }
    scene.quiet().await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(
        wrote == 0,
        "{wrote} writes after a restart: {:#?}",
        scene.writes()
    );

    // Changes by users are reverted there.
    let raise = |live: &mut Value| live["spec"]["hard"]["cpu"] = json!("400");
    scene.edit_on("member1", "ResourceQuota", "team", raise).await?;
    eventually("the limit is restored", async || {
        let live = scene.on("member1", "ResourceQuota", "team").await?;
        ensure!(
            live.as_ref()
                .is_some_and(|live| live["spec"]["hard"]["cpu"] == "4"),
            "{live:?}"
        );
        Ok(())
    })
    .await?;
    end(scene).await?;
    let holders = scene.holders("ResourceQuota", "team").await?;
    ensure!(holders.is_empty(), "{holders:?}");
    Ok(())
}

async fn a_workload_beyond_the_quota_of_its_namespace_waits_until_there_is_enough(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.enforce_quotas = true;
    scene.start().await?;
    scene.apply(quota(&json!({"cpu": "4"}), &json!([]))).await?;
    until_status(scene, "overallUsed", &json!({"cpu": "0"})).await?;
    for (name, replicas) in [("first", 3), ("second", 2)] {
        let mut workload = manifests::deployment(name, &[]);
        workload["spec"]["replicas"] = json!(replicas);
        workload["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "1"}});
        scene.apply(workload).await?;
        scene
            .apply(manifests::policy_for(name, "Deployment", name, &["member1"]))
            .await?;
        if name == "first" {
            scene.until_held("Deployment", name, &["member1"]).await?;
        }
    }
    let exceeded = format!(
        "FederatedResourceQuota({}/team) exceeded for resource cpu: requested sum 5, limit 4.",
        scene.ns
    );
    let condition = ("second-deployment", "Scheduled", "False");
    scene
        .until_condition(condition.0, condition.1, condition.2, &exceeded)
        .await?;
    until_status(scene, "overallUsed", &json!({"cpu": "3"})).await?;
    scene.quiet().await?;
    ensure!(scene.on("member1", "Deployment", "second").await?.is_none());
    scene.delete("Deployment", "first").await?;
    scene.until_held("Deployment", "second", &["member1"]).await?;
    until_status(scene, "overallUsed", &json!({"cpu": "2"})).await?;
    scene.delete("Deployment", "second").await?;
    end(scene).await
}
