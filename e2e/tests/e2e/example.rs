//! The example of the documentation.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, Space, condition, manifests},
    tests,
};
use serde_json::json;

tests![
    the_example_is_what_users_of_karmada_know,
    any_order_of_arrival_leads_to_the_same,
    dependencies_go_first,
    a_settled_system_writes_nothing_also_after_a_restart,
    the_status_of_the_members_reaches_the_template,
    a_deployment_has_one_event_of_each_step_and_a_restart_adds_none,
];

/// In `default`, with the manifests as they are in `config/samples`.
async fn the_example_is_what_users_of_karmada_know(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let space = scene.space_of("default");
    for object in manifests::example() {
        space.apply(object).await?;
    }
    check_example(&space).await
}

async fn any_order_of_arrival_leads_to_the_same(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut spaces = Vec::new();
    for order in orders {
        let space = scene.another_space().await?;
        for at in order {
            space.apply(manifests::example()[at].clone()).await?;
        }
        spaces.push(space);
    }
    for (space, order) in spaces.iter().zip(orders) {
        check_example(space)
            .await
            .with_context(|| format!("order {order:?}"))?;
    }
    Ok(())
}

/// Everything that docs/concepts.md ("propagateDeps") and the record of the reference implementation say of the example.
async fn check_example(space: &Space) -> Result<()> {
    let ns = space.ns.as_str();
    space.until_settled(&["member1", "member2"]).await?;
    let config = space.get("ConfigMap", "my-config").await?;
    let workload = space.binding("myapp-deployment").await?;
    let attached = space.binding("my-config-configmap").await?;

    let resource = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": ns, "name": "my-config",
        "uid": config["metadata"]["uid"], "resourceVersion": config["metadata"]["resourceVersion"],
    });
    assert_eq!(attached["spec"]["resource"], resource);
    let clusters = json!([{"name": "member1", "replicas": 1}, {"name": "member2", "replicas": 1}]);
    assert_eq!(
        attached["spec"]["requiredBy"],
        json!([{"namespace": ns, "name": "myapp-deployment", "clusters": clusters}])
    );
    let meta = &attached["metadata"];
    assert_eq!(meta["finalizers"], json!(["karmada.io/binding-controller"]));
    assert_eq!(
        meta["ownerReferences"],
        json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "my-config", "uid": config["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(attached["spec"]["clusters"], json!(null));
    assert_eq!(attached["spec"]["placement"], json!(null));

    // Permanent ids: the attached binding has its own, and under depended-by that of the referrer.
    const ID: &str = "resourcebinding.karmada.io/permanent-id";
    let (own, referrer) = (&meta["labels"][ID], &workload["metadata"]["labels"][ID]);
    for id in [own, referrer] {
        ensure!(
            id.as_str().is_some_and(|id| id.len() == 36),
            "a permanent id is a UUID: {id}"
        );
    }
    ensure!(own != referrer);
    let key = entourage_api::names::depended_by_key(ns, "myapp-deployment");
    ensure!(
        key.starts_with("resourcebinding.karmada.io/depended-by-"),
        "{key}"
    );
    assert_eq!(meta["labels"], json!({ID: own, key: referrer}));

    let meta = &workload["metadata"];
    let finalizers = json!([
        "karmada.io/binding-controller",
        "karmada.io/binding-dependencies-distributor"
    ]);
    assert_eq!(meta["finalizers"], finalizers);
    let dependencies = meta["annotations"]["resourcebinding.karmada.io/dependencies"]
        .as_str()
        .unwrap_or_default();
    let dependencies: serde_json::Value = serde_json::from_str(dependencies)?;
    assert_eq!(
        dependencies,
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": ns, "name": "my-config"}])
    );
    assert_eq!(workload["spec"]["clusters"], clusters);
    assert_eq!(workload["spec"]["propagateDeps"], json!(true));
    assert_eq!(workload["spec"]["replicas"], json!(1));
    assert_eq!(condition(&workload, "Scheduled")["status"], "True");

    for member in ["member1", "member2"] {
        let copy = space.copy(member, "ConfigMap", "my-config").await?;
        assert_eq!(copy["data"], config["data"]);
        assert_eq!(copy["metadata"]["labels"][ID], *own);
        assert_eq!(copy["metadata"]["labels"]["karmada.io/managed"], "true");
        let annotations = &copy["metadata"]["annotations"];
        assert_eq!(
            annotations["resourcebinding.karmada.io/name"],
            "my-config-configmap"
        );
        assert_eq!(annotations["resourcebinding.karmada.io/namespace"], ns);
        assert_eq!(
            annotations["work.karmada.io/namespace"],
            format!("karmada-es-{member}")
        );
        let copy = space.copy(member, "Deployment", "myapp").await?;
        let template = space.get("Deployment", "myapp").await?;
        assert_eq!(copy["spec"], template["spec"]);
    }
    Ok(())
}

async fn dependencies_go_first(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    // The Deployment last: it does not wait for a ConfigMap that does not exist yet.
    for object in manifests::example().into_iter().rev() {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;
    let writes: Vec<String> = scene
        .writes()
        .into_iter()
        .filter(|write| write.ends_with(": 201"))
        .collect();
    for member in ["member1", "member2"] {
        let config = Scene::position(&writes, &format!("{member} create configmaps {}/", scene.ns))?;
        let workload = Scene::position(
            &writes,
            &format!("{member} create deployments.apps {}/", scene.ns),
        )?;
        ensure!(config < workload, "{writes:#?}");
    }
    Ok(())
}

/// Invariant I4, for a window that is longer than any delay on purpose.
async fn a_settled_system_writes_nothing_also_after_a_restart(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    for pass in ["running", "restarted"] {
        if pass == "restarted" {
            scene.restart().await?;
        }
        let before = if pass == "restarted" {
            0
        } else {
            scene.writes().len()
        };
        let after = scene.quiet().await?;
        ensure!(after == before, "{pass}: {:#?}", &scene.writes()[before..]);
    }
    Ok(())
}

async fn the_status_of_the_members_reaches_the_template(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    are_ready(scene).await?;
    entourage_e2e::harness::eventually("the template's status sums up the members'", async || {
        let template = scene.get("Deployment", "myapp").await?;
        let status = &template["status"];
        ensure!(
            status["readyReplicas"] == 2 && status["replicas"] == 2,
            "{status}"
        );
        ensure!(
            status["observedGeneration"] == template["metadata"]["generation"],
            "{status}"
        );
        Ok(())
    })
    .await?;
    scene
        .until_binding("myapp-deployment", |binding| {
            let entries = binding["status"]["aggregatedStatus"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            ensure!(
                entries.len() == 2 && entries.iter().all(|each| each["health"] == "Healthy"),
                "{entries:?}"
            );
            Ok(())
        })
        .await?;
    Ok(())
}

/// No workload controllers run here: the test says what they would say.
async fn are_ready(scene: &Scene) -> Result<()> {
    for member in ["member1", "member2"] {
        scene
            .member(member)?
            .edit_status("Deployment", &scene.ns, "myapp", |live| {
                let generation = live["metadata"]["generation"].clone();
                live["status"] = json!({
                    "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                    "availableReplicas": 1,
                });
            })
            .await?;
    }
    Ok(())
}

/// Checks the events that `kubectl describe deployment` lists.
async fn a_deployment_has_one_event_of_each_step_and_a_restart_adds_none(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    // A member that is not ready yet, or a dependency that is not there yet, would be an event of its own.
    for member in ["member1", "member2"] {
        scene.until_cluster(member, "True", "").await?;
    }
    let [deployment, policy, config] = manifests::example();
    for object in [config, policy, deployment] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;
    are_ready(scene).await?;
    let steps = [
        "ApplyPolicySucceed",
        "GetDependenciesSucceed",
        "ScheduleBindingSucceed",
        "SyncWorkSucceed",
        "AggregateStatusSucceed",
    ];
    let mut reported = Vec::new();
    for reason in steps {
        reported.push(scene.until_reported_once(reason, "myapp").await?);
    }
    ensure!(
        reported.iter().all(|event| event["type"] == "Normal"),
        "{reported:#?}"
    );
    ensure!(
        reported[3]["message"] == "Applied on 2/2 clusters.",
        "{reported:#?}"
    );
    let bound = scene
        .until_reported_once("SyncScheduleResultToDependenciesSucceed", "myapp-deployment")
        .await?;
    ensure!(bound["involvedObject"]["kind"] == "ResourceBinding", "{bound:#?}");
    scene.quiet().await?;
    let before = scene.hub.list("Event", &scene.ns, "").await?.len();
    ensure!(before == 6, "{before} events");
    scene.restart().await?;
    scene.quiet().await?;
    let after = scene.hub.list("Event", &scene.ns, "").await?.len();
    ensure!(after == before, "{after} events");
    Ok(())
}
