//! Controllers on definitions that lack what this version adds: those of Karmada, or of an earlier version.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::Value;

tests![Embedded: on_definitions_that_lack_our_fields_everything_arrives_and_comes_to_rest];

/// The fields that the definitions of bindings and policies have beyond those of Karmada: the hub drops them.
const ADDED: [(&str, &[&str]); 4] = [
    (
        "resourcebindings.work.karmada.io",
        &["appliedReason", "copy", "unhealthySince"],
    ),
    (
        "clusterresourcebindings.work.karmada.io",
        &["appliedReason", "copy", "unhealthySince"],
    ),
    ("propagationpolicies.policy.karmada.io", &["status"]),
    ("clusterpropagationpolicies.policy.karmada.io", &["status"]),
];

async fn on_definitions_that_lack_our_fields_everything_arrives_and_comes_to_rest(
    scene: &mut Scene,
) -> Result<()> {
    let mut definitions = Vec::new();
    for (name, fields) in ADDED {
        let hub = &scene.hub;
        definitions.push(hub.get("CustomResourceDefinition", "", name).await?);
        hub.edit("CustomResourceDefinition", "", name, |definition| {
            for version in definition["spec"]["versions"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                remove(&mut version["schema"]["openAPIV3Schema"], fields);
            }
        })
        .await?;
    }

    scene.example().await?;
    scene.quiet().await?;
    let binding = scene.binding("myapp-deployment").await?;
    ensure!(!binding.to_string().contains("\"copy\""), "{binding}");
    ensure!(of_members(scene) > 0, "{:?}", scene.writes());

    // What was dropped is written once more, to no effect. Copies are compared, and left as they are.
    scene.restart().await?;
    scene.quiet().await?;
    ensure!(of_members(scene) == 0, "{:#?}", scene.writes());
    ensure!(
        scene.binding("myapp-deployment").await? == binding,
        "the binding was stored again"
    );

    scene.apply(manifests::config_map("my-config", "edited")).await?;
    until_config(scene, "edited").await?;
    scene.quiet().await?;
    let edits = of_members(scene);
    ensure!(edits == 2, "{:#?}", scene.writes());

    // The definitions of this version, while it runs.
    for definition in definitions.into_iter().flatten() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let edit = |live: &mut Value| live["spec"] = definition["spec"].clone();
        scene.hub.edit("CustomResourceDefinition", "", name, edit).await?;
    }
    scene.apply(manifests::config_map("my-config", "again")).await?;
    until_config(scene, "again").await?;
    scene
        .until_binding("my-config-configmap", |binding| {
            let copy = &binding["status"]["aggregatedStatus"][0]["copy"];
            ensure!(copy["uid"].is_string(), "{binding}");
            Ok(())
        })
        .await?;
    scene.quiet().await?;
    ensure!(of_members(scene) == edits + 2, "{:#?}", scene.writes());

    scene.delete("Deployment", "myapp").await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await
}

/// Takes the properties of these names out of a schema, at any depth.
fn remove(schema: &mut Value, fields: &[&str]) {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
        properties.values_mut().for_each(|each| remove(each, fields));
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            remove(&mut schema[inner], fields);
        }
    }
}

async fn until_config(scene: &Scene, value: &str) -> Result<()> {
    for member in ["member1", "member2"] {
        scene
            .until_copy(member, "ConfigMap", "my-config", |copy| {
                ensure!(copy["data"]["key"] == value, "{}", copy["data"]);
                Ok(())
            })
            .await?;
    }
    Ok(())
}

/// The number of writes on members.
fn of_members(scene: &Scene) -> usize {
    scene
        .writes()
        .iter()
        .filter(|write| write.starts_with("member"))
        .count()
}
