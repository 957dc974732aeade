//! `entourage graph`: references between objects, their clusters, and missing dependencies.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use entourage_core::{
    dependencies::drawing::{Drawing, dot, mermaid, text},
    object::ResourceId,
};
use entourage_simulation::Simulation;
use kube::Client;

use super::{
    answer,
    plan::{FileArgs, objects},
};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
    simulate::{
        Assumed, interpreters,
        live::{self as simulate_live, LiveOptions, MembersFrom},
        offline,
    },
};

#[cfg(test)]
mod golden;
mod live;
#[cfg(test)]
mod tests;

pub use live::of_hub;

/// The format of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A tree of lines
    #[default]
    Text,
    /// A Mermaid flowchart, as Markdown pages show it
    Mermaid,
    /// DOT, for Graphviz
    Dot,
    /// Nodes and edges
    Json,
    /// The same as YAML
    Yaml,
}

/// Flags of `entourage graph`.
#[derive(Args, Clone, Debug)]
pub struct GraphArgs {
    /// The graph of files instead of a hub; with --kubeconfig of the hub as it would be with the files applied.
    #[command(flatten)]
    pub files: FileArgs,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// For files without Clusters: the members to assume
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::cluster_name, requires = "FileArgs")]
    pub clusters: Vec<String>,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Only objects of this kind, their dependencies, and their dependents
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,

    /// Only objects of this name, their dependencies, and their dependents
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs the command; the graph goes to `out`.
///
/// # Errors
/// An error with the files or the hub, and the remedy.
pub async fn run(args: GraphArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let on_hub = args.hub.kubeconfig.is_some() || args.hub.context.is_some();
    let drawing = if args.files.is_empty() || on_hub {
        let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
        let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
        let client = connect::client(config)?;
        if args.files.is_empty() {
            let within = if args.all_namespaces { "" } else { &namespace };
            of_hub(&client, within).await?
        } else {
            of_files_on(&args, &client, namespace).await?
        }
    } else {
        of_files(&args)?
    };
    for remark in &drawing.remarks {
        eprintln!("note: {remark}");
    }
    out.write_all(rendered(&args, drawing)?.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The graph of files alone, which need not contain a policy.
///
/// # Errors
/// A file is not a manifest.
pub fn of_files(args: &GraphArgs) -> Result<Drawing> {
    let manifests = args.files.read()?;
    let objects = objects(&manifests)?;
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let controllers = Assumed::default();
    let hooks = interpreters::hooks(&objects);
    let simulated = match offline::simulate(objects.clone(), &args.clusters, namespace, &controllers) {
        Ok(simulated) => simulated,
        // No cluster is given: references can be drawn all the same.
        Err(_) => offline::simulate(objects, &["none".to_owned()], namespace, &controllers)?,
    };
    let mut drawing = of_simulation(&simulated.simulation);
    drawing.remarks.extend(hooks);
    Ok(drawing)
}

async fn of_files_on(args: &GraphArgs, hub: &Client, namespace: String) -> Result<Drawing> {
    let manifests = args.files.read()?;
    let options = LiveOptions {
        members: MembersFrom::Recorded,
        namespace,
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        assumed: Assumed::default(),
        adopted: BTreeMap::new(),
    };
    let objects = objects(&manifests)?;
    let hooks = interpreters::hooks(&objects);
    let simulated = simulate_live::simulate(hub, objects, &options).await?;
    let mut drawing = touched(&simulated.simulation);
    drawing.remarks.extend(hooks);
    Ok(drawing)
}

/// The graph of the hub in the simulation, with its interpreters.
fn of_simulation(simulation: &Simulation) -> Drawing {
    let objects: Vec<_> = simulation.hub().collect();
    Drawing::of(objects.into_iter(), |gvk| simulation.engine().interpretation(gvk))
}

/// The objects of the files, their dependencies, and their dependents.
fn touched(simulation: &Simulation) -> Drawing {
    let given: BTreeSet<&ResourceId> = simulation.given().collect();
    of_simulation(simulation).around(|id| given.contains(id))
}

/// The output.
///
/// # Errors
/// No object matches --kind and --name.
pub fn rendered(args: &GraphArgs, drawing: Drawing) -> Result<String> {
    let is = |wanted: &Option<String>, text: &str| {
        wanted
            .as_deref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(text))
    };
    let focused = args.kind.is_some() || args.name.is_some();
    let drawing = if focused {
        drawing.around(|id| {
            is(&args.kind, &id.gvk.kind) && args.name.as_deref().is_none_or(|name| name == &*id.name)
        })
    } else {
        drawing
    };
    if focused && drawing.nodes.is_empty() {
        let words: Vec<&str> = [args.kind.as_deref(), args.name.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        anyhow::bail!(
            "{} has no references and no referrers, and is not propagated; look with -A, or without --kind and \
             --name",
            words.join(" ")
        );
    }
    Ok(match args.output {
        Output::Text if drawing.nodes.is_empty() => "No propagated resources found.\n".to_owned(),
        Output::Text => text::draw(&drawing),
        Output::Mermaid => mermaid::draw(&drawing),
        Output::Dot => dot::draw(&drawing),
        Output::Json => answer::formatted(answer::Output::Json, &drawing.json())?,
        Output::Yaml => answer::formatted(answer::Output::Yaml, &drawing.json())?,
    })
}
