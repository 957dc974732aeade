//! `entourage exec`: a command in a container on a member, through the hub and as the caller itself.
//!
//! The connection is a WebSocket (`v5.channel.k8s.io`, else `v4`). With `-t` the terminal is in raw mode while the command runs, and is
//! restored however this ends: at its end, on an error, on a signal.

use std::{
    io::{IsTerminal as _, Write},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use futures::{FutureExt as _, SinkExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{AttachParams, AttachedProcess, TerminalSize},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    logs::source::choose,
    pods::{self, Wanted},
};
use crate::{
    args::{self, HubArgs},
    connect::{self, explain, within_late},
};

mod outcome;
mod terminal;

use outcome::Outcome;
use terminal::Raw;

/// The size of the pieces in which input is sent and output is read.
const PIECE: usize = 16 << 10;

/// Flags of `entourage exec`.
#[derive(Args, Clone, Debug)]
pub struct ExecArgs {
    /// A pod on the member, or an object there with pods, such as deploy/web, whose first running pod is taken
    #[arg(value_name = "POD|KIND/NAME")]
    pub target: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Member that the pod is on
    #[arg(short = 'C', long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: String,

    /// Container (default: the pod's default container, else its first)
    #[arg(short = 'c', long, value_name = "NAME")]
    pub container: Option<String>,

    /// Pass standard input on to the command
    #[arg(short = 'i', long)]
    pub stdin: bool,

    /// Standard input is a terminal of the command; with -i
    #[arg(short = 't', long, requires = "stdin")]
    pub tty: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Runs the command; its output goes to `out` and `err`. The exit code is that of the command.
///
/// # Errors
/// The cause and the remedy, if the command did not run, or its exit code is not known.
pub async fn run(
    args: ExecArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    let hub = connect::client(config)?;
    let is_terminal = std::io::stdin().is_terminal();
    if args.tty && !is_terminal {
        writeln!(err, "note: standard input is not a terminal: -t has no effect")?;
    }
    let tty = args.tty && is_terminal;
    let target = target(&args, &hub, &namespace).await?;
    if let Some(note) = &target.note {
        writeln!(err, "note: {}: {note}", args.cluster)?;
    }
    let params = AttachParams {
        container: target.container.clone(),
        stdin: args.stdin,
        stdout: true,
        // A terminal has one output.
        stderr: !tty,
        tty,
        ..AttachParams::default()
    };
    let pods: Api<Pod> = Api::namespaced(target.client, &namespace);
    let opened = pods.exec(&target.name, args.command.clone(), &params);
    let process = within_late(opened).await.map_err(explain);
    let process =
        process.with_context(|| format!("cannot run the command in {}/{}", args.cluster, target.name))?;
    let ended = {
        let _raw = tty
            .then(|| Raw::enter(std::io::stdin()))
            .transpose()
            .context("cannot set up the terminal")?;
        attach(process, (args.stdin, tty), (&mut *out, &mut *err)).await
    };
    match outcome::of(ended?.as_ref()) {
        Outcome::Succeeded => Ok(ExitCode::SUCCESS),
        Outcome::Exited(code) => {
            writeln!(err, "command terminated with exit code {code}")?;
            // Codes are a byte; a larger one must not become 0.
            Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Outcome::Unknown(why) => bail!("{why}"),
    }
}

/// The container in which the command runs.
struct Target {
    client: Client,
    name: String,
    container: Option<String>,
    /// The choice of the container that was made for the user.
    note: Option<String>,
}

async fn target(args: &ExecArgs, hub: &Client, namespace: &str) -> Result<Target> {
    let wanted = Wanted::of(&args.target)?;
    if let (Wanted::Pod(name), Some(container)) = (&wanted, &args.container) {
        return Ok(Target {
            client: connect::through(hub, &args.cluster),
            name: name.clone(),
            container: Some(container.clone()),
            note: None,
        });
    }
    let cluster = std::slice::from_ref(&args.cluster);
    let found = pods::find(hub, &wanted, namespace, cluster).await?;
    let found = found.into_iter().next().context("no member was asked")?;
    let pods = match found.pods {
        Ok(pods) => pods,
        Err(why) => bail!("{}: {why}", found.cluster),
    };
    let pod = match wanted {
        // The member says why a pod that does not run cannot be used.
        Wanted::Pod(_) => pods.first(),
        Wanted::Workload(..) | Wanted::Labels(_) => best(&pods),
    };
    let Some(pod) = pod else {
        let what = match wanted {
            Wanted::Pod(name) => format!("pod {name} not found"),
            Wanted::Workload(..) | Wanted::Labels(_) => format!("{} has no running pod", args.target),
        };
        bail!("{what} in namespace {namespace} on {}", found.cluster);
    };
    let chosen = choose(pod, args.container.as_deref(), false);
    Ok(Target {
        client: found.client,
        name: pod.metadata.name.clone().unwrap_or_default(),
        container: chosen.names.into_iter().next(),
        note: chosen.note,
    })
}

/// The first pod that runs and is not being deleted: one that is ready, if there is one.
fn best(pods: &[Pod]) -> Option<&Pod> {
    let is_running = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    };
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|each| each.type_ == "Ready" && each.status == "True")
    };
    pods.iter().filter(is_running).min_by_key(|pod| !is_ready(pod))
}

type Status = k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

/// Passes input and output on until the command ends. `None`: the connection ended before.
async fn attach(
    mut process: AttachedProcess,
    (stdin, tty): (bool, bool),
    (out, err): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
) -> Result<Option<Status>> {
    let mut status = Box::pin(process.take_status().context("the process has no status")?);
    // They end with this function. The input is sent by a task of its own: while it waits, output must still be read.
    let _input = stdin
        .then(|| process.stdin())
        .flatten()
        .map(|to| AbortOnDropHandle::new(tokio::spawn(send(terminal::input(), to))));
    let _sizes = tty.then(|| process.terminal_size()).flatten().map(|to| {
        AbortOnDropHandle::new(tokio::spawn(async move {
            // A terminal without a size, or a command that has ended.
            let _ = resize(to).await;
        }))
    });
    let (mut stdout, mut stderr) = (process.stdout(), process.stderr());
    let (mut from_out, mut from_err) = (vec![0; PIECE], vec![0; PIECE]);
    let mut ended = None;
    let mut signals = Signals::new(tty)?;
    // After the status the rest of the output comes, and its end.
    while ended.is_none() || stdout.is_some() || stderr.is_some() {
        tokio::select! {
            read = piece(&mut stdout, &mut from_out), if stdout.is_some() => {
                if !pass(read, &from_out, out)? {
                    stdout = None;
                }
            }
            read = piece(&mut stderr, &mut from_err), if stderr.is_some() => {
                if !pass(read, &from_err, err)? {
                    stderr = None;
                }
            }
            status = &mut status, if ended.is_none() => match status {
                Some(status) => ended = Some(status),
                None => {
                    // The outputs may never end now: take what has arrived.
                    rest(&mut stdout, &mut from_out, out)?;
                    rest(&mut stderr, &mut from_err, err)?;
                    return Ok(None);
                }
            },
            () = signals.any() => bail!("ended by a signal"),
        }
    }
    Ok(ended)
}

/// Reads from an output that is there.
async fn piece<R: AsyncRead + Unpin>(from: &mut Option<R>, into: &mut [u8]) -> std::io::Result<usize> {
    match from {
        Some(from) => from.read(into).await,
        None => Ok(0),
    }
}

/// Writes what was read. False at the end.
fn pass(read: std::io::Result<usize>, piece: &[u8], to: &mut (dyn Write + Send)) -> Result<bool> {
    let read = read.context("cannot read the command's output")?;
    to.write_all(&piece[..read])?;
    to.flush()?;
    Ok(read > 0)
}

/// Writes what has arrived already.
fn rest<R: AsyncRead + Unpin>(
    from: &mut Option<R>,
    buffer: &mut [u8],
    to: &mut (dyn Write + Send),
) -> Result<()> {
    while let Some(read) = piece(from, buffer).now_or_never() {
        if !pass(read, buffer, to)? {
            break;
        }
    }
    Ok(())
}

/// Sends input until its end, and then says that it has ended.
async fn send(mut input: mpsc::Receiver<Vec<u8>>, mut to: impl tokio::io::AsyncWrite + Unpin) {
    while let Some(bytes) = input.recv().await {
        if to.write_all(&bytes).await.is_err() {
            // The command has ended.
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Tells the size of the terminal, now and whenever it changes.
async fn resize(mut to: futures::channel::mpsc::Sender<TerminalSize>) -> Result<()> {
    let mut changes = signal(SignalKind::window_change())?;
    loop {
        let (width, height) = terminal::size()?;
        to.send(TerminalSize { width, height }).await?;
        changes.recv().await.context("no more signals")?;
    }
}

/// Signals that would end the process and leave the terminal in raw mode.
struct Signals(Vec<tokio::signal::unix::Signal>);

impl Signals {
    fn new(tty: bool) -> Result<Self> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ];
        let kinds = kinds.into_iter().filter(|_| tty);
        Ok(Self(kinds.map(signal).collect::<std::io::Result<_>>()?))
    }

    /// Waits for one; forever if none is of interest.
    async fn any(&mut self) {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let all = self.0.iter_mut().map(|each| Box::pin(each.recv()));
        futures::future::select_all(all).await;
    }
}

#[cfg(test)]
mod tests;
