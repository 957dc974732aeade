//! S3, idle: a minute without changes. Only the control plane's requests are counted, as far as servers can distinguish them.

use anyhow::Result;

use super::Scenario;
use crate::bench::{Bench, meter::Meter, objects::World, report::Run};

/// Runs it.
///
/// # Errors
/// A server does not serve its metrics, or the control plane has exited.
pub async fn run(bench: &mut Bench, world: &World) -> Result<()> {
    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    tokio::time::sleep(bench.options.idle).await;
    let mut figures = meter.stop(&bench.control.pids()).await?;
    figures.wall_s = 0.0;
    let run = Run::new(Some(figures), [("idle_s", bench.options.idle.as_secs_f64())]);
    bench.report.add(
        Scenario::Idle.name(),
        Scenario::Idle.title(),
        world.workloads,
        run,
    );
    Ok(())
}
