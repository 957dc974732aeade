//! `entourage audit secrets`: which Secret went to which cluster and namespace, and because of what.
//!
//! Nothing is written, and no value is read: of Secrets the hub is asked for the metadata alone, and members are not connected to.

use std::{collections::BTreeMap, io::Write, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use entourage_core::{
    inspection::{
        explanation::Presence,
        secrets::{SecretPlace, secrets},
    },
    object::Str,
};
use serde_json::json;

use super::{
    answer::{self, Output},
    controllers::features::{self, FeatureGates},
    explained,
    get::table::{Row, Shown, View},
    plan::{FileArgs, objects},
};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
    simulate::{
        Simulated,
        live::{self, LiveOptions, MembersFrom},
        offline,
    },
};

#[cfg(test)]
mod golden;

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
    /// Values of Secrets are never read. Exits with 0 if any Secret is on a cluster, or may be; with 1 if none is; with 2 after an error.
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

    /// Namespace of the Secrets on the hub (default: that of the context, else default)
    #[arg(
        short = 'n',
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub namespace: Option<String>,

    /// The Secrets of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Only these clusters
    #[arg(short = 'C', long = "cluster", value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: Vec<String>,

    /// The features that the hub's controllers run with: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Namespaces that the hub's controllers leave alone besides kube-*, karmada-* and karmada-cluster: that of their Lease
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub reserved_namespaces: Vec<String>,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: AuditOutput,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AuditOutput {
    /// The Secrets that are on a cluster, or may be
    #[default]
    Text,
    /// Also those that are kept away, and the time and the recorded message
    Wide,
    /// All of it, as one JSON object
    Json,
    /// The same as YAML
    Yaml,
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
        Ok((simulated, namespace)) => answered(&args, &simulated, &namespace, out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// The state of the hub or of the files, and the namespace that is asked about; empty: all.
async fn look(args: &SecretsArgs) -> Result<(Simulated, String)> {
    if !args.files.is_empty() {
        return of_files(args);
    }
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = match (args.all_namespaces, &args.namespace) {
        (true, _) => String::new(),
        (false, Some(namespace)) => namespace.clone(),
        (false, None) => config.default_namespace.clone(),
    };
    let options = LiveOptions {
        members: MembersFrom::Recorded,
        namespace: namespace.clone(),
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        assumed: explained::controllers(&args.feature_gates, &args.reserved_namespaces),
        adopted: BTreeMap::new(),
    };
    let simulated = live::observe(&connect::client(config)?, &options).await?;
    Ok((simulated, namespace))
}

/// The state after the files were applied.
///
/// # Errors
/// A file cannot be read.
pub fn of_files(args: &SecretsArgs) -> Result<(Simulated, String)> {
    if args.hub.kubeconfig.is_some() || args.hub.context.is_some() {
        bail!("-f answers for files alone: leave out --kubeconfig and --context, or -f");
    }
    let manifests = args.files.read()?;
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let assumed = explained::controllers(&args.feature_gates, &args.reserved_namespaces);
    let simulated = offline::simulate(objects(&manifests)?, &args.clusters, namespace, &assumed)?;
    let namespace = if args.all_namespaces { "" } else { namespace };
    Ok((simulated, namespace.to_owned()))
}

/// Prints the places of the Secrets; true if any is there, or may be.
///
/// # Errors
/// The output cannot be written.
pub fn answered(
    args: &SecretsArgs,
    simulated: &Simulated,
    namespace: &str,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    let simulation = &simulated.simulation;
    let mut all = secrets(simulation.engine(), namespace, simulation.now());
    let is_asked = |cluster: &Option<Str>| {
        let mut wanted = args.cluster.iter();
        args.cluster.is_empty() || wanted.any(|wanted| cluster.as_deref() == Some(wanted.as_str()))
    };
    all.retain(|each| is_asked(&each.cluster));
    let may_be_there = all.iter().any(may_be_there);
    let remarks = &simulated.remarks;
    let (text, output) = match args.output {
        AuditOutput::Text => (table(&all, false), Output::Text),
        AuditOutput::Wide => (table(&all, true), Output::Text),
        AuditOutput::Json => (data(Output::Json, &all, remarks)?, Output::Json),
        AuditOutput::Yaml => (data(Output::Yaml, &all, remarks)?, Output::Yaml),
    };
    answer::print(&text, (output, remarks), out, err)?;
    Ok(may_be_there)
}

fn data(format: Output, all: &[SecretPlace], remarks: &[String]) -> Result<String> {
    answer::data_of(format, &json!({ "secrets": all }), remarks)
}

/// True if the copy is there, or what its cluster has is not known. One that is pending may have been written a moment ago.
const fn may_be_there(place: &SecretPlace) -> bool {
    !matches!(place.presence, Presence::KeptAway | Presence::Absent)
}

fn table(all: &[SecretPlace], is_wide: bool) -> String {
    let shown = all.iter().filter(|place| is_wide || may_be_there(place));
    let rows: Vec<Row> = shown.map(row).collect();
    if rows.is_empty() {
        return "No Secret is on a cluster.\n".into();
    }
    let view = View {
        columns: vec![
            ("SECRET", Shown::Always),
            ("CLUSTER", Shown::Always),
            ("NAMESPACE", Shown::Always),
            ("STATE", Shown::Always),
            ("BECAUSE OF", Shown::Always),
            ("SINCE", Shown::Wide),
            ("MESSAGE", Shown::Wide),
        ],
        rows,
        more: Vec::new(),
    };
    view.table(is_wide, false)
}

fn row(place: &SecretPlace) -> Row {
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
    Row {
        name: String::new(),
        cells,
        item: serde_json::Value::Null,
    }
}
