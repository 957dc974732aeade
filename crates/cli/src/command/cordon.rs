//! `entourage cordon` and `entourage uncordon`: prevent or allow scheduling of new bindings to Clusters.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use entourage_api::keys::taint;
use entourage_core::object::Time;
use kube::Client;

use super::taint::{
    change::{Change, Effect, Outcome, Rule},
    write::{TaintRequest, carry_out},
};
use crate::{
    apply::Target,
    args::{self, HubArgs},
    connect,
};

/// Flags of `entourage cordon` and of `entourage uncordon`.
#[derive(Args, Clone, Debug)]
pub struct CordonArgs {
    /// Names of members on the hub
    #[arg(value_name = "CLUSTER", required = true, value_parser = args::cluster_name)]
    pub names: Vec<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Write nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs `entourage cordon`; lines go to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(args: CordonArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = hub(&args).await?;
    cordon(&args, hub, entourage_controllers::clock::now(), out).await
}

/// Runs `entourage uncordon`; lines go to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run_uncordon(args: CordonArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = hub(&args).await?;
    uncordon(&args, hub, entourage_controllers::clock::now(), out).await
}

/// The taint of a Cluster that is cordoned.
pub(super) fn cordoned() -> Change {
    Change::set(taint::UNSCHEDULABLE, Effect::NoSchedule)
}

/// The line about a cordoned Cluster.
pub(super) fn cordon_message(outcome: &Outcome) -> &'static str {
    if outcome.has_set(taint::UNSCHEDULABLE) {
        "cordoned"
    } else {
        "already cordoned"
    }
}

/// Cordons with the given client.
///
/// # Errors
/// As [`run`].
pub async fn cordon(args: &CordonArgs, hub: Client, now: Time, out: &mut (dyn Write + Send)) -> Result<()> {
    let request = TaintRequest {
        clusters: &args.names,
        changes: &[cordoned()],
        rule: Rule::Idempotent,
        words: |outcome| vec![cordon_message(outcome)],
    };
    carry_out(&request, &mut target(args, hub, out), now).await
}

/// Uncordons with the given client: the taint of `entourage drain` is removed too.
///
/// # Errors
/// As [`run_uncordon`].
pub async fn uncordon(args: &CordonArgs, hub: Client, now: Time, out: &mut (dyn Write + Send)) -> Result<()> {
    let request = TaintRequest {
        clusters: &args.names,
        changes: &[
            Change::remove(taint::UNSCHEDULABLE, Effect::NoSchedule),
            Change::remove(taint::DRAIN, Effect::NoExecute),
        ],
        rule: Rule::Idempotent,
        words: |outcome| {
            vec![if outcome.is_unchanged() {
                "already uncordoned"
            } else {
                "uncordoned"
            }]
        },
    };
    carry_out(&request, &mut target(args, hub, out), now).await
}

async fn hub(args: &CordonArgs) -> Result<Client> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    connect::client(hub)
}

fn target<'a>(args: &CordonArgs, hub: Client, out: &'a mut (dyn Write + Send)) -> Target<'a> {
    Target {
        client: hub,
        place: "hub",
        dry_run: args.dry_run,
        out,
    }
}
