//! Drift: copies that are changed on a member.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_copy_changed_by_hand_is_restored,
    a_copy_changed_while_we_were_down_is_restored,
    a_foreign_label_on_a_copy_stays,
];

/// The changes that people make to copies.
const DEEDS: [&str; 4] = ["edited", "deleted", "unmarked", "replaced"];

async fn a_copy_changed_by_hand_is_restored(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    for deed in DEEDS {
        for (kind, name) in [("ConfigMap", "my-config"), ("Deployment", "myapp")] {
            let before = scene.copy("member1", kind, name).await?;
            meddle(scene, deed, kind, name).await?;
            restored(scene, kind, name, &before)
                .await
                .with_context(|| format!("{kind} {deed}"))?;
        }
    }
    Ok(())
}

async fn a_copy_changed_while_we_were_down_is_restored(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    for deed in DEEDS {
        let config = scene.copy("member1", "ConfigMap", "my-config").await?;
        let workload = scene.copy("member1", "Deployment", "myapp").await?;
        scene.stop().await?;
        meddle(scene, deed, "ConfigMap", "my-config").await?;
        meddle(scene, deed, "Deployment", "myapp").await?;
        scene.start().await?;
        restored(scene, "ConfigMap", "my-config", &config)
            .await
            .with_context(|| format!("ConfigMap {deed}"))?;
        restored(scene, "Deployment", "myapp", &workload)
            .await
            .with_context(|| format!("Deployment {deed}"))?;
    }
    Ok(())
}

async fn meddle(scene: &Scene, deed: &str, kind: &str, name: &str) -> Result<()> {
    let edit = |live: &mut Value| match live["data"].is_null() {
        true => live["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other"),
        false => live["data"] = json!({"nginx.properties": "edited"}),
    };
    match deed {
        "edited" => scene.edit_on("member1", kind, name, edit).await.map(drop),
        "deleted" => scene.delete_on("member1", kind, name).await,
        "unmarked" => {
            let own = if kind == "Deployment" {
                json!({"app": "myapp"})
            } else {
                json!({})
            };
            let unmark = |live: &mut Value| live["metadata"]["labels"] = own.clone();
            scene.edit_on("member1", kind, name, unmark).await.map(drop)
        }
        // Deleted and created again, with ownership metadata and other content: another uid.
        _ => {
            let mut copy = scene.copy("member1", kind, name).await?;
            scene.delete_on("member1", kind, name).await?;
            edit(&mut copy);
            if let Some(meta) = copy["metadata"].as_object_mut() {
                meta.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
            }
            scene.apply_on("member1", copy).await.map(drop)
        }
    }
}

async fn restored(scene: &Scene, kind: &str, name: &str, before: &Value) -> Result<()> {
    eventually("the copy is as it was", async || {
        let copy = scene.copy("member1", kind, name).await?;
        for part in ["spec", "data"] {
            ensure!(copy[part] == before[part], "{part}: {}", copy[part]);
        }
        for part in ["labels", "annotations"] {
            ensure!(
                copy["metadata"][part] == before["metadata"][part],
                "{part}: {}",
                copy["metadata"][part]
            );
        }
        // Without ownership metadata, this record proves the ownership, at the latest a second after the write.
        let binding = scene.binding(&format!("{name}-{}", kind.to_lowercase())).await?;
        let entries = binding["status"]["aggregatedStatus"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let recorded = entries
            .iter()
            .find(|entry| entry["clusterName"] == "member1")
            .map(|entry| &entry["copy"]["uid"]);
        ensure!(
            recorded == Some(&copy["metadata"]["uid"]),
            "{kind} recorded with uid {recorded:?}"
        );
        Ok(())
    })
    .await
}

async fn a_foreign_label_on_a_copy_stays(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let mark = |live: &mut Value| {
        live["metadata"]["labels"]["theirs"] = json!("yes");
        live["metadata"]["annotations"]["theirs.example.com/note"] = json!("yes");
    };
    scene.edit_on("member1", "ConfigMap", "my-config", mark).await?;
    scene.apply(manifests::config_map("my-config", "two")).await?;
    scene
        .until_copy("member1", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"] == json!({"key": "two"}), "{}", copy["data"]);
            ensure!(
                copy["metadata"]["labels"]["theirs"] == "yes",
                "{}",
                copy["metadata"]
            );
            ensure!(
                copy["metadata"]["annotations"]["theirs.example.com/note"] == "yes",
                "{}",
                copy["metadata"]
            );
            Ok(())
        })
        .await?;
    Ok(())
}
