//! Probes the cluster that the agent runs in: its health, its identity, its version and APIs.

use std::{sync::Arc, time::Duration};

use entourage_core::{
    object::Str,
    observation::{Observation, Probe},
};
use futures::FutureExt as _;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use crate::{
    client::Api,
    inbox::Message,
    members::{
        definitions::Definitions,
        keeper::{DISCOVERY, DISCOVERY_AGAIN, LEAST, SILENT},
        probe::{self, Health, Probed},
    },
};

/// The task that probes.
#[derive(Clone)]
pub(super) struct Prober {
    pub(super) cluster: Str,
    pub(super) api: Api,
    pub(super) interval: Duration,
    /// Notified when a call got no response.
    pub(super) suspect: Arc<Notify>,
    pub(super) brain: mpsc::Sender<Message>,
}

impl Prober {
    /// Probes until the control loop has ended.
    pub(super) async fn run(self) {
        let (mut definitions, mut describe_at) = (Definitions::new(), None::<Instant>);
        let (mut unresponsive, mut reported) = (0_u32, None);
        loop {
            let began = Instant::now();
            let mut probe = self.probe(unresponsive).await;
            unresponsive = match probe.health {
                Health::Unresponsive => unresponsive.saturating_add(1),
                _ => 0,
            };
            if probe.health == Health::Healthy {
                let waits = describe_at.is_some_and(|at| at > Instant::now());
                let doubted = self.api.take_doubt();
                if !waits || doubted || definitions.is_due() {
                    definitions.runs();
                    probe::describe(&self.api, &mut probe.found).await;
                    let is_complete = probe.found.api_enablements.is_some();
                    let pause = if is_complete { DISCOVERY } else { DISCOVERY_AGAIN };
                    describe_at = Some(Instant::now() + pause);
                }
            }
            self.log(&probe.found, &mut reported);
            let is_healthy = probe.health == Health::Healthy;
            let found = Observation::Probed(self.cluster.clone(), probe.found);
            if self.tell(found).await.is_none() {
                return;
            }
            if is_healthy {
                definitions.watch(&self.api).await;
            }
            let least = LEAST.min(self.interval);
            let pause = if is_healthy { self.interval } else { least * 2 };
            // The probe's own calls raise the suspicion too; it is resolved by now.
            let _ = self.suspect.notified().now_or_never();
            tokio::select! {
                () = async {
                    self.suspect.notified().await;
                    sleep_until(began + least).await;
                }, if unresponsive == 0 => {}
                () = definitions.wait(), if is_healthy => {}
                () = sleep(pause) => {}
            }
        }
    }

    async fn probe(&self, unresponsive: u32) -> Probed {
        let probe = probe::probe(&self.api, unresponsive >= SILENT).await;
        if !matches!(probe.health, Health::Healthy | Health::Unhealthy) {
            return probe;
        }
        match self.api.identify().await {
            Ok(id) => {
                // An error means that the control loop has ended, which the next message shows.
                let _ = self.tell(Observation::Identified(self.cluster.clone(), id)).await;
                probe
            }
            // It was read once, and the probe's result is still valid.
            Err(_) if self.api.id().is_some() => probe,
            Err(failure) => probe::unidentified(&failure),
        }
    }

    async fn tell(&self, seen: Observation) -> Option<()> {
        self.brain.send(Message::Seen(Box::new(seen))).await.ok()
    }

    /// Logs transitions only.
    fn log(&self, found: &Probe, reported: &mut Option<(bool, String)>) {
        let now = Some((found.healthy, found.reason.clone()));
        if *reported == now {
            return;
        }
        *reported = now;
        if found.healthy {
            info!(cluster = %self.cluster, version = found.kubernetes_version, "the cluster responds and is healthy");
        } else {
            warn!(cluster = %self.cluster, reason = found.reason, error = found.message, "the cluster cannot be used");
        }
    }
}
