//! Options of the webhook, and errors that end it.

use std::{net::SocketAddr, time::Duration};

use entourage_core::admission::{Settings, configuration::Address};

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
