//! Placement: replicas divided by weight and by room, groups of clusters, rescheduling on request.

use anyhow::{Context as _, Result, ensure};
use entourage_controllers::estimators;
use entourage_e2e::{
    harness::{Estimator, Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    divided_replicas_come_to_rest_follow_a_scaling_and_are_divided_again_when_asked,
    a_later_group_of_clusters_is_used_while_the_first_has_no_cluster_and_is_kept,
    replicas_go_where_the_nodes_of_members_have_room_and_wait_where_there_is_none,
    a_replica_whose_pod_no_node_takes_moves_to_another_member,
    replicas_go_where_the_estimators_of_members_have_room_and_a_lost_estimator_holds_up_nothing,
];

fn policy(placement: &Value) -> Value {
    let mut policy = manifests::policy_for("myapp-propagation", "Deployment", "myapp", &[]);
    policy["spec"]["placement"] = placement.clone();
    policy
}

/// A Deployment that says everything that `replicaRequirements` can hold.
fn demanding(replicas: i64) -> Value {
    let mut object = manifests::deployment("myapp", &[]);
    object["spec"]["replicas"] = json!(replicas);
    let pod = &mut object["spec"]["template"]["spec"];
    pod["containers"][0]["resources"] =
        json!({"requests": {"cpu": "0.25", "memory": "1024Mi"}, "limits": {"ephemeral-storage": "1.5G"}});
    pod["nodeSelector"] = json!({"disk": "ssd"});
    pod["tolerations"] = json!([
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"operator": "Exists"},
    ]);
    pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
        }],
    }}});
    object
}

/// Waits until the copies have so many replicas, by member.
async fn until_divided(scene: &Scene, wanted: &[(&str, i64)]) -> Result<()> {
    let members: Vec<&str> = wanted.iter().map(|(member, _)| *member).collect();
    scene.until_held("Deployment", "myapp", &members).await?;
    eventually("the replicas are divided", async || {
        for (member, replicas) in wanted {
            let copy = scene.copy(member, "Deployment", "myapp").await?;
            ensure!(
                copy["spec"]["replicas"] == *replicas,
                "{member}: {}",
                copy["spec"]["replicas"]
            );
        }
        Ok(())
    })
    .await
}

async fn edit_binding(scene: &Scene, change: impl Fn(&mut Value)) -> Result<()> {
    scene
        .hub
        .edit("ResourceBinding", &scene.ns, "myapp-deployment", change)
        .await?;
    Ok(())
}

async fn divided_replicas_come_to_rest_follow_a_scaling_and_are_divided_again_when_asked(
    scene: &mut Scene,
) -> Result<()> {
    let placement = |names: &[&str]| {
        json!({
            "clusterAffinity": {"clusterNames": names},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": [
                    {"targetCluster": {"clusterNames": ["member1"]}, "weight": 1},
                    {"targetCluster": {"clusterNames": ["member2"]}, "weight": 2},
                ]},
            },
        })
    };
    scene.start().await?;
    scene.apply(demanding(9)).await?;
    scene.apply(policy(&placement(&["member1", "member2"]))).await?;
    until_divided(scene, &[("member1", 3), ("member2", 6)]).await?;
    scene.quiet().await?;
    let binding = scene.binding("myapp-deployment").await?;
    let needs = &binding["spec"]["replicaRequirements"];
    ensure!(
        needs["resourceRequest"]
            == json!({"cpu": "250m", "memory": "1Gi", "ephemeral-storage": "1500000000"}),
        "{needs}"
    );
    let claim = &needs["nodeClaim"];
    ensure!(
        claim["tolerations"][0]["tolerationSeconds"] == 60
            && claim["hardNodeAffinity"]["nodeSelectorTerms"][0]["matchFields"][0]["key"] == "metadata.name",
        "{claim}"
    );
    let scale = |live: &mut Value| live["spec"]["replicas"] = json!(1);
    scene.hub.edit("Deployment", &scene.ns, "myapp", scale).await?;
    until_divided(scene, &[("member2", 1)]).await?;
    scene.quiet().await?;
    let asked = "2099-01-01T00:00:00Z";
    edit_binding(scene, |live| live["spec"]["rescheduleTriggeredAt"] = json!(asked)).await?;
    eventually("the question is answered", async || {
        let status = scene.binding("myapp-deployment").await?["status"].clone();
        ensure!(status["lastScheduledTime"] == asked, "{status}");
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
    ensure!(scene.holders("Deployment", "myapp").await? == ["member2"]);
    Ok(())
}

/// A ready node of a member that offers so many CPUs.
async fn node(scene: &Scene, member: &str, cpu: u32) -> Result<()> {
    let (member, name) = (scene.member(member)?, scene.own("node"));
    let path = format!("/api/v1/nodes/{name}");
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let held = match member.call("GET", &path, None).await {
        Ok(held) => held,
        Err(_) => member.call("POST", "/api/v1/nodes", Some(&object)).await?,
    };
    let mut next = held;
    next["status"] = json!({
        "capacity": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"},
        "allocatable": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
    });
    member.call("PUT", &format!("{path}/status"), Some(&next)).await?;
    Ok(())
}

async fn replicas_go_where_the_nodes_of_members_have_room_and_wait_where_there_is_none(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.model_resources = true;
    scene.options.probe_interval = std::time::Duration::from_millis(500);
    node(scene, "member1", 2).await?;
    node(scene, "member2", 8).await?;
    scene.start().await?;
    let mut workload = manifests::deployment("myapp", &[]);
    workload["spec"]["replicas"] = json!(6);
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    scene.apply(workload).await?;
    scene
        .apply(policy(&json!({
            "clusterAffinity": {"clusterNames": ["member1", "member2"]},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
        })))
        .await?;
    until_divided(scene, &[("member2", 6)]).await?;
    let cluster = scene
        .hub
        .get("Cluster", "", "member2")
        .await?
        .context("Cluster")?;
    let summary = &cluster["status"]["resourceSummary"];
    ensure!(summary["allocatable"]["cpu"] == "8", "{summary}");
    let scale = |live: &mut Value| live["spec"]["replicas"] = json!(40);
    scene.hub.edit("Deployment", &scene.ns, "myapp", scale).await?;
    scene
        .until_condition(
            "myapp-deployment",
            "Scheduled",
            "False",
            "are not enough to schedule. 34 more are needed",
        )
        .await?;
    until_divided(scene, &[("member2", 6)]).await?;
    node(scene, "member1", 60).await?;
    eventually("there is room for all replicas", async || {
        let binding = scene.binding("myapp-deployment").await?;
        let clusters = binding["spec"]["clusters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let sum: i64 = clusters
            .iter()
            .filter_map(|target| target["replicas"].as_i64())
            .sum();
        let on_member2 = clusters.iter().find(|target| target["name"] == "member2");
        let stays = on_member2.is_some_and(|target| target["replicas"].as_i64() >= Some(6));
        ensure!(sum == 40 && clusters.len() == 2 && stays, "{clusters:?}");
        Ok(())
    })
    .await?;
    for member in ["member1", "member2"] {
        let path = format!("/api/v1/nodes/{}", scene.own("node"));
        scene.member(member)?.call("DELETE", &path, None).await?;
    }
    Ok(())
}

/// The replicas of the binding by its clusters, once they are so many.
async fn until_scheduled(scene: &Scene, sum: i64) -> Result<Vec<(String, i64)>> {
    eventually(&format!("{sum} replicas are scheduled"), async || {
        let binding = scene.binding("myapp-deployment").await?;
        let clusters = binding["spec"]["clusters"].as_array().into_iter().flatten();
        let mut shares: Vec<(String, i64)> = clusters
            .map(|target| {
                let name = target["name"].as_str().unwrap_or_default().to_owned();
                (name, target["replicas"].as_i64().unwrap_or_default())
            })
            .collect();
        shares.sort();
        let found: i64 = shares.iter().map(|(_, count)| count).sum();
        ensure!(found == sum, "{shares:?}: {}", binding["status"]["conditions"]);
        Ok(shares)
    })
    .await
}

async fn replicas_go_where_the_estimators_of_members_have_room_and_a_lost_estimator_holds_up_nothing(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.model_resources = true;
    scene.options.probe_interval = std::time::Duration::from_millis(500);
    scene.options.estimators = Some(estimators::Options {
        namespace: scene.ns.clone(),
        ..estimators::Options::default()
    });
    // By their nodes, each member has room for all.
    let estimators = [
        ("member1", Estimator::start(1).await?),
        ("member2", Estimator::start(3).await?),
    ];
    for (member, estimator) in &estimators {
        node(scene, member, 40).await?;
        let name = format!("karmada-scheduler-estimator-{member}");
        scene.hub.create(&estimator.service(&scene.ns, &name)).await?;
    }
    scene.start().await?;
    let mut workload = manifests::deployment("myapp", &[]);
    workload["spec"]["replicas"] = json!(4);
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    scene.apply(workload).await?;
    scene
        .apply(policy(&json!({
            "clusterAffinity": {"clusterNames": ["member1", "member2"]},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
        })))
        .await?;
    until_divided(scene, &[("member1", 1), ("member2", 3)]).await?;
    // A result that stands asks nobody.
    scene.quiet().await?;
    let asked = estimators.each_ref().map(|(_, estimator)| estimator.asked());
    ensure!(asked.iter().all(|count| (1..4).contains(count)), "{asked:?}");
    scene.quiet().await?;
    ensure!(estimators.each_ref().map(|(_, estimator)| estimator.asked()) == asked);

    for ((_, estimator), room) in estimators.iter().zip([9, 0]) {
        estimator.has_room(room);
    }
    let scale = |to: i64| move |live: &mut Value| live["spec"]["replicas"] = json!(to);
    scene.hub.edit("Deployment", &scene.ns, "myapp", scale(8)).await?;
    let shares = until_scheduled(scene, 8).await?;
    ensure!(
        shares == [("member1".to_owned(), 5), ("member2".to_owned(), 3)],
        "{shares:?}"
    );

    drop(estimators);
    scene
        .hub
        .edit("Deployment", &scene.ns, "myapp", scale(10))
        .await?;
    until_scheduled(scene, 10).await?;
    scene.quiet().await?;
    for member in ["member1", "member2"] {
        let path = format!("/api/v1/nodes/{}", scene.own("node"));
        scene.member(member)?.call("DELETE", &path, None).await?;
    }
    Ok(())
}

/// A Pod of `myapp` on member1 that no node takes, as its scheduler reports it.
async fn pod_without_a_node(scene: &Scene) -> Result<()> {
    let member = scene.member("member1")?;
    let labels = json!({"app": "myapp", "pod-template-hash": "5d4"});
    let set = member
        .create(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": scene.ns, "name": "myapp-5d4"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx"}]},
            }},
        }))
        .await?;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "myapp-5d4", "controller": true,
        "blockOwnerDeletion": true, "uid": set["metadata"]["uid"]});
    member
        .create(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": scene.ns, "name": "myapp-5d4-a", "labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "app", "image": "nginx"}], "automountServiceAccountToken": false},
        }))
        .await?;
    let status = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    member
        .edit_status("Pod", &scene.ns, "myapp-5d4-a", |live| {
            live["status"] = status.clone()
        })
        .await?;
    Ok(())
}

async fn a_replica_whose_pod_no_node_takes_moves_to_another_member(scene: &mut Scene) -> Result<()> {
    scene.options.model_resources = true;
    scene.options.deschedule_after = Some(std::time::Duration::from_secs(60));
    for member in ["member1", "member2"] {
        node(scene, member, 8).await?;
    }
    scene.start().await?;
    // What is placed stays: so the room of both is known before.
    for member in ["member1", "member2"] {
        scene.until_cluster(member, "True", "").await?;
        eventually(&format!("the room of {member} is known"), async || {
            let cluster = scene.hub.get("Cluster", "", member).await?.context("it")?;
            let room = &cluster["status"]["resourceSummary"]["allocatable"]["cpu"];
            ensure!(*room == "8", "{room}");
            Ok(())
        })
        .await?;
    }
    let mut workload = manifests::deployment("myapp", &[]);
    workload["spec"]["replicas"] = json!(4);
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    scene.apply(workload).await?;
    scene
        .apply(policy(&json!({
            "clusterAffinity": {"clusterNames": ["member1", "member2"]},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
        })))
        .await?;
    until_divided(scene, &[("member1", 2), ("member2", 2)]).await?;
    for (member, ready) in [("member1", 1), ("member2", 2)] {
        let report = |live: &mut Value| {
            live["status"] = json!({"observedGeneration": live["metadata"]["generation"], "replicas": 2,
                "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready});
        };
        scene
            .member(member)?
            .edit_status("Deployment", &scene.ns, "myapp", report)
            .await?;
    }
    scene.quiet().await?;
    until_divided(scene, &[("member1", 2), ("member2", 2)]).await?;
    pod_without_a_node(scene).await?;
    until_divided(scene, &[("member1", 1), ("member2", 3)]).await?;
    let event = scene
        .until_reported_once("DescheduleBindingSucceed", "myapp")
        .await?;
    let message = event["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("Descheduled from cluster member1: 1 of 2 replicas"),
        "{message}"
    );
    scene.quiet().await?;
    until_divided(scene, &[("member1", 1), ("member2", 3)]).await?;
    for member in ["member1", "member2"] {
        let path = format!("/api/v1/nodes/{}", scene.own("node"));
        scene.member(member)?.call("DELETE", &path, None).await?;
    }
    Ok(())
}

async fn a_later_group_of_clusters_is_used_while_the_first_has_no_cluster_and_is_kept(
    scene: &mut Scene,
) -> Result<()> {
    let groups = |first: &str| {
        policy(&json!({"clusterAffinities": [
            {"affinityName": "primary", "clusterNames": [first]},
            {"affinityName": "backup", "clusterNames": ["member2"]},
        ]}))
    };
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.apply(groups("nowhere")).await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    scene.quiet().await?;
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
    let status = scene.binding("myapp-deployment").await?["status"].clone();
    ensure!(status["schedulerObservingAffinityName"] == "backup", "{status}");
    edit_binding(scene, |live| {
        live["spec"]["rescheduleTriggeredAt"] = json!("2099-01-01T00:00:00Z")
    })
    .await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.quiet().await?;
    let status = scene.binding("myapp-deployment").await?["status"].clone();
    let group = status["schedulerObservingAffinityName"]
        .as_str()
        .context("no group")?;
    ensure!(group == "primary", "{status}");
    Ok(())
}
