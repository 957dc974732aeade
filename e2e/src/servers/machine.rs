//! A cluster of either lane.

use std::path::PathBuf;

use anyhow::Result;
use kube::{Client, Config};

use super::{cluster::RealCluster, embedded::EmbeddedCluster};

/// A cluster as tests use it.
pub enum TestCluster {
    /// Processes of a real one.
    Real(Box<RealCluster>),
    /// An embedded one.
    Embedded(Box<EmbeddedCluster>),
}

impl TestCluster {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Real(cluster) => cluster.name(),
            Self::Embedded(cluster) => cluster.name(),
        }
    }

    /// A client as admin, without retries of its own. Must be called inside a Tokio runtime, and dies with it.
    #[must_use]
    pub fn client(&self) -> Client {
        match self {
            Self::Real(cluster) => cluster.client(),
            Self::Embedded(cluster) => cluster.client(),
        }
    }

    /// The configuration of [`client`](Self::client).
    #[must_use]
    pub fn config(&self) -> Config {
        match self {
            Self::Real(cluster) => cluster.config(),
            Self::Embedded(cluster) => cluster.config(),
        }
    }

    /// `https://127.0.0.1:<port>`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self {
            Self::Real(cluster) => cluster.endpoint(),
            Self::Embedded(cluster) => cluster.endpoint(),
        }
    }

    /// The certificate of its authority.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        match self {
            Self::Real(cluster) => cluster.ca_pem(),
            Self::Embedded(cluster) => cluster.ca_pem(),
        }
    }

    /// The path of its kubeconfig.
    #[must_use]
    pub fn kubeconfig_path(&self) -> PathBuf {
        match self {
            Self::Real(cluster) => cluster.kubeconfig_path(),
            Self::Embedded(cluster) => cluster.kubeconfig_path(),
        }
    }

    /// Makes the API server hang: it accepts connections and does not respond.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> Result<()> {
        match self {
            Self::Real(cluster) => cluster.pause(),
            Self::Embedded(cluster) => {
                cluster.pause();
                Ok(())
            }
        }
    }

    /// Undoes [`pause`](Self::pause).
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self) -> Result<()> {
        match self {
            Self::Real(cluster) => cluster.resume(),
            Self::Embedded(cluster) => {
                cluster.resume();
                Ok(())
            }
        }
    }

    /// True if the API server runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self {
            Self::Real(cluster) => cluster.pids().apiserver.is_some(),
            Self::Embedded(cluster) => cluster.is_running(),
        }
    }

    /// Ends the API server as a crash does; its data stay.
    pub fn stop_apiserver(&self) {
        match self {
            Self::Real(cluster) => cluster.stop_apiserver(),
            Self::Embedded(cluster) => cluster.shut(),
        }
    }

    /// Starts the API server again on the same port and data, and returns when it is ready.
    ///
    /// # Errors
    /// When it runs already or does not become ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        match self {
            Self::Real(cluster) => cluster.start_apiserver().await,
            Self::Embedded(cluster) => cluster.reopen().await,
        }
    }
}
