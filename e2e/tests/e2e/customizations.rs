//! Customizations: Lua scripts as users of Karmada write them, and declared rules, at work on real servers.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_script_says_what_a_workload_takes_along,
    a_script_that_never_ends_takes_nothing_away_over_a_restart_too,
    scripts_keep_what_is_a_members_and_tell_its_status_and_health,
    declared_rules_add_to_what_a_workload_takes_along,
];

/// A script: the dependencies are those of the pods, and those that an annotation names.
const DEPENDENCIES: &str = r#"
local kube = require("kube")
function GetDependencies(desiredObj)
  local found = kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
  local uses = (desiredObj.spec.template.metadata.annotations or {})["example.com/uses"]
  if uses ~= nil then
    table.insert(found, {
      apiVersion = "v1",
      kind = "ConfigMap",
      namespace = desiredObj.metadata.namespace,
      name = uses,
    })
  end
  return found
end
"#;

const NEVER_ENDS: &str = r#"
function GetDependencies(desiredObj)
  return string.find(("a"):rep(10000), ".-.-.-.-b$")
end
"#;

fn customization(scene: &Scene, scripts: &Value) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": named(scene)},
        "spec": {"target": {"apiVersion": "apps/v1", "kind": "Deployment"}, "customizations": scripts},
    })
}

fn named(scene: &Scene) -> String {
    format!("{}-deployments", scene.ns)
}

fn script(text: &str) -> Value {
    json!({ "luaScript": text })
}

/// The example's workload, which names another ConfigMap in an annotation of its pods.
fn uses(name: &str) -> Value {
    let [mut deployment, ..] = manifests::example();
    deployment["spec"]["template"]["metadata"]["annotations"] = json!({"example.com/uses": name});
    deployment
}

async fn with_extra(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::config_map("extra", "one")).await?;
    scene.apply(manifests::config_map("other", "one")).await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene.apply(uses("extra")).await?;
    scene.until_settled(&["member1", "member2"]).await
}

async fn a_script_says_what_a_workload_takes_along(scene: &mut Scene) -> Result<()> {
    with_extra(scene).await?;
    ensure!(scene.holders("ConfigMap", "extra").await?.is_empty());
    let scripts = json!({"dependencyInterpretation": script(DEPENDENCIES)});
    scene.apply(customization(scene, &scripts)).await?;
    scene
        .until_held("ConfigMap", "extra", &["member1", "member2"])
        .await?;
    scene.apply(uses("other")).await?;
    scene
        .until_held("ConfigMap", "other", &["member1", "member2"])
        .await?;
    scene.until_held("ConfigMap", "extra", &[]).await?;
    scene.quiet().await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(wrote == 0, "a restart writes: {:#?}", scene.writes());
    scene
        .delete("ResourceInterpreterCustomization", &named(scene))
        .await?;
    scene.until_held("ConfigMap", "other", &[]).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2"])
        .await
}

async fn a_script_that_never_ends_takes_nothing_away_over_a_restart_too(scene: &mut Scene) -> Result<()> {
    with_extra(scene).await?;
    let scripts = json!({"dependencyInterpretation": script(DEPENDENCIES)});
    scene.apply(customization(scene, &scripts)).await?;
    scene
        .until_held("ConfigMap", "extra", &["member1", "member2"])
        .await?;
    let scripts = json!({"dependencyInterpretation": script(NEVER_ENDS)});
    scene.apply(customization(scene, &scripts)).await?;
    let why = format!("script {:?}, line 3: hit its limit: stopped after", named(scene));
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", &why)
        .await?;
    scene.until_reported_once("InterpretationFailed", "myapp").await?;
    scene.restart().await?;
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", &why)
        .await?;
    scene.quiet().await?;
    for name in ["extra", "my-config"] {
        let holders = scene.holders("ConfigMap", name).await?;
        ensure!(holders == ["member1", "member2"], "{name}: {holders:?}");
    }
    let scripts = json!({"dependencyInterpretation": script(DEPENDENCIES)});
    scene.apply(customization(scene, &scripts)).await?;
    scene
        .until_binding("myapp-deployment", |binding| {
            let conditions = binding["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            ensure!(
                conditions.iter().all(|each| each["type"] != "Interpreted"),
                "{conditions:#?}"
            );
            Ok(())
        })
        .await
        .map(drop)
}

async fn scripts_keep_what_is_a_members_and_tell_its_status_and_health(scene: &mut Scene) -> Result<()> {
    let scripts = json!({
        "retention": script("
function Retain(desiredObj, observedObj)
  desiredObj.spec.paused = observedObj.spec.paused
  return desiredObj
end"),
        "statusReflection": script("
function ReflectStatus(observedObj)
  if observedObj.spec.paused then
    return { phase = 'Paused' }
  end
  return { phase = 'Running' }
end"),
        "healthInterpretation": script("
function InterpretHealth(observedObj)
  return not observedObj.spec.paused
end"),
    });
    scene.start().await?;
    scene.apply(customization(scene, &scripts)).await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;
    let pause = |live: &mut Value| live["spec"]["paused"] = json!(true);
    let member = scene.member("member1")?;
    member.edit("Deployment", &scene.ns, "myapp", pause).await?;
    let reported = |binding: &Value, wanted: [[&str; 2]; 2]| {
        let items = binding["status"]["aggregatedStatus"].as_array();
        let found: Vec<[&str; 2]> = items
            .into_iter()
            .flatten()
            .map(|item| {
                [&item["status"]["phase"], &item["health"]].map(|each| each.as_str().unwrap_or_default())
            })
            .collect();
        ensure!(found == wanted, "{found:?}");
        Ok(())
    };
    scene
        .until_binding("myapp-deployment", |binding| {
            reported(binding, [["Paused", "Unhealthy"], ["Running", "Healthy"]])
        })
        .await?;
    // The content of the template is still applied, and the member's own value stays.
    let [mut deployment, ..] = manifests::example();
    deployment["spec"]["template"]["metadata"]["labels"]["round"] = json!("two");
    scene.apply(deployment).await?;
    eventually("the member has the new template and its pause", async || {
        let live = member
            .get("Deployment", &scene.ns, "myapp")
            .await?
            .unwrap_or_default();
        let spec = &live["spec"];
        ensure!(
            spec["paused"] == true && spec["template"]["metadata"]["labels"]["round"] == "two",
            "{spec:#}"
        );
        Ok(())
    })
    .await
}

async fn declared_rules_add_to_what_a_workload_takes_along(scene: &mut Scene) -> Result<()> {
    with_extra(scene).await?;
    let mut rules = customization(scene, &json!({}));
    rules["spec"]["merge"] = json!("Add");
    rules["spec"]["declarative"] = json!({
        "dependencies": [{
            "paths": ["spec.template.metadata.annotations['example.com/uses']"], "kind": "ConfigMap",
        }],
    });
    scene.apply(rules).await?;
    for name in ["my-config", "extra"] {
        scene
            .until_held("ConfigMap", name, &["member1", "member2"])
            .await?;
    }
    scene
        .delete("ResourceInterpreterCustomization", &named(scene))
        .await?;
    scene.until_held("ConfigMap", "extra", &[]).await?;
    scene
        .until_held("ConfigMap", "my-config", &["member1", "member2"])
        .await
}
