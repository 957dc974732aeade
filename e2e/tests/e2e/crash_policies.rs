//! A crash after any call leads to the same end as no crash (invariant I6), for what policies can say: cluster-scoped
//! templates, preemption, lazy activation, suspension, overrides, division, disagreement; and for namespaces.

use std::time::Duration;

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, Space, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

use crate::crash::{Scenario, survives_crashes};

tests![
    a_cluster_policy_survives_a_crash_after_any_write,
    a_cluster_policy_that_moves_and_ends_survives_a_crash_after_any_write,
    a_preemption_and_its_end_survive_a_crash_after_any_write,
    a_changed_lazy_policy_survives_a_crash_after_any_write,
    a_late_lazy_policy_survives_a_crash_after_any_write,
    a_suspension_survives_a_crash_after_any_write,
    an_override_survives_a_crash_after_any_write,
    a_relabelled_namespace_survives_a_crash_after_any_write,
    divided_replicas_survive_a_crash_after_any_write,
    a_disagreement_survives_a_crash_after_any_write,
    a_migration_survives_a_crash_after_any_write,
];

const ALL: [&str; 3] = ["member1", "member2", "member3"];

// --- a cluster policy: a workload with a dependency, and a cluster-scoped template

async fn a_cluster_policy_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| Box::pin(templates(space)),
        arrived: |_| Box::pin(async { Ok(()) }),
        act: |space| Box::pin(begins(space)),
    };
    survives_crashes(scene, scenario).await
}

async fn a_cluster_policy_that_moves_and_ends_survives_a_crash_after_any_write(
    scene: &mut Scene,
) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                templates(space).await?;
                space
                    .apply(cluster_policy(space, &["member1", "member3"]))
                    .await
                    .map(drop)
            })
        },
        arrived: |space| Box::pin(until_both(space, &["member1", "member3"])),
        act: |space| Box::pin(moves_and_ends(space)),
    };
    survives_crashes(scene, scenario).await
}

fn cluster_policy(space: &Space, members: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": space.own("all")},
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [
                {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "name": space.own("high")},
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": space.ns, "name": "myapp"},
            ],
            "placement": {"clusterAffinity": {"clusterNames": members}},
        },
    })
}

async fn templates(space: &Space) -> Result<()> {
    let [deployment, _, config] = manifests::example();
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": space.own("high")}, "value": 1000,
    });
    for object in [deployment, config, class] {
        space.apply(object).await?;
    }
    Ok(())
}

async fn until_both(space: &Space, members: &[&str]) -> Result<()> {
    space
        .until_held("PriorityClass", &space.own("high"), members)
        .await?;
    space.until_settled(members).await
}

async fn begins(space: &Space) -> Result<()> {
    let members = ["member1", "member3"];
    space.apply(cluster_policy(space, &members)).await?;
    until_both(space, &members).await
}

async fn moves_and_ends(space: &Space) -> Result<()> {
    space
        .apply(cluster_policy(space, &["member2", "member3"]))
        .await?;
    until_both(space, &["member2", "member3"]).await?;
    space.delete("PriorityClass", &space.own("high")).await?;
    space.delete("Deployment", "myapp").await?;
    space.until_gone("ResourceBinding", "myapp-deployment").await
}

// --- a policy of the namespace takes over from a cluster policy, and gives back

async fn a_preemption_and_its_end_survive_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                templates(space).await?;
                space.apply(cluster_policy(space, &["member1"])).await.map(drop)
            })
        },
        arrived: |space| Box::pin(space.until_settled(&["member1"])),
        act: |space| Box::pin(preempts_and_gives_back(space)),
    };
    survives_crashes(scene, scenario).await
}

async fn preempts_and_gives_back(space: &Space) -> Result<()> {
    let mut own = manifests::policy(&["member2"]);
    own["spec"]["preemption"] = json!("Always");
    space.apply(own).await?;
    space.until_settled(&["member2"]).await?;
    space.delete("PropagationPolicy", "myapp-propagation").await?;
    space.until_settled(&["member1"]).await
}

// --- lazy activation

fn lazy(members: &[&str]) -> Value {
    let mut policy = manifests::policy(members);
    policy["spec"]["activationPreference"] = json!("Lazy");
    policy
}

async fn touch(space: &Space) -> Result<()> {
    let annotate = |live: &mut Value| live["metadata"]["annotations"]["touched"] = json!("1");
    space.hub.edit("Deployment", &space.ns, "myapp", annotate).await?;
    Ok(())
}

async fn a_changed_lazy_policy_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                let [deployment, _, config] = manifests::example();
                for object in [lazy(&["member1"]), deployment, config] {
                    space.apply(object).await?;
                }
                Ok(())
            })
        },
        arrived: |space| Box::pin(space.until_settled(&["member1"])),
        act: |space| {
            Box::pin(async {
                space.apply(lazy(&["member2"])).await?;
                touch(space).await?;
                space.until_settled(&["member2"]).await
            })
        },
    };
    survives_crashes(scene, scenario).await
}

async fn a_late_lazy_policy_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                let [deployment, _, config] = manifests::example();
                space.apply(deployment).await?;
                space.apply(config).await.map(drop)
            })
        },
        arrived: |space| Box::pin(until_a_later_second(space)),
        act: |space| Box::pin(waits_and_is_touched(space)),
    };
    survives_crashes(scene, scenario).await
}

/// The order of creation is that of the creationTimestamps, which are whole seconds.
async fn until_a_later_second(space: &Space) -> Result<()> {
    let created = space.get("Deployment", "myapp").await?["metadata"]["creationTimestamp"].clone();
    eventually("a second has passed", async || {
        let probe = space.apply(manifests::config_map("clock", "")).await?;
        space.delete("ConfigMap", "clock").await?;
        ensure!(probe["metadata"]["creationTimestamp"] != created);
        Ok(())
    })
    .await
}

async fn waits_and_is_touched(space: &Space) -> Result<()> {
    space.apply(lazy(&["member1", "member2"])).await?;
    eventually("the policy claims the workload", async || {
        let template = space.get("Deployment", "myapp").await?;
        let claim = &template["metadata"]["annotations"]["propagationpolicy.karmada.io/name"];
        ensure!(claim == "myapp-propagation", "{claim}");
        Ok(())
    })
    .await?;
    let holders = space.holders("Deployment", "myapp").await?;
    ensure!(holders.is_empty(), "delivered before it was touched: {holders:?}");
    touch(space).await?;
    space.until_settled(&["member1", "member2"]).await
}

// --- suspension

async fn a_suspension_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario::example(|space| Box::pin(suspends_and_goes_on(space)));
    survives_crashes(scene, scenario).await
}

async fn suspends_and_goes_on(space: &Space) -> Result<()> {
    let suspended = |how: &Value| {
        let mut policy = manifests::policy(&["member2", "member3"]);
        policy["spec"]["suspension"] = how.clone();
        policy
    };
    space.apply(suspended(&json!({"dispatching": true}))).await?;
    space
        .until_condition("myapp-deployment", "Dispatching", "False", "")
        .await?;
    space
        .apply(suspended(
            &json!({"dispatchingOnClusters": {"clusterNames": ["member3"]}}),
        ))
        .await?;
    space
        .until_condition("myapp-deployment", "Dispatching", "False", "member3")
        .await?;
    space.until_held("Deployment", "myapp", &["member2"]).await?;
    space.apply(suspended(&json!({}))).await?;
    space.until_settled(&["member2", "member3"]).await
}

// --- overrides

async fn an_override_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario::example(|space| Box::pin(overrides(space)));
    survives_crashes(scene, scenario).await
}

async fn overrides(space: &Space) -> Result<()> {
    let policy = |members: &[&str], value: &str| {
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "site"},
            "spec": {
                "resourceSelectors": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "my-config"},
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "myapp"},
                ],
                "overrideRules": [{
                    "targetCluster": {"clusterNames": members},
                    "overriders": {"annotationsOverrider": [
                        {"operator": "add", "value": {"example.io/site": value}},
                    ]},
                }],
            },
        })
    };
    let steps = [
        (
            Some(policy(&["member1", "member2"], "a")),
            [json!("a"), json!("a")],
        ),
        (Some(policy(&["member2"], "b")), [json!(null), json!("b")]),
        (None, [json!(null), json!(null)]),
    ];
    for (wanted, sites) in steps {
        match wanted {
            Some(policy) => drop(space.apply(policy).await?),
            None => space.delete("OverridePolicy", "site").await?,
        }
        for (member, site) in ["member1", "member2"].into_iter().zip(sites) {
            for (kind, name) in [("ConfigMap", "my-config"), ("Deployment", "myapp")] {
                space
                    .until_copy(member, kind, name, |copy| {
                        let found = &copy["metadata"]["annotations"]["example.io/site"];
                        ensure!(*found == site, "{found} for {site}");
                        Ok(())
                    })
                    .await?;
            }
        }
    }
    Ok(())
}

// --- namespaces

async fn a_relabelled_namespace_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario::example(|space| Box::pin(relabels(space)));
    survives_crashes(scene, scenario).await
}

async fn relabels(space: &Space) -> Result<()> {
    for (old, new) in [("none", "team"), ("team", "tier")] {
        let relabel = |live: &mut Value| {
            let mut labels = live["metadata"]["labels"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            labels.remove(old);
            labels.insert(new.into(), json!("a"));
            live["metadata"]["labels"] = json!(labels);
        };
        space.hub.edit("Namespace", "", &space.ns, relabel).await?;
        for member in ALL {
            space
                .until_copy(member, "Namespace", &space.ns, |copy| {
                    let labels = &copy["metadata"]["labels"];
                    ensure!(labels[new] == "a" && labels[old].is_null(), "{labels}");
                    Ok(())
                })
                .await?;
        }
    }
    Ok(())
}

// --- division

async fn divided_replicas_survive_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                let [_, _, config] = manifests::example();
                let mut policy = manifests::policy(&["member1", "member2"]);
                policy["spec"]["placement"]["replicaScheduling"] = json!({
                    "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"staticWeightList": [
                        {"targetCluster": {"clusterNames": ["member1"]}, "weight": 1},
                        {"targetCluster": {"clusterNames": ["member2"]}, "weight": 2},
                    ]},
                });
                let mut deployment = manifests::deployment("myapp", &["my-config"]);
                deployment["spec"]["replicas"] = json!(3);
                for object in [deployment, policy, config] {
                    space.apply(object).await?;
                }
                Ok(())
            })
        },
        arrived: |space| Box::pin(space.until_settled(&["member1", "member2"])),
        act: |space| Box::pin(scales(space)),
    };
    survives_crashes(scene, scenario).await
}

async fn scales(space: &Space) -> Result<()> {
    let steps: [(i64, &[(&str, i64)]); 2] = [(9, &[("member1", 3), ("member2", 6)]), (1, &[("member2", 1)])];
    for (replicas, wanted) in steps {
        let scale = |live: &mut Value| live["spec"]["replicas"] = json!(replicas);
        space.hub.edit("Deployment", &space.ns, "myapp", scale).await?;
        for (member, share) in wanted {
            space
                .until_copy(member, "Deployment", "myapp", |copy| {
                    let found = &copy["spec"]["replicas"];
                    ensure!(found == share, "{found} for {share}");
                    Ok(())
                })
                .await?;
        }
    }
    space.until_settled(&["member2"]).await
}

// --- referrers whose policies disagree

async fn a_disagreement_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario::example(|space| Box::pin(disagrees_and_agrees(space)));
    survives_crashes(scene, scenario).await
}

async fn disagrees_and_agrees(space: &Space) -> Result<()> {
    space
        .apply(manifests::deployment("another", &["my-config"]))
        .await?;
    let mut policy = manifests::policy_for("another", "Deployment", "another", &["member2", "member3"]);
    policy["spec"]["propagateDeps"] = json!(true);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    policy["spec"]["preserveResourcesOnDeletion"] = json!(true);
    space.apply(policy.clone()).await?;
    space
        .until_condition("my-config-configmap", "DependencyPolicyConflict", "True", "")
        .await?;
    policy["spec"]["conflictResolution"] = json!("Abort");
    policy["spec"]["preserveResourcesOnDeletion"] = json!(false);
    space.apply(policy).await?;
    space.until_held("ConfigMap", "my-config", &ALL).await
}

// --- migration: objects that exist on a member are taken over, and released

async fn a_migration_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let scenario = Scenario {
        given: |space| {
            Box::pin(async {
                let [deployment, _, config] = manifests::example();
                for object in [deployment, config] {
                    space.apply_on("member1", object.clone()).await?;
                    space.apply(object).await?;
                }
                Ok(())
            })
        },
        arrived: |_| Box::pin(async { Ok(()) }),
        act: |space| Box::pin(migrates_and_rolls_back(space)),
    };
    scene.options.deletion_grace = Duration::from_secs(1);
    survives_crashes(scene, scenario).await
}

async fn migrates_and_rolls_back(space: &Space) -> Result<()> {
    let mut policy = manifests::policy(&["member1"]);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    policy["spec"]["preserveResourcesOnDeletion"] = json!(true);
    space.apply(policy).await?;
    space.until_settled(&["member1"]).await?;
    space.delete("ConfigMap", "my-config").await?;
    space.until_gone("ResourceBinding", "my-config-configmap").await?;
    space.delete("Deployment", "myapp").await?;
    space.until_gone("ResourceBinding", "myapp-deployment").await
}
