//! `entourage graph`: what refers to what, on which clusters it is, and what is missing.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use entourage_core::{
    dependencies::drawing::{Drawing, dot, mermaid, selected_kinds, text},
    interpreter::{Interpretation, NATIVE, NativeKind, shipped},
    object::{Gvk, Id},
    rehearsal::{Rehearsal, identity},
    twin,
};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use super::plan::{FileArgs, objects};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect::{self, explain},
    manifests,
    rehearse::{
        Assumed,
        kinds::{Kinds, Served},
        live::{self, LiveOptions, MembersFrom, PAGE, api, list},
        offline,
    },
};

/// How a graph is drawn.
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
}

/// Flags of `entourage graph`.
#[derive(Args, Clone, Debug)]
pub struct GraphArgs {
    /// Of files instead of a hub; with --kubeconfig of the hub as it would be with the files applied.
    #[command(flatten)]
    pub files: FileArgs,

    /// Which hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Of files without Clusters: the members to assume
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::cluster_name, requires = "filename")]
    pub clusters: Vec<String>,

    /// Which namespace; without it that of the context, else default
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Only what objects of this kind need, and what needs them
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,

    /// Only what objects of this name need, and what needs them
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// How to draw it
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs the command; the graph goes to `out`.
///
/// # Errors
/// What is wrong with the files or the hub, and what to do about it.
pub async fn run(args: GraphArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let on_hub = args.hub.kubeconfig.is_some() || args.hub.context.is_some();
    let drawing = if args.files.filename.is_empty() || on_hub {
        let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
        let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
        let client = connect::client(config)?;
        if args.files.filename.is_empty() {
            let within = if args.all_namespaces { "" } else { &namespace };
            of_hub(&client, within).await?
        } else {
            of_files_on(&args, &client, namespace).await?
        }
    } else {
        of_files(&args)?
    };
    out.write_all(drawn(&args, drawing)?.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The graph of files alone, which need not hold a policy.
///
/// # Errors
/// When a file is no manifest.
pub fn of_files(args: &GraphArgs) -> Result<Drawing> {
    let manifests = manifests::read_below(&args.files.filename, args.files.recursive)?;
    let objects = objects(&manifests)?;
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let controllers = Assumed::default();
    let rehearsed = match offline::rehearse(objects.clone(), &args.clusters, namespace, &controllers) {
        Ok(rehearsed) => rehearsed,
        // No cluster is known: what refers to what can be drawn all the same.
        Err(_) => offline::rehearse(objects, &["none".to_owned()], namespace, &controllers)?,
    };
    Ok(Drawing::of(
        rehearsed.rehearsal.hub().collect::<Vec<_>>().into_iter(),
    ))
}

async fn of_files_on(args: &GraphArgs, hub: &Client, namespace: String) -> Result<Drawing> {
    let manifests = manifests::read_below(&args.files.filename, args.files.recursive)?;
    let options = LiveOptions {
        members: MembersFrom::Recorded,
        namespace,
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        assumed: Assumed::default(),
    };
    let rehearsed = live::rehearse(hub, objects(&manifests)?, &options).await?;
    Ok(touched(&rehearsed.rehearsal))
}

/// What the files touch, what that needs, and what needs it.
fn touched(rehearsal: &Rehearsal) -> Drawing {
    let given: BTreeSet<&Id> = rehearsal.given().collect();
    let all = Drawing::of(rehearsal.hub().collect::<Vec<_>>().into_iter());
    all.around(|id| given.contains(id))
}

/// The graph of a namespace of a hub; of all when it is empty. Objects that refer to nothing are read as metadata: no
/// Secret's content is.
///
/// # Errors
/// When the hub cannot be read.
pub async fn of_hub(hub: &Client, namespace: &str) -> Result<Drawing> {
    let mut kinds = Kinds::default();
    let mut all: BTreeMap<Id, Value> = BTreeMap::new();
    let shipped = shipped::all().iter().map(|kind| kind as &dyn NativeKind);
    let native = NATIVE.iter().copied().chain(shipped).map(NativeKind::gvk);
    let workloads: BTreeSet<Gvk> = native
        .map(|gvk| Gvk::new(&join(gvk.group, gvk.version), gvk.kind))
        .filter(refers)
        .collect();
    let bindings =
        [twin::BINDING.kind, twin::CLUSTER_BINDING.kind].map(|kind| Gvk::new(twin::BINDING_API, kind));
    let mut wanted: BTreeSet<Gvk> = workloads.into_iter().chain(bindings).collect();
    let mut listed = BTreeSet::new();
    // The first round reads what refers to others, the next ones what was referred to.
    while !wanted.is_empty() {
        kinds
            .learn(hub, wanted.clone())
            .await
            .context("cannot ask the hub which kinds it serves")?;
        for gvk in &wanted {
            if let Some(served) = kinds.get(gvk) {
                all.extend(read(hub, gvk, served, namespace).await?);
            }
        }
        listed.append(&mut wanted);
        let drawing = Drawing::of(all.iter());
        let named = drawing.nodes.keys().map(|id| id.gvk.clone());
        let selected = all.iter().flat_map(|(id, object)| selected_kinds(id, object));
        wanted = named
            .chain(selected)
            .filter(|gvk| !listed.contains(gvk))
            .collect();
    }
    let drawing = Drawing::of(all.iter());
    Ok(if namespace.is_empty() {
        drawing
    } else {
        drawing.around(|id| *id.namespace == *namespace)
    })
}

/// Whether objects of a kind may refer to others, as far as it is known without customizations.
fn refers(gvk: &Gvk) -> bool {
    Interpretation::default().refers(gvk)
}

async fn read(hub: &Client, gvk: &Gvk, served: &Served, namespace: &str) -> Result<Vec<(Id, Value)>> {
    let failed = || format!("cannot list {} on the hub", served.resource.plural);
    let whole = refers(gvk) || gvk.api_version() == twin::BINDING_API;
    if whole {
        let params = ListParams::default().limit(PAGE);
        let objects = list(hub, served, namespace, &params)
            .await
            .map_err(explain)
            .with_context(failed)?;
        return Ok(objects
            .into_iter()
            .filter_map(|object| Some((identity(&object)?, object)))
            .collect());
    }
    let api = api(hub, served, namespace);
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = connect::within(api.list_metadata(&params))
            .await
            .map_err(explain)
            .with_context(failed)?;
        for object in page.items {
            let name = object.metadata.name.unwrap_or_default();
            let namespace = object.metadata.namespace.unwrap_or_default();
            all.push((
                Id::new(gvk.clone(), &namespace, &name),
                json!({"metadata": {"namespace": namespace, "name": name, "labels": object.metadata.labels}}),
            ));
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The graph as asked for.
///
/// # Errors
/// When nothing fits the focus.
pub fn drawn(args: &GraphArgs, drawing: Drawing) -> Result<String> {
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
            "{} refers to nothing, nothing refers to it, and it does not travel; look with -A, or without --kind and --name",
            words.join(" ")
        );
    }
    Ok(match args.output {
        Output::Text if drawing.nodes.is_empty() => {
            "Nothing refers to anything, and nothing travels.\n".to_owned()
        }
        Output::Text => text::draw(&drawing),
        Output::Mermaid => mermaid::draw(&drawing),
        Output::Dot => dot::draw(&drawing),
        Output::Json => serde_json::to_string_pretty(&drawing.json())? + "\n",
    })
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
