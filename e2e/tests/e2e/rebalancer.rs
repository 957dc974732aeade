//! WorkloadRebalancers: workloads rescheduled as users of Karmada request it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, eventually_within, manifests},
    tests,
};
use jiff::Timestamp;
use serde_json::{Value, json};

tests![
    a_workload_is_divided_anew_among_the_clusters_that_there_are_now,
    what_is_not_propagated_is_reported_to_have_no_binding_and_the_rebalancer_is_deleted_in_time,
];

/// The life of a finished rebalancer: longer than a busy machine takes to look at it.
const TTL: Duration = Duration::from_secs(15);

/// Groups of clusters, the first one preferred.
fn groups(first: &str) -> Value {
    let mut policy = manifests::policy_for("myapp-propagation", "Deployment", "myapp", &[]);
    policy["spec"]["placement"] = json!({"clusterAffinities": [
        {"affinityName": "primary", "clusterNames": [first]},
        {"affinityName": "backup", "clusterNames": ["member2"]},
    ]});
    policy
}

fn rebalancer(scene: &Scene, names: &[&str]) -> Value {
    let workload = |name: &&str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": scene.ns, "name": name});
    let workloads: Vec<Value> = names.iter().map(workload).collect();
    json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
        "metadata": {"name": scene.own("all")}, "spec": {"workloads": workloads},
    })
}

async fn stored(scene: &Scene) -> Result<Option<Value>> {
    let name = scene.own("all");
    scene.hub.get("WorkloadRebalancer", "", &name).await
}

/// Waits until it has finished, and answers with it.
async fn finished(scene: &Scene, generation: i64) -> Result<Value> {
    eventually("the rebalancer has finished", async || {
        let object = stored(scene).await?.context("no rebalancer")?;
        let status = &object["status"];
        ensure!(
            status["finishTime"].is_string() && status["observedGeneration"] == generation,
            "{status}"
        );
        Ok(object)
    })
    .await
}

/// Waits until what is made now is made in a later second than the last choice of clusters.
async fn until_later(scene: &Scene) -> Result<()> {
    let status = scene.binding("myapp-deployment").await?["status"].clone();
    let chosen = status["lastScheduledTime"]
        .as_str()
        .context("nothing was chosen")?;
    let chosen: Timestamp = chosen.parse()?;
    eventually("the second of the choice is over", async || {
        ensure!(Timestamp::now().as_second() > chosen.as_second(), "{chosen}");
        Ok(())
    })
    .await
}

async fn a_workload_is_divided_anew_among_the_clusters_that_there_are_now(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.apply(groups("nowhere")).await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    scene.apply(groups("member1")).await?;
    scene
        .until_condition(
            "myapp-deployment",
            "Scheduled",
            "True",
            "clusterAffinities[0] fits again",
        )
        .await?;
    scene.quiet().await?;
    ensure!(scene.holders("Deployment", "myapp").await? == ["member2"]);
    until_later(scene).await?;
    scene.hub.create(&rebalancer(scene, &["myapp"])).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    let object = finished(scene, 1).await?;
    let observed = &object["status"]["observedWorkloads"];
    ensure!(
        *observed == json!([{"workload": object["spec"]["workloads"][0], "result": "Successful"}]),
        "{observed}"
    );
    scene.quiet().await?;
    let asked = scene.binding("myapp-deployment").await?["spec"]["rescheduleTriggeredAt"].clone();
    ensure!(asked == object["metadata"]["creationTimestamp"], "{asked}");

    // A finished rebalancer has no further effect: a user's edit stays, also over a restart.
    let cleared = |live: &mut Value| live["spec"]["rescheduleTriggeredAt"] = Value::Null;
    let binding = ("ResourceBinding", "myapp-deployment");
    scene.hub.edit(binding.0, &scene.ns, binding.1, cleared).await?;
    scene
        .until_binding(binding.1, |binding| {
            let observed = condition(binding, "Scheduled")["observedGeneration"].clone();
            ensure!(observed == binding["metadata"]["generation"], "{observed}");
            Ok(())
        })
        .await?;
    scene.quiet().await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(
        wrote == 0,
        "{wrote} writes after a restart: {:#?}",
        scene.writes()
    );
    let asked = scene.binding("myapp-deployment").await?["spec"]["rescheduleTriggeredAt"].clone();
    ensure!(asked.is_null(), "{asked}");
    Ok(())
}

async fn what_is_not_propagated_is_reported_to_have_no_binding_and_the_rebalancer_is_deleted_in_time(
    scene: &mut Scene,
) -> Result<()> {
    scene.example().await?;
    scene.hub.create(&rebalancer(scene, &["myapp", "lost"])).await?;
    let object = finished(scene, 1).await?;
    let results = |object: &Value| -> Vec<[Value; 3]> {
        let all = object["status"]["observedWorkloads"].as_array().cloned();
        let result = |each: Value| {
            [
                each["workload"]["name"].clone(),
                each["result"].clone(),
                each["reason"].clone(),
            ]
        };
        all.unwrap_or_default().into_iter().map(result).collect()
    };
    let wanted = [
        [json!("lost"), json!("Failed"), json!("ReferencedBindingNotFound")],
        [json!("myapp"), json!("Successful"), Value::Null],
    ];
    ensure!(results(&object) == wanted, "{}", object["status"]);
    scene.quiet().await?;

    // The failed one is taken out, and the rest is to be cleared away.
    let edit = |live: &mut Value| {
        live["spec"]["workloads"]
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.truncate(1));
        live["spec"]["ttlSecondsAfterFinished"] = json!(TTL.as_secs());
    };
    let name = scene.own("all");
    scene.hub.edit("WorkloadRebalancer", "", &name, edit).await?;
    let object = finished(scene, 2).await?;
    ensure!(results(&object) == wanted[1..], "{}", object["status"]);
    let finish = object["status"]["finishTime"].as_str().context("no end")?;
    let finish: Timestamp = finish.parse()?;
    eventually_within(TTL * 4, "the rebalancer is deleted", async || {
        ensure!(stored(scene).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let age = Timestamp::now().duration_since(finish);
    ensure!(age.unsigned_abs() >= TTL, "after {age:?}");
    ensure!(scene.holders("Deployment", "myapp").await? == ["member1", "member2"]);
    Ok(())
}
