//! The task of one member: its client, its probes, and the messages about both to the control loop.

use std::{sync::Arc, time::Duration};

use entourage_core::{cluster::identity, object::Str, observation::Probe};
use futures::FutureExt as _;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use super::{
    Member, MembersOptions, Reach, connect,
    definitions::Definitions,
    probe::{self, Health, Probed},
};
use crate::{inbox::Message, pull::Facts};

/// The minimum time between two probes, also when calls to the member fail; less only if the interval is.
pub(crate) const LEAST: Duration = Duration::from_secs(1);
/// The interval of discovery, and of reads of the Secret.
pub(crate) const DISCOVERY: Duration = Duration::from_secs(300);
/// The same after discovery failed.
pub(crate) const DISCOVERY_AGAIN: Duration = Duration::from_secs(30);
/// The number of probes in a row without a response after which the client is dropped.
pub(crate) const SILENT: u32 = 2;

/// The task of one member.
pub(super) struct Keeper {
    name: Str,
    run: u64,
    options: MembersOptions,
    reach: watch::Receiver<Reach>,
    facts: watch::Receiver<Facts>,
    suspect: Arc<Notify>,
    member: Option<Arc<Member>>,
    /// The settings that the client was built from.
    connected: Option<Reach>,
    /// True if the control loop has the client.
    lent: bool,
    unresponsive: u32,
    /// Probes in a row without a usable response: recovery is checked earlier than at the next interval.
    poorly: u32,
    /// The time of the next discovery; `None` at once.
    describe_at: Option<Instant>,
    /// Its definitions, whose changes require discovery earlier.
    definitions: Definitions,
    /// The version of the Secret that the client was built from, and when it was last read.
    secret: (Option<String>, Instant),
    /// The result of the last probe, for the log.
    reported: Option<(bool, String)>,
}

impl Keeper {
    pub(super) fn new(
        name: Str,
        run: u64,
        options: MembersOptions,
        (reach, facts): (watch::Receiver<Reach>, watch::Receiver<Facts>),
    ) -> Self {
        let suspect = Arc::new(Notify::new());
        Self {
            name,
            run,
            options,
            reach,
            facts,
            suspect,
            member: None,
            connected: None,
            lent: false,
            unresponsive: 0,
            poorly: 0,
            describe_at: None,
            definitions: Definitions::new(),
            secret: (None, Instant::now()),
            reported: None,
        }
    }

    pub(super) async fn keep(mut self) {
        loop {
            let began = Instant::now();
            if self.round().await.is_err() {
                return;
            }
            let usual = self.options.probe_interval;
            let least = LEAST.min(usual);
            let pause = if self.poorly > 0 {
                (least * (1 << (self.poorly - 1).min(3))).min(usual)
            } else {
                probe::interval(usual, &self.name)
            };
            let suspect = self.suspect.clone();
            // The probe's own calls raise the suspicion too; it is resolved by now.
            let _ = suspect.notified().now_or_never();
            tokio::select! {
                changed = self.reach.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // Another id needs only another probe.
                    let connected = self.connected.as_ref();
                    if connected.is_none_or(|held| !held.leads_to(&self.reach.borrow())) {
                        self.disconnect().await;
                    }
                }
                () = async {
                    suspect.notified().await;
                    sleep_until(began + least).await;
                }, if self.unresponsive == 0 => {}
                () = self.definitions.wait(), if self.unresponsive == 0 && self.poorly == 0 => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Connects if necessary, probes, and sends the result to the control loop. An error means that the control loop has ended.
    async fn round(&mut self) -> Result<(), Gone> {
        self.look_at_secret().await;
        let mut probe = match self.connect().await {
            Ok(member) => probe::probe(&member.api, self.unresponsive >= SILENT).await,
            Err(refused) => refused.into(),
        };
        if probe.health == Health::Unauthorized {
            // The token may have been replaced: read the Secret again, and retry once.
            self.disconnect().await;
            probe = match self.connect().await {
                Ok(member) => probe::probe(&member.api, self.unresponsive >= SILENT).await,
                Err(refused) => refused.into(),
            };
        }
        if matches!(probe.health, Health::Healthy | Health::Unhealthy)
            && let Some(refused) = self.identify().await
        {
            probe = refused;
        }
        self.unresponsive = if probe.health == Health::Unresponsive {
            self.unresponsive.saturating_add(1)
        } else {
            0
        };
        self.poorly = match probe.health {
            // Not known, among others: a server that has just started denies everybody everything until it has read its roles.
            Health::Unresponsive | Health::Unhealthy | Health::Unknown => self.poorly.saturating_add(1),
            Health::Healthy | Health::Unauthorized => 0,
        };
        match probe.health {
            Health::Healthy | Health::Unhealthy => self.lend().await?,
            Health::Unresponsive if self.unresponsive < SILENT => {}
            Health::Unresponsive | Health::Unauthorized | Health::Unknown => self.take_back().await?,
        }
        // After the client was sent: discovery may take long, and nothing waits for it.
        // An agent reports them itself.
        let is_pull = self.reach.borrow().is_pull();
        if probe.health == Health::Healthy && !is_pull {
            self.describe(&mut probe.found).await;
        }
        self.log(&probe.found);
        self.tell(Message::Probed {
            name: self.name.clone(),
            run: self.run,
            probe: probe.found,
        })
        .await?;
        // After the result was sent: nothing waits for the watch.
        if probe.health == Health::Healthy
            && !is_pull
            && let Some(member) = self.member.clone()
        {
            self.definitions.watch(&member.api).await;
        }
        Ok(())
    }

    /// Before the client is sent, and at each probe: reads the cluster's identity. Returns the reason why it must not be used,
    /// or `None`.
    async fn identify(&mut self) -> Option<Probed> {
        let member = self.member.clone()?;
        let seen = match member.api.identify().await {
            Ok(seen) => seen,
            // It was read once, and the probe's result is still valid.
            Err(failure) => return member.api.id().is_none().then(|| probe::unidentified(&failure)),
        };
        let stored = self.reach.borrow().id.clone();
        if let Err(message) = identity::check(&self.name, &stored, &seen) {
            return Some(probe::another(message));
        }
        if member.api.id() == Some(&seen) {
            return None;
        }
        // Facts learnt over this connection belong to the cluster that responded before.
        self.disconnect().await;
        let message = format!(
            "another physical cluster answers at the endpoint of {} than before; reconnecting",
            self.name
        );
        Some(probe::another(message))
    }

    /// A Secret that was changed may fix a connection (another certificate authority), and replaces one that still works.
    async fn look_at_secret(&mut self) {
        let (built_from, looked) = &self.secret;
        if self.member.is_none() || (self.unresponsive < SILENT && looked.elapsed() < DISCOVERY) {
            return;
        }
        let reach = self.reach.borrow().clone();
        let version = connect::version(&reach, &self.options).await;
        let changed = version.is_some() && version != *built_from;
        self.secret.1 = Instant::now();
        if changed {
            info!(cluster = %self.name, "the member's Secret was changed: reconnecting");
            self.disconnect().await;
        }
    }

    async fn describe(&mut self, found: &mut Probe) {
        let Some(member) = self.member.clone() else { return };
        let doubted = member.api.take_doubt();
        let waits = self.describe_at.is_some_and(|at| at > Instant::now());
        if waits && !doubted && !self.definitions.is_due() {
            return;
        }
        self.definitions.runs();
        probe::describe(&member.api, found).await;
        let pause = if found.api_enablements.is_some() {
            DISCOVERY
        } else {
            DISCOVERY_AGAIN
        };
        self.describe_at = Some(Instant::now() + pause);
    }

    async fn connect(&mut self) -> Result<Arc<Member>, connect::Refused> {
        if let Some(member) = &self.member {
            return Ok(member.clone());
        }
        let reach = self.reach.borrow_and_update().clone();
        let (member, version) =
            connect::connect(&self.name, (&reach, &self.facts), &self.options, &self.suspect).await?;
        let member = Arc::new(member);
        self.member = Some(member.clone());
        self.connected = Some(reach);
        (self.secret, self.describe_at) = ((version, Instant::now()), None);
        Ok(member)
    }

    async fn disconnect(&mut self) {
        self.member = None;
        (self.unresponsive, self.poorly) = (0, 0);
        // A failure means that the process ends.
        let _ = self.take_back().await;
    }

    async fn lend(&mut self) -> Result<(), Gone> {
        if self.lent {
            return Ok(());
        }
        self.lent = true;
        self.tell(Message::Member {
            name: self.name.clone(),
            run: self.run,
            member: self.member.clone(),
        })
        .await
    }

    async fn take_back(&mut self) -> Result<(), Gone> {
        self.definitions.stop();
        if !std::mem::take(&mut self.lent) {
            return Ok(());
        }
        self.tell(Message::Member {
            name: self.name.clone(),
            run: self.run,
            member: None,
        })
        .await
    }

    async fn tell(&self, message: Message) -> Result<(), Gone> {
        self.options.brain.send(message).await.map_err(|_| Gone)
    }

    /// Logs transitions only.
    fn log(&mut self, found: &Probe) {
        let reported = Some((found.healthy, found.reason.clone()));
        if self.reported == reported {
            return;
        }
        self.reported = reported;
        if found.healthy {
            info!(cluster = %self.name, version = found.kubernetes_version, "the member responds and is healthy");
        } else {
            warn!(cluster = %self.name, reason = found.reason, error = found.message, "the member cannot be used");
        }
    }
}

/// The control loop has ended: the process ends.
struct Gone;
