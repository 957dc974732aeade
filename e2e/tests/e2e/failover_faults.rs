//! Failover while everything fails: members, the hub and the leading process, one after the other and at the same time.
//!
//! A seed says what fails when ([`steps`]). Meanwhile a [`Witness`] looks at the members: what a workload needs is always
//! there before it and as long as it is, and the workload is never nowhere. When everything is back, each workload is
//! where its binding says and nowhere else, with what it needs, and nothing is written any more.
//!
//! `ENTOURAGE_E2E_SEED=n` runs that seed, `ENTOURAGE_E2E_FAILOVERS=n` so many, from that seed or the first on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{
        Draw, Lane, MEMBERS, Mishap, Needs, PATIENCE, Pair, SHORT_LEASE, Scene, Space, Step, Way, Witness,
        condition, eventually, eventually_within, failovers, manifests, steps,
    },
    tests,
};
use serde_json::{Value, json};
use tokio::time::sleep;

tests![nothing_is_lost_or_doubled_whatever_fails_during_a_failover];

/// How many workloads there are.
const APPS: u64 = 3;

/// Members are found down soon, and whatever a workload needs is waited for.
const FLAGS: [&str; 3] = [
    "--cluster-failure-threshold=2s",
    "--dependency-deletion-grace=2s",
    "--dependency-wait=10m",
];

/// One workload: a Deployment that mounts a ConfigMap and a Secret.
struct App {
    name: String,
    config: String,
    secret: String,
    /// On how many members it is to be.
    spread: usize,
}

async fn nothing_is_lost_or_doubled_whatever_fails_during_a_failover(scene: &mut Scene) -> Result<()> {
    let key = scene.own("dead");
    scene.apply(taint_policy(&key)).await?;
    let lane = match scene.bed.is_embedded() {
        true => Lane::Embedded,
        false => Lane::Real,
    };
    for seed in failovers() {
        let began = Instant::now();
        let steps = steps(
            seed,
            if lane == Lane::Embedded {
                Way::Killed
            } else {
                Way::Frozen
            },
        );
        let told: Vec<String> = steps.iter().map(ToString::to_string).collect();
        println!("seed {seed}: {}", told.join("; "));
        let looks = run(scene, seed, &key, &steps).await.with_context(|| {
            format!(
                "seed {seed} ({}); again by: ENTOURAGE_E2E_SEED={seed} cargo test -p entourage-e2e --test e2e {}::failover_faults",
                told.join("; "),
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
    // What was seen says more than how it ended.
    let looks = witness.end()?;
    ended?;
    clear(&space, &apps).await?;
    pair.end(scene).await?;
    Ok(looks)
}

impl App {
    fn new(number: u64, draw: &mut Draw) -> Self {
        Self {
            name: format!("app-{number}"),
            config: format!("config-{number}"),
            secret: format!("secret-{number}"),
            spread: if draw.below(2) == 0 { 1 } else { 2 },
        }
    }

    fn needs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ConfigMap", self.config.clone()),
            ("Secret", self.secret.clone()),
        ]
    }

    fn deployment(&self) -> Value {
        let volumes = json!({"volumes": [
            {"name": "config", "configMap": {"name": self.config}},
            {"name": "secret", "secret": {"secretName": self.secret}},
        ]});
        manifests::workload("Deployment", &self.name, &volumes)
    }

    /// On so many members of all; one that is down is borne for a second.
    fn policy(&self, key: &str) -> Value {
        let mut policy = manifests::policy_for(&self.name, "Deployment", &self.name, &MEMBERS);
        policy["spec"]["propagateDeps"] = json!(true);
        let placement = &mut policy["spec"]["placement"];
        placement["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": self.spread, "maxGroups": self.spread}]);
        placement["clusterTolerations"] =
            json!([{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]);
        policy
    }
}

/// Whatever does not answer is to be left.
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
    }
}

/// Gives every workload other data, so that there is something to deliver.
async fn edit(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    let data = format!("edit {edits}");
    for app in apps {
        // The hub may be back for a moment only.
        eventually("the hub takes an edit", async || {
            space.apply(manifests::config_map(&app.config, &data)).await?;
            space.apply(manifests::secret(&app.secret, &data)).await
        })
        .await?;
    }
    Ok(())
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

async fn until_left(space: &Space, apps: &[App], member: &str) -> Result<()> {
    eventually_within(
        PATIENCE * 2,
        &format!("nothing is placed on {member}"),
        async || {
            for app in apps {
                let placed = clusters(&space.binding(&binding_of("Deployment", &app.name)).await?);
                ensure!(
                    !placed.iter().any(|each| each == member),
                    "{} is on {placed:?}",
                    app.name
                );
            }
            Ok(())
        },
    )
    .await
}

async fn until_converged(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    eventually_within(PATIENCE * 2, "everything is where it belongs", async || {
        is_converged(space, apps, edits).await
    })
    .await
}

/// Members are well; each workload, and what it needs, is on exactly the clusters of its binding, as many as its policy says; and
/// the status says so.
async fn is_converged(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    for member in MEMBERS {
        let cluster = space
            .hub
            .get("Cluster", "", member)
            .await?
            .context("no Cluster")?;
        let (ready, taints) = (condition(&cluster, "Ready"), &cluster["spec"]["taints"]);
        let untainted = taints.as_array().is_none_or(Vec::is_empty);
        ensure!(
            ready["status"] == "True" && untainted,
            "{member}: {ready}, taints {taints}"
        );
    }
    for app in apps {
        let binding = space.binding(&binding_of("Deployment", &app.name)).await?;
        let (placed, tasks) = (clusters(&binding), &binding["spec"]["gracefulEvictionTasks"]);
        ensure!(placed.len() == app.spread, "{} is placed on {placed:?}", app.name);
        ensure!(
            tasks.as_array().is_none_or(Vec::is_empty),
            "{} is placed on {placed:?}, and leaves: {tasks}",
            app.name
        );
        let needs = app.needs();
        let workload = [("Deployment", app.name.clone())];
        for (kind, name) in workload.iter().chain(&needs) {
            let holders = space.holders(kind, name).await?;
            ensure!(
                holders == placed,
                "{kind} {name} is on {holders:?}, not on {placed:?}"
            );
            let binding = space.binding(&binding_of(kind, name)).await?;
            let applied = condition(&binding, "FullyApplied");
            ensure!(applied["status"] == "True", "{kind} {name}: {applied}");
        }
        for member in &placed {
            let data = space.copy(member, "ConfigMap", &app.config).await?["data"]["key"].take();
            ensure!(
                data == format!("edit {edits}"),
                "{} on {member} has {data}, not edit {edits}",
                app.config
            );
        }
    }
    Ok(())
}

fn binding_of(kind: &str, name: &str) -> String {
    format!("{name}-{}", kind.to_lowercase())
}

/// Where a binding is placed, sorted.
fn clusters(binding: &Value) -> Vec<String> {
    let all = binding["spec"]["clusters"].as_array().into_iter().flatten();
    let names = all.filter_map(|each| each["name"].as_str()).map(str::to_owned);
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Everything of a seed ends, so that the next one is alone.
async fn clear(space: &Space, apps: &[App]) -> Result<()> {
    for app in apps {
        space.delete("PropagationPolicy", &app.name).await?;
        space.delete("Deployment", &app.name).await?;
        space.delete("ConfigMap", &app.config).await?;
        space.delete("Secret", &app.secret).await?;
    }
    eventually_within(PATIENCE * 2, "nothing of the seed is left", async || {
        for app in apps {
            space.until_held("Deployment", &app.name, &[]).await?;
            for (kind, name) in app.needs() {
                space.until_held(kind, &name, &[]).await?;
            }
        }
        let bindings = space.hub.list("ResourceBinding", &space.ns, "").await?;
        ensure!(bindings.is_empty(), "{} bindings are there", bindings.len());
        Ok(())
    })
    .await
}
