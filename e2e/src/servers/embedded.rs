//! An embedded cluster that a test can treat as a process: behind a gate that hangs or breaks connections.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use entourage_apiserver::{Cluster, Options, StandIns, listener};
use kube::{Client, Config, config::Kubeconfig};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    HUB, kubeconfig,
    ports::{self, Port},
};

/// The token of `admin`.
const TOKEN: &str = "embedded-admin";

/// The number of attempts to bind a port that this process has just released.
const BINDS: usize = 50;

/// An embedded API server on loopback. Dropping it ends it.
pub struct EmbeddedCluster {
    name: String,
    dir: PathBuf,
    cluster: Cluster,
    authority: listener::Authority,
    /// The address that the gate forwards to.
    behind: SocketAddr,
    address: SocketAddr,
    /// Reserves the port while no socket listens on it, also against the local end of an outgoing connection.
    _port: Port,
    config: Config,
    hangs: watch::Sender<bool>,
    gate: Mutex<Option<CancellationToken>>,
    stop: CancellationToken,
}

impl EmbeddedCluster {
    /// Starts a cluster with its kubeconfig in `dir`, which is made if need be. Must be called inside a Tokio runtime,
    /// and dies with it.
    ///
    /// # Errors
    /// When no port is left or the file cannot be written.
    pub async fn start(name: &str, dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("{}", dir.display()))?;
        let authority = listener::Authority::new().map_err(|error| anyhow::anyhow!(error))?;
        let cluster = Cluster::new(Options {
            name: name.to_owned(),
            admin_token: TOKEN.to_owned(),
            authority: Some(authority.clone()),
            storage_protection: name == HUB,
            // They act where a test starts the stand-in of workloads.
            stand_ins: StandIns {
                deployments: true,
                replica_sets: true,
                stateful_sets: true,
                daemon_sets: true,
                jobs: true,
                ..StandIns::default()
            },
            ..Options::default()
        });
        let stop = CancellationToken::new();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let behind = listener::listen(cluster.clone(), &authority, any, stop.clone()).await?;
        let port = ports::take()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
        let gate = TcpListener::bind(address).await?;
        let text = kubeconfig::render(name, &format!("https://{address}"), &authority.certificate, TOKEN);
        std::fs::write(dir.join("kubeconfig"), &text)?;
        let mut config =
            Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text)?, &Default::default()).await?;
        config.default_retry = false;
        let started = Self {
            name: name.to_owned(),
            dir: dir.to_owned(),
            cluster,
            authority,
            behind,
            address,
            _port: port,
            config,
            hangs: watch::Sender::new(false),
            gate: Mutex::default(),
            stop,
        };
        started.open(gate);
        Ok(started)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn client(&self) -> Client {
        Client::try_from(self.config()).expect("a configuration without surprises: token and one CA")
    }

    /// The configuration of a client, as admin.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    pub(super) fn endpoint(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(super) fn ca_pem(&self) -> &str {
        &self.authority.certificate
    }

    pub(super) fn kubeconfig_path(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The cluster itself.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Connections are accepted and then hang; those that are open hang as well.
    pub(super) fn pause(&self) {
        self.hangs.send_replace(true);
    }

    pub(super) fn resume(&self) {
        self.hangs.send_replace(false);
    }

    pub(super) fn is_running(&self) -> bool {
        self.slot().is_some()
    }

    /// Connections break and new ones are refused.
    pub(super) fn shut(&self) {
        if let Some(gate) = self.slot().take() {
            gate.cancel();
        }
    }

    /// Undoes [`shut`](Self::shut), on the same port.
    pub(super) async fn reopen(&self) -> Result<()> {
        if self.is_running() {
            bail!("the API server of {} runs already", self.name);
        }
        for attempt in 1.. {
            match TcpListener::bind(self.address).await {
                Ok(listener) => {
                    self.open(listener);
                    break;
                }
                // The gate's task has not released the port yet.
                Err(_) if attempt < BINDS => sleep(Duration::from_millis(10)).await,
                Err(error) => return Err(error).with_context(|| format!("binding {}", self.address)),
            }
        }
        Ok(())
    }

    fn open(&self, listener: TcpListener) {
        let shut = self.stop.child_token();
        *self.slot() = Some(shut.clone());
        let (behind, hangs) = (self.behind, self.hangs.subscribe());
        tokio::spawn(gate(listener, behind, hangs, shut));
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<CancellationToken>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EmbeddedCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Passes connections on until `shut`, and nothing while it `hangs`.
async fn gate(
    listener: TcpListener,
    behind: SocketAddr,
    hangs: watch::Receiver<bool>,
    shut: CancellationToken,
) {
    let shut = Arc::new(shut);
    loop {
        let stream = tokio::select! {
            () = shut.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut outer, _)) = stream else {
            // Out of file descriptors, as a rule: accepting again at once would spin.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (mut hangs, shut) = (hangs.clone(), shut.clone());
        tokio::spawn(async move {
            let passed = async {
                while *hangs.borrow() {
                    hangs.changed().await.ok()?;
                }
                let mut inner = TcpStream::connect(behind).await.ok()?;
                let copy = copy_bidirectional(&mut outer, &mut inner);
                tokio::pin!(copy);
                loop {
                    tokio::select! {
                        // While it hangs, copying is only not polled: no byte is lost.
                        _ = &mut copy => return Some(()),
                        _ = hangs.wait_for(|hangs| *hangs) => {}
                    }
                    hangs.wait_for(|hangs| !hangs).await.ok()?;
                }
            };
            tokio::select! {
                () = shut.cancelled() => {}
                _ = passed => {}
            }
        });
    }
}
