//! ClusterPropagationPolicies: workloads of a namespace, cluster-scoped templates, and kinds that nothing is known of.

use std::time::Duration;

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, eventually_within, manifests},
    tests,
};
use serde_json::{Value, json};
use tokio::time::Instant;

tests![
    a_cluster_policy_takes_a_workload_and_its_config_map_along_and_moves_both,
    a_cluster_scoped_template_has_a_cluster_binding_and_goes_with_it,
    a_custom_resource_follows_its_definition,
    a_kind_is_known_to_be_served_soon_after_its_definition_is_established,
    a_kind_that_the_hub_does_not_serve_is_reported_on_the_policy,
    a_hundred_kinds_that_nobody_serves_cost_a_few_looks_and_one_that_begins_is_found,
];

/// A policy of this test for one object of its namespace, or for a cluster-scoped one.
fn cluster_policy(scene: &Scene, name: &str, selector: &Value, members: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": scene.own(name)},
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"clusterNames": members}},
        },
    })
}

async fn a_cluster_policy_takes_a_workload_and_its_config_map_along_and_moves_both(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    scene.apply(deployment).await?;
    scene.apply(config).await?;
    let selector =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": scene.ns, "name": "myapp"});
    scene
        .apply(cluster_policy(scene, "web", &selector, &["member1"]))
        .await?;
    scene.until_settled(&["member1"]).await?;
    let template = scene.get("Deployment", "myapp").await?;
    assert_eq!(
        template["metadata"]["annotations"]["clusterpropagationpolicy.karmada.io/name"],
        json!(scene.own("web"))
    );
    scene
        .until_reported_once("SyncScheduleResultToDependenciesSucceed", "myapp-deployment")
        .await?;
    scene
        .apply(cluster_policy(scene, "web", &selector, &["member2"]))
        .await?;
    scene.until_settled(&["member2"]).await?;
    scene.quiet().await?;
    Ok(())
}

async fn a_cluster_scoped_template_has_a_cluster_binding_and_goes_with_it(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let name = scene.own("high");
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000,
    });
    scene.apply(class).await?;
    let selector = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "name": name});
    scene
        .apply(cluster_policy(
            scene,
            "classes",
            &selector,
            &["member1", "member3"],
        ))
        .await?;
    scene
        .until_held("PriorityClass", &name, &["member1", "member3"])
        .await?;
    let binding = format!("{name}-priorityclass");
    eventually("the cluster binding says that it is applied", async || {
        let stored = scene.get("ClusterResourceBinding", &binding).await?;
        ensure!(
            condition(&stored, "FullyApplied")["status"] == "True",
            "{}",
            stored["status"]
        );
        let entries = stored["status"]["aggregatedStatus"]
            .as_array()
            .map_or(0, Vec::len);
        ensure!(entries == 2, "{}", stored["status"]);
        Ok(())
    })
    .await?;
    let copy = scene.copy("member1", "PriorityClass", &name).await?;
    assert_eq!(
        copy["metadata"]["annotations"]["clusterresourcebinding.karmada.io/name"],
        json!(binding)
    );
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    scene.delete_on("member3", "PriorityClass", &name).await?;
    scene
        .until_held("PriorityClass", &name, &["member1", "member3"])
        .await?;
    scene.delete("PriorityClass", &name).await?;
    scene.until_held("PriorityClass", &name, &[]).await?;
    scene.until_gone("ClusterResourceBinding", &binding).await
}

/// The definition of the kind Widget.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e2e.entourage.dev"},
        "spec": {
            "group": "e2e.entourage.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

async fn a_custom_resource_follows_its_definition(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(definition()).await?;
    let name = "widgets.e2e.entourage.dev";
    let selector =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": name});
    scene
        .apply(cluster_policy(
            scene,
            "definitions",
            &selector,
            &["member1", "member2"],
        ))
        .await?;
    scene
        .until_held("CustomResourceDefinition", name, &["member1", "member2"])
        .await?;
    let widget = json!({
        "apiVersion": "e2e.entourage.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1},
    });
    eventually("the hub serves widgets", async || {
        scene.apply(widget.clone()).await
    })
    .await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "widgets"},
        "spec": {"resourceSelectors": [{"apiVersion": "e2e.entourage.dev/v1", "kind": "Widget"}]},
    });
    scene.apply(policy).await?;
    let held = |members: &[&str]| -> Vec<String> { members.iter().map(|each| (*each).to_owned()).collect() };
    eventually("the members that serve widgets have it", async || {
        let mut holders = Vec::new();
        for member in &scene.members {
            if member.get("Widget", &scene.ns, "w").await?.is_some() {
                holders.push(member.name.clone());
            }
        }
        ensure!(holders == held(&["member1", "member2"]), "{holders:?}");
        Ok(())
    })
    .await?;
    scene
        .until_condition(
            "w-widget",
            "Scheduled",
            "True",
            "1 not serving e2e.entourage.dev/v1 Widget",
        )
        .await?;
    let status = |live: &mut Value| live["status"] = json!({"phase": "Ready"});
    let member = scene.member("member1")?;
    member.edit_status("Widget", &scene.ns, "w", status).await?;
    scene
        .until_binding("w-widget", |binding| {
            let entry = &binding["status"]["aggregatedStatus"][0];
            ensure!(entry["status"] == json!({"phase": "Ready"}), "{entry}");
            Ok(())
        })
        .await?;
    scene.delete("Widget", "w").await?;
    scene.until_gone("ResourceBinding", "w-widget").await?;
    scene.delete("PropagationPolicy", "widgets").await?;
    scene.until_gone("PropagationPolicy", "widgets").await?;
    scene.delete("CustomResourceDefinition", name).await?;
    scene.until_held("CustomResourceDefinition", name, &[]).await
}

/// A user installs a definition on a member, for which nothing is propagated. The promise is two seconds; a busy machine
/// gets some more, far from the five minutes of regular discovery.
async fn a_kind_is_known_to_be_served_soon_after_its_definition_is_established(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    scene.until_cluster("member1", "True", "").await?;
    let name = "gadgets.e2e.entourage.dev";
    let mut gadgets = definition();
    gadgets["metadata"]["name"] = json!(name);
    gadgets["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"});
    let member = scene.member("member1")?;
    let lists_it = async || {
        let cluster = scene.get("Cluster", "member1").await?;
        let served = cluster["status"]["apiEnablements"].to_string();
        Ok::<_, anyhow::Error>((served.contains("\"gadgets\""), served.contains("\"configmaps\"")))
    };
    eventually("the member's APIs are known, without gadgets", async || {
        let found = lists_it().await?;
        ensure!(found == (false, true), "{found:?}");
        Ok(())
    })
    .await?;
    member.apply(&gadgets).await?;
    eventually("the definition is established", async || {
        let live = member.get("CustomResourceDefinition", "", name).await?;
        let live = live.unwrap_or_default();
        ensure!(condition(&live, "Established")["status"] == "True", "{live}");
        Ok(())
    })
    .await?;
    let began = Instant::now();
    // Without the watch of definitions it would be five minutes.
    eventually_within(Duration::from_secs(60), "the Cluster lists gadgets", async || {
        ensure!(lists_it().await?.0, "not listed");
        Ok(())
    })
    .await?;
    println!(
        "gadgets were listed {:?} after the definition was established",
        began.elapsed()
    );
    member.delete("CustomResourceDefinition", "", name).await?;
    eventually_within(
        Duration::from_secs(60),
        "the Cluster lists no gadgets",
        async || {
            ensure!(!lists_it().await?.0, "listed");
            Ok(())
        },
    )
    .await
}

async fn a_kind_that_the_hub_does_not_serve_is_reported_on_the_policy(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "nothing"},
        "spec": {"resourceSelectors": [{"apiVersion": "nowhere.entourage.dev/v1", "kind": "Nothing"}]},
    });
    scene.apply(policy).await?;
    eventually("the policy says that nobody serves it", async || {
        let policy = scene.get("PropagationPolicy", "nothing").await?;
        let matched = condition(&policy, "Matched");
        let message = matched["message"].as_str().unwrap_or_default();
        ensure!(
            matched["status"] == "False" && message.contains("is not served there"),
            "{matched}"
        );
        Ok(())
    })
    .await?;
    scene.delete("PropagationPolicy", "nothing").await?;
    scene.until_gone("PropagationPolicy", "nothing").await
}

/// A policy that names kinds that no server serves.
fn naming(name: &str, kinds: impl Iterator<Item = String>) -> Value {
    let selectors: Vec<Value> = kinds
        .map(|kind| json!({"apiVersion": "invented.entourage.dev/v1", "kind": kind}))
        .collect();
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {"resourceSelectors": selectors},
    })
}

async fn until_matched(scene: &Scene, policy: &str, status: &str, says: &str) -> Result<()> {
    eventually(
        &format!("Matched of {policy} is {status} and says {says:?}"),
        async || {
            let policy = scene.get("PropagationPolicy", policy).await?;
            let matched = condition(&policy, "Matched");
            let message = matched["message"].as_str().unwrap_or_default();
            ensure!(matched["status"] == status && message.contains(says), "{matched}");
            Ok(())
        },
    )
    .await
}

/// The number of discovery requests to a server.
async fn looks(scene: &Scene) -> Result<f64> {
    let metrics = scene.controllers()?.metrics().await?;
    let asked = metrics.lines().filter(|line| {
        line.starts_with("entourage_api_requests_total{server=\"hub\"")
            && (line.contains("resource=\"discovery\"") || line.contains("invented"))
    });
    let counts = asked.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum())
}

async fn a_hundred_kinds_that_nobody_serves_cost_a_few_looks_and_one_that_begins_is_found(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    scene
        .apply(naming("seers", ["Seer".to_owned()].into_iter()))
        .await?;
    scene
        .apply(naming("many", (0..99).map(|each| format!("Dream{each}"))))
        .await?;
    until_matched(scene, "many", "False", "is not served there").await?;
    until_matched(scene, "seers", "False", "is not served there").await?;
    let looks = looks(scene).await?;
    // A server without aggregated discovery is asked for each of its group versions; for each kind there was more.
    ensure!(looks < 250.0, "{looks} requests to know what the hub serves");
    // The hundred are all that a namespace may name.
    scene
        .apply(naming("more", ["Vision".to_owned()].into_iter()))
        .await?;
    until_matched(scene, "more", "False", "name more than 100 custom kinds").await?;

    let mut definition = definition();
    definition["metadata"]["name"] = json!("seers.invented.entourage.dev");
    definition["spec"]["group"] = json!("invented.entourage.dev");
    definition["spec"]["names"] =
        json!({"plural": "seers", "singular": "seer", "kind": "Seer", "listKind": "SeerList"});
    scene.apply(definition).await?;
    let seer =
        json!({"apiVersion": "invented.entourage.dev/v1", "kind": "Seer", "metadata": {"name": "one"}});
    eventually("the hub serves seers", async || scene.apply(seer.clone()).await).await?;
    until_matched(scene, "seers", "True", "").await?;

    scene.delete("Seer", "one").await?;
    scene.until_gone("ResourceBinding", "one-seer").await?;
    for policy in ["seers", "many", "more"] {
        scene.delete("PropagationPolicy", policy).await?;
        scene.until_gone("PropagationPolicy", policy).await?;
    }
    scene
        .delete("CustomResourceDefinition", "seers.invented.entourage.dev")
        .await
}
