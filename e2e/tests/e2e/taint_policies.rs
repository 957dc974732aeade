//! Taints of Clusters: by Ready, by ClusterTaintPolicies, by users; and members that all stop answering at once.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, eventually_within},
    tests,
};
use serde_json::{Value, json};

tests![
    a_killed_member_is_tainted_by_ready_and_by_a_policy_and_freed_when_it_is_back,
    a_taint_of_a_user_that_evicts_gets_the_time_when_it_was_put_there,
    members_that_are_lost_together_are_not_tainted,
];

const NOT_READY: &str = "cluster.karmada.io/not-ready:NoSchedule";

/// The longest time until a member is found not ready, or ready again: a probe, its deadline, and the failure threshold of a
/// test.
const NOTICED: Duration = Duration::from_secs(60);

async fn cluster(scene: &Scene, name: &str) -> Result<Value> {
    scene.hub.get("Cluster", "", name).await?.context("no Cluster")
}

/// The taints of a Cluster as key:effect.
async fn taints(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let cluster = cluster(scene, name).await?;
    let all = cluster["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = |taint: &Value| format!("{}:{}", text(&taint["key"]), text(&taint["effect"]));
    Ok(all.iter().map(shown).collect())
}

async fn until_tainted(scene: &Scene, name: &str, wanted: &[&str]) -> Result<()> {
    eventually_within(
        NOTICED,
        &format!("{name} has the taints {wanted:?}"),
        async || {
            let found = taints(scene, name).await?;
            ensure!(found == wanted, "{found:?}");
            Ok(())
        },
    )
    .await
}

/// The writes of Clusters by the controllers that run.
fn writes_of_clusters(scene: &Scene) -> Vec<String> {
    let mut writes = scene.writes();
    writes.retain(|write| write.contains(" clusters"));
    writes
}

async fn a_killed_member_is_tainted_by_ready_and_by_a_policy_and_freed_when_it_is_back(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.cluster_failure_threshold = Duration::from_secs(3);
    scene.example().await?;
    let on =
        |operator: &str| json!([{"conditionType": "Ready", "operator": operator, "statusValues": ["True"]}]);
    let key = scene.own("dead");
    scene
        .apply(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": scene.own("dead")},
            "spec": {
                "targetClusters": {"clusterNames": ["member1", "member3"]},
                "addOnConditions": on("NotIn"), "removeOnConditions": on("In"),
                "taints": [{"key": key, "effect": "NoSchedule", "value": "yes"}],
            },
        }))
        .await?;
    until_tainted(scene, "member1", &[]).await?;
    scene.bed.cluster("member1")?.stop_apiserver();
    scene.until_cluster("member1", "False", "").await?;
    let by_policy = format!("{key}:NoSchedule");
    until_tainted(scene, "member1", &[NOT_READY, &by_policy]).await?;
    let put = cluster(scene, "member1").await?["spec"]["taints"][1].clone();
    ensure!(put["value"] == "yes" && put["timeAdded"].is_string(), "{put}");
    for other in ["member2", "member3"] {
        until_tainted(scene, other, &[]).await?;
    }
    eventually("the event names the policy", async || {
        let events = scene.hub.list("Event", "default", "").await?;
        let reported = events.iter().any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == "TaintClusterSucceed"
                && event["involvedObject"]["name"] == "member1"
                && message.contains(&format!("Added the taint {by_policy} (ClusterTaintPolicy {key})"))
        });
        ensure!(reported, "{events:#?}");
        Ok(())
    })
    .await?;
    // Nothing more is written, also by a process that starts now.
    scene.quiet().await?;
    let stored = cluster(scene, "member1").await?;
    scene.restart().await?;
    scene.until_cluster("member1", "False", "").await?;
    scene.quiet().await?;
    assert_eq!(writes_of_clusters(scene), [""; 0]);
    assert_eq!(
        cluster(scene, "member1").await?["metadata"]["resourceVersion"],
        stored["metadata"]["resourceVersion"]
    );
    scene.bed.cluster("member1")?.start_apiserver().await?;
    scene.until_cluster("member1", "True", "").await?;
    until_tainted(scene, "member1", &[]).await
}

async fn a_taint_of_a_user_that_evicts_gets_the_time_when_it_was_put_there(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let key = scene.own("drain");
    let put = json!([{"key": key, "effect": "NoExecute"}, {"key": "keep", "effect": "PreferNoSchedule"}]);
    let tainted = |live: &mut Value| live["spec"]["taints"] = put.clone();
    scene.hub.edit("Cluster", "", "member3", tainted).await?;
    eventually("the taint has a time", async || {
        let stored = cluster(scene, "member3").await?["spec"]["taints"].clone();
        ensure!(stored[0]["timeAdded"].is_string(), "{stored}");
        ensure!(
            stored[1] == put[1] && stored.as_array().is_some_and(|all| all.len() == 2),
            "{stored}"
        );
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    let freed = |live: &mut Value| drop(live["spec"].as_object_mut().map(|spec| spec.remove("taints")));
    scene.hub.edit("Cluster", "", "member3", freed).await?;
    scene.quiet().await?;
    until_tainted(scene, "member3", &[]).await
}

async fn members_that_are_lost_together_are_not_tainted(scene: &mut Scene) -> Result<()> {
    let members = ["member1", "member2", "member3"];
    // A pause longer than the interval of probes: all of them are observed within it.
    scene.options.cluster_failure_threshold = Duration::from_secs(15);
    scene.example().await?;
    for member in members {
        scene.until_cluster(member, "True", "").await?;
        scene.bed.cluster(member)?.stop_apiserver();
    }
    for member in members {
        let reported = scene
            .until_cluster(member, "Unknown", "3 of 3 members stopped responding")
            .await?;
        assert_eq!(reported["reason"], "HubCutOff");
    }
    scene.quiet().await?;
    for member in members {
        until_tainted(scene, member, &[]).await?;
    }
    scene.bed.cluster("member1")?.start_apiserver().await?;
    scene.until_cluster("member1", "True", "").await?;
    // Two members are not enough for a cut-off: they are not ready.
    for member in ["member2", "member3"] {
        scene.until_cluster(member, "False", "").await?;
        until_tainted(scene, member, &[NOT_READY]).await?;
        scene.bed.cluster(member)?.start_apiserver().await?;
        scene.until_cluster(member, "True", "").await?;
        until_tainted(scene, member, &[]).await?;
    }
    scene.until_settled(&["member1", "member2"]).await
}
