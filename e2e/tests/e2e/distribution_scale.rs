//! A ResourceDistribution into thousands of namespaces, of which many cannot have it: how often is written, and how large the
//! status is.

use std::time::Duration;

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually_within, manifests},
    tests,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

tests![Embedded: thousands_of_namespaces_cost_one_write_each_and_a_status_of_bounded_size];

/// Namespaces that exist.
const MEANT: usize = 2_000;
/// The number of namespaces in which an unmanaged object has the name.
const TAKEN: usize = 500;
/// Namespaces that are named and do not exist.
const MISSING: usize = 500;
/// The largest that a status may be, in bytes.
const LARGEST: usize = 64 << 10;
/// Long on a machine that builds something else meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest name that a namespace can have.
fn name(scene: &Scene, kind: &str, number: usize) -> String {
    format!("{:x<58}-{number:04}", format!("{}-{kind}-", scene.own("")))
}

async fn each<F: Future<Output = Result<Value>>>(all: impl Iterator<Item = F>) -> Result<()> {
    let all: Vec<F> = all.collect();
    stream::iter(all)
        .buffer_unordered(16)
        .try_for_each(async |_| Ok(()))
        .await
}

fn count(scene: &Scene, start: &str) -> usize {
    let mut writes = scene.writes();
    writes.retain(|write| write.starts_with(start));
    writes.len()
}

async fn thousands_of_namespaces_cost_one_write_each_and_a_status_of_bounded_size(
    scene: &mut Scene,
) -> Result<()> {
    let hub = scene.hub.clone();
    let there: Vec<String> = (0..MEANT).map(|number| name(scene, "a", number)).collect();
    let group = scene.ns.clone();
    let namespace = |ns: &String| {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": ns, "labels": {"group": group, "namespace.karmada.io/skip-auto-propagation": "true"}},
        });
        let hub = hub.clone();
        async move { hub.create(&object).await }
    };
    let theirs = |ns: &String| {
        let mut object = manifests::config_map("shared", "theirs");
        object["metadata"]["namespace"] = json!(ns);
        let hub = hub.clone();
        async move { hub.create(&object).await }
    };
    each(there.iter().map(namespace)).await?;
    each(there.iter().take(TAKEN).map(theirs)).await?;
    scene.start().await?;
    let missing: Vec<Value> = (0..MISSING)
        .map(|number| json!({"name": name(scene, "b", number)}))
        .collect();
    let targets = json!({
        "namespaceLabelSelector": {"matchLabels": {"group": scene.ns}}, "includedNamespaces": {"list": missing},
    });
    let counts =
        [MEANT + MISSING, MEANT - TAKEN, TAKEN + MISSING].map(|count| i64::try_from(count).unwrap_or(0));
    for (value, verb) in [("one", "create"), ("two", "update")] {
        scene.quiet().await?;
        scene.faults.recorder().reset();
        scene
            .distribute("rd", &manifests::config_map("shared", value), &targets)
            .await?;
        let stored = eventually_within(PATIENCE, "they have it", async || {
            let [desired, succeeded, failed] = counts;
            scene.until_counts("rd", desired, succeeded, failed).await
        })
        .await?;
        let size = stored["status"].to_string().len();
        ensure!(size <= LARGEST, "the status has {size} bytes");
        scene.quiet().await?;
        assert_eq!(count(scene, &format!("hub {verb} configmaps ")), MEANT - TAKEN);
        let all = scene.writes().len();
        let others = all - (MEANT - TAKEN);
        // The status now and then, and an Event for what it tells.
        ensure!(
            others <= 40,
            "{others} writes besides: {:#?}",
            scene.writes().iter().rev().take(50).collect::<Vec<_>>()
        );
        let mut held = [0, 0];
        for object in hub.list("ConfigMap", "", "").await? {
            if object["metadata"]["name"] == "shared" {
                held[0] += usize::from(object["data"]["key"] == value);
                held[1] += usize::from(object["data"]["key"] == "theirs");
            }
        }
        assert_eq!(held, [MEANT - TAKEN, TAKEN]);
    }
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");
    Ok(())
}
