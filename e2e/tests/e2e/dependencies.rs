//! The dependencies of a workload, and the order of their propagation.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, WORKLOADS, kind, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_shared_dependency_has_one_binding_with_sorted_snapshots,
    a_missing_dependency_is_named_and_blocks_nothing,
    every_workload_takes_every_kind_of_dependency_along,
    an_edited_config_map_is_written_once_to_each_member,
];

async fn a_shared_dependency_has_one_binding_with_sorted_snapshots(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene
        .apply(manifests::deployment("another", &["my-config"]))
        .await?;
    let mut policy = manifests::policy_for("another", "Deployment", "another", &["member2", "member3"]);
    policy["spec"]["propagateDeps"] = json!(true);
    scene.apply(policy).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2", "member3"])
        .await?;
    let on = |names: [&str; 2]| json!(names.map(|name| json!({"name": name, "replicas": 1})));
    let ns = scene.ns.clone();
    let both = json!([
        {"namespace": ns, "name": "another-deployment", "clusters": on(["member2", "member3"])},
        {"namespace": ns, "name": "myapp-deployment", "clusters": on(["member1", "member2"])},
    ]);
    scene
        .until_binding("my-config-configmap", |binding| {
            ensure!(
                binding["spec"]["requiredBy"] == both,
                "{}",
                binding["spec"]["requiredBy"]
            );
            Ok(())
        })
        .await?;
    let of_config = scene.hub.list("ResourceBinding", &ns, "").await?;
    let of_config = of_config
        .iter()
        .filter(|each| each["spec"]["resource"]["kind"] == "ConfigMap")
        .count();
    assert_eq!(of_config, 1);

    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member2", "member3"])
        .await?;
    scene
        .until_binding("my-config-configmap", |binding| {
            ensure!(
                binding["spec"]["requiredBy"] == json!([both[0]]),
                "{}",
                binding["spec"]["requiredBy"]
            );
            Ok(())
        })
        .await?;
    Ok(())
}

async fn a_missing_dependency_is_named_and_blocks_nothing(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &["absent"])).await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    let says = format!("ConfigMap {}/absent", scene.ns);
    let reported = scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", &says)
        .await?;
    assert_eq!(reported["reason"], "DependencyMissing");
    scene.apply(manifests::config_map("absent", "here")).await?;
    scene.until_held("ConfigMap", "absent", &["member1"]).await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    Ok(())
}

/// Six kinds of workloads, each with four kinds of dependencies of its own.
async fn every_workload_takes_every_kind_of_dependency_along(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for workload in WORKLOADS {
        let name = workload.to_lowercase();
        for object in dependencies(&name) {
            scene.apply(object).await?;
        }
        let pod = json!({
            "serviceAccountName": name,
            "containers": [{"name": "main", "image": "nginx", "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}},
            ]}],
            "volumes": [
                {"name": "config", "configMap": {"name": name}},
                {"name": "data", "persistentVolumeClaim": {"claimName": name}},
            ],
        });
        scene.apply(manifests::workload(workload, &name, &pod)).await?;
        let mut policy = manifests::policy_for(&name, workload, &name, &["member1", "member3"]);
        policy["spec"]["propagateDeps"] = json!(true);
        scene.apply(policy).await?;
    }
    let members = ["member1", "member3"];
    for workload in WORKLOADS {
        let name = workload.to_lowercase();
        scene.until_held(workload, &name, &members).await?;
        for object in dependencies(&name) {
            let kind_name = object["kind"].as_str().unwrap_or_default();
            scene.until_held(kind_name, &name, &members).await?;
            scene
                .until_condition(
                    &format!("{name}-{}", kind_name.to_lowercase()),
                    "FullyApplied",
                    "True",
                    "",
                )
                .await?;
        }
        scene
            .until_condition(&format!("{name}-{name}"), "FullyApplied", "True", "")
            .await?;
        scene
            .until_condition(&format!("{name}-{name}"), "DependenciesReady", "True", "")
            .await?;
        // The copy on the member is the one that the hub would have rendered.
        for member in members {
            let (copy, template) = (
                scene.copy(member, workload, &name).await?,
                scene.get(workload, &name).await?,
            );
            if *workload != "Job" {
                assert_eq!(copy["spec"], template["spec"], "{workload} on {member}");
            }
            let secret = scene.copy(member, "Secret", &name).await?;
            assert_eq!(secret["data"], scene.get("Secret", &name).await?["data"]);
            assert_eq!(secret["type"], "Opaque");
            assert_eq!(kind(workload).api_version, copy["apiVersion"]);
        }
    }
    // The hub's token controller gives ServiceAccounts tokens: these are the hub's own.
    for member in members {
        for secret in scene
            .member(member)?
            .list("Secret", &scene.ns, "entourage.dev/hub")
            .await?
        {
            ensure!(
                secret["type"] == "Opaque",
                "{} travelled",
                secret["metadata"]["name"]
            );
        }
        let own = scene.get("ServiceAccount", "deployment").await?["secrets"].clone();
        let copied = scene.copy(member, "ServiceAccount", "deployment").await?["secrets"].clone();
        let names = |secrets: &Value| -> Vec<String> {
            secrets
                .as_array()
                .into_iter()
                .flatten()
                .map(|each| each["name"].to_string())
                .collect()
        };
        for name in names(&own) {
            ensure!(!names(&copied).contains(&name), "{name} is a token of the hub");
        }
    }
    scene.quiet().await?;
    Ok(())
}

fn dependencies(name: &str) -> [Value; 4] {
    let metadata = json!({"name": name});
    [
        manifests::config_map(name, "v"),
        manifests::secret(name, "v"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    ]
}

async fn an_edited_config_map_is_written_once_to_each_member(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    scene.faults.recorder().reset();
    let mut config = manifests::config_map("my-config", "two");
    config["data"] = json!({"key": "two"});
    scene.apply(config).await?;
    for member in ["member1", "member2"] {
        scene
            .until_copy(member, "ConfigMap", "my-config", |copy| {
                // The old key is gone: data is replaced, not merged.
                ensure!(copy["data"] == json!({"key": "two"}), "{}", copy["data"]);
                Ok(())
            })
            .await?;
    }
    scene.quiet().await?;
    let writes = scene.writes();
    let to_members: Vec<&String> = writes
        .iter()
        .filter(|write| write.starts_with("member"))
        .collect();
    assert_eq!(to_members.len(), 2, "{writes:#?}");
    ensure!(
        to_members.iter().all(|write| write.contains("update configmaps")),
        "{writes:#?}"
    );
    let version = scene.get("ConfigMap", "my-config").await?["metadata"]["resourceVersion"].clone();
    assert_eq!(
        scene.binding("my-config-configmap").await?["spec"]["resource"]["resourceVersion"],
        version
    );
    Ok(())
}
