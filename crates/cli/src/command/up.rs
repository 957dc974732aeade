//! `entourage up`: a hub, members and the controllers in this process, until Ctrl-C.

use std::{io::Write, path::PathBuf, time::Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    fleet::{self, Fleet, FleetOptions},
    logging::{self, LogArgs},
    manifests,
};

/// How many kubeconfig paths are listed before the rest is only counted.
const LISTED: usize = 5;

/// Flags of `entourage up`.
#[derive(Args, Clone, Debug)]
pub struct UpArgs {
    /// How many members
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub members: u16,

    /// Keep everything in this directory and go on from there the next time; without it nothing is kept
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Apply these files to the hub once it is ready; may be given several times
    #[arg(long, value_name = "FILE")]
    pub apply: Vec<PathBuf>,

    /// What the controllers log to the terminal: error, warn, info, debug, trace, or directives
    #[arg(long, default_value = "warn", value_name = "LEVEL")]
    pub log_level: String,
}

/// Runs until SIGINT or SIGTERM.
///
/// # Errors
/// When something cannot be started or a file cannot be applied; what was started is ended.
pub async fn run(args: UpArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    logging::init(&LogArgs {
        log_format: logging::LogFormat::default(),
        log_level: args.log_level.clone(),
    })?;
    let begin = Instant::now();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let objects = manifests::read(&args.apply)?;
    let temporary = fleet::temporary("up");
    let options = FleetOptions {
        members: args.members.into(),
        data_dir: args.data_dir.clone(),
        dir: temporary.clone(),
    };
    let done = async {
        let mut fleet = Fleet::start(&options).await?;
        fleet.start_controllers(entourage_controllers::Options::default());
        tell(&fleet, begin, args.data_dir.is_some(), out)?;
        let client = fleet.hub.client();
        for object in &objects {
            let line = manifests::apply(&client, object).await.context("on the hub")?;
            writeln!(out, "hub: {line}")?;
        }
        out.flush()?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            ended = fleet.controllers_ended() => return ended,
        }
        fleet.end().await
    }
    .await;
    if args.data_dir.is_none() {
        fleet::remove_temporary(&temporary);
    }
    done
}

fn tell(fleet: &Fleet, begin: Instant, kept: bool, out: &mut (dyn Write + Send)) -> Result<()> {
    let count = fleet.members.len();
    let members = if count == 1 {
        "1 member"
    } else {
        &format!("{count} members")
    };
    writeln!(
        out,
        "A hub and {members} are up after {} ms{}.\n",
        begin.elapsed().as_millis(),
        if kept {
            "; everything is kept"
        } else {
            "; nothing is kept when they go down"
        }
    )?;
    for machine in fleet.machines().take(LISTED + 1) {
        writeln!(
            out,
            "  {:<10} {}",
            machine.name,
            fleet.kubeconfig_of(&machine.name).display()
        )?;
    }
    if count > LISTED {
        writeln!(out, "  … and {} more beside them", count - LISTED)?;
    }
    writeln!(
        out,
        "\nAll of them as contexts, the hub first:\n\n  export KUBECONFIG={}\n\nTry next:\n\n  kubectl get clusters\n\nCtrl-C ends them.",
        fleet.kubeconfig().display()
    )?;
    out.flush()?;
    Ok(())
}
