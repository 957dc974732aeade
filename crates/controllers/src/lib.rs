//! The shell of Entourage: watches, queues, clients, execution of plans. It decides nothing: every decision is a function of
//! `entourage-core`; the shell only orders the requests.
//!
//! ```text
//! watch ─┐                                                     ┌─► execute ─► hub and members
//! members┼─► runtime (control loop, the Engine) ─► plans ───────┤      │
//!        │            ▲                                        └─► members, watches: what must run
//!        └────────────┴──────────────── observations ◄────────────────┘
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`runtime`] | the control loop, the one task that owns the Engine: observes, queues keys, plans |
//! | [`watch`] | one list-and-watch |
//! | [`execute`] | executes a plan |
//! | [`agent`] | the process in a member in Pull mode: its control loop, its requests, its Lease |
//! | [`source`] | templates' payloads, fetched for a delivery |
//! | [`members`] | clients and probes of the members |
//! | `registration` | approves the CertificateSigningRequests of agents |
//! | `cluster_info` | signs the ConfigMap by which a hub is found with a bootstrap token |
//! | `pull` | the client of a member in Pull mode: its copies as Works |
//! | [`client`], [`limiter`], [`error`] | one request to one API server; the concurrency limit; the class of a failure |
//! | `hub` | the facts about the hub that are read at the start |
//! | [`hooks`] | calls to interpreter webhooks |
//! | [`proxy`] | requests of users of the hub, sent on to a member as them |
//! | [`estimators`] | questions to the scheduler estimators of members |
//! | [`controllers`] | all controllers: their purpose, their rights on the hub |
//! | [`supervise`] | tasks that must not end |
//! | [`lease`], [`serve`], [`metrics`] | leadership; health endpoints; counters |
//! | [`traces`] | spans, sent to a collector |

use std::{net::SocketAddr, sync::Arc, time::Duration};

use entourage_core::{
    Engine,
    config::{Config, Estimators},
    failover::budget::Budget,
    object::Gvk,
    observation::Server,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, watch as cell},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

pub mod agent;
pub mod client;
pub mod clock;
mod cluster_info;
pub mod controllers;
pub mod error;
pub mod estimators;
pub mod execute;
pub mod failure_kind;
pub mod hooks;
mod hub;
pub mod inbox;
pub mod interpreter_snapshot;
pub mod lease;
pub mod limiter;
pub mod member;
pub mod members;
pub mod metrics;
pub mod proxy;
mod pull;
mod registration;
pub mod runtime;
pub mod scripts;
pub mod serve;
pub mod source;
pub mod supervise;
pub mod traces;
pub mod watch;

pub use client::{ClientFactory, passing_clients, plain_clients};
pub use error::Error;

use client::{Api, ApiOptions, capacity::Capacity};
use execute::{Executor, events};
use hooks::Hooks;
use interpreter_snapshot::InterpreterSnapshot;
use limiter::Bounds;
use members::{Members, MembersOptions};
use metrics::Metrics;
use runtime::BrainOptions;
use source::Sources;

/// The settings of the control plane.
#[derive(Clone, Debug)]
pub struct Options {
    /// The feature gate PropagateDeps (docs/concepts.md, "The feature gates").
    pub propagate_deps: bool,
    /// The feature gate ResourceDistributionGate (docs/concepts.md, "The feature gates").
    pub distribute: bool,
    /// The only namespace for the Secrets of Clusters (architecture 2.15).
    pub cluster_namespace: String,
    /// The time for which the copies of a dependency that was deleted on the hub while referenced are kept.
    pub deletion_grace: Duration,
    /// The time that a workload's first delivery to a cluster waits for its dependencies there.
    pub dependency_wait: Duration,
    /// The time that a member must fail its probes before its Cluster is not ready.
    pub cluster_failure_threshold: Duration,
    /// The time that a member that was not ready must pass its probes before its Cluster is ready.
    pub cluster_success_threshold: Duration,
    /// The time that the agent of a cluster in Pull mode may fail to renew its Lease before Ready is Unknown.
    pub cluster_monitor_grace: Duration,
    /// The same for the first Lease of a new Cluster.
    pub cluster_startup_grace: Duration,
    /// The usual time between two probes of a member. One that does not respond is probed at least as often.
    pub probe_interval: Duration,
    /// The number of copies that may be deleted on a member in a minute, whatever explains it; see [`entourage_core::governor`].
    pub removal_budget: Option<u32>,
    /// True if the capacity of members is collected from their nodes and pods.
    pub model_resources: bool,
    /// The time that pods must not be scheduled to a node before their replicas move to other clusters; `None` moves none. It needs
    /// `model_resources`.
    pub deschedule_after: Option<Duration>,
    /// The scheduler estimators of members; `None` asks none.
    pub estimators: Option<estimators::Options>,
    /// True if each copy on a member in Push mode has a Work as a view; see [`entourage_core::works`].
    pub mirror_works: bool,
    /// True if the templates that propagated HorizontalPodAutoscalers scale are labelled; see [`entourage_core::autoscaling`].
    pub mark_scale_targets: bool,
    /// True if the replicas of templates follow the autoscalers of members; see [`entourage_core::autoscaling`].
    pub sync_replicas: bool,
    /// True if endpoints of exported Services are collected, and ServiceImports get Services; see [`entourage_core::services`].
    pub share_services: bool,
    /// The number of endpoints that are collected of one member; each EndpointSlice, port and address counts one.
    pub endpoints_per_member: usize,
    /// The feature gate Failover (docs/concepts.md, "The feature gates").
    pub failover: bool,
    /// The feature gate FederatedQuotaEnforcement (docs/concepts.md, "The feature gates").
    pub enforce_quotas: bool,
    /// The feature gate MultiplePodTemplatesScheduling (docs/concepts.md, "The feature gates").
    pub multiple_pod_templates: bool,
    /// The rate limit for evictions of bindings from clusters.
    pub eviction_budget: Budget,
    /// The time that a gracefully evicted copy waits for its replacement, if its task does not set one.
    pub eviction_timeout: Duration,
    /// True if CertificateSigningRequests of agents are approved; see [`entourage_core::registration`].
    pub approve_agents: bool,
    /// True if `cluster-info` is signed with the bootstrap tokens; see [`entourage_core::cluster_info`].
    pub sign_cluster_info: bool,
    /// The Events that are recorded on the hub.
    pub events: events::Recorded,
    /// The number of custom kinds that the PropagationPolicies of a namespace may put in use.
    pub kinds_per_namespace: usize,
    /// True to act only while holding the Lease.
    pub leader_election: bool,
    /// The namespace of the Lease.
    pub lease_namespace: String,
    /// The timing of leader election.
    pub lease_timing: lease::Timing,
    /// The address for health and metrics; `None` serves neither.
    pub health_addr: Option<SocketAddr>,
    /// The range of the number of concurrent plans for each API server.
    pub concurrency: Bounds,
    /// The deadline of a call to the hub.
    pub hub_deadline: Duration,
    /// The deadline of a call to a member.
    pub member_deadline: Duration,
    /// The collector of traces; `None` records none.
    pub traces: Option<traces::TraceOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            propagate_deps: true,
            distribute: false,
            cluster_namespace: "karmada-cluster".to_owned(),
            deletion_grace: Duration::from_secs(5),
            dependency_wait: Duration::from_secs(30),
            cluster_failure_threshold: Duration::from_secs(30),
            cluster_success_threshold: Duration::ZERO,
            cluster_monitor_grace: Duration::from_secs(40),
            cluster_startup_grace: Duration::from_secs(60),
            probe_interval: members::PROBE_INTERVAL,
            removal_budget: None,
            model_resources: false,
            deschedule_after: None,
            estimators: None,
            mirror_works: false,
            mark_scale_targets: false,
            sync_replicas: false,
            share_services: false,
            endpoints_per_member: entourage_core::config::ENDPOINTS_PER_MEMBER,
            failover: true,
            enforce_quotas: false,
            multiple_pod_templates: false,
            eviction_budget: Budget::default(),
            eviction_timeout: Duration::from_secs(600),
            approve_agents: false,
            sign_cluster_info: false,
            events: events::Recorded::default(),
            kinds_per_namespace: entourage_core::config::KINDS_PER_NAMESPACE,
            leader_election: false,
            lease_namespace: "karmada-system".to_owned(),
            lease_timing: lease::Timing::default(),
            health_addr: None,
            concurrency: Bounds::default(),
            hub_deadline: Duration::from_secs(5),
            member_deadline: Duration::from_secs(10),
            traces: None,
        }
    }
}

/// The name of the Lease.
const LEASE: &str = "entourage-controllers";

/// Runs the control plane of a hub until `stop`. Running plans then have five seconds to end; the Lease is released after that.
///
/// # Errors
/// The hub's client cannot be built, the health address cannot be bound, or a task ended that must not. A hub that does not
/// respond is no error: requests are retried until it does.
pub async fn run(
    options: Options,
    mut hub: kube::Config,
    clients: ClientFactory,
    stop: CancellationToken,
) -> Result<(), Error> {
    let Options {
        propagate_deps,
        cluster_namespace,
        deletion_grace,
        dependency_wait,
        ..
    } = options.clone();
    let timing = options.lease_timing;
    timing.check().map_err(Error::Timing)?;
    if let Some(estimators) = &options.estimators {
        estimators.check().map_err(Error::Estimators)?;
    }
    let metrics = Metrics::new();
    let exporter = metrics.export_spans(options.traces.as_ref());
    hub.default_retry = false;
    hub.connect_timeout = Some(Duration::from_secs(5));
    let client = clients("hub", hub).map_err(|error| {
        // As a failed call would report it: without the output of an exec plugin.
        Error::Client(error::Failure::transport(&error).text(&Gvk::new("v1", "List")))
    })?;

    // Health is served before any request can wait for a response.
    let (synced, is_synced) = cell::channel(false);
    let stop_lease = CancellationToken::new();
    let listener = match options.health_addr {
        Some(address) => Some(TcpListener::bind(address).await?),
        None => None,
    };
    let lease = lease::LeaseOptions {
        namespace: options.lease_namespace.clone(),
        name: LEASE.to_owned(),
        identity: lease::identity(),
        timing,
    };
    if !options.leader_election {
        nobody_leads(client.clone(), &lease, &stop).await?;
    }
    let (leading, lease) = if options.leader_election {
        let (leading, campaign) = lease::elect(client.clone(), lease, stop_lease.clone());
        (leading, AbortOnDropHandle::new(tokio::spawn(campaign)))
    } else {
        let (leading, receiver) = cell::channel(true);
        let until = stop_lease.clone();
        (
            lease::Leadership::from(receiver),
            AbortOnDropHandle::new(tokio::spawn(async move {
                until.cancelled().await;
                drop(leading);
            })),
        )
    };
    let mut served = None;
    if let Some(listener) = listener {
        let readiness = serve::Readiness {
            leading: leading.clone(),
            synced: is_synced,
        };
        let task = tokio::spawn(serve::serve(
            listener,
            readiness,
            metrics.clone(),
            stop_lease.clone(),
        ));
        served = Some(AbortOnDropHandle::new(task));
    }

    // No call may outlive leadership (architecture 2.10).
    let longest = if options.leader_election {
        timing.longest_call()
    } else {
        Duration::MAX
    };
    let hub = Api::new(
        client,
        ApiOptions {
            server: Server::Hub,
            deadline: options.hub_deadline.min(longest),
            capacity: Capacity::new(options.concurrency),
            metrics: metrics.clone(),
            suspect: Arc::new(Notify::new()),
            is_reported: false,
            may_write: leading.clone(),
        },
    );
    let mut all_ended = true;
    let result = match hub::id(&hub, &stop).await {
        None => Ok(()),
        Some(hub_id) => {
            info!(hub = %hub_id, "controllers started");
            let mut config = Config::new(&hub_id);
            config.scripts = Some(Arc::new(scripts::Scripts::default()));
            config.propagate_deps = propagate_deps;
            config.distribute = options.distribute;
            config.kinds_per_namespace = options.kinds_per_namespace;
            config.deletion_grace = clock::millis(deletion_grace);
            config.dependency_wait = clock::millis(dependency_wait);
            config.cluster_failure_threshold = clock::millis(options.cluster_failure_threshold);
            config.cluster_success_threshold = clock::millis(options.cluster_success_threshold);
            config.cluster_monitor_grace = clock::millis(options.cluster_monitor_grace);
            config.cluster_startup_grace = clock::millis(options.cluster_startup_grace);
            config.removal_budget = options.removal_budget;
            config.model_resources = options.model_resources;
            config.deschedule_after = options.deschedule_after.map(clock::millis);
            config.estimators = options.estimators.as_ref().map(|each| Estimators {
                timeout: clock::millis(each.timeout),
                in_pull_mode: each.in_pull_mode,
            });
            config.mirror_works = options.mirror_works;
            config.mark_scale_targets = options.mark_scale_targets;
            config.sync_replicas = options.sync_replicas;
            config.share_services = options.share_services;
            config.endpoints_per_member = options.endpoints_per_member;
            config.events_on_bindings = options.events == events::Recorded::All;
            config.failover = options.failover;
            config.enforce_quotas = options.enforce_quotas;
            config.multiple_pod_templates = options.multiple_pod_templates;
            config.eviction_budget = options.eviction_budget;
            config.eviction_timeout = clock::millis(options.eviction_timeout);
            config.hub_has_nodes = hub::has_nodes(&hub).await;
            config.reserved = [&cluster_namespace, &options.lease_namespace]
                .map(|name| name.as_str().into())
                .into();
            let (brain, inbox) = mpsc::channel(runtime::INBOX);
            let (events, recorder) = events::recorder(hub.clone(), options.events, metrics.clone());
            let recorder = AbortOnDropHandle::new(tokio::spawn(recorder));
            let approver = options.approve_agents.then(|| {
                let (hub, leading) = (hub.clone(), leading.published().clone());
                let approver = registration::Approver::new(hub, leading);
                let task = supervise::supervise("registration", move || approver.clone().run(), || async {});
                AbortOnDropHandle::new(tokio::spawn(task))
            });
            let signer = options.sign_cluster_info.then(|| {
                let (hub, leading) = (hub.clone(), leading.published().clone());
                let signer = cluster_info::Signer { hub, leading };
                let task = supervise::supervise("cluster-info", move || signer.clone().run(), || async {});
                AbortOnDropHandle::new(tokio::spawn(task))
            });
            let members = Members::new(MembersOptions {
                hub: hub.clone(),
                clients,
                cluster_namespace: cluster_namespace.as_str().into(),
                deadline: options.member_deadline.min(longest),
                probe_interval: options.probe_interval,
                bounds: options.concurrency,
                pulled: Capacity::shared(options.concurrency),
                metrics: metrics.clone(),
                may_write: leading.clone(),
                brain: brain.clone(),
            });
            let sources = Sources::new(hub.clone());
            let hooks = hooks::Options {
                services: Some(Arc::new(hub.clone())),
                metrics: Some(metrics.clone()),
                ..hooks::Options::default()
            };
            let estimators = options
                .estimators
                .clone()
                .map(|each| estimators::Estimators::new(each, Arc::new(hub.clone()), metrics.clone()));
            let hands = Executor {
                estimators: estimators.transpose().map_err(Error::Estimators)?,
                hub,
                hub_id: hub_id.clone(),
                sources,
                interpreters: InterpreterSnapshot::new(Hooks::new(hooks)),
                events,
                brain,
            };
            let decider = Engine::new(config);
            let brain = BrainOptions {
                decider,
                hands,
                members,
                hub: hub_id,
                inbox,
                leading,
                synced,
                metrics,
            };
            all_ended = runtime::run(brain, stop.clone()).await;
            drop((recorder, approver, signer));
            if stop.is_cancelled() {
                Ok(())
            } else {
                Err(Error::Ended("brain"))
            }
        }
    };
    if all_ended {
        stop_lease.cancel();
        if lease.await.is_err() {
            warn!("the lease could not be released");
        }
    } else {
        // A request that was cut off may still be executed: the next leader must wait until the Lease expires.
        warn!("a request was aborted at shutdown; the lease is not released and expires");
        drop(lease);
    }
    drop(served);
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    info!("controllers stopped");
    result
}

/// True if this process may act without a lease: while another one renews it, two would write. A hub that does not respond is
/// asked until it does; one that forbids the read to our account cannot have been led with its rights.
async fn nobody_leads(
    client: kube::Client,
    lease: &lease::LeaseOptions,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let mut pause = Duration::from_millis(100);
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            answer = lease::holder(client.clone(), lease) => answer,
        };
        match answer {
            Ok(None) => return Ok(()),
            Ok(Some(holder)) => {
                let lease = format!("{}/{}", lease.namespace, lease.name);
                return Err(Error::Held { lease, holder });
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                warn!(
                    lease = lease.name,
                    "the hub denies reading the lease: whether another process leads is unknown"
                );
                return Ok(());
            }
            Err(error) => {
                // As a failed call would report it: without the output of an exec plugin.
                let error = error::Failure::transport(&error).text(&Gvk::new("v1", "Lease"));
                warn!(
                    lease = lease.name,
                    error, "cannot read the lease to find whether another process leads; retrying"
                );
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

#[cfg(test)]
mod tests;
