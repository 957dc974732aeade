//! One `entourage agent`, in a runtime of its own so that it can be killed as a process can.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use entourage_controllers::agent::{self, Options};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    controllers::{self, STOP},
    eventually::eventually,
};
use crate::{
    faults::{Faults, client_factory},
    servers::ports::{self, Port},
};

/// An agent that runs. Dropping it kills it.
pub struct Agent {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    ended: oneshot::Receiver<Result<(), entourage_controllers::Error>>,
    address: SocketAddr,
    /// Held as long as it may listen on it.
    _port: Port,
    /// The record of its calls.
    pub faults: Faults,
}

impl Agent {
    /// Starts it between a hub and a member, on threads of that name. Returns at once.
    ///
    /// # Errors
    /// When no thread or port is left.
    pub fn start(
        mut options: Options,
        hub: kube::Config,
        member: kube::Config,
        thread: &str,
    ) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(thread)
            .enable_all()
            .build()
            .context("a runtime for the agent")?;
        let port = ports::take()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
        options.health_addr = Some(address);
        let faults = Faults::none();
        let clients = Arc::new(client_factory(&faults));
        let stop = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let until = stop.clone();
        runtime.spawn(async move {
            let result = agent::run(options, hub, member, clients, until).await;
            // Nobody listens when it was killed.
            let _ = end.send(result);
        });
        Ok(Self {
            runtime: Some(runtime),
            stop,
            ended,
            address,
            _port: port,
            faults,
        })
    }

    /// Waits until `/readyz` says yes.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ready(&self) -> Result<()> {
        eventually("the agent is ready", async || {
            let (code, text) = controllers::ask(self.address, "/readyz").await?;
            ensure!(code == 200, "/readyz: {code} {text}");
            Ok(())
        })
        .await
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When it is not served.
    pub async fn metrics(&self) -> Result<String> {
        Ok(controllers::ask(self.address, "/metrics").await?.1)
    }

    /// The writes so far, those of Leases apart.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        let all = self.faults.recorder().writes();
        all.iter().map(ToString::to_string).collect()
    }

    /// Ends it as `SIGTERM` does, and waits.
    ///
    /// # Errors
    /// When it does not end in time, or ends with an error.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        match timeout(STOP, &mut self.ended).await {
            Ok(Ok(result)) => result.context("the agent ended"),
            Ok(Err(_)) => bail!("the agent's task panicked"),
            Err(_) => bail!(
                "the agent was still running {} s after the request to stop",
                STOP.as_secs()
            ),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.faults.kill();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
