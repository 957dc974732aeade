//! The agent of one cluster in Pull mode: it runs in the cluster, behind NAT or a firewall, connects to the hub, and applies the
//! Works of its execution namespace.
//!
//! It decides nothing: see [`entourage_core::agent`].
//!
//! | module | purpose |
//! |---|---|
//! | `control` | the control loop, the one task that owns the state: observes, plans, starts steps |
//! | `steps` | carries out a step: the requests to the cluster, in the order that the core's tasks say, and writes on the hub |
//! | `probe` | the health, identity, version and APIs of the cluster |
//! | `lease` | the Lease on the hub, by which the hub knows that the agent lives |

use std::{net::SocketAddr, sync::Arc, time::Duration};

use entourage_api::names;
use entourage_core::{
    agent::{Agent, Config},
    object::{Gvk, Str, Time},
    observation::Server,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, watch as cell},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::info;

use crate::{
    ClientFactory, Error,
    client::{Api, ApiOptions, capacity::Capacity},
    clock,
    error::Failure,
    execute::events::{self, Recorded},
    inbox::INBOX,
    interpreter_snapshot::InterpreterSnapshot,
    lease::Leadership,
    limiter::Bounds,
    members::PROBE_INTERVAL,
    metrics::Metrics,
    serve,
    supervise::supervise,
    traces::TraceOptions,
};

mod control;
mod lease;
mod probe;
mod steps;

use control::Control;
use steps::StepExecutor;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the Cluster on the hub.
    pub cluster: String,
    /// The namespace on the hub of the cluster's Lease.
    pub lease_namespace: String,
    /// The time for which a renewal of the Lease is valid; it is renewed four times in that time.
    pub lease_duration: Duration,
    /// True if the capacity of the Cluster is collected from nodes and pods.
    pub model_resources: bool,
    /// The time that the cluster must fail its probes before it is not ready.
    pub failure_threshold: Duration,
    /// The time that a cluster that was not ready must pass its probes before it is ready.
    pub success_threshold: Duration,
    /// The time between two probes.
    pub probe_interval: Duration,
    /// When the client certificate for the hub expires, if it has one: a metric.
    pub certificate_expires: Option<Time>,
    /// The address for health and metrics; `None` serves neither.
    pub health_addr: Option<SocketAddr>,
    /// The range of the number of concurrent steps.
    pub concurrency: Bounds,
    /// The Events that are recorded about Works.
    pub events: Recorded,
    /// The deadline of a call to the hub.
    pub hub_deadline: Duration,
    /// The deadline of a call to the cluster.
    pub member_deadline: Duration,
    /// The collector of traces; `None` records none.
    pub traces: Option<TraceOptions>,
}

impl Options {
    /// The default settings for a cluster: those of Karmada's agent.
    #[must_use]
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            lease_namespace: "karmada-cluster".to_owned(),
            lease_duration: Duration::from_secs(40),
            model_resources: true,
            failure_threshold: Duration::from_secs(30),
            success_threshold: Duration::ZERO,
            probe_interval: PROBE_INTERVAL,
            certificate_expires: None,
            health_addr: None,
            concurrency: Bounds::default(),
            events: Recorded::default(),
            hub_deadline: Duration::from_secs(10),
            member_deadline: Duration::from_secs(10),
            traces: None,
        }
    }
}

/// Runs the agent until `stop`. Running steps then have five seconds to end.
///
/// # Errors
/// A client cannot be built, or the health address cannot be bound. A server that does not respond is no error: requests are
/// retried until it does.
pub async fn run(
    options: Options,
    hub: kube::Config,
    member: kube::Config,
    clients: ClientFactory,
    stop: CancellationToken,
) -> Result<(), Error> {
    let metrics = Metrics::new();
    let exporter = metrics.export_spans(options.traces.as_ref());
    metrics.leading(true);
    let expires = options.certificate_expires.map(|at| at.0 / 1000);
    metrics.credentials_expire("hub", expires);
    let cluster: Str = options.cluster.as_str().into();
    // One agent runs for a cluster: it needs no election.
    let (_may_write, may_write) = cell::channel(true);
    let may_write = Leadership::from(may_write);
    let suspect = Arc::new(Notify::new());
    let api = |server: Server, mut config: kube::Config, deadline: Duration, suspect: Arc<Notify>| {
        let name = match &server {
            Server::Hub => "hub",
            Server::Member(name) => name,
        };
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        let client = clients(name, config).map_err(|error| {
            // As a failed call would report it: without the output of an exec plugin.
            Error::Client(Failure::transport(&error).text(&Gvk::new("v1", "List")))
        })?;
        Ok::<_, Error>(Api::new(
            client,
            ApiOptions {
                server,
                deadline,
                capacity: Capacity::new(options.concurrency),
                metrics: metrics.clone(),
                suspect,
                may_write: may_write.clone(),
                is_reported: false,
            },
        ))
    };
    let hub = api(Server::Hub, hub, options.hub_deadline, Arc::default())?;
    let member = api(
        Server::Member(cluster.clone()),
        member,
        options.member_deadline,
        suspect.clone(),
    )?;

    let (synced, is_synced) = cell::channel(false);
    let mut served = None;
    if let Some(address) = options.health_addr {
        let readiness = serve::Readiness {
            leading: may_write.clone(),
            synced: is_synced,
        };
        let listener = TcpListener::bind(address).await?;
        let serving = serve::serve(listener, readiness, metrics.clone(), stop.clone());
        served = Some(AbortOnDropHandle::new(tokio::spawn(serving)));
    }

    let namespace = names::execution_namespace(&cluster);
    info!(%cluster, namespace, "agent started");
    let (brain, inbox) = mpsc::channel(INBOX);
    let (acts, may_renew) = cell::channel(false);
    let prober = probe::Prober {
        cluster: cluster.clone(),
        api: member.clone(),
        interval: options.probe_interval,
        suspect,
        brain: brain.clone(),
    };
    let probing = supervise("probe", move || prober.clone().run(), || async {});
    let probing = AbortOnDropHandle::new(tokio::spawn(probing));
    let renewal = lease::Renewal {
        cluster: cluster.clone(),
        api: hub.clone(),
        namespace: options.lease_namespace.as_str().into(),
        duration: options.lease_duration,
        acts: may_renew,
    };
    let renewing = supervise("lease", move || renewal.clone().run(), || async {});
    let renewing = AbortOnDropHandle::new(tokio::spawn(renewing));

    let agent = Agent::new(Config {
        cluster: cluster.clone(),
        namespace: namespace.as_str().into(),
        collects_capacity: options.model_resources,
        failure_threshold: clock::millis(options.failure_threshold),
        success_threshold: clock::millis(options.success_threshold),
    });
    let (events, recorder) = events::recorder(hub.clone(), options.events, metrics.clone());
    let recorder = AbortOnDropHandle::new(tokio::spawn(recorder));
    let executor = StepExecutor {
        cluster,
        hub,
        member,
        interpreters: InterpreterSnapshot::default(),
    };
    Control::new(
        agent,
        executor,
        namespace.as_str().into(),
        brain,
        (metrics, events),
    )
    .run(inbox, (&synced, &acts), &stop)
    .await;
    drop((probing, renewing, served, recorder));
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    info!("agent stopped");
    Ok(())
}
