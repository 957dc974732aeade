//! The admission webhook: the hub's API server sends objects, and gets the answer of `entourage-core`.
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

use entourage_core::admission::configuration::{Address, NAME};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

pub mod certificates;
mod distributions;
pub mod interpret;
mod listener;
mod options;
pub mod register;
pub mod review;
pub mod server;
#[cfg(test)]
mod tests;

use distributions::Distributions;
pub(crate) use options::DEADLINE;
pub use options::{Error, Options};
use register::Registrar;
use server::Server;

/// How soon a round that failed is made again.
const AGAIN: Duration = Duration::from_secs(5);

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
