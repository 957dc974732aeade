//! Two processes of the control plane, one of which leads: whatever happens to the leader, the other one takes over, loses
//! nothing, and makes no needless write.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{
        ENDS, Outline, PATIENCE, Pair, QUIET, SHORT_LEASE, Scene, Space, condition, eventually,
        eventually_within, manifests, same, versions,
    },
    servers::ControlProcess,
    tests,
};
use serde_json::{Value, json};
use tokio::time::sleep;

tests![
    twenty_takeovers_lose_nothing_and_a_quiet_one_writes_nothing,
    a_process_without_leader_election_does_not_start_while_another_one_leads,
];

const FLAGS: [&str; 2] = [
    "--feature-gates=ResourceDistributionGate=true",
    "--dependency-deletion-grace=2s",
];

const TAKEOVERS: usize = 20;
const APPS: usize = 6;

async fn twenty_takeovers_lose_nothing_and_a_quiet_one_writes_nothing(scene: &mut Scene) -> Result<()> {
    let wanted = undisturbed(scene).await?;
    let mut pair = Pair::start(scene, &flags()).await?;
    for app in 0..APPS {
        scene.apply(manifests::config_map(&config(app), "first")).await?;
        scene.apply(deployment(app)).await?;
        scene.apply(policy(app, 0)).await?;
    }
    for round in 0..TAKEOVERS {
        for app in 0..APPS {
            scene
                .apply(manifests::config_map(&config(app), &format!("round {round}")))
                .await?;
        }
        scene.apply(policy(round % APPS, round)).await?;
        // A different moment of the work each time.
        sleep(Duration::from_millis(37 * u64::try_from(round).unwrap_or(0))).await;
        let end = ENDS[round % ENDS.len()];
        pair.take_over(end)
            .await
            .with_context(|| format!("takeover {round}, the leader is {end:?}"))?;
        if round == 1 {
            // The new leader ends the work; then nothing of the old one may take effect any more.
            until_current(scene, &format!("round {round}")).await?;
            let before = pair.settled(scene).await?;
            pair.bring_back(end)?;
            sleep(QUIET).await;
            same(
                &before,
                &versions(scene).await?,
                "a process that was stopped wrote",
            )?;
        } else {
            pair.bring_back(end)?;
        }
    }
    for app in 0..APPS {
        scene.apply(manifests::config_map(&config(app), "last")).await?;
        scene.apply(policy(app, 0)).await?;
    }
    until_current(scene, "last").await?;
    let before = pair.settled(scene).await?;
    for end in ENDS {
        pair.take_over(end).await?;
        sleep(QUIET).await;
        same(
            &before,
            &versions(scene).await?,
            "a takeover of a quiet system wrote",
        )?;
        pair.bring_back(end)?;
    }
    sleep(QUIET).await;
    same(&before, &versions(scene).await?, "it is not quiet")?;
    let found = scene.outline().await?;
    let differences = entourage_e2e::harness::differences(&wanted, &found);
    ensure!(
        differences.is_empty(),
        "not as without takeovers: {differences:#?}"
    );
    pair.end(scene).await
}

async fn a_process_without_leader_election_does_not_start_while_another_one_leads(
    scene: &mut Scene,
) -> Result<()> {
    let mut pair = Pair::start(scene, &flags()).await?;
    let flags = ["--leader-elect=false"];
    let mut second = ControlProcess::new("second", &scene.bed.fleet.hub, scene.bed.dir(), &flags).await?;
    second.start()?;
    let reported = second.ended(PATIENCE).await?;
    let words = [
        "karmada-system/entourage-controllers is held by",
        "--leader-elect=true",
    ];
    ensure!(words.iter().all(|each| reported.contains(each)), "{reported}");
    // The lease is neither renewed nor released: the process starts once it has expired.
    pair.kill();
    second.start()?;
    eventually("it starts once nobody leads", async || second.is_ready().await).await?;
    pair.end(scene).await
}

/// The final state when nothing happens to the leader.
async fn undisturbed(scene: &mut Scene) -> Result<Outline> {
    let space = scene.another_space().await?;
    scene.start().await?;
    for app in 0..APPS {
        space.apply(manifests::config_map(&config(app), "last")).await?;
        space.apply(deployment(app)).await?;
        space.apply(policy(app, 0)).await?;
    }
    until_current(&space, "last").await?;
    scene.quiet().await?;
    let outline = space.outline().await?;
    scene.stop().await?;
    Ok(outline)
}

fn flags() -> Vec<&'static str> {
    SHORT_LEASE.into_iter().chain(FLAGS).collect()
}

fn config(app: usize) -> String {
    format!("config-{app}")
}

fn deployment(app: usize) -> Value {
    manifests::deployment(&format!("app-{app}"), &[&config(app)])
}

/// Two of three members, different ones in each round.
fn policy(app: usize, round: usize) -> Value {
    let members = [
        ["member1", "member2"],
        ["member2", "member3"],
        ["member1", "member3"],
    ];
    let name = format!("app-{app}");
    let mut policy = manifests::policy_for(&name, "Deployment", &name, &members[(app + round) % 3]);
    policy["spec"]["propagateDeps"] = json!(true);
    policy
}

/// Waits until every copy is where its policy says and nowhere else, as it is on the hub, and the status says so.
async fn until_current(scene: &Space, data: &str) -> Result<()> {
    let what = format!("every copy says {data:?}");
    eventually_within(PATIENCE * 2, &what, async || {
        for app in 0..APPS {
            let name = format!("app-{app}");
            let policy = scene.get("PropagationPolicy", &name).await?;
            let names = &policy["spec"]["placement"]["clusterAffinity"]["clusterNames"];
            for (kind, name) in [("Deployment", &name), ("ConfigMap", &config(app))] {
                let holders = scene.holders(kind, name).await?;
                ensure!(
                    json!(holders) == *names,
                    "{kind} {name} is on {holders:?}, not on {names}"
                );
                let binding = scene.binding(&format!("{name}-{}", kind.to_lowercase())).await?;
                let applied = condition(&binding, "FullyApplied");
                ensure!(applied["status"] == "True", "{kind} {name}: {applied}");
                for member in holders {
                    let copy = scene.copy(member, kind, name).await?;
                    ensure!(
                        kind != "ConfigMap" || copy["data"]["key"] == data,
                        "{name} on {member}: {}",
                        copy["data"]
                    );
                }
            }
        }
        Ok(())
    })
    .await
}
