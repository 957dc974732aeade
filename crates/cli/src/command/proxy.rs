//! `entourage proxy`: serves the hub's API with `clusters/NAME/proxy` added, until SIGINT or SIGTERM.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use entourage_controllers::{
    proxy::{Front, Proxy, ProxyOptions},
    serve::{self, Readiness},
};
use entourage_webhook::listener::{self, Limits};
use kube::config::AuthInfo;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::controllers::{HealthAddress, IN_POD, health_address, hub, stop_on};
use crate::{
    args::{CLUSTER_NAMESPACE, HubArgs},
    connect::Connection,
    logging::{self, LogArgs},
};

/// The deadline of a call to the hub of our own.
const DEADLINE: Duration = Duration::from_secs(10);

/// The limits of the listener. Each watch of a client may be a connection. Callers need not be known to the hub, so one of them has
/// few requests on a connection; clients with more watches open further ones.
const LIMITS: Limits = Limits {
    connections: 4096,
    streams: 32,
};

/// Flags of `entourage proxy`.
#[derive(Args, Clone, Debug)]
pub struct ProxyArgs {
    /// The hub; in a pod and without a kubeconfig, the cluster that the pod runs in.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind_address: IpAddr,

    /// Port to listen on; 0 takes any
    #[arg(long, value_name = "PORT", default_value_t = 8444)]
    pub port: u16,

    /// Certificate to serve with, and its chain, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: PathBuf,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: PathBuf,

    /// Namespace on the hub of the Secrets of Clusters
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Address that serves /healthz, /readyz and /metrics over plain HTTP, or off
    #[arg(long, value_name = "ADDRESS", value_parser = health_address, default_value = "off")]
    pub health_addr: HealthAddress,

    /// Logging.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs the server until it ends.
///
/// # Errors
/// A file or the hub's configuration is not usable, or the address cannot be bound.
pub async fn run(args: ProxyArgs) -> Result<()> {
    logging::init(&args.log)?;
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read =
        |file: &PathBuf| std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    let (chain, key) = (read(&args.tls_cert_file)?, read(&args.tls_private_key_file)?);
    let tls = entourage_webhook::interpret::tls(&chain, &key).map_err(|error| {
        let (certificate, key) = (args.tls_cert_file.display(), args.tls_private_key_file.display());
        anyhow!("{certificate} and {key} cannot be served with: {error}")
    })?;
    let in_pod = std::env::var_os(IN_POD).is_some();
    let hub = hub(&args.hub, in_pod).await?;
    verified(&hub)?;
    let stop = CancellationToken::new();
    let front = Arc::new(front(&hub, &args.cluster_namespace, &stop)?);
    let bind = SocketAddr::new(args.bind_address, args.port);
    let listener = TcpListener::bind(bind)
        .await
        .with_context(|| format!("cannot listen on {bind}"))?;
    if let Some(address) = args.health_addr.0 {
        let health = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let metrics = front.metrics().clone();
        tokio::spawn(serve::serve(health, Readiness::always(), metrics, stop.clone()));
    }
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on(signals, stop.clone()));
    info!(address = %listener.local_addr()?, "serving the hub and clusters/NAME/proxy");
    serve(listener, tls, front, stop).await;
    Ok(())
}

/// Refuses a hub that could be anybody, or whose line is open: the tokens of all callers are sent there.
fn verified(hub: &Connection) -> Result<()> {
    let is_loopback = crate::join::is_loopback(&hub.cluster_url.to_string());
    if hub.accept_invalid_certs {
        bail!(
            "the kubeconfig of the hub skips the verification of certificates, and the tokens of all callers are sent there; give one \
             with certificate-authority-data"
        );
    }
    if hub.cluster_url.scheme_str() != Some("https") && !is_loopback {
        bail!(
            "the hub's address {} is not encrypted, and the tokens of all callers are sent there; give a kubeconfig with https://",
            hub.cluster_url
        );
    }
    Ok(())
}

/// The server in front of this hub. Connections that have changed their protocol end with `stop`.
///
/// # Errors
/// The configuration's credentials, certificates or proxy cannot be used.
pub fn front(hub: &Connection, cluster_namespace: &str, stop: &CancellationToken) -> Result<Front> {
    let clients = entourage_controllers::passing_clients();
    let own = entourage_controllers::plain_clients()("hub", hub.config.clone());
    let own = own.context("cannot make a client of the hub")?;
    let mut anonymous = hub.config.clone();
    // The caller's own credentials are passed on, and no others.
    anonymous.auth_info = AuthInfo::default();
    let passing = clients("hub", anonymous).context("cannot make a client of the hub")?;
    let proxy = Proxy::new(ProxyOptions {
        hub: own.clone(),
        clients,
        cluster_namespace: cluster_namespace.to_owned(),
        deadline: DEADLINE,
        stop: stop.clone(),
    });
    Ok(Front::new(own, passing, proxy))
}

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    tls: rustls::ServerConfig,
    front: Arc<Front>,
    stop: CancellationToken,
) {
    let (_certificate, current) = watch::channel(Some((Vec::new(), Arc::new(tls))));
    listener::serve(listener, current, LIMITS, stop, move |request| {
        let front = front.clone();
        async move { front.answer(request).await }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;

    #[test]
    fn the_tokens_of_callers_are_sent_to_no_hub_that_could_be_another() {
        for (url, skips, says) in [
            ("https://hub:6443", false, None),
            ("http://127.0.0.1:8080", false, None),
            ("https://hub:6443", true, Some("skips the verification")),
            ("http://hub:8080", false, Some("not encrypted")),
        ] {
            let mut config = Config::new(url.parse().unwrap());
            config.accept_invalid_certs = skips;
            let error = verified(&Connection::from(config))
                .err()
                .map(|error| error.to_string());
            assert_eq!(error.is_some(), says.is_some(), "{url}: {error:?}");
            assert!(
                error.is_none_or(|error| error.contains(says.unwrap_or_default())),
                "{url}"
            );
        }
    }
}
