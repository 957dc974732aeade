//! Failover while everything fails: members, the hub and the leading process, one after the other and at the same time.
//!
//! A seed says what fails when ([`steps`]). Meanwhile a [`Witness`] looks at the members: what a workload needs is always
//! there before it and as long as it is, and the workload is never nowhere. When everything is back, each workload is
//! where its binding says and nowhere else, with what it needs, and nothing is written any more.
//!
//! `ENTOURAGE_E2E_SEED=n` runs that seed, `ENTOURAGE_E2E_FAILOVERS=n` so many, from that seed or the first on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use entourage_e2e::{
    harness::{
        Draw, Lane, MEMBERS, Mishap, Needs, PATIENCE, Pair, SHORT_LEASE, Scene, Space, Step, Way, Witness,
        condition, eventually, eventually_within, failovers, steps,
    },
    tests,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

#[path = "failover_faults/apps.rs"]
mod apps;

use apps::{App, clear, edit, is_converged, until_converged, until_left};

tests![nothing_is_lost_or_doubled_whatever_fails_during_a_failover];

/// The number of workloads.
const APPS: u64 = 3;

/// No seed takes longer, on a busy machine either: less than what the runner lets three of them take.
const LONGEST: Duration = Duration::from_secs(190);

/// Members are found down soon, and whatever a workload needs is waited for.
const FLAGS: [&str; 3] = [
    "--cluster-failure-threshold=2s",
    "--dependency-deletion-grace=2s",
    "--dependency-wait=10m",
];

async fn nothing_is_lost_or_doubled_whatever_fails_during_a_failover(scene: &mut Scene) -> Result<()> {
    let key = scene.own("dead");
    scene.apply(taint_policy(&key)).await?;
    let (lane, flaps) = match scene.bed.is_embedded() {
        true => (Lane::Embedded, Way::Killed),
        false => (Lane::Real, Way::Frozen),
    };
    for seed in failovers() {
        let began = Instant::now();
        let steps = steps(seed, flaps);
        let reported: Vec<String> = steps.iter().map(ToString::to_string).collect();
        println!("seed {seed}: {}", reported.join("; "));
        let run = timeout(LONGEST, run(scene, seed, &key, &steps)).await;
        let run = run.unwrap_or_else(|_| bail!("it is not over after {LONGEST:?}"));
        let looks = run.with_context(|| {
            format!(
                "seed {seed} ({}); again by: ENTOURAGE_E2E_SEED={seed} cargo test -p entourage-e2e --test e2e {}::failover_faults",
                reported.join("; "),
                lane.name()
            )
        })?;
        let took = began.elapsed().as_secs_f32();
        println!("seed {seed}: {took:.1} s, {looks} looks at members");
    }
    Ok(())
}

async fn run(scene: &mut Scene, seed: u64, key: &str, steps: &[Step]) -> Result<usize> {
    let space = scene.another_space().await?;
    let flags: Vec<&str> = SHORT_LEASE.iter().chain(&FLAGS).copied().collect();
    let mut pair = Pair::start(scene, &flags).await?;
    let mut draw = Draw::new(seed);
    let apps: Vec<App> = (0..APPS).map(|number| App::new(number, &mut draw)).collect();
    let needs: Needs = apps.iter().map(|app| (app.name.clone(), app.needs())).collect();
    let witness = Witness::start(&space, &needs);
    let mut edits = 0;
    edit(&space, &apps, edits).await?;
    for app in &apps {
        space.apply(app.deployment()).await?;
        space.apply(app.policy(key)).await?;
    }
    until_converged(&space, &apps, edits)
        .await
        .context("before anything fails")?;
    for step in steps {
        match step {
            Step::Strike(mishap) => strike(scene, &mut pair, *mishap).await,
            Step::Undo(mishap) => undo(scene, &mut pair, *mishap).await,
            Step::Pause(millis) => {
                sleep(Duration::from_millis(*millis)).await;
                Ok(())
            }
            Step::Noticed(member) => until_noticed(&space, member, key).await,
            Step::Left(member) => until_left(&space, &apps, member).await,
            Step::Edit => {
                edits += 1;
                edit(&space, &apps, edits).await
            }
        }
        .with_context(|| format!("step: {step}"))?;
        witness.check()?;
    }
    let ended = async {
        until_converged(&space, &apps, edits).await?;
        pair.settled(&space).await?;
        is_converged(&space, &apps, edits).await.context("after that")
    };
    let ended = ended.await.context("after everything is back");
    // Checked first: the observed states explain a failure better than the final one.
    let looks = witness.end()?;
    ended?;
    clear(&space, &apps).await?;
    pair.end(scene).await?;
    Ok(looks)
}

/// Clusters that do not respond are to be left.
fn taint_policy(key: &str) -> Value {
    let ready =
        |operator: &str| json!([{"conditionType": "Ready", "operator": operator, "statusValues": ["True"]}]);
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": key},
        "spec": {
            "targetClusters": {"clusterNames": MEMBERS},
            "addOnConditions": ready("NotIn"), "removeOnConditions": ready("In"),
            "taints": [{"key": key, "effect": "NoExecute"}],
        },
    })
}

async fn strike(scene: &Scene, pair: &mut Pair, mishap: Mishap) -> Result<()> {
    let (cluster, way) = match mishap {
        Mishap::Leader(end) => return pair.strike(end).await,
        Mishap::Member(name, way) => (scene.bed.cluster(name)?, way),
        Mishap::Hub(way) => (&scene.bed.fleet.hub, way),
    };
    match way {
        Way::Killed => {
            cluster.stop_apiserver();
            Ok(())
        }
        Way::Frozen => cluster.pause(),
        Way::Drained => drain(scene, cluster.name(), true).await,
    }
}

async fn undo(scene: &Scene, pair: &mut Pair, mishap: Mishap) -> Result<()> {
    let (cluster, way) = match mishap {
        Mishap::Leader(end) => return pair.bring_back(end),
        Mishap::Member(name, way) => (scene.bed.cluster(name)?, way),
        Mishap::Hub(way) => (&scene.bed.fleet.hub, way),
    };
    match way {
        Way::Killed => cluster.start_apiserver().await,
        Way::Frozen => cluster.resume(),
        Way::Drained => drain(scene, cluster.name(), false).await,
    }
}

/// Puts a taint on a Cluster that nothing tolerates, beside those that it has, or takes it away.
async fn drain(scene: &Scene, member: &str, begins: bool) -> Result<()> {
    let change = |cluster: &mut Value| {
        let taints = cluster["spec"]["taints"].take();
        let others = taints
            .as_array()
            .into_iter()
            .flatten()
            .filter(|taint| taint["key"] != "drained");
        let mut taints: Vec<Value> = others.cloned().collect();
        if begins {
            taints.push(json!({"key": "drained", "effect": "NoExecute"}));
        }
        cluster["spec"]["taints"] = json!(taints);
    };
    eventually("the hub takes a taint", async || {
        scene.hub.edit("Cluster", "", member, change).await.map(drop)
    })
    .await
}

async fn until_noticed(space: &Space, member: &str, key: &str) -> Result<()> {
    eventually_within(PATIENCE * 2, &format!("{member} is tainted"), async || {
        let cluster = space
            .hub
            .get("Cluster", "", member)
            .await?
            .context("no Cluster")?;
        let taints = &cluster["spec"]["taints"];
        let is_there = taints
            .as_array()
            .is_some_and(|all| all.iter().any(|taint| taint["key"] == key));
        ensure!(is_there, "taints {taints}, {}", condition(&cluster, "Ready"));
        Ok(())
    })
    .await
}
