//! Starts a hub and members for use by hand: `cargo run -p entourage-e2e --example fleet -- [MEMBERS] [DIRECTORY]`.
//!
//! Prints a kubeconfig path per cluster and stays until Ctrl-C or SIGTERM. Beside each kubeconfig lies the process of the API
//! server, in `apiserver.pid`. Needs `KUBEBUILDER_ASSETS`.

use std::{fs, path::PathBuf, time::Instant};

use anyhow::Context;
use entourage_e2e::servers::{Assets, Fleet, TestCluster};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let members = arguments
        .next()
        .as_deref()
        .unwrap_or("3")
        .parse()
        .context("the number of members")?;
    let own = std::env::temp_dir().join(format!("entourage-fleet-{}", std::process::id()));
    let dir = arguments.next().map_or(own, PathBuf::from);
    let assets =
        Assets::from_env().context("set KUBEBUILDER_ASSETS; hack/real-apiserver.sh prepares a directory")?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;

    let begin = Instant::now();
    let fleet = tokio::select! {
        fleet = Fleet::start(&assets, members, &dir) => fleet?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    println!(
        "{} clusters of {} ready in {:.1} s",
        members + 1,
        assets.version()?,
        begin.elapsed().as_secs_f32()
    );
    for cluster in fleet.clusters() {
        if let TestCluster::Real(real) = cluster
            && let Some(pid) = real.pids().apiserver
        {
            fs::write(
                cluster.kubeconfig_path().with_file_name("apiserver.pid"),
                pid.to_string(),
            )?;
        }
        println!(
            "{:<10} export KUBECONFIG={}",
            cluster.name(),
            cluster.kubeconfig_path().display()
        );
    }
    println!("Ctrl-C ends them");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    fleet.shutdown();
    Ok(())
}
