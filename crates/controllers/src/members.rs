//! The members: one task each, which keeps a client as its Cluster object and Secret describe, and probes it.
//!
//! A task sends the brain its client ([`Message::Member`]) whenever there is a new one or none, and what each probe
//! found (`Observation::Probed`). A member that is silent twice in a row loses its client until it answers: its watches
//! end, and deliveries fail at once instead of waiting for their deadline.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use entourage_api::cluster::{Cluster, SyncMode};
use entourage_core::{
    object::{Named, Str},
    observation::{Observation, Probe},
};
use futures::FutureExt as _;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::{
    client::{Api, ClientFactory},
    clock,
    limiter::Bounds,
    metrics::Metrics,
    runtime::Message,
};

mod connect;
mod discovery;
pub mod namespaces;
mod probe;

use namespaces::Namespaces;
use probe::Health;

/// The usual time between two probes; up to a tenth more, so that members are not probed in step.
const INTERVAL: Duration = Duration::from_secs(10);
/// The least time between two probes, also when calls to the member fail.
const LEAST: Duration = Duration::from_secs(1);
/// How often version and APIs are asked for.
const DISCOVERY: Duration = Duration::from_secs(300);
/// Silent probes in a row after which the client is taken away.
const SILENT: u32 = 2;

/// The connection to one member.
#[derive(Debug)]
pub struct Member {
    /// Its API server.
    pub api: Api,
    /// The namespaces that deliveries went into.
    pub namespaces: Namespaces,
}

impl Member {
    /// A connection over this client.
    #[must_use]
    pub fn new(api: Api) -> Self {
        Self {
            api,
            namespaces: Namespaces::default(),
        }
    }
}

/// What every member's task needs.
#[derive(Clone)]
pub struct MembersOptions {
    /// The hub, for Secrets.
    pub hub: Api,
    /// Builds the clients.
    pub clients: ClientFactory,
    /// The only namespace that Secrets of Clusters may lie in.
    pub cluster_namespace: Str,
    /// The deadline of calls to members.
    pub deadline: Duration,
    /// The range of each member's concurrency limit.
    pub bounds: Bounds,
    /// Where calls are counted.
    pub metrics: Metrics,
    /// Whether this process may write now.
    pub may_write: watch::Receiver<bool>,
    /// The brain.
    pub brain: mpsc::Sender<Message>,
}

/// How a member is reached: the part of a Cluster that a client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reach {
    uid: String,
    endpoint: String,
    secret: Option<Named>,
    insecure: bool,
    proxy: String,
}

impl Reach {
    /// `None` for a cluster that nobody pushes to.
    fn of(cluster: &Cluster) -> Option<Self> {
        let spec = &cluster.spec;
        (spec.sync_mode == SyncMode::Push).then(|| Self {
            uid: cluster.metadata.uid.clone().unwrap_or_default(),
            endpoint: spec.api_endpoint.clone(),
            secret: spec
                .secret_ref
                .as_ref()
                .map(|each| Named::new(&each.namespace, &each.name)),
            insecure: spec.insecure_skip_tls_verification,
            proxy: spec.proxy_url.clone(),
        })
    }
}

/// All members' tasks. Dropping it ends them.
pub struct Members {
    options: MembersOptions,
    tasks: BTreeMap<Str, (watch::Sender<Reach>, AbortOnDropHandle<()>)>,
}

impl Members {
    /// No member yet.
    #[must_use]
    pub fn new(options: MembersOptions) -> Self {
        Self {
            options,
            tasks: BTreeMap::new(),
        }
    }

    /// Takes in a Cluster as it is now, or that there is none. Returns whether the member's task ended: its client must
    /// then be dropped by the caller. Must be called within a runtime.
    pub fn ensure(&mut self, name: &Str, cluster: Option<&Cluster>) -> bool {
        let Some(reach) = cluster.and_then(Reach::of) else {
            self.options.metrics.forget(name);
            return self.tasks.remove(name).is_some();
        };
        match self.tasks.get(name) {
            Some((sender, _)) => {
                sender.send_if_modified(|standing| {
                    let changed = *standing != reach;
                    *standing = reach;
                    changed
                });
            }
            None => {
                let (sender, receiver) = watch::channel(reach);
                let task = Keeper::new(name.clone(), self.options.clone(), receiver).keep();
                self.tasks
                    .insert(name.clone(), (sender, AbortOnDropHandle::new(tokio::spawn(task))));
            }
        }
        false
    }
}

/// The task of one member.
struct Keeper {
    name: Str,
    options: MembersOptions,
    reach: watch::Receiver<Reach>,
    suspect: Arc<Notify>,
    member: Option<Arc<Member>>,
    /// Whether the brain has the client.
    lent: bool,
    silent: u32,
    discovered: Option<Instant>,
    /// What the last probe found, for the log.
    said: Option<(bool, String)>,
}

impl Keeper {
    fn new(name: Str, options: MembersOptions, reach: watch::Receiver<Reach>) -> Self {
        let suspect = Arc::new(Notify::new());
        Self {
            name,
            options,
            reach,
            suspect,
            member: None,
            lent: false,
            silent: 0,
            discovered: None,
            said: None,
        }
    }

    async fn keep(mut self) {
        loop {
            let began = Instant::now();
            if self.round().await.is_err() {
                return;
            }
            let pause = if self.silent > 0 {
                LEAST * (1 << (self.silent - 1).min(3))
            } else {
                INTERVAL.mul_f64(1.0 + clock::jitter() / 10.0)
            };
            let suspect = self.suspect.clone();
            // The probe's own calls raise the suspicion too; it is answered by now.
            let _ = suspect.notified().now_or_never();
            tokio::select! {
                changed = self.reach.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.disconnect().await;
                }
                () = async {
                    suspect.notified().await;
                    sleep_until(began + LEAST).await;
                }, if self.silent == 0 => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Connects if necessary, probes, and tells the brain. An error means that the brain is gone.
    async fn round(&mut self) -> Result<(), Gone> {
        let mut probe = match self.connect().await {
            Ok(member) => self.probe(&member).await,
            Err(refused) => refused.into(),
        };
        if probe.health == Health::Unauthorized {
            // The token may have been replaced: read the Secret again, and try once more.
            self.disconnect().await;
            probe = match self.connect().await {
                Ok(member) => self.probe(&member).await,
                Err(refused) => refused.into(),
            };
        }
        self.silent = if probe.health == Health::Silent {
            self.silent.saturating_add(1)
        } else {
            0
        };
        match probe.health {
            Health::Healthy | Health::Unhealthy => self.lend().await?,
            Health::Silent if self.silent < SILENT => {}
            Health::Silent | Health::Unauthorized | Health::Unknown => self.take_back().await?,
        }
        self.log(&probe.found);
        self.tell(Message::Seen(Box::new(Observation::Probed(
            self.name.clone(),
            probe.found,
        ))))
        .await
    }

    async fn connect(&mut self) -> Result<Arc<Member>, connect::Refused> {
        if let Some(member) = &self.member {
            return Ok(member.clone());
        }
        let reach = self.reach.borrow_and_update().clone();
        let member = Arc::new(connect::connect(&self.name, &reach, &self.options, &self.suspect).await?);
        self.member = Some(member.clone());
        self.discovered = None;
        Ok(member)
    }

    async fn probe(&mut self, member: &Member) -> probe::Probed {
        let ask = self.discovered.is_none_or(|at| at.elapsed() >= DISCOVERY);
        let probed = probe::probe(&member.api, ask).await;
        if probed.found.api_enablements.is_some() {
            self.discovered = Some(Instant::now());
        }
        probed
    }

    async fn disconnect(&mut self) {
        self.member = None;
        self.silent = 0;
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
            member: self.member.clone(),
        })
        .await
    }

    async fn take_back(&mut self) -> Result<(), Gone> {
        if !std::mem::take(&mut self.lent) {
            return Ok(());
        }
        self.tell(Message::Member {
            name: self.name.clone(),
            member: None,
        })
        .await
    }

    async fn tell(&self, message: Message) -> Result<(), Gone> {
        self.options.brain.send(message).await.map_err(|_| Gone)
    }

    /// Transitions only.
    fn log(&mut self, found: &Probe) {
        let said = Some((found.healthy, found.reason.clone()));
        if self.said == said {
            return;
        }
        self.said = said;
        if found.healthy {
            info!(cluster = %self.name, version = found.kubernetes_version, "the member answers and is healthy");
        } else {
            warn!(cluster = %self.name, reason = found.reason, error = found.message, "the member cannot be used");
        }
    }
}

/// The brain is gone: the process ends.
struct Gone;

#[cfg(test)]
mod tests;
