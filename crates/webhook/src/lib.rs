//! Admission over HTTPS: the hub's API server sends what is written, and is told what `entourage-core` decides.
//!
//! ```text
//! API server ──AdmissionReview──► server ──► review ──► core::admission ──► patch, or refusal
//!      ▲                                                  (rules)
//!      └── configurations, caBundle ◄── register ◄── certificates ◄──► Secret on the hub
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`review`] | from the JSON of a review to the JSON of its answer |
//! | `distributions` | what the hub is asked about a ResourceDistribution and its author |
//! | [`server`] | admission's routes, and the looks at other objects |
//! | `listener` | HTTPS: bounds, deadlines, a graceful end |
//! | [`interpret`] | for authors of hooks that interpret kinds: from a trait to a server of both contracts |
//! | [`certificates`] | an authority and a certificate of our own, and when they are renewed |
//! | [`register`] | the Secret that replicas share, and the configurations that point here |
//!
//! The control plane does not need it: whatever passes while it is down is judged again when it is planned.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use entourage_core::admission::{
    Settings,
    configuration::{Address, NAME},
};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

pub mod certificates;
mod distributions;
pub mod interpret;
mod listener;
pub mod register;
pub mod review;
pub mod server;
#[cfg(test)]
mod tests;

use distributions::Distributions;
use register::Registrar;
use server::Server;

/// How soon a round that failed is made again.
const AGAIN: Duration = Duration::from_secs(5);

/// The deadline of a call to the hub.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

/// How the webhook runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 takes any.
    pub bind: SocketAddr,
    /// Where the hub's API server finds it; `None`: at the address that it listens on.
    pub address: Option<Address>,
    /// Where the Secret with its certificates lies, and where copies are tried, without a trace.
    pub namespace: String,
    /// Name of that Secret.
    pub secret: String,
    /// What is allowed.
    pub settings: Settings,
    /// Whether authors of ResourceDistributions must be allowed to write the copies themselves.
    pub authorize_distributions: bool,
    /// Whether its configurations are removed from the hub when it ends: on a machine where nothing will come in its place.
    pub remove_on_exit: bool,
    /// How often certificates and configurations are looked after.
    pub round: Duration,
    /// How long it serves on at its end: whoever sends reviews here hears a moment later that it goes.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 8443)),
            address: None,
            namespace: "karmada-system".to_owned(),
            secret: "entourage-webhook".to_owned(),
            settings: Settings::default(),
            authorize_distributions: true,
            remove_on_exit: false,
            round: Duration::from_secs(60),
            linger: Duration::from_secs(3),
        }
    }
}

/// What can go wrong for good.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}; choose another with --bind-address and --port")]
    Bind {
        /// Which one.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The hub refuses, or does not answer.
    #[error("{what}: {error}")]
    Hub {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: Box<kube::Error>,
    },
    /// A certificate cannot be made or used.
    #[error("cannot make a certificate for {names}: {error}")]
    Certificate {
        /// For whom.
        names: String,
        /// Why.
        error: String,
    },
    /// Others write the Secret whenever we do.
    #[error("the Secret {0} changes faster than it can be written; is another program managing it?")]
    Raced(String),
}

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Serves until `stop`: makes or loads certificates, listens, points the hub's configurations here, and looks after all of
/// it once a round. `ready` is told the address when the hub has been told. At `stop` it says that it is not ready, takes
/// its configurations off the hub if it is to, and serves on for a moment.
///
/// # Errors
/// When the address cannot be had. A hub that refuses or does not answer is asked until it does; that is logged.
pub async fn run(
    options: Options,
    client: kube::Client,
    clock: Clock,
    ready: Option<tokio::sync::oneshot::Sender<SocketAddr>>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let listener = TcpListener::bind(options.bind).await;
    let listener = listener.map_err(|error| Error::Bind {
        address: options.bind,
        error,
    })?;
    let bound = listener.local_addr().unwrap_or(options.bind);
    let address = options
        .address
        .clone()
        .unwrap_or_else(|| Address::Url(format!("https://{bound}")));
    let registrar = Registrar::new(client.clone(), &options, address);
    let (tls, current) = watch::channel(None);
    let (told, is_ready) = watch::channel(false);
    let distributions = Distributions::new(
        client.clone(),
        options.namespace.clone(),
        options.authorize_distributions,
    );
    let server = Server::new(client, options.settings, distributions, current, is_ready);
    let end = CancellationToken::new();
    let served = AbortOnDropHandle::new(tokio::spawn(server.serve(listener, end.clone())));
    let mut ready = ready;
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
        let round = async {
            let identity = registrar.identity(clock()).await?;
            tls.send_if_modified(|current| identity.replace(current));
            registrar.register(&identity.bundle()).await
        };
        let done = tokio::select! {
            () = stop.cancelled() => break,
            done = round => done,
        };
        wait = match done {
            Ok(()) => {
                if !told.send_replace(true) {
                    info!(%bound, "the hub sends its reviews here");
                }
                if let Some(ready) = ready.take() {
                    let _ = ready.send(bound);
                }
                options.round
            }
            Err(error) => {
                warn!(%error, "not everything is in order; trying again");
                AGAIN
            }
        };
    }
    told.send_replace(false);
    if options.remove_on_exit {
        match registrar.remove().await {
            Ok(()) => info!(name = NAME, "the configurations are removed from the hub"),
            Err(error) => warn!(%error, "the configurations stay on the hub: remove them, or start again"),
        }
    }
    // A rolling update sends reviews here until its Service knows better, an API server until it has heard of the removal:
    // a connection that is refused is a write that is refused.
    tokio::time::sleep(options.linger).await;
    end.cancel();
    let _ = served.await;
    Ok(())
}
