//! S1, cold propagation: policies, ConfigMaps and Secrets exist and the servers are idle; then all Deployments are created as
//! fast as the hub accepts them. Done when every member has every Deployment and all its dependencies. The clock starts with
//! the first request.

use anyhow::{Context as _, Result};

use super::{Scenario, create_all, everywhere, prepare};
use crate::bench::{Bench, floor::Floor, meter::Meter, objects::World, report::Run, seen::Expectation};

/// Runs it. The world exists afterwards.
///
/// # Errors
/// Names the missing copies and their members.
pub async fn run(bench: &mut Bench, world: &World, floor: Option<&Floor>, as_: Scenario) -> Result<()> {
    prepare(bench, world).await?;
    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let wait = bench
        .seen
        .expect_that(Expectation::Present, everywhere(bench, world.copies()));
    create_all(bench, &world.deployments()).await?;
    let created_s = meter.began().elapsed().as_secs_f64();
    let converged = wait.met(bench.options.limit).await.context("cold propagation")?;
    let figures = meter
        .settle(converged, &bench.control.pids(), bench.options.limit)
        .await?;
    let (wall_s, each) = (figures.wall_s, world.workloads as f64);
    let cpu_s: f64 = figures.processes.iter().map(|process| process.cpu_s).sum();
    let values = [
        ("deployments_created_s", created_s),
        ("wall_ms_per_workload", wall_s * 1e3 / each),
        ("cpu_ms_per_workload", cpu_s * 1e3 / each),
        ("hub_writes_per_workload", figures.hub.writes as f64 / each),
        ("hub_events_per_workload", figures.hub.events as f64 / each),
        ("member_writes_per_workload", figures.members.writes as f64 / each),
    ];
    let mut run = Run::new(Some(figures), values);
    if let Some(floor) = floor {
        run.values.insert("floor_s".into(), floor.write_s);
        run.values.insert("floor_writes".into(), floor.writes as f64);
        run.values.insert("ratio_to_floor".into(), wall_s / floor.write_s);
    }
    bench.report.add(as_.name(), as_.title(), world.workloads, run);
    Ok(())
}
