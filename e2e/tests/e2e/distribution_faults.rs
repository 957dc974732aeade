//! ResourceDistributions on slow, failing and confusing API servers, while their targets change.
//!
//! The result is the same as without faults, and meanwhile no unmanaged object is deleted, and no copy that is needed
//! throughout.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{PATIENCE, Scene, Space, eventually_within, included, manifests, seed, status_code},
    tests,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    distribution::relabel,
    faults::{Journey, goes_through},
};

tests![
    a_throttling_server_changes_nothing_for_distributions,
    errors_before_and_after_the_effect_change_nothing_for_distributions,
    watches_that_expire_stall_or_break_change_nothing_for_distributions,
    calls_that_are_never_answered_change_nothing_for_distributions,
    lost_watch_frames_delete_no_copy,
];

async fn a_throttling_server_changes_nothing_for_distributions(scene: &mut Scene) -> Result<()> {
    under(scene, PATIENCE * 3, "error-before=20% status=429").await
}

async fn errors_before_and_after_the_effect_change_nothing_for_distributions(
    scene: &mut Scene,
) -> Result<()> {
    let faults = "latency=0..10ms error-before=8% error-after=8% status=409,410,429,500,503,reset";
    under(scene, PATIENCE * 2, faults).await
}

async fn watches_that_expire_stall_or_break_change_nothing_for_distributions(
    scene: &mut Scene,
) -> Result<()> {
    let faults = "error-before=3% status=410 watch-cut=8% watch-gone=8% watch-stall=8% watch-repeat=15% \
                  watch-stale=15% watch-delay=0..60ms";
    under(scene, PATIENCE * 2, faults).await
}

async fn calls_that_are_never_answered_change_nothing_for_distributions(scene: &mut Scene) -> Result<()> {
    scene.options.hub_deadline = Duration::from_secs(1);
    scene.options.member_deadline = Duration::from_secs(1);
    // A list that hangs is given up after five seconds, and after twice as long when it hangs again.
    under(scene, PATIENCE * 2, "hang=3%").await
}

/// The further namespaces of a space.
const MORE: [&str; 3] = ["b", "c", "d"];

static JOURNEY: Journey = Journey {
    steps: &[
        "arrives",
        "is edited again and again",
        "moves to and fro",
        "meets others, and loses some",
    ],
    take: |step, space| Box::pin(take(step, space)),
    calm: OnceCell::const_new(),
};

/// Nothing waits for what came of the act before.
async fn take(step: &str, space: &Space) -> Result<()> {
    let [b, c, d] = MORE.map(|name| space.own(name));
    let (yes, no) = (json!({"group": space.ns}), json!({}));
    match step {
        "arrives" => {
            for ns in [&b, &c, &d] {
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}});
                space.hub.apply(&namespace).await?;
            }
            for ns in [&b, &c] {
                relabel(space, ns, &yes).await?;
            }
            theirs(space, &c, "shared").await?;
            theirs(space, &c, "strict").await?;
            write(space, "one", &["member1", "member2"]).await
        }
        "is edited again and again" => {
            for value in ["two", "three", "four"] {
                write(space, value, &["member1", "member2"]).await?;
            }
            Ok(())
        }
        "moves to and fro" => {
            relabel(space, &b, &no).await?;
            relabel(space, &d, &yes).await?;
            write(space, "five", &["member2", "member3"]).await?;
            relabel(space, &c, &no).await?;
            relabel(space, &d, &no).await?;
            relabel(space, &c, &yes).await?;
            relabel(space, &d, &yes).await?;
            write(space, "six", &["member1", "member2"]).await?;
            write(space, "six", &["member2", "member3"]).await
        }
        _ => {
            theirs(space, &b, "shared").await?;
            relabel(space, &b, &yes).await?;
            space.hub.delete("ConfigMap", &c, "shared").await?;
            space.hub.delete("ConfigMap", &c, "strict").await
        }
    }
}

/// One into namespaces that a label selects and the space's own, one that is strict, and one on members.
async fn write(space: &Space, value: &str, members: &[&str]) -> Result<()> {
    let [b, c, _] = MORE.map(|name| space.own(name));
    let mut targets = included(&[&space.ns]);
    targets["namespaceLabelSelector"] = json!({"matchLabels": {"group": space.ns}});
    space
        .distribute("rd", &manifests::config_map("shared", value), &targets)
        .await?;
    let strict = json!({
        "resource": manifests::config_map("strict", value), "targets": included(&[&space.ns, &b, &c]),
        "writePolicy": "strict",
    });
    space.distribute_as("strict", strict).await?;
    let mut targets = included(&[&space.ns]);
    targets["clusters"] = json!({"clusterNames": members});
    let there = manifests::config_map("there", value);
    space.distribute("there", &there, &targets).await.map(drop)
}

/// An object that is not managed by this hub.
async fn theirs(space: &Space, ns: &str, name: &str) -> Result<()> {
    let mut object = manifests::config_map(name, "theirs");
    object["metadata"]["namespace"] = json!(ns);
    space.hub.apply(&object).await.map(drop)
}

async fn under(scene: &mut Scene, patience: Duration, faults: &str) -> Result<()> {
    goes_through(scene, &JOURNEY, patience, faults).await?;
    let plan = scene.faults.plan().to_string();
    nothing_needed_was_deleted(scene).with_context(|| plan.clone())?;
    // The end, under the same faults: of the namespaces of this run and of the one without, then of everything.
    for space in scene.namespaces() {
        for name in MORE {
            match scene
                .hub
                .delete("Namespace", "", &format!("{space}-{name}"))
                .await
            {
                Err(error) if status_code(&error) == 404 => {}
                result => result?,
            }
        }
    }
    for (name, counts) in [("rd", [1, 1, 0]), ("strict", [3, 1, 2])] {
        let [desired, succeeded, failed] = counts;
        eventually_within(
            patience,
            &format!("{name} counts {counts:?}: {plan}"),
            async || {
                scene
                    .until_counts(name, desired, succeeded, failed)
                    .await
                    .map(drop)
            },
        )
        .await?;
    }
    for name in ["rd", "strict", "there"] {
        scene.end_distribution(name, "Background").await?;
    }
    for name in ["rd", "strict", "there"] {
        scene.until_ended(name).await.with_context(|| plan.clone())?;
    }
    for name in ["shared", "strict"] {
        scene.until_in("ConfigMap", name, &[&scene.ns], &[]).await?;
    }
    let left = scene.holders("ConfigMap", "there").await?;
    ensure!(left.is_empty(), "{left:?}: {plan}");
    Ok(())
}

/// Checks the deletions of the controllers so far. In the space's own namespace and on member2 copies are needed from the
/// first step to the last; in `c` an unmanaged object exists until the test deletes it, and then a copy that is needed.
fn nothing_needed_was_deleted(scene: &Scene) -> Result<()> {
    let writes = scene.writes();
    let [_, c, _] = MORE.map(|name| scene.own(name));
    let kept = [
        format!("hub delete configmaps {}/", scene.ns),
        format!("hub delete configmaps {c}/"),
        format!("member2 delete configmaps {}/", scene.ns),
    ];
    let deleted: Vec<&String> = writes
        .iter()
        .filter(|write| kept.iter().any(|kept| write.starts_with(kept)))
        .collect();
    ensure!(deleted.is_empty(), "{deleted:#?}");
    Ok(())
}

/// No server loses frames; should one do so, no copy that is needed may be deleted for it, and nothing of anybody else.
async fn lost_watch_frames_delete_no_copy(scene: &mut Scene) -> Result<()> {
    take("arrives", scene).await?;
    scene.start().await?;
    scene.until_counts("rd", 3, 2, 1).await?;
    scene.until_counts("strict", 3, 0, 3).await?;
    scene.until_counts("there", 2, 2, 0).await?;
    scene.stop().await?;
    let plan = format!("seed={} watch-drop=40%", seed());
    println!("{plan}");
    scene.launch(plan.parse()?)?;
    scene.controllers()?.ready().await?;
    let before = scene.get("ConfigMap", "shared").await?["metadata"]["uid"].clone();
    let [b, c, d] = MORE.map(|name| scene.own(name));
    for round in 0..5 {
        for ns in [&b, &d] {
            relabel(scene, ns, &json!({"group": scene.ns, "round": round.to_string()})).await?;
        }
        write(scene, &format!("round {round}"), &["member1", "member2"]).await?;
    }
    scene.quiet().await?;
    let deleted: Vec<String> = scene
        .writes()
        .into_iter()
        .filter(|write| write.contains(" delete configmaps "))
        .collect();
    ensure!(deleted.is_empty(), "{plan}: {deleted:#?}");
    let copy = scene.get("ConfigMap", "shared").await?;
    assert_eq!(copy["metadata"]["uid"], before);
    let foreign: Value = scene.hub.get("ConfigMap", &c, "shared").await?.context("gone")?;
    assert_eq!(foreign["data"]["key"], "theirs");
    assert_eq!(scene.holders("ConfigMap", "there").await?, ["member1", "member2"]);
    Ok(())
}
