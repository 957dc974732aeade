//! ResourceDistributions and policies: copies that go along with workloads, and a distribution that is carried out on members.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{FAILURES, Scene, condition, eventually, eventually_within, included, manifests, status_code},
    tests,
};
use serde_json::{Value, json};

tests![
    a_copy_goes_along_when_its_workload_leaves_a_member_that_fails,
    a_foreign_object_on_a_member_is_reported_in_the_binding_and_keeps_no_other_member_waiting,
    a_distribution_that_a_policy_takes_is_carried_out_by_the_member_and_its_report_is_summed_up,
];

/// The longest time until a member is found ready again: a probe, and its deadline.
const BACK: Duration = Duration::from_secs(40);

/// The definition, on the hub and on a member that serves it.
const DEFINITION: &str = "resourcedistributions.apps.kruise.io";

/// A distribution of the Secret `shared` into the test's namespace, and a workload that mounts it.
async fn shared(scene: &Scene) -> Result<()> {
    let targets = included(&[&scene.ns]);
    scene
        .distribute("rd", &manifests::secret("shared", "one"), &targets)
        .await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "shared"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await
        .map(drop)
}

async fn a_copy_goes_along_when_its_workload_leaves_a_member_that_fails(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    shared(scene).await?;
    let mut policy = manifests::policy(&["member1", "member2", "member3"]);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
    scene.apply(policy).await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    scene
        .until_condition("myapp-deployment", "FullyApplied", "True", "")
        .await?;
    let before: Vec<String> = scene
        .holders("Deployment", "myapp")
        .await?
        .iter()
        .map(ToString::to_string)
        .collect();
    ensure!(before.len() == 2, "{before:?}");
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    scene.until_held("Secret", "shared", &before).await?;

    let failed = before[1];
    let spare = ["member1", "member2", "member3"]
        .into_iter()
        .find(|member| !before.contains(member))
        .context("no third member")?;
    scene.bed.cluster(failed)?.stop_apiserver();
    scene.until_cluster(failed, "False", "").await?;
    // No taint evicts it (docs/differences.md): a rescheduling is requested.
    let again = |live: &mut Value| live["spec"]["rescheduleTriggeredAt"] = json!("2099-01-01T00:00:00Z");
    scene
        .hub
        .edit("ResourceBinding", &scene.ns, "myapp-deployment", again)
        .await?;
    for (kind, name) in [("Secret", "shared"), ("Deployment", "myapp")] {
        scene.until_copy(spare, kind, name, |_| Ok(())).await?;
    }
    // New content reaches the members that respond.
    scene
        .distribute("rd", &manifests::secret("shared", "two"), &included(&[&scene.ns]))
        .await?;
    for member in [before[0], spare] {
        scene
            .until_copy(member, "Secret", "shared", |copy| {
                ensure!(copy["data"]["key"] == "dHdv", "the old one");
                Ok(())
            })
            .await?;
    }
    scene.bed.cluster(failed)?.start_apiserver().await?;
    for (kind, name) in [("Deployment", "myapp"), ("Secret", "shared")] {
        eventually_within(BACK, &format!("{failed} lets {kind} {name} go"), async || {
            ensure!(scene.on(failed, kind, name).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
    }
    scene.until_cluster(failed, "True", "").await?;
    scene.until_counts("rd", 1, 1, 0).await.map(drop)
}

async fn a_foreign_object_on_a_member_is_reported_in_the_binding_and_keeps_no_other_member_waiting(
    scene: &mut Scene,
) -> Result<()> {
    let before = scene
        .apply_on("member2", manifests::secret("shared", "theirs"))
        .await?;
    scene.start().await?;
    shared(scene).await?;
    scene.apply(manifests::policy(&["member1", "member2"])).await?;
    scene
        .until_condition("shared-secret", "FullyApplied", "False", "member2")
        .await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    let as_wanted = |value: &'static str| {
        move |copy: &Value| {
            ensure!(copy["data"]["key"] == value, "other data");
            Ok(())
        }
    };
    scene
        .until_copy("member1", "Secret", "shared", as_wanted("b25l"))
        .await?;
    scene
        .distribute("rd", &manifests::secret("shared", "two"), &included(&[&scene.ns]))
        .await?;
    scene
        .until_copy("member1", "Secret", "shared", as_wanted("dHdv"))
        .await?;
    // The hub has no conflict: the distribution is as it should be.
    scene.until_counts("rd", 1, 1, 0).await?;
    scene.quiet().await?;
    let after = scene.copy("member2", "Secret", "shared").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    Ok(())
}

async fn a_distribution_that_a_policy_takes_is_carried_out_by_the_member_and_its_report_is_summed_up(
    scene: &mut Scene,
) -> Result<()> {
    let definition = scene.hub.get("CustomResourceDefinition", "", DEFINITION).await?;
    let definition = definition.context("the hub serves it")?;
    let member = scene.member("member1")?.clone();
    member
        .create(&json!({
            "apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": {"name": DEFINITION},
            "spec": definition["spec"],
        }))
        .await?;
    scene
        .bed
        .join("member1", &["--allow", "apps.kruise.io/resourcedistributions"])
        .await?;
    let tested = taken(scene).await;
    if let Err(error) = member.delete("CustomResourceDefinition", "", DEFINITION).await {
        ensure!(status_code(&error) == 404, error);
    }
    scene.bed.restore().await?;
    tested
}

async fn taken(scene: &mut Scene) -> Result<()> {
    let name = scene.own("rd");
    let ns = scene.ns.clone();
    let member = scene.member("member1")?.clone();
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": scene.own("rds")},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": name},
            ],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    });
    scene.apply(policy).await?;
    scene.start().await?;
    scene.until_cluster("member1", "True", "").await?;
    let resource = manifests::config_map("shared", "one");
    scene
        .distribute("rd", &resource, &included(&[&ns, "shop"]))
        .await?;
    let there = scene
        .until_copy("member1", "ResourceDistribution", &name, |_| Ok(()))
        .await?;
    assert_eq!(there["spec"]["resource"], resource);
    // The status that OpenKruise would write there.
    let conditions = FAILURES.map(|type_| {
        let is_conflict = type_ == "ConflictOccurred";
        let mut condition = json!({
            "type": type_, "status": if is_conflict { "True" } else { "False" },
            "reason": if is_conflict { "it is there" } else { "Succeeded" },
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        if is_conflict {
            condition["failedNamespace"] = json!(["shop"]);
        }
        condition
    });
    let report = |live: &mut Value| {
        live["status"] = json!({
            "desired": 2, "succeeded": 1, "failed": 1, "observedGeneration": live["metadata"]["generation"],
            "conditions": conditions,
        });
    };
    member
        .edit_status("ResourceDistribution", "", &name, report)
        .await?;
    let stored = scene
        .until_distribution("rd", |stored| {
            let status = &stored["status"];
            ensure!(
                status["desired"] == 2 && status["succeeded"] == 1 && status["failed"] == 1,
                "not summed up"
            );
            Ok(())
        })
        .await?;
    assert_eq!(
        stored["status"]["description"],
        "Propagated to 1 clusters: present in 1/2 namespaces there"
    );
    let conflict = condition(&stored, "ConflictOccurred");
    assert_eq!(conflict["status"], "True");
    assert_eq!(conflict["failedNamespace"], json!(["member1/shop"]));
    eventually("the binding tells what the member reports", async || {
        let bindings = scene.hub.list("ClusterResourceBinding", "", "").await?;
        let of_it = bindings
            .iter()
            .find(|binding| binding["spec"]["resource"]["name"] == *name)
            .context("no binding")?;
        let entry = &of_it["status"]["aggregatedStatus"][0];
        ensure!(
            entry["clusterName"] == "member1" && entry["status"]["desired"] == 2,
            "{entry}"
        );
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    ensure!(
        scene.get("ConfigMap", "shared").await.is_err(),
        "it is on the hub"
    );
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    scene.end_distribution("rd", "Background").await?;
    scene.until_ended("rd").await?;
    eventually_within(BACK, "it is gone from member1", async || {
        let left = member.get("ResourceDistribution", "", &name).await?;
        ensure!(left.is_none(), "it is there");
        Ok(())
    })
    .await
}
