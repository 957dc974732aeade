//! `entourage agent`: applies the Works of a cluster in Pull mode, from inside that cluster, until SIGINT or SIGTERM.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Args;
use entourage_controllers::agent::Options;
use kube::Config;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

mod renewal;

use renewal::{Hub, Renewal, Secret, Store};

use super::controllers::{HealthAddress, IN_POD, RecordedEvents, default_threads, health_address, stop_on};
use crate::{
    args::{self, CLUSTER_NAMESPACE},
    connect,
    logging::{self, LogArgs},
    registration::kubeconfig::client_certificate,
    traces::TraceArgs,
};

/// Flags of `entourage agent`.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// Name of the Cluster on the hub
    #[arg(long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster_name: String,

    /// Kubeconfig of the hub
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: PathBuf,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME")]
    pub hub_context: Option<String>,

    /// Kubeconfig of the cluster that Works are applied on (default: in a pod the cluster that it runs in, else $KUBECONFIG or
    /// ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace on the hub with the Lease of the cluster
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub namespace: String,

    /// Time for which a renewal of the Lease is valid; it is renewed four times in that time
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "40s")]
    pub cluster_lease_duration: Duration,

    /// Time between two probes of the cluster, after which its status is written if it changed
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "10s")]
    pub cluster_status_update_frequency: Duration,

    /// Time for which the cluster must fail its probes before it is not ready
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "30s")]
    pub cluster_failure_threshold: Duration,

    /// Time for which a cluster that was not ready must pass its probes before it is ready
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "0s")]
    pub cluster_success_threshold: Duration,

    /// Secret of the cluster in which a renewed certificate is stored, under the key kubeconfig (default: the file of --hub-kubeconfig is
    /// written)
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = renewal::secret)]
    pub hub_kubeconfig_secret: Option<Secret>,

    /// Time between two checks whether the client certificate of --hub-kubeconfig must be renewed
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "5m")]
    pub cert_rotation_checking_interval: Duration,

    /// Share of the validity of the client certificate that is left when it is renewed, from 0 (never) to 1
    #[arg(long, value_name = "SHARE", value_parser = renewal::share, default_value = "0.2")]
    pub cert_rotation_remaining_time_threshold: f64,

    /// Collect the capacity of the cluster from its nodes and pods, for policies that divide replicas by room
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub enable_cluster_resource_modeling: bool,

    /// Events recorded about Works on the hub: all of them (once, all), or warnings alone
    #[arg(long, value_name = "WHICH", value_enum, default_value = "once")]
    pub events: RecordedEvents,

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

/// Runs the agent until it ends.
///
/// # Errors
/// A server cannot be reached with this configuration, or the agent ends with an error.
pub async fn run(args: AgentArgs) -> Result<()> {
    logging::init(&args.log)?;
    let in_pod = std::env::var_os(IN_POD).is_some();
    let hub = connect::hub_config(&args.hub_kubeconfig, args.hub_context.as_deref()).await?;
    let member = if in_pod && args.kubeconfig.is_none() && args.context.is_none() {
        Config::incluster()
            .context("this pod has no usable service account; mount one, or give --kubeconfig")?
    } else {
        connect::config(args.kubeconfig.as_deref(), args.context.as_deref())
            .await?
            .config
    };
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on(signals, stop.clone()));
    let clients = entourage_controllers::plain_clients();
    let renewal = Renewal {
        cluster: args.cluster_name.clone(),
        file: args.hub_kubeconfig.clone(),
        context: args.hub_context.clone(),
        store: match &args.hub_kubeconfig_secret {
            Some(secret) => Store::Secret(
                connect::client(connect::Connection::from(member.clone()))?,
                secret.clone(),
            ),
            None => Store::File(args.hub_kubeconfig.clone()),
        },
        interval: args.cert_rotation_checking_interval,
        remaining: args.cert_rotation_remaining_time_threshold,
    };
    let mut hub = Hub {
        kubeconfig: renewal::read(&args.hub_kubeconfig)?,
        config: hub.config,
    };
    let mut pause = Duration::ZERO;
    loop {
        // An agent starts anew with a new certificate: that is no more than a restart of its pod.
        let until = stop.child_token();
        // One that cannot be read is reported when it is to be renewed.
        let certificate = client_certificate(&hub.kubeconfig, args.hub_context.as_deref());
        let certificate = certificate.ok().flatten();
        let options = Options {
            certificate_expires: certificate.map(|certificate| certificate.end),
            ..options(&args)
        };
        let agent = entourage_controllers::agent::run(
            options,
            hub.config.clone(),
            member.clone(),
            clients.clone(),
            until.clone(),
        );
        let mut agent = std::pin::pin!(agent);
        tokio::select! {
            ended = &mut agent => return ended.context("the agent stopped"),
            renewed = renewal.renewed(&hub, pause) => {
                until.cancel();
                agent.await.context("the agent stopped")?;
                (hub, pause) = (renewed, renewal.interval);
            }
        }
        if stop.is_cancelled() {
            return Ok(());
        }
    }
}

/// The flags as options of the agent.
fn options(args: &AgentArgs) -> Options {
    Options {
        lease_namespace: args.namespace.clone(),
        lease_duration: args.cluster_lease_duration,
        model_resources: args.enable_cluster_resource_modeling,
        failure_threshold: args.cluster_failure_threshold,
        success_threshold: args.cluster_success_threshold,
        probe_interval: args.cluster_status_update_frequency,
        health_addr: args.health_addr.0,
        events: args.events.into(),
        traces: args.traces.options("entourage-agent"),
        ..Options::new(&args.cluster_name)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use entourage_controllers::execute::events::Recorded;

    use super::*;
    use crate::command::{Cli, Command};

    fn options_of(line: &str) -> Options {
        let line = format!("entourage agent --cluster-name m1 --hub-kubeconfig hub.yaml {line}");
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Agent(args) => options(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_flags_the_defaults_are_karmadas() {
        let options = options_of("");
        assert_eq!(
            (&*options.cluster, &*options.lease_namespace),
            ("m1", "karmada-cluster")
        );
        assert_eq!(options.lease_duration, Duration::from_secs(40));
        assert_eq!(options.probe_interval, Duration::from_secs(10));
        assert_eq!(options.failure_threshold, Duration::from_secs(30));
        assert!(options.model_resources);
    }

    #[test]
    fn the_role_in_config_has_the_rights_of_the_table() {
        const ROLE: &str = include_str!("../../../../config/agent/member/role.yaml");
        let role: serde_json::Value = serde_saphyr::from_str(ROLE).unwrap();
        assert_eq!(role["rules"], crate::join::rights::rules_of_agent());
    }

    #[test]
    fn flags_reach_the_agent() {
        let options = options_of(
            "--namespace fleet --cluster-lease-duration 8s --cluster-status-update-frequency 1s --health-addr off \
             --cluster-failure-threshold 5s --cluster-success-threshold 6s --enable-cluster-resource-modeling=false \
             --events warnings",
        );
        assert_eq!(options.events, Recorded::Warnings);
        assert_eq!(
            (&*options.lease_namespace, options.lease_duration),
            ("fleet", Duration::from_secs(8))
        );
        assert_eq!(options.probe_interval, Duration::from_secs(1));
        let thresholds = (options.failure_threshold, options.success_threshold);
        assert_eq!(thresholds, (Duration::from_secs(5), Duration::from_secs(6)));
        assert!(!options.model_resources && options.health_addr.is_none());
    }
}
