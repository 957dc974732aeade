//! Namespaces: every member has the hub's, with their labels, and none is ever deleted.

use anyhow::{Context, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually},
    tests,
};
use serde_json::{Value, json};

tests![
    a_namespace_is_on_every_member_with_its_labels_and_stays_when_the_hub_deletes_it,
    a_namespace_that_says_so_is_not_propagated,
];

fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

async fn until_labels(
    scene: &Scene,
    member: &str,
    name: &str,
    wanted: &[(&str, Option<&str>)],
) -> Result<Value> {
    eventually(
        &format!("namespace {name} of {member} has its labels"),
        async || {
            let live = scene.member(member)?.get("Namespace", "", name).await?;
            let live = live.context("it is not there")?;
            let labels = &live["metadata"]["labels"];
            for (key, value) in wanted {
                ensure!(labels[key].as_str() == *value, "{labels}");
            }
            Ok(live)
        },
    )
    .await
}

async fn a_namespace_is_on_every_member_with_its_labels_and_stays_when_the_hub_deletes_it(
    scene: &mut Scene,
) -> Result<()> {
    let name = scene.another_space().await?.ns;
    let there = namespace(&name, &json!({"theirs": "x"}));
    let uid = scene.member("member2")?.apply(&there).await?["metadata"]["uid"].clone();
    scene.start().await?;
    scene.hub.apply(&namespace(&name, &json!({"team": "a"}))).await?;
    until_labels(scene, "member1", &name, &[("team", Some("a"))]).await?;
    until_labels(scene, "member3", &name, &[("team", Some("a"))]).await?;
    let adopted = until_labels(
        scene,
        "member2",
        &name,
        &[("team", Some("a")), ("theirs", Some("x"))],
    )
    .await?;
    ensure!(adopted["metadata"]["uid"] == uid);
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    let relabel = |live: &mut Value| {
        live["metadata"]["labels"] =
            json!({"tier": "1", "kubernetes.io/metadata.name": live["metadata"]["name"]});
    };
    scene.hub.edit("Namespace", "", &name, relabel).await?;
    let wanted = [("team", None), ("tier", Some("1")), ("theirs", Some("x"))];
    until_labels(scene, "member2", &name, &wanted).await?;
    scene.hub.delete("Namespace", "", &name).await?;
    scene.quiet().await?;
    for member in ["member1", "member2", "member3"] {
        let live = scene.member(member)?.get("Namespace", "", &name).await?;
        let live = live.context("it was deleted")?;
        ensure!(
            live["metadata"]["deletionTimestamp"].is_null(),
            "{member} loses it"
        );
    }
    Ok(())
}

async fn a_namespace_that_says_so_is_not_propagated(scene: &mut Scene) -> Result<()> {
    let name = scene.another_space().await?.ns;
    let skip = json!({"namespace.karmada.io/skip-auto-propagation": "true"});
    scene.hub.apply(&namespace(&name, &skip)).await?;
    scene.start().await?;
    let marker = scene.another_space().await?.ns;
    until_labels(scene, "member1", &marker, &[]).await?;
    scene.quiet().await?;
    for member in &scene.members {
        ensure!(
            member.get("Namespace", "", &name).await?.is_none(),
            "{}",
            member.name
        );
    }
    Ok(())
}
