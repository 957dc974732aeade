//! S6, failover: workloads with four dependencies each are on one of two members, and that member is tainted with NoExecute.
//! Each time runs from sending the taint to the moment at which the other member shows the workload and all that it needs.
//! Done when it shows them all.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Scenario, create_all, prepare, remove};
use crate::bench::{
    Bench,
    kind::{Id, Kind},
    meter::Meter,
    objects::{Own, World},
    report::Run,
    seen::{Place, Wish},
    stats::Spread,
};

/// The sizes, in Deployments.
const SIZES: [usize; 2] = [10, 1000];

/// The key of the taint.
const TAINT: &str = "bench.entourage.dev/broken";

/// Runs it.
///
/// # Errors
/// Says what is missing where.
pub async fn run(bench: &mut Bench, number: usize) -> Result<()> {
    anyhow::ensure!(bench.servers.len() > 2, "S6 needs two members");
    for workloads in SIZES {
        bench.fresh().await?;
        let mut world = bench.world(&format!("f{number}x{workloads}"), workloads);
        world.members.truncate(2);
        let run = one(bench, &world).await;
        // A member must not stay tainted, whatever came of it.
        for member in &world.members {
            set_taints(bench, member, &json!([])).await?;
        }
        let name = Scenario::Failover;
        bench.report.add(name.name(), name.title(), workloads, run?);
        remove(bench, &world).await?;
    }
    Ok(())
}

async fn one(bench: &Bench, world: &World) -> Result<Run> {
    prepare(bench, world).await?;
    let one_cluster = json!({"spec": {"placement": {"spreadConstraints": [
        {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}}});
    for namespace in world.namespaces() {
        bench
            .hub()
            .patch(&World::policy_id(&namespace), &one_cluster)
            .await?;
    }
    // Which of the two it is, is the control plane's to say: the first copy tells.
    let first = bench.seen.wish(Wish::Present, [(1, world.deployment_id(0))]);
    create_all(bench, &world.deployments()).await?;
    let from: Place = match first.met(bench.options.limit / 4).await {
        Ok(_) => 1,
        Err(_) => 2,
    };
    let to: Place = 3 - from;
    let on = |place: Place| world.copies().into_iter().map(move |id| (place, id));
    let there = bench.seen.wish(Wish::Present, on(from));
    there.met(bench.options.limit).await.context("before the taint")?;
    bench.at_rest().await?;

    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let arrives = bench.seen.wish(Wish::Present, on(to));
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
            let last = last.max().copied().unwrap_or(sent);
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
fn needed(world: &World, workload: usize) -> [Id; 5] {
    let own = |own| world.own_id(workload, own);
    [
        world.deployment_id(workload),
        own(Own::Mounted),
        own(Own::Environment),
        own(Own::Secret),
        World::shared_id(&world.namespace(workload)),
    ]
}

/// How many workloads were there before one of their dependencies was.
fn late(world: &World, to: Place, times: &BTreeMap<(Place, Id), std::time::Instant>) -> u32 {
    let is_late = |workload: &usize| {
        let mut all = needed(world, *workload)
            .into_iter()
            .map(|id| times.get(&(to, id)));
        let own = all.next();
        all.any(|dependency| Some(dependency) > own)
    };
    u32::try_from((0..world.workloads).filter(is_late).count()).unwrap_or(u32::MAX)
}

async fn set_taints(bench: &Bench, member: &str, taints: &Value) -> Result<()> {
    let patch = json!({"spec": {"taints": taints}});
    bench
        .hub()
        .patch(&Id::new(Kind::Cluster, "", member), &patch)
        .await?;
    Ok(())
}
