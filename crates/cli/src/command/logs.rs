//! `entourage logs`: the logs of pods on members, through the hub and as the caller itself.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use futures::{
    AsyncBufRead, AsyncBufReadExt as _, StreamExt as _,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::LogParams};

use super::pods::{self, Found, Wanted};
use crate::{
    args::{self, HubArgs},
    connect::{self, explain, within_late},
    style::Style,
};

pub(super) mod source;

use source::Source;

/// The number of lines of each log that `-l` shows by itself, as kubectl does.
const TAIL: i64 = 10;

/// Flags of `entourage logs`.
#[derive(Args, Clone, Debug)]
pub struct LogsArgs {
    /// A pod, or an object of the hub with pods, such as deploy/web
    #[arg(
        value_name = "POD|KIND/NAME",
        required_unless_present = "selector",
        conflicts_with = "selector"
    )]
    pub target: Option<String>,

    /// Pods with these labels, such as app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Only on this member; may be given several times (default: wherever the object is)
    #[arg(short = 'C', long = "cluster", value_name = "NAME", value_parser = args::cluster_name)]
    pub clusters: Vec<String>,

    /// Container (default: the pod's default container, else its first)
    #[arg(short = 'c', long, value_name = "NAME")]
    pub container: Option<String>,

    /// All containers of each pod
    #[arg(long, conflicts_with = "container")]
    pub all_containers: bool,

    /// Continue with new lines until the pods end; pods that are created later are not included
    #[arg(short = 'f', long)]
    pub follow: bool,

    /// Number of lines from the end of each log (default: all; with -l 10; -1 for all)
    #[arg(long, value_name = "LINES", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub tail: Option<i64>,

    /// Only lines of this time: 30s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = args::duration)]
    pub since: Option<Duration>,

    /// Log of the container before its last restart
    #[arg(short = 'p', long)]
    pub previous: bool,

    /// Begin each line with its time
    #[arg(long)]
    pub timestamps: bool,

    /// Maximum number of logs that --follow follows
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub max_log_requests: usize,
}

/// Runs the command; lines of logs go to `out`, all else to `err`.
///
/// # Errors
/// The cause and the remedy; also if a log, or a member, cannot be read: those that can are written.
pub async fn run(args: LogsArgs, out: &mut (dyn Write + Send), err: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    let hub = connect::client(config)?;
    let colours = Style::of_stdout().has_colours();
    logs(&args, &hub, (&namespace, colours), (out, err)).await
}

/// The two outputs.
type Outputs<'a> = (&'a mut (dyn Write + Send), &'a mut (dyn Write + Send));

async fn logs(
    args: &LogsArgs,
    hub: &Client,
    (namespace, colours): (&str, bool),
    (out, err): Outputs<'_>,
) -> Result<()> {
    let wanted = match (&args.selector, &args.target) {
        (Some(selector), _) => Wanted::Labels(selector.clone()),
        (None, target) => Wanted::of(target.as_deref().unwrap_or_default())?,
    };
    let found = pods::find(hub, &wanted, namespace, &args.clusters).await?;
    let (sources, failed) = sources(found, args, err)?;
    if sources.is_empty() {
        if failed > 0 {
            bail!("no log was read");
        }
        bail!("no pods found in namespace {namespace}");
    }
    if args.follow && sources.len() > args.max_log_requests {
        bail!(
            "{} logs to follow, and --max-log-requests is {}: name fewer, or raise it",
            sources.len(),
            args.max_log_requests
        );
    }
    let all: Vec<Source> = sources.iter().map(|(source, _)| source.clone()).collect();
    let mut printer = Printer {
        prefixes: source::prefixes(&all, colours),
        sources: all,
        failed,
        out,
        err,
    };
    let params = params(args);
    let opened = sources
        .into_iter()
        .map(|(source, client)| open(source, client, namespace, &params))
        .enumerate();
    if args.follow {
        // A log may begin late: a node does not respond before the first line.
        let numbered = opened.map(|(at, opened)| {
            let lines = stream::once(opened).flatten();
            lines.map(move |line| (at, line)).boxed()
        });
        let mut all = stream::select_all(numbered);
        while let Some((at, line)) = all.next().await {
            printer.print(at, line)?;
        }
    } else {
        // Each is opened in its turn: one that is opened before would wait, and its deadline too, while others are printed.
        for (at, opened) in opened {
            let mut lines = opened.await;
            while let Some(line) = lines.next().await {
                printer.print(at, line)?;
            }
        }
    }
    match printer.failed {
        0 => Ok(()),
        1 => bail!("1 log or member was not read completely"),
        failed => bail!("{failed} logs or members were not read completely"),
    }
}

/// The logs of these pods, and the number of members that cannot be read; notes on them go to `err`.
fn sources(
    found: Vec<Found>,
    args: &LogsArgs,
    err: &mut (dyn Write + Send),
) -> Result<(Vec<(Source, Client)>, usize)> {
    let (mut sources, mut failed) = (Vec::new(), 0);
    for Found {
        cluster,
        client,
        pods,
    } in found
    {
        let pods = match pods {
            Ok(pods) => pods,
            Err(why) => {
                failed += 1;
                writeln!(err, "note: {cluster}: {why}")?;
                continue;
            }
        };
        for pod in pods {
            let chosen = source::choose(&pod, args.container.as_deref(), args.all_containers);
            if let Some(note) = chosen.note {
                writeln!(err, "note: {cluster}: {note}")?;
            }
            let pod = pod.metadata.name.unwrap_or_default();
            for container in chosen.names {
                let (cluster, pod) = (cluster.clone(), pod.clone());
                let source = Source {
                    cluster,
                    pod,
                    container,
                };
                sources.push((source, client.clone()));
            }
        }
    }
    Ok((sources, failed))
}

fn params(args: &LogsArgs) -> LogParams {
    let tail = args.tail.or(args.selector.as_ref().map(|_| TAIL));
    LogParams {
        follow: args.follow,
        previous: args.previous,
        timestamps: args.timestamps,
        tail_lines: tail.filter(|lines| *lines >= 0),
        // Whole seconds, and at least one.
        since_seconds: args
            .since
            .map(|since| i64::try_from(since.as_millis().div_ceil(1000).max(1)).unwrap_or(i64::MAX)),
        ..LogParams::default()
    }
}

/// Lines with their ends; an error is the last item.
type Lines = BoxStream<'static, Result<Vec<u8>>>;

async fn open(source: Source, client: Client, namespace: &str, params: &LogParams) -> Lines {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let params = LogParams {
        container: Some(source.container),
        ..params.clone()
    };
    let opened = pods.log_stream(&source.pod, &params);
    let opened = if params.follow {
        opened.await
    } else {
        within_late(opened).await
    };
    match opened {
        Ok(reader) => lines(reader),
        Err(error) => stream::iter([Err(explain(error))]).boxed(),
    }
}

fn lines(reader: impl AsyncBufRead + Send + 'static) -> Lines {
    let items = stream::unfold(Some(Box::pin(reader)), |reader| async move {
        let mut reader = reader?;
        let mut line = Vec::new();
        let read = reader.read_until(b'\n', &mut line).await;
        // A line has no end where its log breaks off.
        let line = (!line.is_empty()).then_some(Ok(line));
        match read.context("the log broke off") {
            Ok(0) => None,
            Ok(_) => Some((Vec::from_iter(line), Some(reader))),
            Err(error) => Some((line.into_iter().chain([Err(error)]).collect(), None)),
        }
    });
    items.map(stream::iter).flatten().boxed()
}

struct Printer<'a> {
    sources: Vec<Source>,
    prefixes: Vec<String>,
    /// The number of logs and members that were not read completely.
    failed: usize,
    out: &'a mut (dyn Write + Send),
    err: &'a mut (dyn Write + Send),
}

impl Printer<'_> {
    /// Writes one line of a log; its failure goes to the other output.
    fn print(&mut self, at: usize, line: Result<Vec<u8>>) -> Result<()> {
        match line {
            Ok(line) => {
                let prefix = self.prefixes.get(at).map_or("", String::as_str);
                self.out.write_all(prefix.as_bytes())?;
                self.out.write_all(&line)?;
                // Another log's line may follow.
                if !prefix.is_empty() && !line.ends_with(b"\n") {
                    self.out.write_all(b"\n")?;
                }
                self.out.flush()?;
            }
            Err(error) => {
                self.failed += 1;
                writeln!(self.err, "note: {}: {error:#}", self.sources[at])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
