//! `entourage support-bundle`: a file with the state of a hub, for somebody else to read.
//!
//! [`collect`] and [`pods`] read, [`redact`] and [`scrub`] remove payloads from every object and text on its way in, [`archive`] writes
//! the file. What cannot be read is listed in the bundle: a bundle of half a hub is better than none.

use std::{io::Write, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Args;
use jiff::Timestamp;
use kube::Client;

use crate::{
    args::{self, HubArgs},
    connect,
};

pub mod archive;
pub mod bundle;
pub mod collect;
pub mod pods;
pub mod redact;
pub mod scrub;

use archive::Archive;
use bundle::Bundle;

/// Flags of `entourage support-bundle`.
#[derive(Args, Clone, Debug)]
pub struct SupportBundleArgs {
    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Kubeconfig of the cluster in which the controllers run, for their logs and metrics (default: the hub)
    #[arg(long, value_name = "FILE")]
    pub host_kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME", requires = "host_kubeconfig")]
    pub host_context: Option<String>,

    /// Namespace of the controllers on the host
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = "karmada-system")]
    pub namespace: String,

    /// Age of the oldest lines of logs
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "1h")]
    pub logs_since: Duration,

    /// Maximum number of lines of each log
    #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
    pub logs_tail: u32,

    /// File to write (default: entourage-support-TIME.tar.gz in the current directory)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The hub cannot be reached, or the file cannot be written.
pub async fn run(args: SupportBundleArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let hub = connect::client(config)?;
    let host = match &args.host_kubeconfig {
        Some(file) => {
            let config = connect::config(Some(file), args.host_context.as_deref()).await?;
            connect::client(config)?
        }
        None => hub.clone(),
    };
    support_bundle(&args, &hub, &host, Timestamp::now(), out).await
}

/// Writes a bundle of `now` with the given clients.
///
/// # Errors
/// As [`run`].
pub async fn support_bundle(
    args: &SupportBundleArgs,
    hub: &Client,
    host: &Client,
    now: Timestamp,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let file = args.output.clone().unwrap_or_else(|| {
        PathBuf::from(format!(
            "entourage-support-{}.tar.gz",
            now.strftime("%Y%m%dT%H%M%SZ")
        ))
    });
    let cannot_write = || format!("cannot write {}", file.display());
    let mut bundle = Bundle::new(Archive::create(&file, now).with_context(cannot_write)?);
    collect::hub(&mut bundle, hub).await?;
    let logs = pods::Logs {
        namespace: &args.namespace,
        since: args.logs_since,
        tail: args.logs_tail,
    };
    pods::pods(&mut bundle, host, &logs).await;
    let (count, unread) = bundle.finish().with_context(cannot_write)?;
    for line in &unread {
        writeln!(out, "not read: {}", crate::plain::plain(line))?;
    }
    writeln!(
        out,
        "wrote {}: {count} files. Values of Secrets, ConfigMaps, environment variables and overrides are not in it; names of objects and \
         clusters, addresses and logs are: look at it before you send it",
        file.display()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests;
