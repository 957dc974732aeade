//! `entourage drain`: evicts the bindings of a Cluster, and waits until none is left there.
//!
//! The command sets two taints. The controllers evict the bindings that do not tolerate them.

use std::{collections::BTreeMap, io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::keys::taint;
use entourage_core::object::Time;
use kube::{Client, api::ListParams};
use tokio::time::{Instant, sleep};

use super::{
    cordon::{cordon_message, cordoned},
    taint::{
        change::{Change, Effect, Rule},
        write::{TaintRequest, carry_out},
    },
};
use crate::{
    apply::{CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, Target},
    args::{self, HubArgs},
    connect,
    kinds::Served,
    lists::{PAGE, list},
};

mod remaining;

use remaining::{Progress, Remaining, remaining};

/// The interval between lists of the bindings.
const POLL: Duration = Duration::from_secs(1);

/// Flags of `entourage drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    /// Name of the member on the hub
    #[arg(value_name = "CLUSTER", value_parser = args::cluster_name)]
    pub name: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Wait until no binding is on the cluster any more; --wait=false does not wait
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// Time to wait
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "10m")]
    pub timeout: Duration,

    /// Write nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy; or the remaining bindings, with the causes.
pub async fn run(args: DrainArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    drain(
        &args,
        connect::client(hub)?,
        entourage_controllers::clock::now(),
        out,
    )
    .await
}

/// Drains with the given client.
///
/// # Errors
/// As [`run`].
pub async fn drain(args: &DrainArgs, hub: Client, now: Time, out: &mut (dyn Write + Send)) -> Result<()> {
    let mut target = Target {
        client: hub,
        place: "hub",
        dry_run: args.dry_run,
        out,
    };
    let request = TaintRequest {
        clusters: std::slice::from_ref(&args.name),
        changes: &[cordoned(), Change::set(taint::DRAIN, Effect::NoExecute)],
        rule: Rule::Idempotent,
        words: |outcome| {
            let draining = if outcome.has_set(taint::DRAIN) {
                "draining"
            } else {
                "already draining"
            };
            vec![cordon_message(outcome), draining]
        },
    };
    let waits = args.wait && !args.dry_run;
    // Bindings that are evicted at once count, too. A hub that cannot be read is reported once the taints are set.
    let before = if waits {
        bindings_on(&target, &args.name).await.ok()
    } else {
        None
    };
    carry_out(&request, &mut target, now).await?;
    if !waits {
        return Ok(());
    }
    wait(&mut target, &args.name, before, args.timeout).await
}

/// Waits until no binding is left; `before`: the bindings before the drain, if known. Costs two lists of all bindings every
/// second. An error after the first list is retried.
async fn wait(
    target: &mut Target<'_>,
    name: &str,
    before: Option<BTreeMap<String, Remaining>>,
    limit: Duration,
) -> Result<()> {
    let begin = Instant::now();
    let now = bindings_on(target, name).await?;
    let mut progress = Progress::new(name, before.unwrap_or_else(|| now.clone()));
    progress.begin(target.out)?;
    progress.advance(now, target.out)?;
    let mut failed = None;
    while !progress.is_done() {
        if let Some(why) = progress.stuck() {
            bail!("{why}");
        }
        let left = limit.saturating_sub(begin.elapsed());
        if left.is_zero() {
            let timed_out = progress.timed_out(limit);
            return Err(match failed {
                Some(error) => anyhow::Error::context(error, timed_out),
                None => anyhow::anyhow!(timed_out),
            });
        }
        sleep(POLL.min(left)).await;
        match bindings_on(target, name).await {
            Ok(now) => {
                failed = None;
                progress.advance(now, target.out)?;
            }
            Err(error) => failed = Some(error),
        }
    }
    writeln!(target.out, "cluster/{name} drained").context("cannot write to the terminal")
}

/// The bindings that are still on the cluster, by name.
async fn bindings_on(target: &Target<'_>, name: &str) -> Result<BTreeMap<String, Remaining>> {
    let params = ListParams::default().limit(PAGE);
    let mut there = BTreeMap::new();
    for kind in [RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING] {
        let served = Served {
            resource: kind.resource(),
            namespaced: kind.namespaced,
        };
        let all = list(&target.client, &served, "", &params).await;
        let all = all
            .map_err(connect::explain)
            .with_context(|| format!("cannot list {} on the hub", kind.plural))?;
        there.extend(all.iter().filter_map(|binding| remaining(binding, name)));
    }
    Ok(there)
}

#[cfg(test)]
mod tests;
