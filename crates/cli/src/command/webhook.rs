//! `entourage webhook`: validates the objects written on a hub, until SIGINT or SIGTERM.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use clap::{ArgAction, Args, ValueEnum};
use entourage_admission::{SELECTORS_PER_POLICY, Settings, configuration::Address};
use entourage_controllers::{
    metrics::process_families,
    traces::{SpanCounts, Traces},
};
use entourage_core::config::KINDS_PER_NAMESPACE;
use entourage_lua::Lua;
use entourage_webhook::{Observer, Options};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::controllers::{IN_POD, hub, stop_on};
use crate::{
    args::HubArgs,
    connect,
    logging::{self, LogArgs},
    traces::TraceArgs,
};

/// Flags of `entourage webhook`.
#[derive(Args, Clone, Debug)]
pub struct WebhookArgs {
    /// The hub; in a pod and without a kubeconfig, the cluster that the pod runs in.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind_address: IpAddr,

    /// Port to listen on; 0 takes any
    #[arg(long, value_name = "PORT", default_value_t = 8443)]
    pub port: u16,

    /// Service on the hub through which the hub's API server reaches this webhook: NAMESPACE/NAME, or NAMESPACE/NAME:PORT
    #[arg(long, value_name = "SERVICE", value_parser = service, conflicts_with = "url")]
    pub service: Option<Address>,

    /// URL at which the hub's API server reaches this webhook: `https://HOST[:PORT]` (default, without --service: the address
    /// it listens on)
    #[arg(long, value_name = "URL", value_parser = url)]
    pub url: Option<Address>,

    /// Namespace on the hub of the Secret entourage-webhook with its certificates
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-system")]
    pub namespace: String,

    /// Allow ClusterTaintPolicies to set NoExecute taints, which evict workloads
    #[arg(long)]
    pub allow_no_execute_taint_policy: bool,

    /// Maximum number of custom kinds that the PropagationPolicies of a namespace may name; the controllers have the same flag
    #[arg(long, value_name = "COUNT", default_value_t = KINDS_PER_NAMESPACE)]
    pub kinds_per_namespace: usize,

    /// Maximum number of resource selectors that a PropagationPolicy may have
    #[arg(long, value_name = "COUNT", default_value_t = SELECTORS_PER_POLICY)]
    pub selectors_per_policy: usize,

    /// Require that authors of ResourceDistributions may write the copies themselves, and read the distributed object
    #[arg(long, action = ArgAction::Set, default_value_t = true, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub authorize_distributions: bool,

    /// Remove the webhook configurations from the hub at exit; auto: if only this machine can reach the webhook
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub remove_on_exit: RemoveOnExit,

    /// Traces.
    #[command(flatten)]
    pub traces: TraceArgs,

    /// Logging.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The condition for removing the configurations at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RemoveOnExit {
    /// On a loopback address, where nothing replaces it.
    #[default]
    Auto,
    /// Always: no write is validated until the next one starts.
    True,
    /// Never: policies cannot be written until the next one starts.
    False,
}

/// Runs the webhook until it ends.
///
/// # Errors
/// The flags contradict each other, the hub's configuration is not usable, or the address cannot be bound.
pub async fn run(args: WebhookArgs) -> Result<()> {
    logging::init(&args.log)?;
    let mut options = options(&args)?;
    let exporter = args.traces.options("entourage-webhook").map(|traced| {
        let (traces, exporter) = Traces::start(&traced, SpanCounts::default());
        options.observer = Observer::new(move |webhook, code, took, parent| {
            traces.reviewed(webhook, code, took, parent);
        });
        exporter
    });
    let in_pod = std::env::var_os(IN_POD).is_some();
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = connect::client(hub(&args.hub, in_pod).await?)?;
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on(signals, stop.clone()));
    let ended = entourage_webhook::run(options, client, Arc::new(Timestamp::now), None, stop).await;
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    ended.context("the webhook stopped")
}

/// The flags as options of the webhook.
fn options(args: &WebhookArgs) -> Result<Options> {
    let WebhookArgs {
        hub: _,
        bind_address,
        port,
        service,
        url,
        namespace,
        allow_no_execute_taint_policy,
        kinds_per_namespace,
        selectors_per_policy,
        authorize_distributions,
        remove_on_exit,
        traces: _,
        log: _,
    } = args;
    let address = service.clone().or_else(|| url.clone());
    if address.is_none() && !bind_address.is_loopback() {
        bail!(
            "give the address of this webhook for the hub's API server: --service NAMESPACE/NAME or --url https://HOST:PORT"
        );
    }
    Ok(Options {
        bind: SocketAddr::new(*bind_address, *port),
        namespace: namespace.clone(),
        settings: Settings {
            allow_no_execute: *allow_no_execute_taint_policy,
            kinds_per_namespace: Some(*kinds_per_namespace),
            selectors_per_policy: Some(*selectors_per_policy),
            scripts: Some(&Lua::STANDARD),
        },
        authorize_distributions: *authorize_distributions,
        remove_on_exit: match remove_on_exit {
            RemoveOnExit::Auto => address.as_ref().is_none_or(Address::is_loopback),
            RemoveOnExit::True => true,
            RemoveOnExit::False => false,
        },
        address,
        process: Some(process_families),
        ..Options::default()
    })
}

pub(super) fn service(text: &str) -> Result<Address, String> {
    const WANTED: &str =
        "give NAMESPACE/NAME or NAMESPACE/NAME:PORT, such as karmada-system/entourage-webhook";
    let (namespace, rest) = text.split_once('/').ok_or(WANTED)?;
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| WANTED)?),
        None => (rest, 443),
    };
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err(WANTED.to_owned());
    }
    Ok(Address::Service {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
    })
}

pub(super) fn url(text: &str) -> Result<Address, String> {
    const WANTED: &str = "give https://HOST or https://HOST:PORT, without a path";
    let authority = text.strip_prefix("https://").ok_or(WANTED)?.trim_end_matches('/');
    if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
        return Err(WANTED.to_owned());
    }
    Ok(Address::Url(format!("https://{authority}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use entourage_core::interpreter::operations::Operation;

    use super::*;
    use crate::command::{Cli, Command};

    fn args(line: &str) -> WebhookArgs {
        let line = format!("entourage webhook {line}");
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Webhook(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_flags_it_serves_the_hub_on_the_same_machine_and_leaves_nothing() {
        let options = options(&args("")).unwrap();
        assert_eq!(options.bind, SocketAddr::from(([127, 0, 0, 1], 8443)));
        assert_eq!((options.address, options.remove_on_exit), (None, true));
        assert!(!options.settings.allow_no_execute && options.authorize_distributions);
        let families = options.process.map(|families| families()).unwrap_or_default();
        assert!(families.contains("entourage_build_info{"), "{families}");
    }

    #[test]
    fn authors_are_authorized_unless_a_flag_disables_it() {
        for (line, authorized) in [
            ("--authorize-distributions=false", false),
            ("--authorize-distributions=true", true),
            ("--authorize-distributions", true),
        ] {
            assert_eq!(
                options(&args(line)).unwrap().authorize_distributions,
                authorized,
                "{line}"
            );
        }
    }

    #[test]
    fn scripts_are_compiled_before_they_are_stored() {
        let scripts = options(&args("")).unwrap().settings.scripts.unwrap();
        let wrong = scripts.compile("mine", Operation::Health, "function InterpretHealth()\n  end end");
        let why = wrong.unwrap_err();
        assert!(why.contains("\"mine\": line 2"), "{why}");
        assert!(scripts.compile("mine", Operation::Health, "local a = 1").is_ok());
    }

    #[test]
    fn an_address_that_others_reach_is_named_and_its_configurations_outlive_a_restart() {
        assert!(options(&args("--bind-address 0.0.0.0")).is_err());
        let named = options(&args("--bind-address 0.0.0.0 --port 9 --service a/b:444")).unwrap();
        let service = Address::Service {
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            port: 444,
        };
        assert_eq!((named.address, named.remove_on_exit), (Some(service), false));
        let named = options(&args("--url https://hooks.example.com/")).unwrap();
        let url = Address::Url("https://hooks.example.com".to_owned());
        assert_eq!((named.address, named.remove_on_exit), (Some(url), false));
        assert!(options(&args("--url https://[::1]:8443")).unwrap().remove_on_exit);
        assert!(
            options(&args("--url https://h --remove-on-exit true"))
                .unwrap()
                .remove_on_exit
        );
        assert!(!options(&args("--remove-on-exit false")).unwrap().remove_on_exit);
    }
}
