//! `entourage taint`: adds and removes taints of Clusters, with the syntax of `kubectl taint`, which supports only Nodes.
//!
//! `cordon`, `uncordon` and `drain` do the same with taints of their own ([`super::cordon`], [`super::drain`]).

use std::io::Write;

use anyhow::{Result, bail};
use clap::Args;
use entourage_core::object::Time;
use kube::Client;

use crate::{apply::Target, args::HubArgs, connect};

pub mod change;
pub mod write;

use change::{Change, Outcome, Rule, Word};
use write::{TaintRequest, carry_out};

/// Flags of `entourage taint`.
#[derive(Args, Clone, Debug)]
pub struct TaintArgs {
    /// Clusters, followed by changes of their taints: KEY[=VALUE]:EFFECT sets one, KEY:EFFECT- removes it, KEY- removes those
    /// of every effect
    ///
    /// The effects are NoSchedule, which prevents new bindings from being scheduled to the cluster; NoExecute, which also
    /// evicts bindings that do not tolerate it; and PreferNoSchedule, which is stored and has no effect.
    #[arg(value_name = "CLUSTER|TAINT", required = true, value_parser = change::word)]
    pub words: Vec<Word>,

    /// Change the value of an existing taint with this key and effect
    #[arg(long)]
    pub overwrite: bool,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Write nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(args: TaintArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    // Before a kubeconfig is required: an error in the arguments does not depend on it.
    sorted_out(&args.words)?;
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    taint(
        &args,
        connect::client(hub)?,
        entourage_controllers::clock::now(),
        out,
    )
    .await
}

/// Taints with the given client.
///
/// # Errors
/// As [`run`].
pub async fn taint(args: &TaintArgs, hub: Client, now: Time, out: &mut (dyn Write + Send)) -> Result<()> {
    let (clusters, changes) = sorted_out(&args.words)?;
    let request = TaintRequest {
        clusters: &clusters,
        changes: &changes,
        rule: if args.overwrite {
            Rule::Overwrite
        } else {
            Rule::Strict
        },
        words: |outcome| vec![line(outcome)],
    };
    let mut target = Target {
        client: hub,
        place: "hub",
        dry_run: args.dry_run,
        out,
    };
    carry_out(&request, &mut target, now).await
}

/// The Clusters and the changes of a command line, which must be in this order as for kubectl.
fn sorted_out(words: &[Word]) -> Result<(Vec<String>, Vec<Change>)> {
    let (mut clusters, mut changes) = (Vec::new(), Vec::<Change>::new());
    for word in words {
        match word {
            Word::Cluster(name) if changes.is_empty() => clusters.push(name.clone()),
            Word::Cluster(name) => bail!("name every cluster before the first taint: {name}"),
            Word::Change(change) => {
                if let Some(other) = changes.iter().find(|other| other.overlaps(change)) {
                    bail!("{other} and {change} are about the same taint; give one of them");
                }
                changes.push(change.clone());
            }
        }
    }
    if clusters.is_empty() {
        bail!("name at least one cluster before the taints");
    }
    if changes.is_empty() {
        bail!("give at least one taint: KEY[=VALUE]:EFFECT sets it, KEY:EFFECT- or KEY- removes it");
    }
    Ok((clusters, changes))
}

/// The line about a Cluster.
fn line(outcome: &Outcome) -> &'static str {
    match (outcome.set.is_empty(), outcome.removed.is_empty()) {
        (true, true) => "unchanged",
        (false, true) => "tainted",
        (true, false) => "untainted",
        (false, false) => "modified",
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
