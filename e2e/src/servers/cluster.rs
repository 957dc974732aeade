//! One real cluster and what a test can do to it.

mod start;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, bail};
use kube::{Client, Config};

use super::{
    assets::{Assets, Version},
    certificates::Authority,
    kubeconfig,
    ports::Port,
    process::Server,
};

/// The number of attempts to start: another process may take a port between the check and its use.
const ATTEMPTS: usize = 3;

/// etcd, kube-apiserver and kube-controller-manager of one cluster. Dropping it ends them.
///
/// Every method takes `&self`, so that a fleet can be shared by tests; a test that pauses or stops a shared cluster has
/// to bring it back.
pub struct RealCluster {
    name: String,
    dir: PathBuf,
    version: Version,
    authority: Authority,
    token: String,
    config: Config,
    programs: Programs,
    ports: Ports,
    running: Mutex<Running>,
}

/// A binary and its arguments.
type Command = (PathBuf, Vec<String>);

/// The commands of its servers.
struct Programs {
    etcd: Command,
    apiserver: Command,
    controller_manager: Command,
}

/// Process ids for accounting of CPU time and memory. Those of a server that is not running are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pids {
    /// etcd's.
    pub etcd: Option<u32>,
    /// kube-apiserver's; another one after each start.
    pub apiserver: Option<u32>,
    /// kube-controller-manager's.
    pub controller_manager: Option<u32>,
}

#[derive(Debug)]
struct Ports {
    apiserver: Port,
    etcd: Port,
    peer: Port,
}

#[derive(Debug, Default)]
struct Running {
    etcd: Option<Server>,
    apiserver: Option<Server>,
    controller_manager: Option<Server>,
}

impl Running {
    /// Those that run, users before what they use.
    fn servers(&mut self) -> impl Iterator<Item = &mut Server> {
        [&mut self.controller_manager, &mut self.apiserver, &mut self.etcd]
            .into_iter()
            .flatten()
    }
}

impl RealCluster {
    /// Starts a cluster whose files (data, keys, kubeconfig, logs) lie in `dir`, which is made if need be and must not
    /// hold an older cluster. `name` is a DNS label; the kubeconfig's context is called so.
    ///
    /// Returns when `/readyz` answers ok, the namespace `default` exists and the controllers work. An error names the
    /// step and shows the end of the logs.
    pub async fn start(assets: &Assets, name: &str, dir: &Path) -> anyhow::Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::try_start(assets, name, dir).await {
                Err(error)
                    if attempt < ATTEMPTS && format!("{error:#}").contains("address already in use") =>
                {
                    attempt += 1;
                    let data = dir.join("etcd");
                    std::fs::remove_dir_all(&data).with_context(|| format!("clearing {}", data.display()))?;
                }
                other => return other.with_context(|| format!("starting cluster {name}")),
            }
        }
    }

    /// A client for the whole cluster, as admin, without the client library's own retries. Must be called inside a tokio
    /// runtime, and dies with it.
    pub fn client(&self) -> Client {
        Client::try_from(self.config())
            .expect("the same configuration made a client when the cluster started")
    }

    /// The configuration of [`client`](Self::client), for tests that add a layer of their own.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The name given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The release of its API server; `version().has("cel")` tells what it can do.
    pub fn version(&self) -> Version {
        self.version
    }

    /// `https://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        endpoint(&self.ports.apiserver)
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        &self.authority.pem
    }

    /// The token of `admin`, who is in `system:masters`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A kubeconfig that is complete in itself; the same text is in [`kubeconfig_path`](Self::kubeconfig_path).
    pub fn kubeconfig_yaml(&self) -> String {
        kubeconfig::render(&self.name, &self.endpoint(), &self.authority.pem, &self.token)
    }

    /// The path of that kubeconfig.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The processes as they are now.
    pub fn pids(&self) -> Pids {
        let running = self.running();
        let pid = |server: &Option<Server>| server.as_ref().map(Server::pid);
        Pids {
            etcd: pid(&running.etcd),
            apiserver: pid(&running.apiserver),
            controller_manager: pid(&running.controller_manager),
        }
    }

    /// Stops the API server without ending it: connections are accepted by the kernel and then hang. Fails when it is not
    /// running.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal("STOP")
    }

    /// Undoes [`pause`](Self::pause).
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT")
    }

    /// Ends the API server at once, as a crash does: connections break and new ones are refused. Data, port and
    /// controllers stay. Does nothing when it is not running.
    pub fn stop_apiserver(&self) {
        let server = self.running().apiserver.take();
        drop(server);
    }

    /// Starts the API server again on the same port and data, and returns when it is ready. Fails when it runs already
    /// or does not become ready.
    pub async fn start_apiserver(&self) -> anyhow::Result<()> {
        if self.running().apiserver.is_some() {
            bail!("the API server of {} runs already", self.name);
        }
        let server = self.spawn_apiserver()?;
        self.running().apiserver = Some(server);
        self.until("the API server is ready again", start::READY).await
    }

    /// Copies the data of etcd to a directory that does not exist, with all three processes ended meanwhile. Returns when they work
    /// again.
    pub async fn snapshot(&self, to: &Path) -> anyhow::Result<()> {
        self.end();
        copy(&self.data(), to).with_context(|| format!("a snapshot of {}", self.name))?;
        self.run().await
    }

    /// Puts data of [`snapshot`](Self::snapshot) back, with all three processes ended meanwhile. Returns when they work again.
    pub async fn restore(&self, from: &Path) -> anyhow::Result<()> {
        self.end();
        let data = self.data();
        std::fs::remove_dir_all(&data).with_context(|| format!("clearing {}", data.display()))?;
        copy(from, &data).with_context(|| format!("restoring {}", self.name))?;
        self.run().await
    }

    /// Ends all three processes and waits until they are gone. The directory stays.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Sends SIGKILL to all three without waiting, so that many clusters end at the same time.
    pub(super) fn kill(&self) {
        self.running().servers().for_each(Server::kill);
    }

    fn end(&self) {
        drop(std::mem::take(&mut *self.running()));
    }

    /// The directory of etcd.
    fn data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let running = self.running();
        let server = running.apiserver.as_ref();
        server
            .with_context(|| format!("the API server of {} is not running", self.name))?
            .signal(signal)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for RealCluster {
    /// Without the token: test logs are published.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealCluster")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint())
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Copies a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), &to).with_context(|| format!("copying to {}", to.display()))?;
        }
    }
    Ok(())
}

fn endpoint(port: &Port) -> String {
    format!("https://127.0.0.1:{}", port.number)
}
