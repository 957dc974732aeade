//! One `entourage controllers`, in a runtime of its own so that it can be killed as a process can.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use entourage_controllers::Options;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::eventually::eventually;
use crate::{
    faults::{Faults, client_factory},
    servers::ports::{self, Port},
};

/// The longest time that an orderly stop may take: five seconds for what is in flight, and as much as a busy machine needs.
pub(super) const STOP: Duration = Duration::from_secs(30);

/// Controllers that run. Dropping them kills them.
pub struct Controllers {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    ended: oneshot::Receiver<Result<(), entourage_controllers::Error>>,
    faults: Faults,
    address: SocketAddr,
    /// Held as long as they may listen on it.
    _port: Port,
}

impl Controllers {
    /// Starts them against `hub`, behind `faults`, on threads of that name. Returns at once.
    ///
    /// # Errors
    /// When no thread or port is left.
    pub fn start(mut options: Options, hub: kube::Config, faults: &Faults, thread: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(thread)
            .enable_all()
            .build()
            .context("a runtime for the controllers")?;
        let port = ports::take()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
        options.health_addr = Some(address);
        let clients = Arc::new(client_factory(faults));
        let stop = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let until = stop.clone();
        runtime.spawn(async move {
            let result = entourage_controllers::run(options, hub, clients, until).await;
            // Nobody listens when they were killed.
            let _ = end.send(result);
        });
        Ok(Self {
            runtime: Some(runtime),
            stop,
            ended,
            faults: faults.clone(),
            address,
            _port: port,
        })
    }

    /// Waits until `/readyz` says yes, or the fault plan has ended the process: it may write before all its watches are synced.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ready(&self) -> Result<()> {
        eventually("the controllers are ready", async || {
            if self.faults.is_crashed() {
                return Ok(());
            }
            let (code, text) = self.ask("/readyz").await?;
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
        Ok(self.ask("/metrics").await?.1)
    }

    /// Ends them as `SIGTERM` does, and waits.
    ///
    /// # Errors
    /// When they do not end in time, or end with an error.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        let ended = timeout(STOP, &mut self.ended).await;
        match ended {
            Ok(Ok(result)) => result.context("the controllers ended"),
            Ok(Err(_)) => bail!("the controllers' task panicked"),
            Err(_) => bail!(
                "the controllers were still running {} s after the request to stop",
                STOP.as_secs()
            ),
        }
    }

    /// Ends them as `SIGKILL` does. What was sent may still take effect.
    pub fn kill(self) {
        drop(self);
    }

    async fn ask(&self, path: &str) -> Result<(u16, String)> {
        ask(self.address, path).await
    }
}

/// One GET of the health endpoint: the status and the body.
pub(super) async fn ask(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: entourage\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await??;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.with_context(|| format!("{path}: {answer:?}"))?;
    let body = answer
        .split_once("\r\n\r\n")
        .map_or_else(String::new, |(_, body)| body.to_owned());
    Ok((code, body))
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.faults.kill();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
