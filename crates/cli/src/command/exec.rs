//! `entourage exec`: a command in a container on a member, through the hub and as the caller itself.
//!
//! With `-t` the terminal is in raw mode while the command runs, and is
//! restored however this ends: at its end, on an error, on a signal.

use std::{
    io::{ErrorKind, IsTerminal as _, Write},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::{
    Client, Resource as _,
    api::{AttachParams, Request, TerminalSize},
    client::Connection,
};
use tokio::{
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

mod channels;
mod outcome;
mod terminal;

use channels::{Channels, DEADLINE, Inputs, Received};
use outcome::Outcome;
use terminal::Raw;

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
    // Notes that nobody reads do not keep the command from running.
    if args.tty && !is_terminal {
        let _ = writeln!(err, "note: standard input is not a terminal: -t has no effect");
    }
    let tty = args.tty && is_terminal;
    let target = target(&args, &hub, &namespace).await?;
    if let Some(note) = &target.note {
        let _ = writeln!(err, "note: {}: {note}", args.cluster);
    }
    let opened = begin(&args, &target, &namespace, tty).await;
    let opened =
        opened.with_context(|| format!("cannot run the command in {}/{}", args.cluster, target.name))?;
    let closes = opened.supports_stream_close();
    let ended = {
        let _raw = tty
            .then(|| Raw::enter(std::io::stdin()))
            .transpose()
            .context("cannot set up the terminal")?;
        let (sizes, _resizing) = tty.then(sizes).unzip();
        let inputs = Inputs {
            stdin: args.stdin.then(terminal::input),
            sizes,
        };
        // Responses to pings wait behind input that a command does not read, as during a long restore; ctrl-C ends it then. A terminal
        // in raw mode has no such way out.
        let deadline = (tty || !args.stdin).then_some(DEADLINE);
        let signals = Signals::new(tty)?;
        let channels = Channels::open(opened.into_stream(), closes, inputs, deadline);
        attach(channels, signals, (&mut *out, &mut *err)).await
    };
    code(ended?, args.stdin && !closes, err)
}

/// Begins the command.
async fn begin(args: &ExecArgs, target: &Target, namespace: &str, tty: bool) -> Result<Connection> {
    let params = AttachParams {
        container: target.container.clone(),
        stdin: args.stdin,
        stdout: true,
        // A terminal has one output.
        stderr: !tty,
        tty,
        ..AttachParams::default()
    };
    let request = Request::new(Pod::url_path(&(), Some(namespace)));
    let request = request.exec(&target.name, args.command.clone(), &params)?;
    within_late(target.client.connect(request)).await.map_err(explain)
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

/// The end of the connection.
#[derive(Debug, PartialEq)]
enum Ended {
    /// The command ended.
    Report(Box<Status>),
    /// It may still run; the cause, if it is known.
    Lost(Option<String>),
    /// An output of this process was closed, as by `| head`.
    OutputClosed,
}

/// Passes output on until the command or the connection ends.
async fn attach(
    mut channels: Channels,
    mut signals: Signals,
    (out, err): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
) -> Result<Ended> {
    loop {
        let written = tokio::select! {
            received = channels.next() => match received {
                Received::Out(piece) => pass(&piece, out),
                Received::Err(piece) => pass(&piece, err),
                Received::Status(status) => return Ok(Ended::Report(status)),
                Received::Lost(why) => return Ok(Ended::Lost(why)),
            },
            () = signals.any() => bail!("ended by a signal"),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ended::OutputClosed),
            Err(error) => return Err(error).context("cannot write the command's output"),
        }
    }
}

fn pass(piece: &[u8], to: &mut (dyn Write + Send)) -> std::io::Result<()> {
    to.write_all(piece)?;
    to.flush()
}

/// The exit code. `is_cut`: the end of the input ends the connection.
fn code(ended: Ended, is_cut: bool, err: &mut (dyn Write + Send)) -> Result<ExitCode> {
    let outcome = match ended {
        Ended::Report(status) => outcome::of(&status),
        Ended::Lost(why) => outcome::lost(why, is_cut),
        // The code of the command is not known.
        Ended::OutputClosed => return Ok(ExitCode::FAILURE),
    };
    match outcome {
        Outcome::Succeeded => Ok(ExitCode::SUCCESS),
        Outcome::Exited(code) => {
            // The code counts, also if nobody reads the line.
            let _ = writeln!(err, "command terminated with exit code {code}");
            // Codes are a byte; a larger one must not become 0.
            Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Outcome::Unknown(why) => bail!("{why}"),
    }
}

/// The sizes of the terminal, now and whenever it changes.
fn sizes() -> (mpsc::Receiver<TerminalSize>, AbortOnDropHandle<()>) {
    let (sender, receiver) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        // A terminal without a size, or a command that has ended.
        let _ = resize(sender).await;
    });
    (receiver, AbortOnDropHandle::new(task))
}

async fn resize(to: mpsc::Sender<TerminalSize>) -> Result<()> {
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
