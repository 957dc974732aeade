//! Controllers with the rights on the hub that are granted by default, and what they say of the others.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

use super::distribution_rights::{granted, roles, unlimit};

tests![
    the_default_rights_bring_a_workload_with_its_dependencies_and_a_missing_one_is_named,
    what_may_not_be_claimed_or_read_is_reported_on_policy_and_workload_with_what_grants_it,
];

const DEFAULT: &str = include_str!("../../../config/rbac/role.yaml");
const SECRETS: &str = include_str!("../../../config/rbac-kinds/secrets/role.yaml");
const CLUSTER_ROLES: &str = include_str!("../../../config/rbac-kinds/clusterroles/role.yaml");

async fn the_default_rights_bring_a_workload_with_its_dependencies_and_a_missing_one_is_named(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.distribute = false;
    let (mut rules, namespaced) = roles(DEFAULT)?;
    let text = json!(rules).to_string();
    for kind in [
        "secrets",
        "clusterroles",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "apiservices",
        "*",
    ] {
        ensure!(
            !text.contains(&format!("\"{kind}\"")),
            "{kind} is granted by default"
        );
    }
    // The role for Secrets, as config/hub grants it.
    rules.extend(roles(SECRETS)?.0);
    let made = granted(scene, &rules, namespaced.clone()).await?;
    let tested = defaults(scene).await;
    unlimit(scene, &made).await?;
    scene.kill();
    tested?;
    // The component that the condition names is all that lacked.
    rules.extend(roles(CLUSTER_ROLES)?.0);
    let made = granted(scene, &rules, namespaced).await?;
    let tested = async {
        scene.start().await?;
        let reported = until_matched(scene, "True").await?;
        ensure!(reported["reason"] == "TemplatesMatched", "{reported}");
        let policy = scene.own("role");
        scene.hub.delete("ClusterPropagationPolicy", "", &policy).await?;
        scene.hub.delete("ClusterRole", "", &policy).await
    };
    let tested = tested.await;
    unlimit(scene, &made).await?;
    scene.kill();
    tested
}

async fn defaults(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::secret("login", "canary")).await?;
    scene.apply(manifests::config_map("my-config", "one")).await?;
    let pod = json!({"volumes": [
        {"name": "s", "secret": {"secretName": "login"}}, {"name": "c", "configMap": {"name": "my-config"}},
    ]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    for (kind, name) in [
        ("Deployment", "myapp"),
        ("Secret", "login"),
        ("ConfigMap", "my-config"),
    ] {
        scene.until_held(kind, name, &["member1"]).await?;
    }
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "True", "")
        .await?;
    // A kind that grants rights is not read unless a flag says so.
    let name = scene.own("role");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [],
    });
    scene.hub.apply(&role).await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name},
            ],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    });
    scene.hub.apply(&policy).await?;
    let reported = until_matched(scene, "False").await?;
    let message = reported["message"].as_str().unwrap_or_default();
    for needed in ["ClusterRole", "kubectl apply -k config/rbac-kinds/clusterroles"] {
        ensure!(message.contains(needed), "{message}");
    }
    scene.quiet().await?;
    let mut logged = scene.bed.log.with("cannot list");
    logged.retain(|line| line.contains("cluster=\"hub\"") && line.contains("resource=clusterroles"));
    ensure!(logged.len() == 1, "logged once: {logged:#?}");
    Ok(())
}

async fn until_matched(scene: &Scene, status: &str) -> Result<Value> {
    let name = scene.own("role");
    eventually(&format!("Matched of {name} is {status}"), async || {
        let policy = scene.hub.get("ClusterPropagationPolicy", "", &name).await?;
        let policy = policy.context("no policy")?;
        let reported = condition(&policy, "Matched").clone();
        ensure!(reported["status"] == status, "{reported}");
        Ok(reported)
    })
    .await
}

async fn what_may_not_be_claimed_or_read_is_reported_on_policy_and_workload_with_what_grants_it(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.distribute = false;
    let (rules, namespaced) = roles(DEFAULT)?;
    let made = granted(scene, &rules, namespaced).await?;
    scene.hub.apply(&definition()).await?;
    let name = scene.own("crd");
    let tested = refusals(scene, &name).await;
    unlimit(scene, &made).await?;
    scene.kill();
    scene.hub.delete("ClusterPropagationPolicy", "", &name).await?;
    scene.hub.delete("CustomResourceDefinition", "", DEFINED).await?;
    tested
}

const DEFINED: &str = "claims.rights.entourage.dev";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": DEFINED},
        "spec": {
            "group": "rights.entourage.dev", "scope": "Namespaced",
            "names": {"plural": "claims", "singular": "claim", "kind": "Claim", "listKind": "ClaimList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// By default definitions can be listed and not patched, and Secrets are not granted at all.
async fn refusals(scene: &mut Scene, name: &str) -> Result<()> {
    scene.start().await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": DEFINED,
            }],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    });
    scene.hub.apply(&policy).await?;
    scene.apply(manifests::secret("login", "canary")).await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "login"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    let reported = eventually("the policy says that it may not claim it", async || {
        let policy = scene.hub.get("ClusterPropagationPolicy", "", name).await?;
        let policy = policy.context("no policy")?;
        let reported = condition(&policy, "Matched").clone();
        ensure!(reported["reason"] == "ClaimRefused", "{reported}");
        Ok(reported)
    })
    .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    for needed in [
        "may not patch CustomResourceDefinition claims.rights.entourage.dev on the hub",
        "kubectl apply -k config/rbac-kinds/customresourcedefinitions grants it",
    ] {
        ensure!(message.contains(needed), "{message}");
    }
    let secret = format!("may not get Secret {}/login on the hub", scene.ns);
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", &secret)
        .await?;
    let component = "kubectl apply -k config/rbac-kinds/secrets grants it";
    scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", component)
        .await?;
    Ok(())
}
