//! S4, restart: the control plane is terminated and started again without other changes. Ideally it writes nothing. Steady is
//! the moment after which the new process uses less than a tenth of a processor.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::Scenario;
use crate::bench::{Bench, meter::Meter, objects::World, process, report::Run};

/// The time for which the CPU time of the new process is observed, and the interval.
const WATCHED: (Duration, Duration) = (Duration::from_secs(8), Duration::from_millis(100));

/// CPU seconds in one such interval above which a process is not steady.
const BUSY: f64 = 0.015;

/// Runs it, or reports that it cannot.
///
/// # Errors
/// The control plane does not exit or does not become ready.
pub async fn run(bench: &mut Bench, world: &World) -> Result<()> {
    if !bench.control.can_restart() {
        bench.say("S4 is left out: give --controllers or --restart-command");
        return Ok(());
    }
    let limit = bench.options.limit;
    let values = if bench.control.is_child() {
        let stop = bench.control.stop().await?;
        let meter = Meter::start(&bench.servers, &[]).await?;
        bench.control.spawn()?;
        let spawned = Instant::now();
        let pids = bench.control.pids();
        let steady = tokio::spawn(steady(pids.clone(), spawned));
        let ready = bench.control.ready(limit).await?;
        let at_ready = pids.first().map(|pid| process::usage(*pid)).transpose()?;
        let steady = steady.await?;
        let mut figures = meter.settle(spawned, &pids, limit).await?;
        figures.wall_s = 0.0;
        let mut run = Run::new(
            Some(figures),
            [
                ("stop_s", stop.as_secs_f64()),
                ("ready_s", ready.as_secs_f64()),
                ("steady_s", steady.as_secs_f64()),
                ("steady_after_ready_s", steady.saturating_sub(ready).as_secs_f64()),
            ],
        );
        run.values
            .extend(at_ready.map(|usage| ("cpu_at_ready_s".to_owned(), usage.cpu_s)));
        run
    } else {
        let meter = Meter::start(&bench.servers, &[]).await?;
        let took = bench.control.restart_by_command()?;
        let mut figures = meter.settle(Instant::now(), &[], limit).await?;
        figures.wall_s = 0.0;
        Run::new(Some(figures), [("command_s", took.as_secs_f64())])
    };
    bench.report.add(
        Scenario::Restart.name(),
        Scenario::Restart.title(),
        world.workloads,
        values,
    );
    Ok(())
}

/// The time from `spawned` to the end of the last interval in which the processes were busy.
async fn steady(pids: Vec<u32>, spawned: Instant) -> Duration {
    let cpu = || {
        pids.iter()
            .filter_map(|pid| process::usage(*pid).ok())
            .map(|usage| usage.cpu_s)
            .sum::<f64>()
    };
    let (mut last, mut busy_until) = (0.0, Duration::ZERO);
    while spawned.elapsed() < WATCHED.0 {
        tokio::time::sleep(WATCHED.1).await;
        let now = cpu();
        if now - last > BUSY {
            busy_until = spawned.elapsed();
        }
        last = now;
    }
    busy_until
}
