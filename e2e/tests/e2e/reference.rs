//! The end-to-end scenarios of the reference implementation (Karmada reference 7.1), one after the other.
//!
//! | there | here |
//! |---|---|
//! | ConfigMap, Secret, PersistentVolumeClaim, ServiceAccount automatically propagation | this page |
//! | conflict on both fields, on one, resolved by an update, after deleting policy B | [`disagreements`](crate::disagreements) |
//! | ClusterPropagationPolicy: ConfigMap automatically propagation | [`cluster_policies`](crate::cluster_policies) |
//! | update policy propagateDeps, of both kinds | this page; turned off again: [`policies`](crate::policies) |
//! | Lazy policy, combined cases 5 and 6 | [`lazy`](crate::lazy) |
//! | migrate dependent resource | this page |
//! | InterpretDependency, dependency of a custom resource, two customizations | need interpreter hooks and customizations |
//! | application and cluster failover | need failover |
//! | ServiceImport | [`services`](crate::services) |

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

use crate::removal::unmarked;

tests![
    a_config_map_follows_its_workload_and_its_data_too,
    a_secret_goes_when_a_config_map_that_is_not_there_takes_its_place,
    a_claim_follows_and_goes_when_nothing_mounts_it,
    a_service_account_made_last_follows_until_default_takes_its_place,
    a_policy_that_begins_to_propagate_dependencies_says_so_on_the_binding,
    what_a_member_has_already_is_migrated_and_given_back,
];

/// A Deployment `myapp` whose pods have `pod` besides one container.
fn workload(pod: &Value) -> Value {
    manifests::workload("Deployment", "myapp", pod)
}

/// Moves what the policy `myapp-propagation` places.
async fn place(scene: &Scene, member: &str) -> Result<()> {
    let place = |live: &mut Value| {
        live["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!([member]);
    };
    scene
        .hub
        .edit("PropagationPolicy", &scene.ns, "myapp-propagation", place)
        .await?;
    Ok(())
}

/// Waits until exactly this member holds the workload and what it depends on.
async fn until_on(scene: &Scene, member: &str, kind: &str, name: &str) -> Result<()> {
    scene.until_held("Deployment", "myapp", &[member]).await?;
    scene.until_held(kind, name, &[member]).await
}

async fn a_config_map_follows_its_workload_and_its_data_too(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    for object in [manifests::policy(&["member1"]), deployment, config] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1"]).await?;
    let reported = scene
        .until_reported_once("SyncScheduleResultToDependenciesSucceed", "myapp-deployment")
        .await?;
    ensure!(reported["type"] == "Normal", "{reported}");
    place(scene, "member2").await?;
    scene.until_settled(&["member2"]).await?;
    let edit = |live: &mut Value| live["data"] = json!({"user": "ceilometer"});
    scene.hub.edit("ConfigMap", &scene.ns, "my-config", edit).await?;
    scene
        .until_copy("member2", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"] == json!({"user": "ceilometer"}), "{}", copy["data"]);
            Ok(())
        })
        .await?;
    Ok(())
}

/// A missing dependency must not prevent the removal of the others.
async fn a_secret_goes_when_a_config_map_that_is_not_there_takes_its_place(scene: &mut Scene) -> Result<()> {
    let mounts = |volume: &Value| workload(&json!({"volumes": [volume]}));
    scene.start().await?;
    for object in [
        manifests::policy(&["member1"]),
        mounts(&json!({"name": "v", "secret": {"secretName": "keys"}})),
        manifests::secret("keys", "a"),
    ] {
        scene.apply(object).await?;
    }
    until_on(scene, "member1", "Secret", "keys").await?;
    place(scene, "member2").await?;
    until_on(scene, "member2", "Secret", "keys").await?;
    scene.apply(manifests::secret("keys", "b")).await?;
    let wanted = scene.get("Secret", "keys").await?["data"].clone();
    scene
        .until_copy("member2", "Secret", "keys", |copy| {
            ensure!(copy["data"] == wanted, "still the old one");
            Ok(())
        })
        .await?;
    scene
        .apply(mounts(
            &json!({"name": "v", "configMap": {"name": "config-map-test"}}),
        ))
        .await?;
    scene.until_held("Secret", "keys", &[]).await?;
    scene.until_gone("ResourceBinding", "keys-secret").await?;
    let says = format!("ConfigMap {}/config-map-test", scene.ns);
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", &says)
        .await?;
    let volume = |copy: &Value| {
        let volume = &copy["spec"]["template"]["spec"]["volumes"][0];
        ensure!(volume["configMap"]["name"] == "config-map-test", "{volume}");
        Ok(())
    };
    scene.until_copy("member2", "Deployment", "myapp", volume).await?;
    Ok(())
}

async fn a_claim_follows_and_goes_when_nothing_mounts_it(scene: &mut Scene) -> Result<()> {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
    scene.start().await?;
    for object in [
        manifests::policy(&["member1"]),
        workload(&json!({"volumes": [volume]})),
        claim,
    ] {
        scene.apply(object).await?;
    }
    until_on(scene, "member1", "PersistentVolumeClaim", "data").await?;
    let copy = scene.copy("member1", "PersistentVolumeClaim", "data").await?;
    assert_eq!(copy["spec"]["resources"]["requests"]["storage"], "1Gi");
    scene.apply(workload(&json!({}))).await?;
    until_let_go(scene, "member1").await?;
    scene
        .until_gone("ResourceBinding", "data-persistentvolumeclaim")
        .await?;
    scene.get("PersistentVolumeClaim", "data").await?;
    ensure!(scene.holders("Deployment", "myapp").await? == ["member1"]);
    Ok(())
}

/// Waits until a member's claim `data` is deleted. On real clusters a controller that does not run here removes its
/// finalizer.
async fn until_let_go(scene: &Scene, member: &str) -> Result<()> {
    eventually("the claim goes", async || {
        let Some(copy) = scene.on(member, "PersistentVolumeClaim", "data").await? else {
            return Ok(());
        };
        let meta = &copy["metadata"];
        ensure!(meta["deletionTimestamp"].is_string(), "it stays: {meta}");
        let let_go = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
        scene
            .edit_on(member, "PersistentVolumeClaim", "data", let_go)
            .await?;
        anyhow::bail!("it is held by {}", meta["finalizers"])
    })
    .await
}

async fn a_service_account_made_last_follows_until_default_takes_its_place(scene: &mut Scene) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    scene.start().await?;
    scene
        .apply(workload(&json!({"serviceAccountName": "robot"})))
        .await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    let says = format!("ServiceAccount {}/robot", scene.ns);
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", &says)
        .await?;
    scene.apply(account).await?;
    until_on(scene, "member1", "ServiceAccount", "robot").await?;
    place(scene, "member2").await?;
    until_on(scene, "member2", "ServiceAccount", "robot").await?;
    scene
        .apply(workload(&json!({"serviceAccountName": "default"})))
        .await?;
    scene.until_held("ServiceAccount", "robot", &[]).await?;
    scene
        .until_gone("ResourceBinding", "robot-serviceaccount")
        .await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    let bindings = scene.hub.list("ResourceBinding", &scene.ns, "").await?;
    ensure!(
        bindings.len() == 1,
        "the account `default` is nobody's dependency: {bindings:#?}"
    );
    Ok(())
}

async fn a_policy_that_begins_to_propagate_dependencies_says_so_on_the_binding(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let policy = |kind: &str, name: &str, workload: &str, on: bool| {
        let mut policy = manifests::policy_for(name, "Deployment", workload, &["member1"]);
        policy["kind"] = json!(kind);
        policy["spec"]["resourceSelectors"][0]["namespace"] = json!(scene.ns);
        policy["spec"]["propagateDeps"] = json!(on);
        policy
    };
    let cases = [
        ("PropagationPolicy", "one".to_owned(), "one"),
        ("ClusterPropagationPolicy", scene.own("two"), "two"),
    ];
    for (kind, name, workload) in &cases {
        scene
            .apply(manifests::deployment(workload, &[&format!("{workload}-config")]))
            .await?;
        scene
            .apply(manifests::config_map(&format!("{workload}-config"), "a"))
            .await?;
        scene.apply(policy(kind, name, workload, false)).await?;
        scene.until_held("Deployment", workload, &["member1"]).await?;
        let binding = scene.binding(&format!("{workload}-deployment")).await?;
        ensure!(binding["spec"]["propagateDeps"] != true, "{}", binding["spec"]);
    }
    for (kind, name, workload) in &cases {
        scene.apply(policy(kind, name, workload, true)).await?;
        scene
            .until_binding(&format!("{workload}-deployment"), |binding| {
                ensure!(binding["spec"]["propagateDeps"] == true, "{}", binding["spec"]);
                Ok(())
            })
            .await?;
        scene
            .until_held("ConfigMap", &format!("{workload}-config"), &["member1"])
            .await?;
    }
    Ok(())
}

async fn what_a_member_has_already_is_migrated_and_given_back(scene: &mut Scene) -> Result<()> {
    let deployment = workload(&json!({"volumes": [{"name": "v", "secret": {"secretName": "keys"}}]}));
    let mut before = Vec::new();
    for mut object in [manifests::secret("keys", "theirs"), deployment.clone()] {
        object["metadata"]["labels"]["owner"] = json!("somebody");
        before.push(scene.apply_on("member1", object).await?);
    }
    scene.start().await?;
    let mut policy = manifests::policy(&["member1"]);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    policy["spec"]["preserveResourcesOnDeletion"] = json!(true);
    for object in [manifests::secret("keys", "ours"), deployment, policy] {
        scene.apply(object).await?;
    }
    for binding in ["keys-secret", "myapp-deployment"] {
        scene.until_condition(binding, "FullyApplied", "True", "").await?;
        scene
            .until_binding(binding, |binding| {
                let entry = &binding["status"]["aggregatedStatus"][0];
                ensure!(
                    entry["clusterName"] == "member1" && entry["applied"] == true,
                    "{entry}"
                );
                Ok(())
            })
            .await?;
    }
    let ours = scene.get("Secret", "keys").await?["data"].clone();
    scene
        .until_copy("member1", "Secret", "keys", |copy| {
            ensure!(copy["data"] == ours, "not taken over");
            Ok(())
        })
        .await?;
    scene.delete("Secret", "keys").await?;
    scene.until_gone("ResourceBinding", "keys-secret").await?;
    let secret = scene.copy("member1", "Secret", "keys").await?;
    unmarked(&secret)?;
    assert_eq!(secret["data"], ours);
    let still = scene.copy("member1", "Deployment", "myapp").await?;
    ensure!(
        unmarked(&still).is_err(),
        "the workload was given back with its Secret"
    );
    scene.delete("Deployment", "myapp").await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    let deployment = scene.copy("member1", "Deployment", "myapp").await?;
    unmarked(&deployment)?;
    for (before, after) in before.iter().zip([&secret, &deployment]) {
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_eq!(after["metadata"]["labels"]["owner"], "somebody");
    }
    Ok(())
}
