//! `entourage init`: sets a hub up by server-side apply: namespaces, definitions, accounts and rights of chosen parts, and on request
//! the webhook configurations.
//!
//! 1. Plan each object; nothing is written. An object that differs and is somebody else's, a definition of a newer version, or an
//!    object that is being deleted ends the command.
//! 2. Write what differs, namespaces first. A second run writes nothing.
//! 3. Wait until the definitions are served.

use std::{io::Write, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_admission::configuration::{Address, configurations};
use entourage_api::crds::{ServerVersion, crds};
use k8s_openapi::ByteString;
use kube::Client;
use serde_json::Value;

use super::webhook::{service, url};
use crate::{
    apply::{CRD, Target},
    args::HubArgs,
    connect,
    crds::{server_version, until_served, version},
};

pub mod object;
pub mod parts;

use object::{Allowed, Planned, Step};
use parts::{DEFAULT, Part};

/// Flags of `entourage init`.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Parts to set up besides the definitions and the namespaces, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DEFAULT, value_name = "PART")]
    pub parts: Vec<Part>,

    /// Print the objects as YAML and connect to no hub
    #[arg(long, conflicts_with_all = ["dry_run", "take_over", "allow_downgrade", "kubeconfig", "context"])]
    pub print: bool,

    /// With --print: omit fields of definitions that this Kubernetes version would drop, e.g. 1.20
    #[arg(long = "for", value_name = "VERSION", value_parser = version, requires = "print")]
    pub server: Option<ServerVersion>,

    /// Report what would be written and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Take over objects, and fields of objects, that others manage
    #[arg(long)]
    pub take_over: bool,

    /// Replace definitions that have versions or fields which this version lacks: objects lose their content
    #[arg(long)]
    pub allow_downgrade: bool,

    /// Write the webhook configurations, with this Service on the hub: NAMESPACE/NAME, or NAMESPACE/NAME:PORT (default: the webhook
    /// writes them when it starts)
    #[arg(long, value_name = "SERVICE", value_parser = service, group = "webhook_address", requires = "webhook_ca_file")]
    pub webhook_service: Option<Address>,

    /// Write the webhook configurations, with this URL: `https://HOST[:PORT]`
    #[arg(long, value_name = "URL", value_parser = url, group = "webhook_address", requires = "webhook_ca_file")]
    pub webhook_url: Option<Address>,

    /// Certificates of the authorities of the webhook, PEM
    #[arg(long, value_name = "FILE", requires = "webhook_address")]
    pub webhook_ca_file: Option<PathBuf>,
}

/// Runs the command; YAML or lines go to `out`.
///
/// # Errors
/// The hub cannot be reached, refuses an object, or has one that is somebody else's.
pub async fn run(args: InitArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    if args.print {
        for object in objects(&args, args.server)? {
            writeln!(out, "---\n{}", serde_saphyr::to_string(&object)?.trim_end())?;
        }
        return Ok(());
    }
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    init(&args, connect::client(config)?, out).await
}

/// Sets a hub up with the given client.
///
/// # Errors
/// As [`run`].
pub async fn init(args: &InitArgs, hub: Client, out: &mut (dyn Write + Send)) -> Result<()> {
    let version = server_version(&hub).await?;
    let mut target = Target {
        client: hub.clone(),
        place: "hub",
        dry_run: args.dry_run,
        out,
    };
    let allowed = Allowed {
        take_over: args.take_over,
        downgrade: args.allow_downgrade,
    };
    let mut all = Vec::new();
    for object in objects(args, Some(version))? {
        all.push(object::plan(&target, object, allowed).await?);
    }
    refuse(&all)?;
    let mut written = 0;
    for planned in &all {
        written += usize::from(object::carry_out(&mut target, planned).await?);
    }
    if !args.dry_run {
        let definitions = all.iter().filter(|planned| planned.kind == CRD);
        let names: Vec<String> = definitions.map(|planned| planned.name().to_owned()).collect();
        until_served(&hub, &names).await?;
    }
    let total = all.len();
    match (written, args.dry_run) {
        (0, _) => writeln!(target.out, "The hub is set up: {total} objects, no changes.")?,
        (_, true) => writeln!(target.out, "{written} of {total} objects would be written.")?,
        (_, false) => writeln!(
            target.out,
            "The hub is set up: {written} of {total} objects written."
        )?,
    }
    Ok(())
}

/// The objects in the order in which they are written.
fn objects(args: &InitArgs, server: Option<ServerVersion>) -> Result<Vec<Value>> {
    let mut all = parts::namespaces()?;
    for definition in crds(server) {
        all.push(serde_json::to_value(definition)?);
    }
    all.extend(parts::objects(&args.parts)?);
    if let (Some(address), Some(file)) = (
        args.webhook_service.as_ref().or(args.webhook_url.as_ref()),
        args.webhook_ca_file.as_ref(),
    ) {
        let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = String::from_utf8_lossy(&pem);
        if !text.contains("-----BEGIN CERTIFICATE-----") {
            bail!("{} contains no certificate in PEM", file.display());
        }
        // The whole file is written where many may read it.
        if text.contains("PRIVATE KEY-----") {
            bail!(
                "{} contains a private key; give a file with certificates alone",
                file.display()
            );
        }
        // ByteString is the base64 codec of the Kubernetes types.
        let bundle = serde_json::to_value(ByteString(pem))?;
        all.extend(configurations(address, bundle.as_str().unwrap_or_default()));
    }
    Ok(all)
}

/// Nothing is written if a single object may not be replaced.
fn refuse(all: &[Planned]) -> Result<()> {
    let mut refused = Vec::new();
    let (mut is_foreign, mut is_newer) = (false, false);
    for planned in all {
        let why = match &planned.step {
            Step::Foreign(why) => {
                is_foreign = true;
                why
            }
            Step::Newer(why) => {
                is_newer = true;
                why
            }
            Step::Create | Step::Keep | Step::Change { .. } => continue,
        };
        refused.push(format!("{}/{} {why}", planned.kind.label(), planned.name()));
    }
    if refused.is_empty() {
        return Ok(());
    }
    let mut remedies = Vec::new();
    if is_foreign {
        remedies.push(
            "compare them with `entourage init --print`, then pass --take-over to replace their content",
        );
    }
    if is_newer {
        remedies.push(
            "use the version of entourage that wrote these definitions, or pass --allow-downgrade if no object uses what is lost",
        );
    }
    bail!(
        "{} of {} objects on the hub are not replaced: {}; nothing was written; {}",
        refused.len(),
        all.len(),
        refused.join("; "),
        remedies.join("; ")
    )
}

#[cfg(test)]
mod tests;
