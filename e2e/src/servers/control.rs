//! `entourage controllers` as a separate process: this program again, with a connection to the hub that can be cut.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser as _;
use entourage::command::Cli;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    machine::TestCluster,
    ports::{self, Port},
    process::Server,
};

/// Set for a process that is to be the command line and not the tests.
const PLAYS: &str = "ENTOURAGE_E2E_IS_ENTOURAGE";

/// Runs the command line if this process was started as that. Call it first in `main`.
#[must_use]
pub fn play_command() -> Option<ExitCode> {
    std::env::var_os(PLAYS)?;
    entourage::install_tls_provider();
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cli.worker_threads())
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(cli.run()),
        Err(error) => Err(error.into()),
    };
    Some(done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    }))
}

/// A script for a shell that runs the command line, as `entourage` on a user's `PATH`.
///
/// # Errors
/// When the path of this program is unknown.
pub fn command_script() -> Result<String> {
    let program = std::env::current_exe().context("the path of this program")?;
    let program = program.display().to_string().replace('\'', r"'\''");
    Ok(format!("#!/bin/sh\n{PLAYS}=1 exec '{program}' \"$@\"\n"))
}

/// Another command as a separate process, such as `entourage agent`. Dropping it kills it.
pub struct CommandProcess {
    process: Server,
    log: PathBuf,
}

impl CommandProcess {
    /// Starts it; `name` is for messages, and names its log in `dir`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &'static str, dir: &Path, arguments: &[&str]) -> Result<Self> {
        let program = std::env::current_exe().context("the path of this program")?;
        let log = dir.join(format!("{name}.log"));
        let arguments: Vec<String> = arguments.iter().map(|&each| each.to_owned()).collect();
        let process = Server::spawn_with(name, &program, &arguments, &[(PLAYS, "1")], log.clone())?;
        Ok(Self { process, log })
    }

    /// Fails when it has ended.
    ///
    /// # Errors
    /// The end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Its output and log so far.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn output(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| format!("reading {}", self.log.display()))
    }
}

/// One process of the control plane. Dropping it kills it.
pub struct ControlProcess {
    name: &'static str,
    arguments: Vec<String>,
    log: PathBuf,
    health: Port,
    line: Line,
    process: Option<Server>,
}

impl ControlProcess {
    /// Not running yet. Its files will be in `dir`; `more` are further flags.
    ///
    /// # Errors
    /// When no port is left, or its kubeconfig cannot be written.
    pub async fn new(name: &'static str, hub: &TestCluster, dir: &Path, more: &[&str]) -> Result<Self> {
        let health = ports::take()?;
        let own = std::fs::read_to_string(hub.kubeconfig_path()).context("reading the hub's kubeconfig")?;
        let server = (own.lines())
            .find_map(|line| line.trim().strip_prefix("server: https://"))
            .context("the hub's kubeconfig names no server")?
            .trim_matches(['"', '/']);
        let line = Line::to(server).await?;
        let kubeconfig = dir.join(format!("{name}-{}.kubeconfig", health.number));
        std::fs::write(&kubeconfig, own.replace(server, &line.address))?;
        let arguments = [
            "controllers",
            "--kubeconfig",
            kubeconfig.to_str().context("a path that is text")?,
            "--health-addr",
            &format!("127.0.0.1:{}", health.number),
            "--log-level",
            "debug",
        ];
        Ok(Self {
            name,
            arguments: arguments
                .iter()
                .chain(more)
                .map(|&each| each.to_owned())
                .collect(),
            log: dir.join(format!("{name}-{}.log", health.number)),
            health,
            line,
            process: None,
        })
    }

    /// Starts it, and does not wait.
    ///
    /// # Errors
    /// When it runs already, or cannot be started.
    pub fn start(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "{} runs already", self.name);
        let program = std::env::current_exe().context("the path of this program")?;
        let variables = [(PLAYS, "1")];
        let process = Server::spawn_with(self.name, &program, &self.arguments, &variables, self.log.clone())?;
        self.process = Some(process);
        Ok(())
    }

    /// Ends it as `SIGKILL` does, and waits until it is gone.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops it where it is (`SIGSTOP`), until [`resume`](Self::resume).
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> Result<()> {
        self.process.as_ref().context("it does not run")?.signal("STOP")
    }

    /// Has it go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self) -> Result<()> {
        self.process.as_ref().context("it does not run")?.signal("CONT")
    }

    /// Cuts its connections to the hub silently, or permits new ones again.
    pub fn cut(&self, cut: bool) {
        self.line.cut.send_replace(cut);
    }

    /// Waits until it ended by itself, and answers with the end of its log.
    ///
    /// # Errors
    /// When it did not within this time.
    pub async fn ended(&mut self, within: Duration) -> Result<String> {
        let process = self.process.as_mut().context("it does not run")?;
        let ended = timeout(within, async {
            while process.check().is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        ensure!(ended.await.is_ok(), "it still runs; {}", process.log_tail());
        let reported = process.log_tail();
        self.process = None;
        Ok(reported)
    }

    /// Numbers of `/metrics`, all of one answer.
    ///
    /// # Errors
    /// When it does not answer, or has no such number.
    pub async fn metrics<const N: usize>(&self, names: [&str; N]) -> Result<[u64; N]> {
        let text = self.ask("/metrics").await?;
        let mut numbers = [0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            let value = (text.lines())
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
                .with_context(|| format!("no {name}"))?;
            *number = value.parse::<f64>()? as u64;
        }
        Ok(numbers)
    }

    /// True if it leads, and everything is listed.
    ///
    /// # Errors
    /// Shows the response of `/readyz`.
    pub async fn is_ready(&self) -> Result<()> {
        let answer = self.ask("/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{}: {answer}", self.name);
        Ok(())
    }

    async fn ask(&self, path: &str) -> Result<String> {
        let exchange = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.health.number)).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: entourage\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            anyhow::Ok(answer)
        };
        match timeout(Duration::from_secs(5), exchange).await {
            Ok(answer) => answer,
            Err(_) => bail!("{} does not answer {path}", self.name),
        }
    }
}

/// Connections to a server that can be cut as a network is: packets are lost silently.
struct Line {
    address: String,
    cut: watch::Sender<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Line {
    async fn to(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (cut, is_cut) = watch::channel(false);
        let server = server.to_owned();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { continue };
                        connections.spawn(carry(stream, server.clone(), is_cut.clone()));
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self {
            address,
            cut,
            _task: AbortOnDropHandle::new(task),
        })
    }
}

async fn carry(mut near: TcpStream, server: String, mut cut: watch::Receiver<bool>) {
    let mut end = cut.clone();
    let carried = async {
        if let Ok(mut far) = TcpStream::connect(&server).await {
            // Either side may end it.
            let _ = copy_bidirectional(&mut near, &mut far).await;
        }
    };
    let is_cut = tokio::select! {
        biased;
        _ = cut.wait_for(|cut| *cut) => true,
        () = carried => false,
    };
    if is_cut {
        // Open, and unresponsive.
        let _ = end.wait_for(|cut| !*cut).await;
    }
    drop(near);
}
