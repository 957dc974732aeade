//! `entourage controllers`: runs the controllers against a hub until SIGINT or SIGTERM.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use entourage_controllers::{Options, execute::events::Recorded, lease::Timing, members::PROBE_INTERVAL};
use entourage_core::{
    config::{ENDPOINTS_PER_MEMBER, KINDS_PER_NAMESPACE},
    failover::budget::Budget,
};
use kube::Config;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect::{self, Connection},
    logging::{self, LogArgs},
    traces::TraceArgs,
};

pub mod estimators;
pub mod features;
pub mod optional;

use estimators::EstimatorArgs;
use features::FeatureGates;
use optional::Controllers;

/// The environment variable that Kubernetes sets in every pod.
pub(super) const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

/// Flags of `entourage controllers`.
#[derive(Args, Clone, Debug)]
pub struct ControllersArgs {
    /// The hub; in a pod and without a kubeconfig, the cluster that the pod runs in.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Features to turn on or off: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Controllers to turn on besides those that are always on (*): *,NAME,NAME
    #[arg(long, value_name = "*,NAME,…", value_parser = optional::parse, default_value = "*",
        allow_hyphen_values = true, long_help = optional::help())]
    pub controllers: Controllers,

    /// Namespace on the hub with the members' credentials; a Cluster cannot name a Secret elsewhere
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Time for which copies of a dependency are kept that was deleted on the hub while a workload still refers to it
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "5s")]
    pub dependency_deletion_grace: Duration,

    /// Maximum time for which the first write of a workload to a member waits for its dependencies there
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "30s")]
    pub dependency_wait: Duration,

    /// Time for which a member must fail its probes before its Cluster is not ready. Also the time within which members must
    /// stop responding for the hub itself to count as cut off
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "30s")]
    pub cluster_failure_threshold: Duration,

    /// Time for which a member that was not ready must pass its probes before its Cluster is ready
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "0s")]
    pub cluster_success_threshold: Duration,

    /// Time for which the agent of a cluster in Pull mode must not renew its Lease before its Cluster's Ready is Unknown
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "40s")]
    pub cluster_monitor_grace_period: Duration,

    /// The same for an agent that has made no Lease yet
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "60s")]
    pub cluster_startup_grace_period: Duration,

    /// Maximum number of copies that may be deleted on a member in a minute, even if a user's edit explains it; beyond that,
    /// deletions there pause until `entourage resume`. Without it only deletions that no edit explains are limited
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub removal_budget: Option<u32>,

    /// Maximum number of bindings that are evicted per second in the whole fleet, such as 0.5 (default: no limit)
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    pub eviction_rate: Option<i64>,

    /// Maximum number of bindings that are evicted per second from the members of a region
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    pub eviction_rate_per_region: Option<i64>,

    /// Maximum number of bindings that are evicted per second from a member
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    pub eviction_rate_per_cluster: Option<i64>,

    /// Maximum time for which an evicted copy is kept while its replacement is not healthy, if the policy gives no grace period
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "10m")]
    pub graceful_eviction_timeout: Duration,

    /// Events recorded on the hub: each success once, all successes on template and binding, or warnings alone
    #[arg(long, value_name = "WHICH", value_enum, default_value = "once")]
    pub events: RecordedEvents,

    /// Keep a Work for each copy on a member in Push mode as a view, for tools that read Works: mirror, or off. It costs two
    /// writes on the hub and one more object for each copy
    #[arg(long, value_name = "WHICH", value_enum, default_value = "off")]
    pub work_objects: WorkObjects,

    /// Maximum number of custom kinds that the PropagationPolicies of a namespace may have watched
    #[arg(long, value_name = "COUNT", default_value_t = KINDS_PER_NAMESPACE)]
    pub kinds_per_namespace: usize,

    /// Maximum number of endpoints of exported Services that are collected of one member; each EndpointSlice, port and address counts one;
    /// what exceeds it is reported on its Cluster
    #[arg(long, value_name = "COUNT", default_value_t = ENDPOINTS_PER_MEMBER)]
    pub endpoints_per_member: usize,

    /// Collect the capacity of members from their nodes and pods, for policies that divide replicas by room. Without it the
    /// capacity of a Cluster is what others write in its status
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub enable_cluster_resource_modeling: bool,

    /// Move replicas of Deployments that are divided by room to other members when no node of theirs takes their pods. It needs
    /// --enable-cluster-resource-modeling
    #[arg(long)]
    pub descheduler: bool,

    /// Time after which the replica of a pod that no node takes is moved
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "5m", requires = "descheduler")]
    pub unschedulable_threshold: Duration,

    /// Scheduler estimators.
    #[command(flatten)]
    pub estimators: EstimatorArgs,

    /// Act only while holding a Lease on the hub; further processes are standbys. Without it a process starts only while no
    /// process holds the Lease
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub leader_elect: bool,

    /// Time after the leader's last renewal after which another process may take over
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "15s")]
    pub leader_elect_lease_duration: Duration,

    /// Time after its last renewal for which the leader acts; it limits each request to the rest of the lease
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "10s")]
    pub leader_elect_renew_deadline: Duration,

    /// Interval at which the leader renews the Lease, and the others read it
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "2s")]
    pub leader_elect_retry_period: Duration,

    /// Address that serves /healthz, /readyz and /metrics, or off
    #[arg(long, value_name = "ADDRESS", value_parser = health_address, default_value = "127.0.0.1:8080")]
    pub health_addr: HealthAddress,

    /// Number of executor threads; more than two have no benefit, and each costs memory
    #[arg(long, hide = true, value_name = "COUNT", default_value_t = default_threads(),
        value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_threads: u16,

    /// Traces.
    #[command(flatten)]
    pub traces: TraceArgs,

    /// Logging.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The Works of members in Push mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WorkObjects {
    /// None
    #[default]
    Off,
    /// One for each copy, as a view
    Mirror,
}

/// The events that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordedEvents {
    /// Problems, and each success on one object
    Once,
    /// Problems, and the successes of a workload on its template and on its binding, as Karmada records them
    All,
    /// Problems alone
    Warnings,
}

impl From<RecordedEvents> for Recorded {
    fn from(events: RecordedEvents) -> Self {
        match events {
            RecordedEvents::Once => Self::Once,
            RecordedEvents::All => Self::All,
            RecordedEvents::Warnings => Self::Warnings,
        }
    }
}

/// One thread up to two processors, two beyond: the API servers are slower than the controllers.
pub(super) fn default_threads() -> u16 {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 2) {
        2
    } else {
        1
    }
}

/// The address of health and metrics; `None` if they are not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthAddress(pub Option<SocketAddr>);

/// Runs the controllers until they end.
///
/// # Errors
/// Flags contradict each other, the hub cannot be reached with this configuration, or the controllers end with an error.
pub async fn run(args: ControllersArgs) -> Result<()> {
    logging::init(&args.log)?;
    check(&args)?;
    let in_pod = std::env::var_os(IN_POD).is_some();
    let hub = hub(&args.hub, in_pod).await?.config;
    let options = options(&args);
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on(signals, stop.clone()));
    let clients = entourage_controllers::plain_clients();
    entourage_controllers::run(options, hub, clients, stop)
        .await
        .context("the controllers stopped")
}

pub(super) async fn hub(args: &HubArgs, in_pod: bool) -> Result<Connection> {
    if in_pod && args.kubeconfig.is_none() && args.context.is_none() {
        return Config::incluster()
            .map(Connection::from)
            .context("this pod has no usable service account; mount one, or give --kubeconfig");
    }
    connect::config(args.kubeconfig.as_deref(), args.context.as_deref()).await
}

/// Flags that contradict each other.
fn check(args: &ControllersArgs) -> Result<()> {
    ensure!(
        !args.descheduler || args.enable_cluster_resource_modeling,
        "--descheduler needs the pods of members: leave --enable-cluster-resource-modeling=false out"
    );
    ensure!(
        args.unschedulable_threshold >= Duration::from_secs(1),
        "--unschedulable-threshold is less than a second: pods need a moment to be scheduled; the default is 5m"
    );
    args.estimators.check()
}

/// The flags as options of the controllers.
fn options(args: &ControllersArgs) -> Options {
    Options {
        propagate_deps: args.feature_gates.is_on(features::PROPAGATE_DEPS),
        distribute: args.feature_gates.is_on(features::RESOURCE_DISTRIBUTION),
        cluster_namespace: args.cluster_namespace.clone(),
        deletion_grace: args.dependency_deletion_grace,
        dependency_wait: args.dependency_wait,
        cluster_failure_threshold: args.cluster_failure_threshold,
        cluster_success_threshold: args.cluster_success_threshold,
        cluster_monitor_grace: args.cluster_monitor_grace_period,
        cluster_startup_grace: args.cluster_startup_grace_period,
        probe_interval: PROBE_INTERVAL,
        removal_budget: args.removal_budget,
        model_resources: args.enable_cluster_resource_modeling,
        deschedule_after: args.descheduler.then_some(args.unschedulable_threshold),
        estimators: args.estimators.options(),
        mirror_works: args.work_objects == WorkObjects::Mirror,
        approve_agents: args.controllers.is_on(optional::AGENT_CSR_APPROVING),
        sign_cluster_info: args.controllers.is_on(optional::BOOTSTRAP_SIGNER),
        mark_scale_targets: args.controllers.is_on(optional::SCALE_TARGET_MARKER),
        sync_replicas: args.controllers.is_on(optional::REPLICAS_SYNCER),
        share_services: args.controllers.share_services(),
        failover: args.feature_gates.is_on(features::FAILOVER),
        enforce_quotas: args.feature_gates.is_on(features::FEDERATED_QUOTA_ENFORCEMENT),
        multiple_pod_templates: args
            .feature_gates
            .is_on(features::MULTIPLE_POD_TEMPLATES_SCHEDULING),
        eviction_budget: Budget {
            fleet: args.eviction_rate,
            region: args.eviction_rate_per_region,
            member: args.eviction_rate_per_cluster,
        },
        eviction_timeout: args.graceful_eviction_timeout,
        events: args.events.into(),
        kinds_per_namespace: args.kinds_per_namespace,
        endpoints_per_member: args.endpoints_per_member,
        leader_election: args.leader_elect,
        lease_timing: Timing {
            duration: args.leader_elect_lease_duration,
            renew_deadline: args.leader_elect_renew_deadline,
            retry: args.leader_elect_retry_period,
        },
        health_addr: args.health_addr.0,
        traces: args.traces.options("entourage-controllers"),
        ..Options::default()
    }
}

/// The first signal requests a graceful shutdown; the second ends the process at once.
pub(super) async fn stop_on((mut interrupt, mut terminate): (Signal, Signal), stop: CancellationToken) {
    for exit in [false, true] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if exit {
            std::process::exit(130);
        }
        info!("shutting down after the requests in flight; a second signal exits at once");
        stop.cancel();
    }
}

pub(super) fn health_address(text: &str) -> Result<HealthAddress, String> {
    match text {
        "off" => Ok(HealthAddress(None)),
        _ => text
            .parse()
            .map(|address| HealthAddress(Some(address)))
            .map_err(|_| "give ADDRESS:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080, or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::command::{Cli, Command};

    fn args(line: &str) -> ControllersArgs {
        let line = format!("entourage controllers {line}");
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Controllers(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_flags_the_defaults_of_the_design_hold() {
        let options = options(&args(""));
        assert!(options.propagate_deps && options.leader_election && options.model_resources);
        assert_eq!(options.lease_timing, Timing::default());
        assert_eq!(options.events, Recorded::Once);
        assert_eq!(options.cluster_namespace, "karmada-cluster");
        assert_eq!(options.deletion_grace, Duration::from_secs(5));
        assert_eq!(options.dependency_wait, Duration::from_secs(30));
        assert_eq!(options.cluster_failure_threshold, Duration::from_secs(30));
        assert_eq!(options.cluster_success_threshold, Duration::ZERO);
        assert_eq!(options.cluster_monitor_grace, Duration::from_secs(40));
        assert_eq!(options.cluster_startup_grace, Duration::from_secs(60));
        assert_eq!(
            options.health_addr,
            Some(SocketAddr::from(([127, 0, 0, 1], 8080)))
        );
    }

    #[test]
    fn estimators_are_asked_only_where_that_is_enabled_and_with_the_defaults_of_karmada() {
        use entourage_controllers::estimators;
        assert_eq!(options(&args("")).estimators, None);
        assert_eq!(
            options(&args("--insecure-skip-estimator-verify")).estimators,
            None
        );
        assert_eq!(
            options(&args("--enable-scheduler-estimator")).estimators,
            Some(estimators::Options::default())
        );
        let line = "--enable-scheduler-estimator=true --disable-scheduler-estimator-in-pull-mode \
            --scheduler-estimator-timeout 5s --scheduler-estimator-port 1 --scheduler-estimator-service-namespace ns \
            --scheduler-estimator-service-prefix p --scheduler-estimator-ca-file ca --scheduler-estimator-cert-file cert \
            --scheduler-estimator-key-file key";
        let want = estimators::Options {
            timeout: Duration::from_secs(5),
            namespace: "ns".into(),
            prefix: "p".into(),
            port: 1,
            in_pull_mode: false,
            tls: Some(estimators::Tls {
                ca_file: Some("ca".into()),
                identity: Some(("cert".into(), "key".into())),
                skips_verification: false,
            }),
        };
        check(&args(line)).unwrap();
        assert_eq!(options(&args(line)).estimators, Some(want));
        let blind = options(&args(
            "--enable-scheduler-estimator --insecure-skip-estimator-verify",
        ))
        .estimators;
        let tls = estimators::Tls {
            skips_verification: true,
            ..estimators::Tls::default()
        };
        assert_eq!(blind.and_then(|options| options.tls), Some(tls));
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        check(&args("--descheduler")).unwrap();
        for line in [
            "--descheduler --enable-cluster-resource-modeling=false",
            "--scheduler-estimator-timeout 0s",
            "--scheduler-estimator-timeout 31s",
            "--scheduler-estimator-cert-file cert --scheduler-estimator-key-file key",
            "--descheduler --unschedulable-threshold 0s",
        ] {
            assert!(check(&args(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn flags_reach_the_controllers() {
        let line = "--feature-gates PropagateDeps=false --dependency-deletion-grace 500ms --dependency-wait 1m \
                    --cluster-failure-threshold 20s --cluster-success-threshold 10s --cluster-monitor-grace-period 41s \
                    --cluster-startup-grace-period 61s --leader-elect false --leader-elect-lease-duration 3s --leader-elect-renew-deadline 2s \
                    --leader-elect-retry-period 500ms --health-addr off --cluster-namespace fleet --enable-cluster-resource-modeling=false";
        let options = options(&args(line));
        assert!(!options.propagate_deps && !options.leader_election && !options.model_resources);
        assert_eq!(options.lease_timing.longest_call(), Duration::from_millis(900));
        options.lease_timing.check().unwrap();
        assert_eq!(options.deletion_grace, Duration::from_millis(500));
        assert_eq!(options.dependency_wait, Duration::from_secs(60));
        assert_eq!(options.cluster_failure_threshold, Duration::from_secs(20));
        assert_eq!(options.cluster_success_threshold, Duration::from_secs(10));
        assert_eq!(options.cluster_monitor_grace, Duration::from_secs(41));
        assert_eq!(options.cluster_startup_grace, Duration::from_secs(61));
        assert_eq!(
            super::options(&args("--events warnings")).events,
            Recorded::Warnings
        );
        assert_eq!(args("--worker-threads 1").worker_threads, 1);
        assert_eq!(super::options(&args("")).deschedule_after, None);
        assert_eq!(
            super::options(&args("--descheduler --unschedulable-threshold 2m")).deschedule_after,
            Some(Duration::from_secs(120))
        );
        assert_eq!(
            (options.health_addr, options.cluster_namespace.as_str()),
            (None, "fleet")
        );
    }

    #[test]
    fn controllers_that_are_off_by_default_are_turned_on_by_name() {
        let line =
            "--controllers=*,agentcsrapproving,bootstrapsigner,hpaScaleTargetMarker,deploymentReplicasSyncer";
        for (line, on) in [("", false), (line, true)] {
            let options = options(&args(line));
            assert_eq!(
                (
                    options.approve_agents,
                    options.sign_cluster_info,
                    options.mark_scale_targets,
                    options.sync_replicas
                ),
                (on, on, on, on),
                "{line}"
            );
        }
    }

    #[test]
    fn a_leader_is_elected_everywhere_unless_set_otherwise() {
        let table = [
            ("", true),
            ("--leader-elect", true),
            ("--leader-elect=true", true),
            ("--leader-elect=false", false),
        ];
        for (line, wanted) in table {
            assert_eq!(options(&args(line)).leader_election, wanted, "{line}");
        }
    }

    #[test]
    fn durations_of_the_lease_that_do_not_fit_are_reported() {
        for (line, says) in [
            ("--leader-elect-lease-duration 1500ms", "whole seconds"),
            ("--leader-elect-renew-deadline 15s", "1s longer"),
            ("--leader-elect-retry-period 10s", "1.2 times"),
        ] {
            let problem = options(&args(line)).lease_timing.check().unwrap_err();
            assert!(problem.contains(says), "{line}: {problem}");
        }
    }
}
