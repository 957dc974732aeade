//! The options of the webhook, and its permanent errors.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use entourage_admission::{Settings, configuration::Address};
use http::HeaderMap;

/// The deadline of a call to the hub.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

/// The options of the webhook.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 takes any port.
    pub bind: SocketAddr,
    /// The address at which the hub's API server reaches it; `None`: the address that it listens on.
    pub address: Option<Address>,
    /// The namespace of the Secret with its certificates, and of dry runs of copies.
    pub namespace: String,
    /// Name of that Secret.
    pub secret: String,
    /// The settings of the rules.
    pub settings: Settings,
    /// True if authors of ResourceDistributions must be allowed to write the copies themselves.
    pub authorize_distributions: bool,
    /// True if its configurations are removed from the hub at shutdown: for a machine where nothing replaces it.
    pub remove_on_exit: bool,
    /// The interval between checks of certificates and configurations.
    pub round: Duration,
    /// The time for which it serves after `stop`: API servers and Services observe the shutdown with a delay.
    pub linger: Duration,
    /// Called after each review.
    pub observer: Observer,
    /// The metrics of the process, as OpenMetrics families without an end; called on each scrape.
    pub process: Option<fn() -> String>,
}

/// The arguments are those of [`Observer::new`].
type Observe = dyn Fn(&'static str, u16, Duration, Option<&str>) + Send + Sync;

/// A function that is called after each review.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Observe>>);

impl Observer {
    /// Calls this function with the webhook, the code as in metrics, the duration, and the request's `traceparent`.
    pub fn new(observe: impl Fn(&'static str, u16, Duration, Option<&str>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    /// The request's `traceparent`, if anyone is called.
    pub(crate) fn parent(&self, headers: &HeaderMap) -> Option<String> {
        self.0.as_ref()?;
        Some(headers.get("traceparent")?.to_str().ok()?.to_owned())
    }

    pub(crate) fn observe(&self, webhook: &'static str, code: u16, took: Duration, parent: Option<&str>) {
        if let Some(observe) = &self.0 {
            observe(webhook, code, took, parent);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer" } else { "none" })
    }
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
            observer: Observer::default(),
            process: None,
        }
    }
}

/// Permanent errors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}; choose another with --bind-address and --port")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
    /// The hub refuses, or does not respond.
    #[error("{what}: {error}")]
    Hub {
        /// The request.
        what: String,
        /// The cause.
        error: Box<kube::Error>,
    },
    /// A certificate cannot be created or used.
    #[error("cannot make a certificate for {names}: {error}")]
    Certificate {
        /// The names in it.
        names: String,
        /// The cause.
        error: String,
    },
    /// Another writer changes the Secret with each of our writes.
    #[error("the Secret {0} changes faster than it can be written; is another program managing it?")]
    Raced(String),
}
