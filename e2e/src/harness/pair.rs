//! Two processes of the control plane, one of which leads.

use std::fmt;

use anyhow::{Result, bail, ensure};
use tokio::time::sleep;

use super::{
    eventually::{PATIENCE, eventually, eventually_within},
    scene::Scene,
    space::Space,
    versions::{QUIET, Versions, same, versions},
};
use crate::servers::ControlProcess;

/// Flags of both processes with which a lease ends soon, so that many takeovers fit into a test.
pub const SHORT_LEASE: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2500ms",
    "--leader-elect-retry-period=500ms",
];

/// The failures of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As by `SIGKILL`.
    Killed,
    /// As by `SIGSTOP`.
    Stopped,
    /// Its connections to the hub are cut silently.
    Partitioned,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::Stopped => "stopped",
            Self::Partitioned => "partitioned",
        })
    }
}

/// Every end of a leader.
pub const ENDS: [End; 3] = [End::Killed, End::Stopped, End::Partitioned];

/// Two processes.
pub struct Pair {
    processes: [ControlProcess; 2],
    /// The index of the leader.
    leader: usize,
}

impl Pair {
    /// Starts both with these flags, and waits until one leads and the other one watches everything.
    ///
    /// # Errors
    /// When they do not start, or none leads.
    pub async fn start(scene: &Scene, flags: &[&str]) -> Result<Self> {
        let (hub, dir) = (&scene.bed.fleet.hub, scene.bed.dir());
        let mut processes = [
            ControlProcess::new("one", hub, dir, flags).await?,
            ControlProcess::new("two", hub, dir, flags).await?,
        ];
        processes[0].start()?;
        eventually_within(PATIENCE * 2, "the first process leads", async || {
            processes[0].is_ready().await
        })
        .await?;
        processes[1].start()?;
        let pair = Self { processes, leader: 0 };
        pair.until_standby_stands_by().await?;
        Ok(pair)
    }

    /// The leader fails in this way, and the other process becomes the leader.
    ///
    /// # Errors
    /// When none leads before, or the other one does not stand by, or does not lead then.
    pub async fn take_over(&mut self, end: End) -> Result<()> {
        self.leader = self.leading().await?;
        self.until_standby_stands_by().await?;
        self.end_leader(end)?;
        let next = &self.processes[self.leader];
        eventually_within(PATIENCE * 2, "the other process leads", async || {
            next.is_ready().await
        })
        .await
    }

    /// The leader fails in this way. Does not wait for the other process.
    ///
    /// # Errors
    /// When none leads.
    pub async fn strike(&mut self, end: End) -> Result<()> {
        self.leader = self.leading().await?;
        self.end_leader(end)
    }

    fn end_leader(&mut self, end: End) -> Result<()> {
        let leader = &mut self.processes[self.leader];
        match end {
            End::Killed => leader.kill(),
            End::Stopped => leader.pause()?,
            End::Partitioned => leader.cut(true),
        }
        self.leader = 1 - self.leader;
        Ok(())
    }

    /// Starts or resumes the former leader, and waits until it is on standby.
    ///
    /// # Errors
    /// When it did not end so.
    pub fn bring_back(&mut self, end: End) -> Result<()> {
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

    /// The versions of everything in a namespace, once they stay for as long as it takes to be sure, and the leader has nothing
    /// left to do. What failed is tried again after up to a minute: until then it is quiet, and not done.
    ///
    /// # Errors
    /// Names the objects that are still being written.
    pub async fn settled(&self, space: &Space) -> Result<Versions> {
        eventually_within(
            PATIENCE * 2,
            "nothing is written, and nothing is left to do",
            async || {
                let before = versions(space).await?;
                sleep(QUIET).await;
                let after = versions(space).await?;
                same(&before, &after, "it still writes")?;
                let leader = &self.processes[self.leading().await?];
                let [pending] = leader.metrics(["entourage_pending"]).await?;
                ensure!(pending == 0, "nothing was written, and {pending} keys wait");
                Ok(after)
            },
        )
        .await
    }

    /// Ends both at once; the Lease stays.
    pub fn kill(&mut self) {
        self.processes.iter_mut().for_each(ControlProcess::kill);
    }

    /// Ends both; the Lease goes with them.
    ///
    /// # Errors
    /// When the hub does not delete the Lease.
    pub async fn end(mut self, scene: &Scene) -> Result<()> {
        self.kill();
        let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/entourage-controllers";
        scene.hub.call("DELETE", lease, None).await.map(drop)
    }

    /// The number of the process that leads: on a busy machine the lease may have changed hands by itself. A process that
    /// was stopped and continues may report for a moment that it still leads.
    async fn leading(&self) -> Result<usize> {
        eventually("one of both leads", async || {
            let mut leaders = Vec::new();
            for (number, process) in self.processes.iter().enumerate() {
                if matches!(process.metrics(["entourage_leading"]).await, Ok([1])) {
                    leaders.push(number);
                }
            }
            match leaders.as_slice() {
                [leader] => Ok(*leader),
                [] => bail!("none does"),
                _ => bail!("both say so"),
            }
        })
        .await
    }

    /// It watches everything and holds no keys: none that wait, and, once it has noticed that it leads no longer, none that
    /// are being carried out.
    async fn until_standby_stands_by(&self) -> Result<()> {
        let standby = &self.processes[1 - self.leader];
        let names = ["entourage_synced", "entourage_pending", "entourage_leading"];
        eventually(
            "the other process watches everything, and holds no keys",
            async || {
                let [synced, pending, leads] = standby.metrics(names).await?;
                ensure!(synced == 1, "not synced");
                ensure!(pending == 0 || leads == 1, "it holds {pending} keys");
                Ok(())
            },
        )
        .await
    }
}
