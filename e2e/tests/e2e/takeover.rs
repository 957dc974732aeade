//! Two processes of the control plane, one of which leads: whatever becomes of the leader, the other one takes over, loses
//! nothing, and writes nothing that need not be written.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{
        DEPENDENCIES, Outline, PATIENCE, Scene, WORKLOADS, condition, eventually, eventually_within,
        manifests,
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

/// Short, so that many takeovers fit into a test.
const LEASE: [&str; 6] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2500ms",
    "--leader-elect-retry-period=500ms",
    "--feature-gates=ResourceDistributionGate=true",
    "--dependency-deletion-grace=2s",
    "--leader-elect=true",
];

const TAKEOVERS: usize = 20;
const APPS: usize = 6;

/// Longer than any delay that the controllers put between an observation and a write.
const QUIET: Duration = Duration::from_millis(3_500);

/// What becomes of the leader.
const ENDS: [End; 3] = [End::Killed, End::Stopped, End::Partitioned];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
    Partitioned,
}

async fn twenty_takeovers_lose_nothing_and_a_quiet_one_writes_nothing(scene: &mut Scene) -> Result<()> {
    let wanted = undisturbed(scene).await?;
    let mut pair = Pair::start(scene).await?;
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
            let before = settled(scene).await?;
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
    let before = settled(scene).await?;
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
    let mut pair = Pair::start(scene).await?;
    let flags = ["--leader-elect=false"];
    let mut second = ControlProcess::new("second", &scene.bed.fleet.hub, scene.bed.dir(), &flags).await?;
    second.start()?;
    let told = second.ended(PATIENCE).await?;
    let words = [
        "karmada-system/entourage-controllers is held by",
        "--leader-elect=true",
    ];
    ensure!(words.iter().all(|each| told.contains(each)), "{told}");
    // Nobody renews it any more, and nobody released it: it starts once the lease has ended.
    pair.kill();
    second.start()?;
    eventually("it starts once nobody leads", async || second.is_ready().await).await?;
    pair.end(scene).await
}

/// How it looks in the end when nothing happens to the leader.
async fn undisturbed(scene: &mut Scene) -> Result<Outline> {
    let space = scene.another_space().await?;
    scene.start().await?;
    for app in 0..APPS {
        space.apply(manifests::config_map(&config(app), "last")).await?;
        space.apply(deployment(app)).await?;
        space.apply(policy(app, 0)).await?;
    }
    scene.quiet().await?;
    let outline = space.outline().await?;
    scene.stop().await?;
    Ok(outline)
}

fn config(app: usize) -> String {
    format!("config-{app}")
}

fn deployment(app: usize) -> Value {
    manifests::deployment(&format!("app-{app}"), &[&config(app)])
}

/// Two of three members, which differ from round to round.
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
async fn until_current(scene: &Scene, data: &str) -> Result<()> {
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

type Versions = BTreeMap<String, String>;

/// The resourceVersion of everything of the test, on all servers.
async fn versions(scene: &Scene) -> Result<Versions> {
    let mut versions = Versions::new();
    for server in std::iter::once(&scene.hub).chain(&scene.members) {
        let is_hub = server.name == scene.hub.name;
        let of_hub: &[&str] = if is_hub {
            &["ResourceBinding", "PropagationPolicy"]
        } else {
            &[]
        };
        for kind in WORKLOADS.iter().chain(DEPENDENCIES).chain(of_hub) {
            for object in server.list(kind, &scene.ns, "").await? {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                versions.insert(
                    format!("{} {kind}/{}", server.name, text("name")),
                    text("resourceVersion"),
                );
            }
        }
    }
    Ok(versions)
}

/// The same once it stays for as long as it takes to be sure.
async fn settled(scene: &Scene) -> Result<Versions> {
    eventually_within(PATIENCE * 2, "nothing is written", async || {
        let before = versions(scene).await?;
        sleep(QUIET).await;
        let after = versions(scene).await?;
        same(&before, &after, "it still writes")?;
        Ok(after)
    })
    .await
}

fn same(before: &Versions, after: &Versions, what: &str) -> Result<()> {
    let names = before.keys().chain(after.keys());
    let differ: Vec<&String> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    ensure!(differ.is_empty(), "{what}: {differ:?}");
    Ok(())
}

/// Two processes.
struct Pair {
    processes: [ControlProcess; 2],
    /// Which one leads.
    leader: usize,
}

impl Pair {
    async fn start(scene: &Scene) -> Result<Self> {
        let (hub, dir) = (&scene.bed.fleet.hub, scene.bed.dir());
        let mut processes = [
            ControlProcess::new("one", hub, dir, &LEASE).await?,
            ControlProcess::new("two", hub, dir, &LEASE).await?,
        ];
        processes[0].start()?;
        eventually_within(PATIENCE * 2, "the first process leads", async || {
            processes[0].is_ready().await
        })
        .await?;
        processes[1].start()?;
        let pair = Self { processes, leader: 0 };
        pair.until_standby_is_synced().await?;
        Ok(pair)
    }

    fn standby(&self) -> &ControlProcess {
        &self.processes[1 - self.leader]
    }

    async fn until_standby_is_synced(&self) -> Result<()> {
        eventually("the other process watches everything", async || {
            let synced = self.standby().metric("entourage_synced").await?;
            ensure!(synced == 1, "not synced");
            Ok(())
        })
        .await
    }

    /// The leader ends like this, and the other process leads.
    async fn take_over(&mut self, end: End) -> Result<()> {
        // On a busy machine the lease may have changed hands by itself.
        let leads = |process: usize| self.processes[process].metric("entourage_leading");
        let leader = eventually("one of both leads", async || {
            for process in 0..2 {
                if leads(process).await.is_ok_and(|leads| leads == 1) {
                    return Ok(process);
                }
            }
            anyhow::bail!("none does")
        })
        .await?;
        self.leader = leader;
        self.until_standby_is_synced().await?;
        let queued = self.standby().metric("entourage_pending").await?;
        let leads = self.standby().metric("entourage_leading").await?;
        ensure!(queued == 0 || leads == 1, "the standby holds {queued} keys");
        match end {
            End::Killed => self.processes[leader].kill(),
            End::Stopped => self.processes[leader].pause()?,
            End::Partitioned => self.processes[leader].cut(true),
        }
        self.leader = 1 - leader;
        let next = &self.processes[self.leader];
        eventually_within(PATIENCE * 2, "the other process leads", async || {
            next.is_ready().await
        })
        .await
    }

    /// The former leader is there again, and stands by.
    fn bring_back(&mut self, end: End) -> Result<()> {
        let former = &mut self.processes[1 - self.leader];
        match end {
            End::Killed => former.start(),
            End::Stopped => former.resume(),
            End::Partitioned => {
                former.cut(false);
                Ok(())
            }
        }
    }

    fn kill(&mut self) {
        self.processes.iter_mut().for_each(ControlProcess::kill);
    }

    /// Ends both; the Lease goes with them.
    async fn end(mut self, scene: &Scene) -> Result<()> {
        self.kill();
        let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/entourage-controllers";
        scene.hub.call("DELETE", lease, None).await.map(drop)
    }
}
