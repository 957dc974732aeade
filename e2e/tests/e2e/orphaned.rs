//! Templates deleted with `--cascade=orphan`: as when the volumes of a StatefulSet are resized.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

use crate::removal::unmarked;

tests![
    an_orphaned_workload_stays_is_taken_over_and_what_is_equal_is_not_rewritten,
    a_deleted_orphaned_binding_releases_the_copies_and_what_they_need,
    the_volumes_of_a_stateful_set_are_resized_and_its_pods_stay,
];

const MEMBERS: [&str; 2] = ["member1", "member2"];

async fn delete_orphaning(scene: &Scene, server: &str, path: &str) -> Result<()> {
    let options = json!({"propagationPolicy": "Orphan"});
    let path = format!("/apis/apps/v1/namespaces/{}/{path}", scene.ns);
    match server {
        "hub" => scene.hub.call("DELETE", &path, Some(&options)).await?,
        member => {
            scene
                .member(member)?
                .call("DELETE", &path, Some(&options))
                .await?
        }
    };
    Ok(())
}

/// The metadata that must stay the same while nobody changes a copy.
fn version(copy: &Value) -> Value {
    json!([copy["metadata"]["uid"], copy["metadata"]["resourceVersion"]])
}

async fn versions(scene: &Scene) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for member in MEMBERS {
        for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
            all.push(version(&scene.copy(member, kind, name).await?));
        }
    }
    Ok(all)
}

async fn orphaned(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    let before = versions(scene).await?;
    delete_orphaning(scene, "hub", "deployments/myapp").await?;
    scene.until_gone("Deployment", "myapp").await?;
    scene
        .until_condition("myapp-deployment", "Orphaned", "True", "are kept as they are")
        .await?;
    scene.quiet().await?;
    ensure!(versions(scene).await? == before, "a copy was touched");
    let binding = scene.binding("myapp-deployment").await?;
    ensure!(binding["metadata"]["ownerReferences"].is_null(), "{binding}");
    ensure!(binding["metadata"]["deletionTimestamp"].is_null(), "{binding}");
    scene
        .until_reported_once("TemplateOrphaned", "myapp-deployment")
        .await?;
    Ok(())
}

async fn an_orphaned_workload_stays_is_taken_over_and_what_is_equal_is_not_rewritten(
    scene: &mut Scene,
) -> Result<()> {
    orphaned(scene).await?;
    scene.restart().await?;
    scene.faults.recorder().reset();
    ensure!(scene.quiet().await? == 0, "{:#?}", scene.writes());
    let mut before = Vec::new();
    for member in MEMBERS {
        before.push(scene.copy(member, "Deployment", "myapp").await?);
    }
    let [workload, ..] = manifests::example();
    let template = scene.apply(workload).await?;
    scene
        .until_binding("myapp-deployment", |binding| {
            let owner = &binding["metadata"]["ownerReferences"][0]["uid"];
            ensure!(*owner == template["metadata"]["uid"], "it belongs to {owner}");
            Ok(())
        })
        .await?;
    scene.until_settled(&MEMBERS).await?;
    scene.quiet().await?;
    for (member, before) in MEMBERS.into_iter().zip(before) {
        let copy = scene.copy(member, "Deployment", "myapp").await?;
        ensure!(
            copy["metadata"]["uid"] == before["metadata"]["uid"],
            "{member}: made anew"
        );
        ensure!(copy["spec"] == before["spec"], "{member}: {}", copy["spec"]);
    }
    let writes = scene.writes();
    let touched = |what: &str| {
        let of_it = writes
            .iter()
            .filter(|each| each.starts_with("member") && each.contains(what));
        of_it.count()
    };
    // The annotation that names the template's uid.
    ensure!(touched("update deployments.apps") == 2, "{writes:#?}");
    ensure!(touched("") == 2, "{writes:#?}");
    Ok(())
}

async fn a_deleted_orphaned_binding_releases_the_copies_and_what_they_need(scene: &mut Scene) -> Result<()> {
    orphaned(scene).await?;
    scene.delete("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await?;
    for member in MEMBERS {
        for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
            unmarked(&scene.copy(member, kind, name).await?)?;
        }
    }
    Ok(())
}

fn stateful_set(storage: &str) -> Value {
    let mut set = manifests::workload("StatefulSet", "db", &json!({}));
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    }]);
    set
}

fn storage(set: &Value) -> &Value {
    &set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
}

/// The procedure of a single cluster, on the hub first and then on each member: what cannot be changed is refused there, and
/// that is reported, until the StatefulSet alone is deleted there, too. The Pods stay at any time.
async fn the_volumes_of_a_stateful_set_are_resized_and_its_pods_stay(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(stateful_set("1Gi")).await?;
    scene
        .apply(manifests::policy_for("db", "StatefulSet", "db", &["member1"]))
        .await?;
    scene.until_held("StatefulSet", "db", &["member1"]).await?;
    scene.quiet().await?;
    let copy = scene.copy("member1", "StatefulSet", "db").await?;
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": copy["metadata"]["uid"], "controller": true,
    }]);
    let pod = scene
        .apply_on(
            "member1",
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "ownerReferences": owner},
                "spec": {"containers": [{"name": "db", "image": "db"}]},
            }),
        )
        .await?;
    let stays = async |scene: &Scene| -> Result<()> {
        let now = scene.copy("member1", "Pod", "db-0").await?;
        ensure!(now["metadata"]["uid"] == pod["metadata"]["uid"], "another Pod");
        ensure!(now["metadata"]["deletionTimestamp"].is_null(), "the Pod goes");
        Ok(())
    };

    delete_orphaning(scene, "hub", "statefulsets/db").await?;
    scene.until_gone("StatefulSet", "db").await?;
    scene
        .until_condition("db-statefulset", "Orphaned", "True", "member1")
        .await?;
    scene.quiet().await?;
    stays(scene).await?;
    let held = scene.copy("member1", "StatefulSet", "db").await?;
    ensure!(held["metadata"]["uid"] == copy["metadata"]["uid"], "made anew");

    scene.apply(stateful_set("2Gi")).await?;
    scene
        .until_condition("db-statefulset", "FullyApplied", "False", "member1")
        .await?;
    stays(scene).await?;

    delete_orphaning(scene, "member1", "statefulsets/db").await?;
    eventually("the StatefulSet has the larger volumes", async || {
        let Some(copy) = scene.on("member1", "StatefulSet", "db").await? else {
            anyhow::bail!("it is not there");
        };
        ensure!(storage(&copy) == "2Gi", "{}", storage(&copy));
        Ok(())
    })
    .await?;
    scene
        .until_condition("db-statefulset", "FullyApplied", "True", "")
        .await?;
    stays(scene).await?;
    scene.delete_on("member1", "Pod", "db-0").await
}
