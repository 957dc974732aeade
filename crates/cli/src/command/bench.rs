//! `entourage bench`: measures a control plane on real API servers.

use std::{fs, io::Write, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args,
    bench::{Options, child::ChildConfig, control::Control, scenario::Scenario},
};

/// Flags of `entourage bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Scenarios to run
    #[arg(
        value_name = "SCENARIO",
        value_enum,
        ignore_case = true,
        required_unless_present = "kill"
    )]
    pub scenarios: Vec<Scenario>,

    /// Kubeconfig of the hub (default: $KUBECONFIG or ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// A member: its name on the hub and its kubeconfig; give every member that takes part
    #[arg(long, value_name = "NAME=FILE", value_parser = args::member, required = true)]
    pub member: Vec<(String, PathBuf)>,

    /// The process of a member's API server on this machine; given for the first two members, S6 also measures the failover off
    /// one that is stopped (SIGSTOP) and does not respond
    #[arg(long, value_name = "NAME=PID", value_parser = member_pid)]
    pub member_pid: Vec<(String, u32)>,

    /// Deployments in S1 to S5 and with --kill
    #[arg(long, value_name = "NUMBER", default_value_t = 300, value_parser = positive)]
    pub workloads: usize,

    /// Deployments in each run of S6
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [10, 1000], value_parser = positive)]
    pub failover_sizes: Vec<usize>,

    /// Namespaces of these Deployments
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = positive)]
    pub namespaces: usize,

    /// Number of runs of each scenario; the median is reported
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = positive)]
    pub runs: usize,

    /// Command that starts the control plane: the bench then starts, stops and measures it
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["pid", "restart_command"])]
    pub controllers: Option<String>,

    /// URL that responds with 200 once that control plane is ready
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/readyz")]
    pub ready_url: String,

    /// File to which that control plane's output is appended (default: a file in the directory for temporary files)
    #[arg(long, value_name = "FILE")]
    pub controllers_log: Option<PathBuf>,

    /// A process of an existing control plane; may be given several times
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,

    /// Command that restarts such a control plane and returns when it is ready, for S4
    #[arg(long, value_name = "COMMAND")]
    pub restart_command: Option<String>,

    /// Also: a run of S1 with this number of kills of the control plane; its end state must be that of an undisturbed run
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "controllers")]
    pub kill: usize,

    /// Requests in flight per server, of the bench and of the floor
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = positive)]
    pub in_flight: usize,

    /// Prefix of the names of created namespaces, and value of the label of every object
    #[arg(long, value_name = "NAME", default_value = "bench", value_parser = args::cluster_name)]
    pub prefix: String,

    /// Time limit of one step of a scenario
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "5m")]
    pub limit: Duration,

    /// Time for which S3 observes the idle control plane
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "60s")]
    pub idle: Duration,

    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Keep all objects on the servers
    #[arg(long)]
    pub keep: bool,
}

/// Runs the command; the table goes to `out`.
///
/// # Errors
/// A server cannot be reached, or a scenario failed; the report of the others is written all the same.
pub async fn run(args: BenchArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let (options, control) = options(&args);
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let report = tokio::select! {
        report = crate::bench::run(options, control) => report?,
        // The bench is dropped, and with it the control plane that it started.
        _ = interrupt.recv() => bail!("interrupted; what was written stays on the servers"),
        _ = terminate.recv() => bail!("interrupted; what was written stays on the servers"),
    };
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&report)?;
        fs::write(file, json + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    writeln!(out, "{}", report.table())?;
    match report.error {
        Some(error) => bail!("{error}"),
        None => Ok(()),
    }
}

/// The flags as options of the bench.
fn options(args: &BenchArgs) -> (Options, Control) {
    let log = args.controllers_log.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("entourage-bench-controllers-{}.log", std::process::id()))
    });
    let render_spec = args.controllers.clone().map(|command| ChildConfig {
        command,
        ready_url: args.ready_url.clone(),
        log,
    });
    let control = Control::new(render_spec, args.pid.clone(), args.restart_command.clone());
    let options = Options {
        scenarios: args.scenarios.clone(),
        kills: args.kill,
        hub: args.kubeconfig.clone(),
        members: args.member.clone(),
        member_pids: args.member_pid.clone(),
        workloads: args.workloads,
        failover_sizes: args.failover_sizes.clone(),
        namespaces: args.namespaces,
        runs: args.runs,
        in_flight: args.in_flight,
        prefix: args.prefix.clone(),
        limit: args.limit,
        idle: args.idle,
        keep: args.keep,
        controllers: args.controllers.clone(),
    };
    (options, control)
}

fn member_pid(text: &str) -> Result<(String, u32), String> {
    let wrong = "give NAME=PID: the member's name and the process of its API server";
    let (name, pid) = text.split_once('=').ok_or(wrong)?;
    // 0 and 1 would be whole groups of processes, and the system's first.
    let pid = pid.parse().ok().filter(|pid| *pid > 1).ok_or(wrong)?;
    Ok((args::cluster_name(name)?, pid))
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "give a number of at least 1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::command::{Cli, Command};

    fn parse(line: &str) -> Option<BenchArgs> {
        match Cli::try_parse_from(format!("entourage bench {line}").split_whitespace())
            .ok()?
            .command
        {
            Command::Bench(args) => Some(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_reach_the_bench() {
        let args = parse("s1 S5 --member m1=a.yaml --member m2=b.yaml --pid 7 --runs 1 --idle 5s").unwrap();
        let (options, control) = options(&args);
        assert_eq!(options.scenarios, [Scenario::Cold, Scenario::Removal]);
        assert_eq!(options.members[1], ("m2".to_owned(), PathBuf::from("b.yaml")));
        assert_eq!(
            (options.runs, options.workloads, options.idle),
            (1, 300, Duration::from_secs(5))
        );
        assert_eq!((control.pids(), control.can_restart()), (vec![7], false));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for wrong in [
            "--member m1=a",
            "S1",
            "S1 --member m1",
            "S1 --member M1=a",
            "S9 --member m1=a",
            "S1 --member m1=a --runs 0",
            "--kill 5 --member m1=a",
            "S6 --member m1=a --member-pid m1=1",
            "S6 --member m1=a --member-pid 7",
            "S1 --member m1=a --controllers x --pid 7",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
        assert!(parse("--kill 5 --member m1=a --controllers x").is_some());
    }
}
