//! `entourage plan`: creations, changes and deletions that an apply of files would cause, object by object and cluster by
//! cluster.

use std::{collections::BTreeMap, ffi::OsStr, io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use entourage_core::distribution;
use entourage_simulation::{Fate, Place, Report};
use kube::Client;
use serde_json::Value;

use super::{
    answer::Output,
    controllers::features::{self, FeatureGates},
};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
    kinds::Kinds,
    manifests::{self, Manifest},
    simulate::{
        Assumed, Simulated, interpreters,
        live::{self, LiveOptions, MembersFrom},
        offline,
    },
};

pub mod print;

/// The flags for files.
#[derive(Args, Clone, Debug, Default)]
pub struct FileArgs {
    /// A file, a directory, a URL, or standard input (-): YAML or JSON, Lists, rendered Helm charts, output of kustomize; may be
    /// given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|URL|-", num_args = 1..)]
    pub filename: Vec<PathBuf>,

    /// Read directories recursively
    #[arg(short = 'R', long, requires = "filename")]
    pub recursive: bool,

    /// A directory with a kustomization, which kubectl or kustomize on the PATH builds
    #[arg(short = 'k', long, value_name = "DIR", conflicts_with = "filename")]
    pub kustomize: Option<PathBuf>,
}

impl FileArgs {
    /// True if no files are given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filename.is_empty() && self.kustomize.is_none()
    }

    /// The objects of the files.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, and the remedy.
    pub fn read(&self) -> Result<Vec<Manifest>> {
        match &self.kustomize {
            Some(directory) => manifests::built(directory),
            None => manifests::read_below(&self.filename, self.recursive),
        }
    }
}

/// Flags of `entourage plan`.
#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    /// The files to simulate.
    #[command(flatten)]
    pub files: FileArgs,

    /// The hub: with --kubeconfig, --context or $KUBECONFIG the plan is made against it, else of files alone.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Plan files alone, whatever $KUBECONFIG says
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub offline: bool,

    /// Without a hub and without Clusters in the files: the members to assume, ready and empty
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::cluster_name)]
    pub clusters: Vec<String>,

    /// Source of the members and of the state of their copies
    #[arg(long, value_enum, default_value_t)]
    pub members: MembersFrom,

    /// Namespace of objects without one (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Namespace of the hub that holds the members' credentials
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// The features that the hub's controllers run with: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Namespaces that the hub's controllers leave alone besides kube-*, karmada-* and the one of --cluster-namespace: that of
    /// their Lease
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub reserved_namespaces: Vec<String>,

    /// Show the changes as a diff; values of Secrets are not shown
    #[arg(long)]
    pub diff: bool,

    /// Also list unchanged objects
    #[arg(long)]
    pub show_unchanged: bool,

    /// Exit with code 2 if something would be written; 1 after an error, also one of usage
    #[arg(long)]
    pub exit_code: bool,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs the command; the plan goes to `out`.
///
/// # Errors
/// The files are invalid, the hub cannot be read, or the hub would refuse an object; with the remedy.
pub async fn run(args: PlanArgs, out: &mut (dyn Write + Send)) -> Result<ExitCode> {
    if args.files.is_empty() {
        bail!("name what would be applied: -f FILE, -f DIR, -f URL, -k DIR, or -f - for standard input");
    }
    let manifests = args.files.read()?;
    let simulated = if is_hub_meant(&args, std::env::var_os("KUBECONFIG").as_deref()) {
        let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
        let namespace = config.default_namespace.clone();
        against(&args, &connect::client(config)?, &namespace, &manifests).await?
    } else {
        alone(&args, &manifests)?
    };
    finish(&args, &simulated, out)
}

/// True if the plan is made against a hub, given what `$KUBECONFIG` says. `~/.kube/config` alone does not select
/// a hub, because it exists on most machines. `--clusters` selects files alone.
fn is_hub_meant(args: &PlanArgs, kubeconfig: Option<&OsStr>) -> bool {
    let is_named = args.hub.kubeconfig.is_some() || args.hub.context.is_some();
    let is_set = kubeconfig.is_some_and(|files| !files.is_empty());
    is_named || is_set && !args.offline && args.clusters.is_empty()
}

/// The plan of files alone.
///
/// # Errors
/// As [`run`].
pub fn alone(args: &PlanArgs, manifests: &[Manifest]) -> Result<Simulated> {
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let objects = objects(manifests)?;
    let mut assumed = assumed(args, &objects);
    assumed.reserved.push(args.cluster_namespace.clone());
    let hooks = interpreters::hooks(&objects);
    let gates = distribution_gate(args, &objects);
    let mut simulated = offline::simulate(objects, &args.clusters, namespace, &assumed)?;
    simulated.remarks.extend(gates);
    simulated.remarks.extend(hooks);
    simulated.remarks.extend(helm_hooks(manifests));
    Ok(simulated)
}

/// The plan of files against a hub; `namespace` is that of the context.
///
/// # Errors
/// As [`run`].
pub async fn against(
    args: &PlanArgs,
    hub: &Client,
    namespace: &str,
    manifests: &[Manifest],
) -> Result<Simulated> {
    if !args.clusters.is_empty() {
        bail!(
            "--clusters is for plans without a hub: this hub has its own Clusters; to try others, put them into a file"
        );
    }
    let objects = objects(manifests)?;
    let gates = distribution_gate(args, &objects);
    let options = LiveOptions {
        members: args.members,
        namespace: args.namespace.as_deref().unwrap_or(namespace).to_owned(),
        cluster_namespace: args.cluster_namespace.clone(),
        assumed: assumed(args, &objects),
        adopted: BTreeMap::new(),
    };
    let mut hooks = interpreters::hooks(&objects);
    hooks.extend(interpreters::hooks_of_hub(hub, &mut Kinds::default()).await);
    let mut simulated = live::simulate(hub, objects, &options).await?;
    hooks.sort();
    // One that is changed is on the hub and among the files.
    hooks.dedup();
    simulated.remarks.extend(gates);
    simulated.remarks.extend(hooks);
    simulated.remarks.extend(helm_hooks(manifests));
    Ok(simulated)
}

/// Prints a plan and tells how the command ends.
///
/// # Errors
/// The hub would refuse an object, or the plan cannot be written.
pub fn finish(args: &PlanArgs, simulated: &Simulated, out: &mut (dyn Write + Send)) -> Result<ExitCode> {
    let mut report = simulated.simulation.report();
    report.notes.extend(simulated.warnings.iter().cloned());
    report.notes.sort();
    let text = match args.output {
        Output::Text => print::text(&report, &simulated.remarks, args.show_unchanged, args.diff)?,
        format => {
            if !args.diff {
                for outcome in &mut report.outcomes {
                    (outcome.before, outcome.after) = (None, None);
                }
            }
            print::data(format, &report, &simulated.remarks)?
        }
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    let refused = refused(&report);
    if refused > 0 {
        bail!("the hub would refuse {refused} of the objects; see above");
    }
    Ok(if args.exit_code && report.has_changes() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    })
}

fn refused(report: &Report) -> usize {
    let on_hub =
        |each: &&entourage_simulation::Outcome| each.place == Place::Hub && each.fate == Fate::Refused;
    report.outcomes.iter().filter(on_hub).count()
}

/// The controllers that the plan is for.
fn assumed(args: &PlanArgs, objects: &[Value]) -> Assumed {
    let distribute = args.feature_gates.given(features::RESOURCE_DISTRIBUTION);
    Assumed {
        distribute: distribute.unwrap_or_else(|| distributes(objects)),
        propagate_deps: args.feature_gates.is_on(features::PROPAGATE_DEPS),
        multiple_pod_templates: args
            .feature_gates
            .is_on(features::MULTIPLE_POD_TEMPLATES_SCHEDULING),
        reserved: args.reserved_namespaces.clone(),
        ..Assumed::default()
    }
}

fn distributes(objects: &[Value]) -> bool {
    objects.iter().any(|object| object["kind"] == distribution::KIND)
}

/// The remark about the assumed feature gate of distributions: the hub does not store whether it is enabled.
fn distribution_gate(args: &PlanArgs, objects: &[Value]) -> Option<String> {
    let gate = features::RESOURCE_DISTRIBUTION;
    let why = match args.feature_gates.given(gate) {
        _ if !distributes(objects) => return None,
        Some(true) => return None,
        Some(false) => format!("{gate} is off: ResourceDistributions are stored and have no effect"),
        None => format!(
            "ResourceDistributions are planned as with --feature-gates {gate}=true, which is off by default"
        ),
    };
    Some(why)
}

/// The objects of the files.
///
/// # Errors
/// A file cannot be read.
pub fn objects(manifests: &[Manifest]) -> Result<Vec<Value>> {
    manifests.iter().map(Manifest::value).collect()
}

/// Remarks about Helm hooks, which an apply does not run.
fn helm_hooks(manifests: &[Manifest]) -> Vec<String> {
    let hooks = manifests.iter().filter_map(|manifest| {
        let hook = manifest.hook()?;
        Some(format!(
            "{manifest} is a Helm hook ({hook}): Helm runs it at that moment, an apply makes it like any other object"
        ))
    });
    hooks.collect()
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
