//! The members: one task for each, which keeps a client as its Cluster object and Secret describe, and probes it.
//!
//! A task sends the control loop its client ([`Message::Member`]) whenever there is a new one or none, and the result of each
//! probe ([`Message::Probed`]). A member that does not respond twice in a row loses its client until it responds: its watches
//! end, and deliveries fail at once instead of waiting for their deadline.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use entourage_api::cluster::{Cluster, LocalSecretReference, SyncMode};
use entourage_core::{
    object::{NamespacedName, Str},
    observation::Server,
};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    client::{Api, ApiOptions, ClientFactory, capacity::Capacity, tunnel::ProxyHeaders},
    inbox::Message,
    lease::Leadership,
    limiter::Bounds,
    metrics::Metrics,
    pull::{self, Facts},
    supervise::supervise,
};

mod connect;
pub(crate) mod definitions;
mod discovery;
pub(crate) mod keeper;
pub(crate) mod probe;

use keeper::Keeper;

pub use crate::member::{Member, namespaces};

/// The default time between two probes of a member; each member has its own jitter around it.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// The dependencies of every member's task.
#[derive(Clone)]
pub struct MembersOptions {
    /// The hub, for Secrets.
    pub hub: Api,
    /// Builds the clients.
    pub clients: ClientFactory,
    /// The only namespace for the Secrets of Clusters.
    pub cluster_namespace: Str,
    /// The deadline of calls to members.
    pub deadline: Duration,
    /// The usual time between two probes; also the longest for a member that does not respond.
    pub probe_interval: Duration,
    /// The range of each member's concurrency limit.
    pub bounds: Bounds,
    /// The capacity of the hub for all members in Pull mode together, which are reached through it.
    pub pulled: Capacity,
    /// The metrics for calls.
    pub metrics: Metrics,
    /// The right of this process to write.
    pub may_write: Leadership,
    /// The inbox of the control loop.
    pub brain: mpsc::Sender<Message>,
}

/// The connection settings of a member: the part of a Cluster that a client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reach {
    uid: String,
    /// The identity of the cluster: `spec.id`, empty if it is not known yet.
    id: String,
    endpoint: String,
    secret: Option<NamespacedName>,
    insecure: bool,
    proxy: String,
    /// The headers for that proxy.
    proxy_headers: ProxyHeaders,
    /// The mode. In Pull mode the fields above, but for uid and id, do not count.
    mode: SyncMode,
    /// In Pull mode: true if the agent has reported. Until then nothing is written.
    is_reported: bool,
}

impl Reach {
    fn of(cluster: &Cluster) -> Self {
        let spec = &cluster.spec;
        let (uid, mode) = (cluster.metadata.uid.clone().unwrap_or_default(), spec.sync_mode);
        if mode == SyncMode::Pull {
            return Self {
                uid,
                id: spec.id.clone(),
                endpoint: String::new(),
                secret: None,
                insecure: false,
                proxy: String::new(),
                proxy_headers: ProxyHeaders::default(),
                mode,
                is_reported: Facts::of(cluster).is_reported(),
            };
        }
        Self {
            uid,
            id: spec.id.clone(),
            endpoint: spec.api_endpoint.clone(),
            secret: spec
                .secret_ref
                .as_ref()
                .map(|each| NamespacedName::new(&each.namespace, &each.name)),
            insecure: spec.insecure_skip_tls_verification,
            proxy: spec.proxy_url.clone(),
            proxy_headers: (&spec.proxy_header).into(),
            mode,
            is_reported: false,
        }
    }

    fn is_pull(&self) -> bool {
        self.mode == SyncMode::Pull
    }

    /// True if a client built from one is valid for the other, too: all but the id is the same. In Pull mode the client says the id.
    fn leads_to(&self, other: &Self) -> bool {
        if self.is_pull() {
            return self == other;
        }
        let same = Self {
            id: other.id.clone(),
            ..self.clone()
        };
        same == *other
    }
}

/// The configuration of a connection to a member, as the controllers use it: by its Cluster and the Secret that this names. Read
/// once; for a read-only command. `cluster_namespace` is the only namespace for such Secrets.
///
/// # Errors
/// A sentence for the user who must act; also for a member in Pull mode.
pub async fn config_of(
    hub: kube::Client,
    cluster: &Cluster,
    cluster_namespace: &str,
    deadline: Duration,
) -> Result<kube::Config, String> {
    let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
    let reach = Reach::of(cluster);
    if reach.is_pull() {
        return Err("it is in pull mode: its agent connects to the hub".to_owned());
    }
    let hub = hub_api(hub, deadline, false);
    connect::config_once(&name, &reach, &hub, &cluster_namespace.into()).await
}

/// A client of a member in Pull mode, whose copies are Works of the hub, by its Cluster as it was read; for a read-only command.
///
/// # Errors
/// A sentence for the user who must act.
pub fn pulled(hub: kube::Client, cluster: &Cluster) -> Result<kube::Client, String> {
    let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
    let facts = Facts::of(cluster);
    if !facts.is_reported() {
        return Err("its agent has not reported yet: is it running?".to_owned());
    }
    // The value outlives its sender.
    let (_, facts) = watch::channel(facts);
    Ok(pull::client(hub, &name, facts))
}

/// The connection of one identity that may impersonate users to a member, as its Cluster and the Secret of `spec.impersonatorSecretRef`
/// describe it.
pub(crate) struct Impersonation {
    /// For the client.
    pub(crate) config: kube::Config,
    /// Its client is good for connections of the same version alone.
    pub(crate) version: ConnectionVersion,
}

/// The origin of a connection: the fields of the Cluster, the resourceVersion of the Secret, and the Secret whose certificates are
/// trusted, if that is another one. No `Debug`: the URL of a proxy may have a password.
#[derive(PartialEq)]
pub(crate) struct ConnectionVersion {
    reach: Reach,
    secret: Option<String>,
    trusted: Option<(NamespacedName, Option<String>)>,
}

/// Reads the connection of the impersonator to a member.
///
/// # Errors
/// A sentence for the user who must act.
pub(crate) async fn impersonation(
    hub: &Api,
    cluster: &Cluster,
    cluster_namespace: &Str,
) -> Result<Impersonation, String> {
    let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
    let spec = &cluster.spec;
    let named = |each: &LocalSecretReference| NamespacedName::new(&each.namespace, &each.name);
    let reach = Reach {
        uid: cluster.metadata.uid.clone().unwrap_or_default(),
        id: spec.id.clone(),
        endpoint: spec.api_endpoint.clone(),
        secret: spec.impersonator_secret_ref.as_ref().map(named),
        insecure: spec.insecure_skip_tls_verification,
        proxy: spec.proxy_url.clone(),
        proxy_headers: (&spec.proxy_header).into(),
        // That of the connection: the hub may have one to a member in Pull mode, too.
        mode: SyncMode::Push,
        is_reported: false,
    };
    let controllers = spec.secret_ref.as_ref().map(named);
    let found =
        connect::impersonator_config(&name, &reach, controllers.as_ref(), hub, cluster_namespace).await?;
    Ok(Impersonation {
        config: found.config,
        version: ConnectionVersion {
            reach,
            secret: found.version,
            trusted: found.trusted,
        },
    })
}

/// The hub's client of a process without a control loop.
pub(crate) fn hub_api(client: kube::Client, deadline: Duration, may_write: bool) -> Api {
    // The value stays when its sender is gone.
    let (_never, may_write) = watch::channel(may_write);
    Api::new(
        client,
        ApiOptions {
            server: Server::Hub,
            deadline,
            capacity: Capacity::new(Bounds::default()),
            metrics: Metrics::new(),
            suspect: Arc::default(),
            is_reported: false,
            may_write: may_write.into(),
        },
    )
}

/// The tasks of all members. Dropping it ends them.
pub struct Members {
    options: MembersOptions,
    tasks: BTreeMap<Str, Task>,
    runs: u64,
}

struct Task {
    /// Distinguishes this task's messages from those of an earlier one of the same name.
    run: u64,
    reach: watch::Sender<Reach>,
    /// The facts of a member in Pull mode, from its Cluster.
    facts: watch::Sender<Facts>,
    #[expect(dead_code, reason = "held until dropped")]
    handle: AbortOnDropHandle<()>,
}

impl Members {
    /// Creates an empty set.
    #[must_use]
    pub fn new(options: MembersOptions) -> Self {
        Self {
            options,
            tasks: BTreeMap::new(),
            runs: 0,
        }
    }

    /// True if a message is from a member's current task, and not a late one of an earlier task.
    #[must_use]
    pub fn is_current(&self, name: &Str, run: u64) -> bool {
        self.tasks.get(name).is_some_and(|task| task.run == run)
    }

    /// Applies a Cluster, or its absence. Returns true if the member's task ended: the caller must then drop its client. Must be
    /// called within a runtime.
    pub fn ensure(&mut self, name: &Str, cluster: Option<&Cluster>) -> bool {
        let Some(cluster) = cluster else {
            self.options.metrics.forget(name);
            return self.tasks.remove(name).is_some();
        };
        let (mut reach, mut facts) = (Reach::of(cluster), facts_of(cluster));
        if let Some(task) = self.tasks.get(name)
            && task.reach.borrow().uid == reach.uid
        {
            let known = task.facts.borrow().version.clone();
            if reach.is_pull() && !facts.is_reported() && !known.is_empty() {
                // An agent that could not read it once.
                (facts.version, reach.is_reported) = (known, true);
            }
            // Before the task looks at it.
            task.facts.send_if_modified(|standing| {
                let changed = *standing != facts;
                *standing = facts;
                changed
            });
            task.reach.send_if_modified(|standing| {
                let changed = *standing != reach;
                *standing = reach;
                changed
            });
            return false;
        }
        let task = self.begin(name, reach, facts);
        self.tasks.insert(name.clone(), task).is_some()
    }

    fn begin(&mut self, name: &Str, reach: Reach, facts: Facts) -> Task {
        self.runs += 1;
        let (run, name, options) = (self.runs, name.clone(), self.options.clone());
        let (reach, receiver) = watch::channel(reach);
        let (facts, known) = watch::channel(facts);
        let keeping = async move {
            let make = || {
                Keeper::new(
                    name.clone(),
                    run,
                    options.clone(),
                    (receiver.clone(), known.clone()),
                )
                .keep()
            };
            let report = || async {
                let (name, member) = (name.clone(), None);
                // A failure means that the process ends.
                let _ = options.brain.send(Message::Member { name, run, member }).await;
            };
            supervise("member", make, report).await;
        };
        Task {
            run,
            reach,
            facts,
            handle: AbortOnDropHandle::new(tokio::spawn(keeping)),
        }
    }

    /// Sets this run as the member's task, without a running task.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, name: &str, run: u64) {
        let (reach, _) = watch::channel(Reach {
            uid: String::new(),
            id: String::new(),
            endpoint: String::new(),
            secret: None,
            insecure: false,
            proxy: String::new(),
            proxy_headers: ProxyHeaders::default(),
            mode: SyncMode::Push,
            is_reported: false,
        });
        let (facts, _) = watch::channel(Facts::default());
        let handle = AbortOnDropHandle::new(tokio::spawn(std::future::pending()));
        let task = Task {
            run,
            reach,
            facts,
            handle,
        };
        self.tasks.insert(name.into(), task);
    }
}

/// The facts of a member in Pull mode; none of one in Push mode, which is asked itself.
fn facts_of(cluster: &Cluster) -> Facts {
    match cluster.spec.sync_mode {
        SyncMode::Pull => Facts::of(cluster),
        SyncMode::Push => Facts::default(),
    }
}

#[cfg(test)]
mod tests;
