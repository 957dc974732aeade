//! `entourage audit secrets`: which Secret went to which cluster and namespace, and because of what.
//!
//! Nothing is written, and no value is read: of Secrets the hub is asked for the metadata alone, and members are not connected to.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use entourage_core::{
    distribution,
    inspection::{
        explanation::Presence,
        secrets::{SecretPlace, secrets},
    },
    object::{Gvk, ResourceId},
};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use super::{
    answer,
    controllers::features::{self, FeatureGates},
    explained,
    get::{
        select, selected_of,
        table::{Row, Shown, View},
    },
    plan::{FileArgs, objects},
};
use crate::{
    apply::label,
    args::{self, CLUSTER_NAMESPACE, HubArgs, MemberArgs, SelectArgs},
    connect,
    lists::PAGE,
    output::{Output, OutputArgs, for_programs},
    simulate::{
        Simulated,
        live::{self, LiveOptions, MembersFrom},
        offline,
    },
    style::Style,
};

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

/// Flags of `entourage audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditArgs {
    /// The subject.
    #[command(subcommand)]
    pub subject: AuditSubject,
}

/// The subject of an audit.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditSubject {
    /// Show which Secret went to which cluster and namespace, and because of what
    ///
    /// A table has those that are there, or may be; -o wide and every other format also those that are kept away. Values of Secrets are
    /// never read. Exits with 0 if any Secret is on a cluster, or may be; with 1 if none is; with 2 after an error.
    Secrets(SecretsArgs),
}

/// Flags of `entourage audit secrets`.
#[derive(Args, Clone, Debug)]
pub struct SecretsArgs {
    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Files instead of a hub: the answer for the state after they were applied.
    #[command(flatten)]
    pub files: FileArgs,

    /// For files without Clusters: the members to assume, ready and empty
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::cluster_name, requires = "FileArgs")]
    pub clusters: Vec<String>,

    /// The Secrets, or the ResourceDistributions that contain them, on the hub.
    #[command(flatten)]
    pub select: SelectArgs,

    /// The members.
    #[command(flatten)]
    pub members: MemberArgs,

    /// The features that the hub's controllers run with: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Namespaces that the hub's controllers leave alone besides kube-*, karmada-* and karmada-cluster: that of their Lease
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub reserved_namespaces: Vec<String>,

    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The places of Secrets, and the ones that are asked for.
pub struct Audited {
    simulated: Simulated,
    /// The namespace on the hub; empty: all.
    namespace: String,
    /// With `-l`, the Secrets and the ResourceDistributions that have the labels.
    labelled: Option<BTreeSet<ResourceId>>,
}

/// Runs the command; the table goes to `out`.
///
/// # Errors
/// The output was closed.
pub async fn run(
    args: AuditArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let AuditSubject::Secrets(args) = args.subject;
    let done = match look(&args).await {
        Ok(audited) => answered(&args, &audited, Style::of_stdout(), out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// The state of the hub or of the files.
async fn look(args: &SecretsArgs) -> Result<Audited> {
    if !args.files.is_empty() {
        return of_files(args);
    }
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.select.namespace(&config.default_namespace);
    let options = LiveOptions {
        members: MembersFrom::Recorded,
        namespace: namespace.clone(),
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        assumed: explained::controllers(&args.feature_gates, &args.reserved_namespaces),
        adopted: BTreeMap::new(),
    };
    let hub = connect::client(config)?;
    let labelled = match &args.select.rows.selector {
        Some(selector) => Some(labelled(&hub, &namespace, selector).await?),
        None => None,
    };
    Ok(Audited {
        simulated: live::observe(&hub, &options).await?,
        namespace,
        labelled,
    })
}

/// The Secrets of a namespace, or of all if it is empty, and the ResourceDistributions that have the labels.
async fn labelled(hub: &Client, namespace: &str, selector: &str) -> Result<BTreeSet<ResourceId>> {
    let kinds = [Gvk::new("v1", "Secret"), distribution::gvk()];
    let params = ListParams::default().labels(selector).limit(PAGE);
    selected_of(hub, kinds.into(), namespace, &params).await
}

/// The state after the files were applied.
///
/// # Errors
/// A file cannot be read.
pub fn of_files(args: &SecretsArgs) -> Result<Audited> {
    if args.select.rows.selector.is_some() {
        bail!("-l asks the hub: leave out -f, or choose by --field-selector");
    }
    if args.hub.kubeconfig.is_some() || args.hub.context.is_some() {
        bail!("-f answers for files alone: leave out --kubeconfig and --context, or -f");
    }
    let manifests = args.files.read()?;
    let namespace = args.select.namespace.as_deref().unwrap_or("default");
    let assumed = explained::controllers(&args.feature_gates, &args.reserved_namespaces);
    let simulated = offline::simulate(objects(&manifests)?, &args.clusters, namespace, &assumed)?;
    Ok(Audited {
        simulated,
        namespace: args.select.namespace(namespace),
        labelled: None,
    })
}

/// Prints the places of the Secrets; true if any is there, or may be.
///
/// # Errors
/// There is no such cluster or field, or the output cannot be written.
pub fn answered(
    args: &SecretsArgs,
    audited: &Audited,
    style: Style,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    let simulation = &audited.simulated.simulation;
    args.members
        .check(|cluster| simulation.engine().cluster(cluster).is_some())?;
    let is_asked = |place: &SecretPlace| {
        let labelled = audited.labelled.as_ref();
        args.members.has(place.cluster.as_deref()) && labelled.is_none_or(|all| all.contains(&place.secret.0))
    };
    let mut all: Vec<(SecretPlace, Row)> = Vec::new();
    for place in secrets(simulation.engine(), &audited.namespace, simulation.now()) {
        if is_asked(&place) {
            let row = row(&place)?;
            all.push((place, row));
        }
    }
    if let Some(fields) = &args.select.rows.field_selector {
        select::by_fields(&mut all, |(_, row)| &row.item, fields)?;
    }
    let is_found = all.iter().any(|(place, _)| may_be_there(place));
    let remarks = &audited.simulated.remarks;
    let (text, format) = match &args.output.output {
        format @ (None | Some(Output::Wide)) => {
            all.retain(|(place, _)| format.is_some() || may_be_there(place));
            let text = match all.is_empty() {
                true => "No Secret is on a cluster.\n".to_owned(),
                false => view(all).printed(&args.output, false, style)?,
            };
            (text, answer::Output::Text)
        }
        Some(format) => {
            let items: Vec<&Value> = all.iter().map(|(_, row)| &row.item).collect();
            let rows = all.iter().map(|(_, row)| (row.name.as_str(), &row.item));
            let root = answer::value(&json!({ "secrets": items }), remarks)?;
            let rows: Vec<(&str, &Value)> = rows.collect();
            let text = for_programs(format, &root, &rows, !args.output.no_headers)?;
            // The other formats have no place for the remarks.
            let has_remarks = matches!(format, Output::Json | Output::Yaml);
            let format = if has_remarks {
                answer::Output::Json
            } else {
                answer::Output::Text
            };
            (text, format)
        }
    };
    answer::print(&text, (format, remarks), out, err)?;
    Ok(is_found)
}

/// True if the copy is there, or what its cluster has is not known. One that is pending may have been written a moment ago.
const fn may_be_there(place: &SecretPlace) -> bool {
    !matches!(place.presence, Presence::KeptAway | Presence::Absent)
}

fn view(rows: Vec<(SecretPlace, Row)>) -> View {
    View {
        columns: vec![
            ("SECRET", Shown::Always),
            ("CLUSTER", Shown::Always),
            ("NAMESPACE", Shown::Always),
            ("STATE", Shown::Always),
            ("BECAUSE OF", Shown::Always),
            ("SINCE", Shown::Wide),
            ("MESSAGE", Shown::Wide),
        ],
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        more: Vec::new(),
    }
}

fn row(place: &SecretPlace) -> Result<Row> {
    let id = &place.secret.0;
    // That of a distribution has its own kind.
    let secret = match id.namespace.is_empty() {
        true => place.secret.to_string(),
        false => format!("{}/{}", id.namespace, id.name),
    };
    let causes = place.because.iter().map(|cause| {
        let note = if cause.reason == "recorded" {
            " (recorded)"
        } else {
            ""
        };
        format!("{}{note}", cause.object)
    });
    let cells = vec![
        secret,
        place.cluster.as_deref().unwrap_or("(hub)").to_owned(),
        place.namespace.to_string(),
        place.presence.to_string(),
        causes.collect::<Vec<_>>().join(", "),
        place.since.clone().unwrap_or_default(),
        place.message.clone(),
    ];
    let kind = label(&id.gvk.api_version(), &id.gvk.kind);
    Ok(Row {
        name: format!("{}/{kind}/{}", place.cluster.as_deref().unwrap_or("hub"), id.name),
        cells,
        item: serde_json::to_value(place).context("cannot write a row as JSON")?,
    })
}
