//! Namespaces: every member has the hub's, with their labels, and loses it with the hub where we made it.

use anyhow::{Context, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually},
    tests,
};
use serde_json::{Value, json};

tests![
    a_namespace_is_on_every_member_with_its_labels_and_goes_with_that_of_the_hub,
    a_namespace_that_holds_something_is_released_and_reported,
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

async fn a_namespace_is_on_every_member_with_its_labels_and_goes_with_that_of_the_hub(
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
    scene.quiet().await?;
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
    for member in ["member1", "member3"] {
        until_deleted(scene, member, &name).await?;
    }
    scene.quiet().await?;
    let live = scene.member("member2")?.get("Namespace", "", &name).await?;
    let live = live.context("it was deleted")?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "member2 had it before"
    );
    Ok(())
}

/// True if it is deleted, or, where no controller empties namespaces, being deleted.
async fn until_deleted(scene: &Scene, member: &str, name: &str) -> Result<()> {
    eventually(
        &format!("namespace {name} is deleted from {member}"),
        async || {
            let live = scene.member(member)?.get("Namespace", "", name).await?;
            let deleting = live.as_ref().map(|live| &live["metadata"]["deletionTimestamp"]);
            ensure!(deleting.is_none_or(Value::is_string), "{live:?}");
            Ok(())
        },
    )
    .await
}

async fn a_namespace_that_holds_something_is_released_and_reported(scene: &mut Scene) -> Result<()> {
    let space = scene.another_space().await?;
    let name = space.ns.clone();
    scene.start().await?;
    until_labels(scene, "member1", &name, &[]).await?;
    until_labels(scene, "member2", &name, &[]).await?;
    space
        .apply_on(
            "member1",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}),
        )
        .await?;
    scene.hub.delete("Namespace", "", &name).await?;
    until_deleted(scene, "member2", &name).await?;
    let live = eventually("it is released", async || {
        let live = scene.member("member1")?.get("Namespace", "", &name).await?;
        let live = live.context("it was deleted")?;
        let annotations = live["metadata"]["annotations"].to_string();
        ensure!(!annotations.contains("entourage.dev"), "{annotations}");
        Ok(live)
    })
    .await?;
    ensure!(live["metadata"]["deletionTimestamp"].is_null(), "{live}");
    eventually("the contents of the namespace are reported", async || {
        let all = scene.hub.list("Event", "default", "").await?;
        let of_it = |event: &&Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == "NamespaceKept" && message.contains(&name)
        };
        let reported: Vec<&Value> = all.iter().filter(of_it).collect();
        ensure!(reported.len() == 1, "{reported:?}");
        ensure!(
            reported[0]["message"].to_string().contains("ConfigMap theirs"),
            "{reported:?}"
        );
        Ok(())
    })
    .await
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
