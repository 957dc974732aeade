//! S6, failover: workloads with four dependencies each are on one of two members, and that member is tainted with NoExecute.
//! Each time runs from sending the taint to the moment at which the other member has the workload and all its dependencies.
//! Done when it has all of them. Repeated with a member that does not respond, if the bench may stop its API server.

use std::{collections::BTreeMap, process::Command, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Scenario, create_all, prepare, remove};
use crate::bench::{
    Bench,
    kind::{Kind, ObjectId},
    meter::Meter,
    objects::{Own, World},
    report::Run,
    seen::{Expectation, Fulfilled, Place},
    server::Server,
    stats::Spread,
};

/// The key of the taint.
const TAINT: &str = "bench.entourage.dev/broken";

/// A member whose API server is stopped. It is continued on drop.
struct Stopped(u32);

impl Stopped {
    fn new(pid: u32) -> Result<Self> {
        signal(pid, "-STOP")?;
        Ok(Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = signal(self.0, "-CONT") {
            eprintln!("bench: {error:#}; it stays stopped");
        }
    }
}

fn signal(pid: u32, which: &str) -> Result<()> {
    let status = Command::new("kill").args([which, &pid.to_string()]).status();
    let status = status.with_context(|| format!("cannot send kill {which}"))?;
    ensure!(status.success(), "kill {which} {pid}: {status}");
    Ok(())
}

/// Runs it.
///
/// # Errors
/// Names the missing copies and their members.
pub async fn run(bench: &mut Bench, number: usize) -> Result<()> {
    ensure!(bench.servers.len() > 2, "S6 needs two members");
    let pids: Vec<u32> = bench.options.members[..2]
        .iter()
        .filter_map(|(name, _)| {
            let mut known = bench.options.member_pids.iter();
            known.find(|(known, _)| known == name).map(|(_, pid)| *pid)
        })
        .collect();
    let may_stop = pids.len() == 2;
    let sizes = bench.options.failover_sizes.clone();
    for (workloads, stops) in sizes.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        if stops && !may_stop {
            continue;
        }
        bench.fresh().await?;
        let kind = if stops { "d" } else { "f" };
        let mut world = bench.world(&format!("{kind}{number}x{workloads}"), workloads);
        world.members.truncate(2);
        let run = one(bench, &world, stops.then_some(&pids[..])).await;
        // A member must not stay tainted, also after an error.
        for member in &world.members {
            set_taints(bench, member, &json!([])).await?;
        }
        let (name, title) = if stops {
            (
                "S6 dead",
                "failover: workloads off a member that does not respond",
            )
        } else {
            (Scenario::Failover.name(), Scenario::Failover.title())
        };
        bench.report.add(name, title, workloads, run?);
        bench.members_ready().await?;
        remove(bench, &world).await?;
    }
    Ok(())
}

/// `stops`: the API servers of both members; that of the evicted one is stopped before.
async fn one(bench: &Bench, world: &World, stops: Option<&[u32]>) -> Result<Run> {
    prepare(bench, world).await?;
    let one_cluster = json!({"spec": {"placement": {"spreadConstraints": [
        {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}}});
    for namespace in world.namespaces() {
        bench
            .hub()
            .patch(&World::policy_id(&namespace), &one_cluster)
            .await?;
    }
    // The control plane decides which of the two members it is: the first copy shows it.
    let first = bench
        .seen
        .expect_that(Expectation::Present, [(1, world.deployment_id(0))]);
    create_all(bench, &world.deployments()).await?;
    let from: Place = match first.met(bench.options.limit / 4).await {
        Ok(_) => 1,
        Err(_) => 2,
    };
    let to: Place = 3 - from;
    let on = |place: Place| world.copies().into_iter().map(move |id| (place, id));
    let there = bench.seen.expect_that(Expectation::Present, on(from));
    there.met(bench.options.limit).await.context("before the taint")?;
    bench.at_rest().await?;

    let stopped = match stops {
        Some(pids) => Some(Stopped::new(pids[from - 1])?),
        None => None,
    };
    if stopped.is_some() {
        bench.member_unready(&world.members[from - 1]).await?;
    }
    let answer = |(place, _): &(Place, &Arc<Server>)| stopped.is_none() || *place != from;
    let servers = bench.servers.iter().enumerate().filter(answer);
    let servers: Vec<Arc<Server>> = servers.map(|(_, server)| server.clone()).collect();
    let meter = Meter::start(&servers, &bench.control.pids()).await?;
    let arrives = bench.seen.expect_that(Expectation::Present, on(to));
    let sent = meter.began();
    let taint = json!([{"key": TAINT, "effect": "NoExecute"}]);
    set_taints(bench, &world.members[from - 1], &taint).await?;
    let done = arrives
        .met(bench.options.limit)
        .await
        .context("after the taint")?;
    let times = bench.seen.fulfilled();
    let figures = meter
        .settle(done, &bench.control.pids(), bench.options.limit)
        .await?;
    let each: Vec<f64> = (0..world.workloads)
        .map(|workload| {
            let last = needed(world, workload)
                .into_iter()
                .filter_map(|id| times.get(&(to, id)));
            let last = last.map(|each| each.at).max().unwrap_or(sent);
            last.saturating_duration_since(sent).as_secs_f64() * 1e3
        })
        .collect();
    let Spread {
        p50_ms,
        p99_ms,
        max_ms,
        ..
    } = Spread::of(&each);
    let values = [
        ("workload_p50_ms", p50_ms),
        ("workload_p99_ms", p99_ms),
        ("workload_max_ms", max_ms),
        ("dependencies_late", f64::from(late(world, to, &times))),
    ];
    Ok(Run::new(Some(figures), values))
}

/// A workload and its dependencies.
fn needed(world: &World, workload: usize) -> [ObjectId; 5] {
    let own = |own| world.own_id(workload, own);
    [
        world.deployment_id(workload),
        own(Own::Mounted),
        own(Own::Environment),
        own(Own::Secret),
        World::shared_id(&world.namespace(workload)),
    ]
}

/// The number of workloads that existed before one of their dependencies did, by the order in which the server wrote them.
fn late(world: &World, to: Place, times: &BTreeMap<(Place, ObjectId), Fulfilled>) -> u32 {
    let is_late = |workload: &usize| {
        let mut all = needed(world, *workload)
            .into_iter()
            .map(|id| times.get(&(to, id)).map(|each| each.revision));
        let own = all.next();
        all.any(|dependency| Some(dependency) > own)
    };
    u32::try_from((0..world.workloads).filter(is_late).count()).unwrap_or(u32::MAX)
}

async fn set_taints(bench: &Bench, member: &str, taints: &Value) -> Result<()> {
    let patch = json!({"spec": {"taints": taints}});
    bench
        .hub()
        .patch(&ObjectId::new(Kind::Cluster, "", member), &patch)
        .await?;
    Ok(())
}
