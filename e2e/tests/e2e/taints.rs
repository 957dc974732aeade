//! `entourage taint`, `cordon`, `uncordon` and `drain`.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, manifests},
    tests,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

tests![
    taints_of_clusters_are_set_and_removed_as_kubectl_does_for_nodes,
    a_cordoned_cluster_keeps_what_it_has_and_gets_nothing_new,
    a_drain_tells_what_it_waits_for,
];

async fn taints_of_clusters_are_set_and_removed_as_kubectl_does_for_nodes(scene: &mut Scene) -> Result<()> {
    let before = Timestamp::now().as_second();
    let reported = run(
        scene,
        "taint member1 member2 dedicated=gpu:NoExecute quiet:NoSchedule",
    )
    .await?;
    ensure!(
        reported == "cluster/member1 tainted\ncluster/member2 tainted\n",
        "{reported}"
    );
    let tainted = cluster(scene, "member1").await?;
    let taints = &tainted["spec"]["taints"];
    let added = &taints[0]["timeAdded"];
    let since: Timestamp = added.as_str().context("no timeAdded")?.parse()?;
    ensure!((before..=before + 60).contains(&since.as_second()), "{taints}");
    ensure!(
        *taints
            == json!([
                {"key": "dedicated", "value": "gpu", "effect": "NoExecute", "timeAdded": added},
                {"key": "quiet", "effect": "NoSchedule"},
            ]),
        "{taints}"
    );

    // The same taint again is not written; another value only with --overwrite.
    let reported = run(scene, "taint member1 dedicated=gpu:NoExecute").await?;
    ensure!(reported == "cluster/member1 unchanged\n", "{reported}");
    let refused = run(scene, "taint member3 member1 dedicated=db:NoExecute").await;
    let refused = format!("{:#}", refused.err().context("overwritten without the flag")?);
    ensure!(
        refused.contains("\"member1\" already has the taint dedicated:NoExecute"),
        "{refused}"
    );
    let reported = run(
        scene,
        "taint member1 dedicated=db:NoExecute --overwrite --dry-run",
    )
    .await?;
    ensure!(reported == "cluster/member1 tainted (dry run)\n", "{reported}");
    let now = cluster(scene, "member1").await?;
    let version = |cluster: &Value| cluster["metadata"]["resourceVersion"].clone();
    ensure!(version(&now) == version(&tainted), "written without need");
    ensure!(
        cluster(scene, "member3").await?["spec"]["taints"].is_null(),
        "written before all were checked"
    );
    let reported = run(scene, "taint member1 dedicated=db:NoExecute --overwrite").await?;
    ensure!(reported == "cluster/member1 tainted\n", "{reported}");
    let now = cluster(scene, "member1").await?;
    ensure!(now["spec"]["taints"][0]["value"] == "db", "{now}");

    // Clusters and taints that are not there.
    for (line, why) in [
        (
            "taint member3 nope dedicated:NoSchedule",
            "cluster \"nope\" not found; members: member1, member2, member3",
        ),
        (
            "taint member1 quiet:NoExecute-",
            "taint \"quiet:NoExecute\" not found on cluster \"member1\"",
        ),
        ("cordon nope", "cluster \"nope\" not found"),
        ("uncordon nope", "cluster \"nope\" not found"),
        ("drain nope", "cluster \"nope\" not found"),
    ] {
        let error = run(scene, line).await.err().context(line)?;
        ensure!(format!("{error:#}").contains(why), "{line}: {error:#}");
    }
    ensure!(cluster(scene, "member3").await?["spec"]["taints"].is_null());
    let reported = run(scene, "taint member1 member2 dedicated- quiet:NoSchedule-").await?;
    ensure!(
        reported == "cluster/member1 untainted\ncluster/member2 untainted\n",
        "{reported}"
    );
    let spec = cluster(scene, "member1").await?["spec"].clone();
    ensure!(spec.get("taints").is_none(), "{spec}");
    Ok(())
}

async fn a_cordoned_cluster_keeps_what_it_has_and_gets_nothing_new(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let reported = run(scene, "cordon member1 member3").await?;
    ensure!(
        reported == "cluster/member1 cordoned\ncluster/member3 cordoned\n",
        "{reported}"
    );
    let reported = run(scene, "cordon member1").await?;
    ensure!(reported == "cluster/member1 already cordoned\n", "{reported}");
    // What is placed before the taint is seen stays.
    for member in ["member1", "member3"] {
        eventually(&format!("the taint of {member} is seen"), async || {
            let cluster = cluster(scene, member).await?;
            let observed = condition(&cluster, "Ready")["observedGeneration"].clone();
            ensure!(observed == cluster["metadata"]["generation"], "{observed}");
            Ok(())
        })
        .await?;
    }
    scene
        .apply(manifests::policy(&["member1", "member2", "member3"]))
        .await?;
    scene.quiet().await?;
    scene.until_settled(&["member1", "member2"]).await?;

    let reported = run(scene, "uncordon member1 member3").await?;
    ensure!(
        reported == "cluster/member1 uncordoned\ncluster/member3 uncordoned\n",
        "{reported}"
    );
    let reported = run(scene, "uncordon member3").await?;
    ensure!(reported == "cluster/member3 already uncordoned\n", "{reported}");
    scene.until_settled(&["member1", "member2", "member3"]).await
}

async fn a_drain_tells_what_it_waits_for(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    let mut policy = manifests::policy(&["member1", "member2"]);
    policy["spec"]["placement"]["clusterTolerations"] = json!([{"operator": "Exists"}]);
    for object in [deployment, policy, config] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;

    // A workload that tolerates every taint is never evicted, so there is nothing to wait for.
    let error = run(scene, "drain member1").await.err().context("drained")?;
    let name = format!("{}/myapp-deployment", scene.ns);
    let why = format!(
        "1 of 1 bindings stay on member1 because they tolerate entourage.dev/drain:NoExecute: {name}"
    );
    ensure!(format!("{error:#}").starts_with(&why), "{error:#}");
    let taints = cluster(scene, "member1").await?["spec"]["taints"].clone();
    ensure!(
        taints
            == json!([
                {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"},
                {"key": "entourage.dev/drain", "effect": "NoExecute", "timeAdded": taints[1]["timeAdded"]},
            ]),
        "{taints}"
    );
    ensure!(taints[1]["timeAdded"].is_string(), "{taints}");
    let reported = run(scene, "drain member1 --wait=false").await?;
    ensure!(
        reported == "cluster/member1 already cordoned\ncluster/member1 already draining\n",
        "{reported}"
    );

    // Without bindings on the cluster there is nothing to wait for.
    let reported = run(scene, "drain member3").await?;
    ensure!(
        reported == "cluster/member3 cordoned\ncluster/member3 draining\ncluster/member3 drained\n",
        "{reported}"
    );
    run(scene, "uncordon member1 member3").await?;
    for name in ["member1", "member3"] {
        let spec = cluster(scene, name).await?["spec"].clone();
        ensure!(spec.get("taints").is_none(), "{name}: {spec}");
    }
    scene.until_settled(&["member1", "member2"]).await
}

async fn run(scene: &Scene, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split(' ').collect();
    scene.bed.taints(&words).await
}

async fn cluster(scene: &Scene, name: &str) -> Result<Value> {
    let found = scene.hub.get("Cluster", "", name).await?;
    found.with_context(|| format!("no Cluster {name}"))
}
