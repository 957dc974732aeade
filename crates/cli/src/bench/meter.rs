//! A measurement between two moments: time, the control plane's CPU and memory, the API servers' requests.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::future::try_join_all;
use serde::Serialize;

use super::{
    counts::{self, Counts, Requests},
    process,
    server::Server,
};

/// The interval between reads of the API servers' counters while waiting for them to become idle.
const LOOK: Duration = Duration::from_secs(1);

/// The number of reads without a new write after which servers are idle.
const QUIET: usize = 2;

/// The costs of one run of a scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Seconds until the members reached the goal.
    pub wall_s: f64,
    /// Seconds from then until no server had a new write; all figures below include this time.
    pub settle_s: f64,
    /// CPU seconds of the bench itself, which runs on the same machine.
    pub bench_cpu_s: f64,
    /// The control plane, process by process.
    pub processes: Vec<Process>,
    /// Requests to the hub.
    pub hub: Requests,
    /// Requests to all members.
    pub members: Requests,
}

/// One process of the control plane.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// CPU seconds, user and system.
    pub cpu_s: f64,
    /// The most memory it had resident, in bytes.
    pub rss_peak_bytes: u64,
    /// True if that is since its start, because the system does not allow a reset.
    pub rss_peak_since_start: bool,
    /// Memory resident at the end, in bytes.
    pub rss_final_bytes: u64,
}

/// A running measurement.
pub struct Meter {
    servers: Vec<Arc<Server>>,
    before: Vec<(Counts, Counts)>,
    /// pid, CPU seconds, true if the peak was reset.
    processes: Vec<(u32, f64, bool)>,
    bench_cpu_s: f64,
    began: Instant,
}

impl Meter {
    /// Starts. The first of the servers is the hub.
    ///
    /// # Errors
    /// A server does not serve its metrics, or a process has exited.
    pub async fn start(servers: &[Arc<Server>], pids: &[u32]) -> Result<Self> {
        let before = read(servers).await?;
        let processes = pids.iter().map(|pid| {
            let forgot = process::forget_peak(*pid);
            process::usage(*pid).map(|usage| (*pid, usage.cpu_s, forgot))
        });
        Ok(Self {
            servers: servers.to_vec(),
            before,
            processes: processes.collect::<Result<_>>()?,
            bench_cpu_s: process::own_cpu_seconds(),
            began: Instant::now(),
        })
    }

    /// The time of its start.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Waits until the servers are idle and ends. `converged` is the time at which the goal was reached; `pids` are the present
    /// processes.
    ///
    /// # Errors
    /// As [`Meter::start`]; also if the servers do not become idle in time.
    pub async fn settle(self, converged: Instant, pids: &[u32], limit: Duration) -> Result<Figures> {
        let (quiet_since, after) = settle(&self.servers, limit).await?;
        self.figures(converged, quiet_since, &after, pids)
    }

    /// Ends now, idle or not.
    ///
    /// # Errors
    /// As [`Meter::start`].
    pub async fn stop(self, pids: &[u32]) -> Result<Figures> {
        let now = Instant::now();
        let after = read(&self.servers).await?;
        self.figures(now, now, &after, pids)
    }

    fn figures(
        self,
        converged: Instant,
        quiet_since: Instant,
        after: &[(Counts, Counts)],
        pids: &[u32],
    ) -> Result<Figures> {
        let mut figures = Figures {
            wall_s: converged.saturating_duration_since(self.began).as_secs_f64(),
            settle_s: quiet_since.saturating_duration_since(converged).as_secs_f64(),
            bench_cpu_s: process::own_cpu_seconds() - self.bench_cpu_s,
            ..Figures::default()
        };
        for (place, (before, after)) in self.before.iter().zip(after).enumerate() {
            let own = counts::between(&before.1, &after.1, &Counts::new());
            let counts = counts::between(&before.0, &after.0, &own);
            if place == 0 {
                &mut figures.hub
            } else {
                &mut figures.members
            }
            .add(&counts);
        }
        for pid in pids {
            let usage = process::usage(*pid)?;
            let before = self.processes.iter().find(|process| process.0 == *pid);
            let (cpu_s, forgot) = before.map_or((0.0, true), |process| (process.1, process.2));
            figures.processes.push(Process {
                pid: *pid,
                name: usage.name,
                cpu_s: usage.cpu_s - cpu_s,
                rss_peak_bytes: usage.rss_peak_bytes,
                rss_peak_since_start: !forgot,
                rss_final_bytes: usage.rss_bytes,
            });
        }
        Ok(figures)
    }
}

/// Waits until no server counts a new write of an object. Returns the first moment at which that was so, and the counters.
///
/// # Errors
/// As [`Meter::start`]; also if that does not happen in time.
pub async fn settle(servers: &[Arc<Server>], limit: Duration) -> Result<(Instant, Vec<(Counts, Counts)>)> {
    let began = Instant::now();
    let mut last = read(servers).await?;
    let (mut since, mut quiet) = (Instant::now(), 0);
    while quiet < QUIET {
        tokio::time::sleep(LOOK).await;
        let now = read(servers).await?;
        if writes(&now) == writes(&last) {
            quiet += 1;
        } else {
            (since, quiet) = (Instant::now(), 0);
        }
        last = now;
        if began.elapsed() > limit {
            bail!(
                "after {} s there are still new writes of objects",
                limit.as_secs()
            );
        }
    }
    Ok((since, last))
}

async fn read(servers: &[Arc<Server>]) -> Result<Vec<(Counts, Counts)>> {
    try_join_all(servers.iter().map(|server| server.counts())).await
}

fn writes(counts: &[(Counts, Counts)]) -> u64 {
    counts.iter().map(|(all, _)| counts::object_writes(all)).sum()
}
