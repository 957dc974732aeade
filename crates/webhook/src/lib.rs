//! Admission over HTTPS: the hub's API server sends the objects that users write, and `entourage-admission` decides.
//!
//! ```text
//! API server ──AdmissionReview──► server ──► review ──► admission ──► patch, or refusal
//!      ▲                                                  (rules)
//!      └── configurations, caBundle ◄── register ◄── certificates ◄──► Secret on the hub
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`review`] | from the JSON of a review to the JSON of its response |
//! | `distributions` | requests to the hub about a ResourceDistribution and its author |
//! | [`server`] | the routes of admission, and the lists of other objects |
//! | `listener` | HTTPS: limits, deadlines, graceful shutdown |
//! | `metrics` | requests by webhook and code, and their duration |
//! | [`interpret`] | for authors of interpreter webhooks: from a trait to a server of both contracts |
//! | [`certificates`] | our own authority and certificate, and their renewal |
//! | [`register`] | the Secret that replicas share, and the configurations that point to this server |
//!
//! The control plane does not need the webhook: objects that are written while it is down are validated again when they are
//! planned.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use entourage_admission::configuration::{Address, NAME};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

pub mod certificates;
mod distributions;
pub mod interpret;
pub mod listener;
mod metrics;
mod options;
pub mod register;
pub mod review;
pub mod server;
#[cfg(test)]
mod tests;

use distributions::Distributions;
pub(crate) use options::DEADLINE;
pub use options::{Error, Observer, Options};
use register::Registrar;
use server::Server;

/// The longest time after which a failed round is retried.
const AGAIN: Duration = Duration::from_secs(5);

/// The source of the present time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Serves until `stop`: creates or loads certificates, listens, points the hub's configurations to itself, and checks all of it
/// once a round. `ready` receives the address once the hub has the configurations. At `stop` it reports that it is not ready,
/// removes its configurations from the hub if it should, and serves for a while longer.
///
/// # Errors
/// The address cannot be bound. A hub that refuses or does not respond is retried; that is logged.
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
    let (registered, is_ready) = watch::channel(false);
    let distributions = Distributions::new(
        client.clone(),
        options.namespace.clone(),
        options.authorize_distributions,
    );
    let server = Server::new(client, options.settings, distributions, current, is_ready)
        .observed(options.observer.clone())
        .measured(options.process);
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
                if !registered.send_replace(true) {
                    info!(%bound, "webhook configurations are registered on the hub");
                }
                if let Some(ready) = ready.take() {
                    let _ = ready.send(bound);
                }
                options.round
            }
            Err(error) => {
                warn!(%error, "certificates or webhook configurations are not up to date; retrying");
                options.round.min(AGAIN)
            }
        };
    }
    registered.send_replace(false);
    if options.remove_on_exit {
        for (kind, removed) in registrar.remove().await {
            match removed {
                Ok(()) => info!(
                    kind,
                    name = NAME,
                    "the webhook configuration is removed from the hub"
                ),
                Err(error) => {
                    warn!(%error, "a webhook configuration stays on the hub: delete it, or start again")
                }
            }
        }
    }
    // During a rolling update the Service still sends reviews here for a while, and an API server does until it observes the
    // removal: a refused connection is a refused write.
    tokio::time::sleep(options.linger).await;
    end.cancel();
    let _ = served.await;
    Ok(())
}
