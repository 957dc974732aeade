//! Allow-lists of Secrets where a cluster is in Pull mode: the controllers on the hub, and a real agent in the cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_api::names;
use entourage_controllers::agent::Options;
use entourage_e2e::{
    harness::{Agent, Canary, Scene, Server, condition, eventually, manifests},
    servers::EmbeddedCluster,
    tests,
};
use serde_json::{Value, json};

tests![Embedded: a_secret_that_is_not_allowed_has_no_work_and_a_revoked_one_leaves_the_work_and_the_cluster];

/// The cluster in Pull mode.
const EDGE: &str = "edge";

const KEY: &str = "entourage.dev/secrets-to";

/// Sets or removes the list on an object.
async fn list(scene: &Scene, kind: &str, name: &str, text: Option<&str>) -> Result<()> {
    let ns = if kind == "Namespace" { "" } else { &*scene.ns };
    let edit = |live: &mut Value| match text {
        Some(text) => live["metadata"]["annotations"][KEY] = json!(text),
        None => {
            if let Some(all) = live["metadata"]["annotations"].as_object_mut() {
                all.remove(KEY);
            }
        }
    };
    scene.hub.edit(kind, ns, name, edit).await?;
    Ok(())
}

/// All Works of the cluster.
async fn works(scene: &Scene) -> Result<Vec<Value>> {
    let namespace = names::execution_namespace(EDGE);
    let path = format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works");
    let list = scene.hub.call("GET", &path, None).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// Waits until the cluster has the workload, and the Secret or not: its Work, the object, and its value in any Work.
async fn until(scene: &Scene, edge: &Server, canary: &Canary, is_there: bool) -> Result<()> {
    let words = if is_there { "has" } else { "has not" };
    eventually(
        &format!("the cluster {words} the Secret, and has the workload"),
        async || {
            let works = works(scene).await?;
            let of = |kind: &str, name: &str| {
                works.iter().any(|work| {
                    let manifest = &work["spec"]["workload"]["manifests"][0];
                    manifest["kind"] == kind && manifest["metadata"]["name"] == name
                })
            };
            ensure!(of("Deployment", "myapp"), "no Work of the Deployment");
            ensure!(of("Secret", "keys") == is_there, "the Work of the Secret");
            // A Work has the Secret in base64, which the canary is found in.
            let holds = works.iter().any(|work| canary.is_in(&work.to_string()));
            ensure!(holds == is_there, "the value in a Work: {holds}");
            let workload = edge.get("Deployment", &scene.ns, "myapp").await?;
            ensure!(workload.is_some(), "no Deployment in the cluster");
            let secret = edge.get("Secret", &scene.ns, "keys").await?;
            ensure!(secret.is_some() == is_there, "the Secret in the cluster");
            Ok(())
        },
    )
    .await
}

/// Waits until the binding of the Secret says why it is not in the cluster.
async fn until_reported(scene: &Scene) -> Result<()> {
    scene
        .until_binding("keys-secret", |binding| {
            let all = binding["status"]["aggregatedStatus"].as_array();
            let item = all.into_iter().flatten().find(|item| item["clusterName"] == EDGE);
            let item = item.context("the cluster is not in the status")?;
            let message = item["appliedMessage"].as_str().unwrap_or_default();
            ensure!(
                item["appliedReason"] == "NotAllowed" && message.contains(KEY) && message.contains(EDGE),
                "{item}"
            );
            Ok(())
        })
        .await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", KEY)
        .await?;
    Ok(())
}

async fn a_secret_that_is_not_allowed_has_no_work_and_a_revoked_one_leaves_the_work_and_the_cluster(
    scene: &mut Scene,
) -> Result<()> {
    let cluster = EmbeddedCluster::start(EDGE, &scene.bed.dir().join(EDGE)).await?;
    let edge = Server {
        name: EDGE.to_owned(),
        client: kube::Client::try_from(cluster.config())?,
    };
    let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": EDGE},
        "spec": {"syncMode": "Pull"}});
    scene.hub.create(&object).await?;
    let ns = scene.ns.clone();
    list(scene, "Namespace", &ns, Some("member1")).await?;
    scene.start().await?;
    let options = Options {
        lease_duration: Duration::from_secs(8),
        probe_interval: Duration::from_millis(500),
        ..Options::new(EDGE)
    };
    let hub = scene.bed.fleet.hub.config();
    let agent = Agent::start(options, hub, cluster.config(), scene.bed.log.thread())?;
    eventually("the cluster is ready", async || {
        let found = scene.hub.get("Cluster", "", EDGE).await?.context("it")?;
        ensure!(condition(&found, "Ready")["status"] == "True", "{found}");
        Ok(())
    })
    .await?;

    let canary = Canary::new("pulled-list");
    scene.apply(manifests::secret("keys", &canary.value)).await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "keys"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1", EDGE])).await?;
    until(scene, &edge, &canary, false).await?;
    scene.until_held("Secret", "keys", &["member1"]).await?;
    until_reported(scene).await?;
    scene.quiet().await?;
    until(scene, &edge, &canary, false).await?;

    // Its owner allows it there, and revokes that while the workload still refers to it.
    list(scene, "Namespace", &ns, Some("member1,edge")).await?;
    until(scene, &edge, &canary, true).await?;
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    list(scene, "Namespace", &ns, Some("member1")).await?;
    until(scene, &edge, &canary, false).await?;
    until_reported(scene).await?;

    // The list of the Secret alone, by labels of the Cluster.
    list(scene, "Namespace", &ns, None).await?;
    until(scene, &edge, &canary, true).await?;
    list(scene, "Secret", "keys", Some("env=prod")).await?;
    until(scene, &edge, &canary, false).await?;
    let label = |live: &mut Value| live["metadata"]["labels"]["env"] = json!("prod");
    scene.hub.edit("Cluster", "", EDGE, label).await?;
    until(scene, &edge, &canary, true).await?;
    scene.until_held("Secret", "keys", &[]).await?;
    canary.assert_kept(scene).await?;

    scene.delete("Deployment", "myapp").await?;
    eventually("the agent has removed everything of the namespace", async || {
        for (kind, name) in [("Deployment", "myapp"), ("Secret", "keys")] {
            ensure!(edge.get(kind, &ns, name).await?.is_none(), "{kind}");
        }
        Ok(())
    })
    .await?;
    scene.hub.delete("Cluster", "", EDGE).await?;
    eventually("the Cluster has left", async || {
        let left = scene.hub.get("Cluster", "", EDGE).await?;
        ensure!(left.is_none(), "{}", left.unwrap_or_default()["metadata"]);
        Ok(())
    })
    .await?;
    agent.stop().await
}
