//! Bringing a cluster up: files first, then one server after the other, each as soon as it is of use.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    net::Ipv4Addr,
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use kube::{Client, Config};
use tokio::{net::TcpStream, time};

use super::{Command, Ports, Programs, RealCluster};
use crate::servers::{
    HUB,
    assets::Assets,
    certificates::{self, Authority},
    flags::{self, Program},
    ports,
    process::Server,
};

/// The timeout of each step; generous, because a laptop may start a dozen clusters at once.
const START_DEADLINE: Duration = Duration::from_secs(300);
/// Between two looks at something that is starting.
const POLL: Duration = Duration::from_millis(50);
/// The timeout of one such probe.
const LOOK_DEADLINE: Duration = Duration::from_secs(2);

/// The controllers that a hub runs in addition, as docs/getting-started.md says: they release deleted claims and volumes.
/// Members of the tests have no Pods, and claims are bound there by the test itself.
const HUB_CONTROLLERS: &str = ",pvc-protection,pv-protection";

/// Something to look at until it is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probe {
    /// Something listens on that port.
    Port(u16),
    /// A GET of that path succeeds.
    Path(&'static str),
}

/// True if the API server says that it is ready.
pub(super) const READY: Probe = Probe::Path("/readyz");

impl RealCluster {
    /// One attempt of [`RealCluster::start`].
    pub(super) async fn try_start(assets: &Assets, name: &str, dir: &Path) -> anyhow::Result<Self> {
        let version = assets.version()?;
        let pki = dir.join("pki");
        std::fs::create_dir_all(&pki).with_context(|| format!("creating {}", pki.display()))?;
        let dir = dir
            .canonicalize()
            .with_context(|| format!("resolving {}", dir.display()))?;
        let authority = certificates::write(name, &pki)?;
        let token = random_token();
        std::fs::write(
            pki.join("tokens.csv"),
            format!("{token},admin,admin,\"system:masters\"\n"),
        )
        .context("writing the token file")?;
        let ports = Ports {
            apiserver: ports::take()?,
            etcd: ports::take()?,
            peer: ports::take()?,
        };
        let config = config(&super::endpoint(&ports.apiserver), &authority, &token)?;
        // Later calls of `client` rely on this one.
        Client::try_from(config.clone()).context("making a client")?;

        let values = BTreeMap::from([
            (
                "dir",
                dir.to_str()
                    .context("the directory's path is not UTF-8")?
                    .to_owned(),
            ),
            ("port", ports.apiserver.number.to_string()),
            ("etcd", ports.etcd.number.to_string()),
            ("peer", ports.peer.number.to_string()),
            (
                "more controllers",
                if name == HUB { HUB_CONTROLLERS } else { "" }.to_owned(),
            ),
        ]);
        let command = |program: Program| -> anyhow::Result<Command> {
            Ok((
                assets.binary(program.binary())?,
                flags::arguments(program, version, &values),
            ))
        };
        let programs = Programs {
            etcd: command(Program::Etcd)?,
            apiserver: command(Program::Apiserver)?,
            controller_manager: command(Program::ControllerManager)?,
        };
        let running = Mutex::default();
        let cluster = Self {
            name: name.to_owned(),
            dir,
            version,
            authority,
            token,
            config,
            programs,
            ports,
            running,
        };
        std::fs::write(cluster.kubeconfig_path(), cluster.kubeconfig_yaml())
            .context("writing the kubeconfig")?;

        cluster.run().await?;
        Ok(cluster)
    }

    /// Starts the three servers one after the other, none of which runs. Returns when the controllers work.
    pub(super) async fn run(&self) -> anyhow::Result<()> {
        let etcd = self.spawn(Program::Etcd, &self.programs.etcd)?;
        self.running().etcd = Some(etcd);
        // The API server looks for etcd once a second; a look at the port before spares that second.
        self.until("etcd listens", Probe::Port(self.ports.etcd.number))
            .await?;
        let apiserver = self.spawn_apiserver()?;
        self.running().apiserver = Some(apiserver);
        self.until("the API server is ready", READY).await?;
        let controllers = self.spawn(Program::ControllerManager, &self.programs.controller_manager)?;
        self.running().controller_manager = Some(controllers);
        self.until(
            "the namespace default exists",
            Probe::Path("/api/v1/namespaces/default"),
        )
        .await?;
        // Most of what the controllers write when they begin is then behind us.
        let account = Probe::Path("/api/v1/namespaces/default/serviceaccounts/default");
        self.until("the controllers work", account).await
    }

    /// Starts the API server, for the first time or again.
    pub(super) fn spawn_apiserver(&self) -> anyhow::Result<Server> {
        self.spawn(Program::Apiserver, &self.programs.apiserver)
    }

    fn spawn(&self, program: Program, (binary, arguments): &Command) -> anyhow::Result<Server> {
        let name = program.binary();
        Server::spawn(name, binary, arguments, self.dir.join(format!("{name}.log")))
    }

    /// Waits until the probe succeeds. Fails when a server ends meanwhile or the deadline passes, with the logs.
    pub(super) async fn until(&self, what: &str, probe: Probe) -> anyhow::Result<()> {
        let client = self.client();
        let deadline = Instant::now() + START_DEADLINE;
        while !time::timeout(LOOK_DEADLINE, probe.look(&client))
            .await
            .unwrap_or(false)
        {
            self.check(deadline)
                .with_context(|| format!("waiting until {what}"))?;
            time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Fails when a server has ended or the time is over.
    fn check(&self, deadline: Instant) -> anyhow::Result<()> {
        let mut running = self.running();
        for server in running.servers() {
            server.check()?;
        }
        if Instant::now() > deadline {
            let logs: Vec<String> = running.servers().map(|server| server.log_tail()).collect();
            bail!("not within {START_DEADLINE:?}; {}", logs.join("\n"));
        }
        Ok(())
    }
}

impl Probe {
    async fn look(self, client: &Client) -> bool {
        match self {
            Self::Port(number) => TcpStream::connect((Ipv4Addr::LOCALHOST, number)).await.is_ok(),
            Self::Path(path) => match http::Request::get(path).body(Vec::new()) {
                Ok(request) => client.request_text(request).await.is_ok(),
                Err(_) => false,
            },
        }
    }
}

fn config(endpoint: &str, authority: &Authority, token: &str) -> anyhow::Result<Config> {
    let mut config = Config::new(endpoint.parse().context("parsing the endpoint")?);
    config.root_cert = Some(vec![authority.der.clone()]);
    config.auth_info.token = Some(token.to_owned().into());
    config.default_retry = false;
    Ok(config)
}

/// 128 bits from the standard library's own source of randomness, so that a leaked token can be recognized.
fn random_token() -> String {
    let bits = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", bits(), bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_have_full_length() {
        let (one, other) = (random_token(), random_token());
        assert_ne!(one, other);
        assert_eq!((one.len(), other.len()), (32, 32));
    }
}
