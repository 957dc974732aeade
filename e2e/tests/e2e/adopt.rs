//! Copies of a former hub: a hub that was rebuilt has another id, and takes them over by `entourage adopt`.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![a_rebuilt_hub_adopts_the_copies_of_its_predecessor_and_nothing_else];

/// The id of the former hub.
const FORMER: &str = "00000000-0000-4000-8000-000000000016";

/// The id of a hub that is none of the two.
const THIRD: &str = "00000000-0000-4000-8000-000000000033";

const HUB: &str = "entourage.dev/hub";

async fn a_rebuilt_hub_adopts_the_copies_of_its_predecessor_and_nothing_else(
    scene: &mut Scene,
) -> Result<()> {
    scene.example().await?;
    let hub_id = hub_of(&scene.copy("member1", "ConfigMap", "my-config").await?);
    scene.stop().await?;
    leave_to_the_former_hub(scene, &hub_id).await?;
    let mut left = Vec::new();
    for (name, hub) in [("left", FORMER), ("theirs", THIRD)] {
        let mut object = manifests::config_map(name, "kept");
        object["metadata"]["labels"] = json!({HUB: hub});
        object["metadata"]["annotations"] = json!({"work.karmada.io/namespace": "karmada-es-member1",
            "resourcebinding.karmada.io/namespace": scene.ns,
            "resourcebinding.karmada.io/name": format!("{name}-configmap")});
        left.push((name, scene.apply_on("member1", object).await?));
    }
    let mut former = Vec::new();
    for (member, kind, name) in COPIES {
        former.push(scene.copy(member, kind, name).await?);
    }

    scene.start().await?;
    let conflict = scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "--former-hub")
        .await?;
    scene
        .until_condition("myapp-deployment", "FullyApplied", "False", "--former-hub")
        .await?;
    let message = conflict["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("member1") && message.contains(&format!("entourage adopt --former-hub {FORMER}")),
        "{conflict}"
    );
    let listed = scene.bed.adopt(&[]).await?;
    for id in [FORMER, THIRD] {
        ensure!(listed.contains(id), "{listed}");
    }
    let printed = scene.bed.adopt(&["--former-hub", FORMER]).await?;
    let decision = |name: &str| {
        let is_it = |line: &&str| line.contains(&scene.ns) && line.contains(name) && line.contains("member1");
        printed.lines().find(is_it).unwrap_or_default().to_owned()
    };
    for (name, says) in [
        ("Deployment myapp", "adopt"),
        ("ConfigMap my-config", "adopt"),
        ("ConfigMap left", "left alone: no template on this hub"),
        ("ConfigMap theirs", THIRD),
    ] {
        ensure!(decision(name).ends_with(says), "{name}:\n{printed}");
    }
    ensure!(printed.contains("nothing was written"), "{printed}");
    for ((member, kind, name), before) in COPIES.into_iter().zip(&former) {
        assert_eq!(&scene.copy(member, kind, name).await?, before, "a dry run");
    }

    let printed = scene.bed.adopt(&["--former-hub", FORMER, "--yes"]).await?;
    ensure!(
        printed.contains("adopted") && !printed.contains("not adopted"),
        "{printed}"
    );
    scene.until_settled(&["member1", "member2"]).await?;
    for ((member, kind, name), before) in COPIES.into_iter().zip(&former) {
        let copy = scene.copy(member, kind, name).await?;
        assert_eq!(hub_of(&copy), hub_id, "{member} {name}");
        assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"]);
        // A controller of the member has nothing to roll out: no Pod restarts.
        assert_eq!(copy["metadata"]["generation"], before["metadata"]["generation"]);
    }
    let namespace = scene.member("member1")?.get("Namespace", "", &scene.ns).await?;
    let records = namespace.context("a namespace")?["metadata"]["annotations"].to_string();
    ensure!(
        !records.contains(FORMER) && records.contains(&hub_id),
        "{records}"
    );
    let again = scene.bed.adopt(&["--former-hub", FORMER, "--yes"]).await?;
    ensure!(again.contains("0 objects adopted"), "{again}");

    // They are this hub's like any other copy; the others are still nobody's business here.
    scene.apply(manifests::config_map("my-config", "two")).await?;
    for member in ["member1", "member2"] {
        scene
            .until_copy(member, "ConfigMap", "my-config", |copy| {
                ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
                Ok(())
            })
            .await?;
    }
    scene.delete("Deployment", "myapp").await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    for (name, before) in left {
        assert_eq!(scene.copy("member1", "ConfigMap", name).await?, before);
        scene.delete_on("member1", "ConfigMap", name).await?;
    }
    Ok(())
}

const COPIES: [(&str, &str, &str); 4] = [
    ("member1", "Deployment", "myapp"),
    ("member1", "ConfigMap", "my-config"),
    ("member2", "Deployment", "myapp"),
    ("member2", "ConfigMap", "my-config"),
];

/// Leaves the members as a hub finds them that is rebuilt from files: every mark names its predecessor, and it has templates and
/// policies, and no bindings.
async fn leave_to_the_former_hub(scene: &Scene, hub_id: &str) -> Result<()> {
    for (member, kind, name) in COPIES {
        let change = |copy: &mut Value| copy["metadata"]["labels"][HUB] = json!(FORMER);
        scene.edit_on(member, kind, name, change).await?;
    }
    for member in ["member1", "member2", "member3"] {
        let change = |namespace: &mut Value| {
            let annotations = &mut namespace["metadata"]["annotations"];
            let text = annotations.to_string().replace(hub_id, FORMER);
            *annotations = serde_json::from_str(&text).unwrap_or_default();
        };
        scene
            .member(member)?
            .edit("Namespace", "", &scene.ns, change)
            .await?;
    }
    for binding in ["myapp-deployment", "my-config-configmap"] {
        let release = |binding: &mut Value| binding["metadata"]["finalizers"] = json!([]);
        scene
            .hub
            .edit("ResourceBinding", &scene.ns, binding, release)
            .await?;
        scene.delete("ResourceBinding", binding).await?;
        eventually("the binding is gone", async || {
            let left = scene.hub.get("ResourceBinding", &scene.ns, binding).await?;
            ensure!(left.is_none(), "{binding} is still there");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

fn hub_of(copy: &Value) -> String {
    copy["metadata"]["labels"][HUB]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
