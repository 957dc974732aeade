//! `entourage adopt`: a hub takes over copies of its predecessor, or of a Karmada.
//!
//! A hub's id is the uid of its kube-system namespace; one that is rebuilt from files has another, and the copies that it finds on
//! the members belong to another hub. This command replaces the former id in their metadata, object by object, where this hub has
//! what they were made from. Nothing is deleted, and what is left alone keeps the former id. `--from-karmada` does the same with the
//! copies of a Karmada that exists, and retires it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::PathBuf,
};

use anyhow::{Result, bail};
use clap::Args;
use entourage_api::cluster::Cluster;
use entourage_core::{
    adoption::{Decision, HubState, Transfer, decide, holders},
    object::{Gvk, Meta, ResourceId, Str},
};
use futures::{StreamExt as _, stream};
use kube::Client;
use serde_json::Value;

use super::get::table::{Row, Shown, View};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect, members,
};

mod hub;
mod karmada;
mod member;
mod result;
mod write;

use member::{Member, Scan, Search};
use result::{Decided, both, finish, objects, row, table};

/// The maximum number of members, or of objects of a member, that are read or written at a time.
const AT_ONCE: usize = 8;

/// Flags of `entourage adopt`.
#[derive(Args, Clone, Debug)]
pub struct AdoptArgs {
    /// Id of the former hub: the value of the label entourage.dev/hub on its copies (default: list the ids on the members)
    #[arg(long, value_name = "ID", value_parser = hub_id, group = "origin")]
    pub former_hub: Option<String>,

    /// Kubeconfig of the API server of a Karmada that exists: decide on its copies instead
    #[arg(long, value_name = "FILE", group = "origin")]
    pub from_karmada: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(
        long,
        value_name = "NAME",
        requires = "from_karmada",
        conflicts_with = "former_hub"
    )]
    pub karmada_context: Option<String>,

    /// Also adopt copies of Karmada whose Pods this hub would restart or remove; only with --cluster
    #[arg(long, requires = "from_karmada", requires = "clusters", conflicts_with_all = ["former_hub", "undo", "confirm"])]
    pub allow_restarts: bool,

    /// Also adopt copies of Karmada of which it is not known what this hub would change; only with --cluster
    #[arg(long, requires = "from_karmada", requires = "clusters", conflicts_with_all = ["former_hub", "undo", "confirm"])]
    pub allow_unknown: bool,

    /// Give adopted copies back to Karmada, whose controllers may then be started again; the controllers of this hub must be stopped
    #[arg(long, requires = "from_karmada", conflicts_with_all = ["former_hub", "confirm"])]
    pub undo: bool,

    /// Retire Karmada: delete those of its policies, bindings and Works whose objects this hub manages. There is no way back
    #[arg(long, requires = "from_karmada", conflicts_with = "former_hub")]
    pub confirm: bool,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Only this member; may be given several times
    #[arg(long = "cluster", value_name = "NAME", value_parser = args::cluster_name)]
    pub clusters: Vec<String>,

    /// Kubeconfig of a member, instead of the credentials that the hub has for it: needed in Pull mode; may be given several
    /// times
    #[arg(long = "member", value_name = "NAME=FILE", value_parser = args::member)]
    pub members: Vec<(String, PathBuf)>,

    /// Namespace of the hub that holds the members' credentials
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Write; without it the decisions are printed and nothing is written
    #[arg(long, requires = "origin")]
    pub yes: bool,
}

/// Runs the command; the table goes to `out`.
///
/// # Errors
/// The cause and the remedy; also if a member was not read, or an object was not written. The next run continues where this one
/// stopped.
pub async fn run(args: AdoptArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let hub = connect::client(hub)?;
    if let Some(file) = &args.from_karmada {
        let config = connect::karmada_config(file, args.karmada_context.as_deref()).await?;
        return karmada::run(&args, &hub, &connect::client(config)?, out).await;
    }
    adopt(&args, hub, out).await
}

async fn adopt(args: &AdoptArgs, hub: Client, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub_id = connect::cluster_id(&hub, "the hub").await?;
    if args.former_hub.as_ref() == Some(&hub_id) {
        bail!("{hub_id} is the id of this hub: its copies need no adoption");
    }
    let clusters = members_to_read(args, &hub).await?;
    let state = hub::state(&hub, &BTreeSet::new()).await?;
    let scans = scan(args, &hub, clusters, &Search::of(&hub_id, &state)).await;
    let Some(former) = &args.former_hub else {
        let found = found(&scans, &hub_id);
        if found.rows.is_empty() {
            writeln!(out, "no objects of other hubs found on {}", members_of(&scans))?;
        } else {
            write!(out, "{}", found.table(false, true))?;
            writeln!(
                out,
                "--former-hub ID decides on the objects of one of them; nothing is written without --yes"
            )?;
        }
        return finish(out, &scans, 0);
    };
    let decided = Decided::all(args, &hub, (hub_id.as_str(), former.as_str()), &scans).await;
    if decided.rows.is_empty() {
        if decided.result.is_ok() {
            writeln!(out, "no objects of hub {former} found on {}", members_of(&scans))?;
        }
        let finished = finish(out, &scans, decided.failed);
        return both(decided.result, finished);
    }
    write!(out, "{}", table(decided.rows))?;
    let (adopted, left) = (objects(decided.adopted), decided.left);
    if args.yes {
        writeln!(out, "{adopted} adopted, {left} left alone")?;
    } else if decided.adopted == 0 {
        writeln!(out, "{adopted} to adopt, {left} left alone; nothing was written")?;
    } else {
        writeln!(
            out,
            "{adopted} to adopt, {left} left alone; nothing was written: make sure that hub {former} is gone for good, then add \
             --yes",
        )?;
    }
    let finished = finish(out, &scans, decided.failed);
    both(decided.result, finished)
}

/// The members of the hub that the flags choose.
async fn members_to_read(args: &AdoptArgs, hub: &Client) -> Result<Vec<Cluster>> {
    let clusters = members::clusters(hub, &args.clusters).await?;
    if clusters.is_empty() {
        bail!("the hub has no members: `entourage join` them under their former names first");
    }
    if let Some(unknown) = unknown(args, &clusters) {
        bail!("--member {unknown}=FILE: the hub has no such member, or --cluster leaves it out");
    }
    Ok(clusters)
}

async fn scan(args: &AdoptArgs, hub: &Client, clusters: Vec<Cluster>, search: &Search) -> Vec<Scan> {
    stream::iter(clusters)
        .map(|cluster| member::scan(args, hub, cluster, search))
        .buffered(AT_ONCE)
        .collect()
        .await
}

impl Decided {
    async fn all(args: &AdoptArgs, hub: &Client, (hub_id, former): (&str, &str), scans: &[Scan]) -> Self {
        let mut all = Self::new();
        let found: BTreeSet<Gvk> = read(scans)
            .flat_map(|member| &member.objects)
            .filter(|(id, live)| holders(id, live).contains(former))
            .map(|(id, _)| id.gvk.clone())
            .collect();
        let mut state = None;
        for (at, scan) in scans.iter().enumerate() {
            let Ok(member) = &scan.result else { continue };
            // Writes to a member take their time: what the hub wants is read again before the next one's.
            if state.is_none() || args.yes {
                match hub::state(hub, &found).await {
                    Ok(read) => state = Some(read),
                    Err(error) => {
                        let left = scans[at..].iter().filter(|scan| scan.result.is_ok());
                        let left: Vec<&str> = left.map(|scan| &*scan.cluster).collect();
                        let left = format!("nothing was decided on the objects of {}", left.join(", "));
                        all.result = Err(error.context(left));
                        break;
                    }
                }
            }
            let Some(state) = &state else { break };
            let transfer = Transfer {
                former: former.into(),
                hub: hub_id.into(),
                cluster: scan.cluster.clone(),
                namespaces: member.namespaces.clone(),
            };
            let decisions = decisions(state, &transfer, member);
            let mut written = BTreeMap::new();
            if args.yes {
                let rule = write::FormerHub {
                    state,
                    transfer: &transfer,
                };
                write::all(&rule, member, &decisions, &mut written).await;
            }
            for (id, decision) in decisions {
                let words = all.count(&decision, written.get(&id));
                all.rows.push(row(&scan.cluster, &id, words));
            }
        }
        all
    }
}

/// The first name of `--member` that is none of these clusters.
fn unknown<'a>(args: &'a AdoptArgs, clusters: &[Cluster]) -> Option<&'a str> {
    let is_known = |name: &str| {
        let mut names = clusters.iter().map(|cluster| cluster.metadata.name.as_deref());
        names.any(|each| each == Some(name))
    };
    let mut given = args.members.iter().map(|(name, _)| name.as_str());
    given.find(|name| !is_known(name))
}

/// Each object with a mark of another hub, and what happens to it, in order.
fn decisions(state: &HubState, transfer: &Transfer, member: &Member) -> Vec<(ResourceId, Decision)> {
    sorted(member, |id, live| decide(state, transfer, id, live))
}

/// The objects of a member on which there is a decision, in order.
fn sorted(
    member: &Member,
    decide: impl Fn(&ResourceId, &Meta) -> Option<Decision>,
) -> Vec<(ResourceId, Decision)> {
    let objects = member.objects.iter();
    let decided = objects.filter_map(|(id, live)| Some((id.clone(), decide(id, live)?)));
    let mut all: Vec<_> = decided.collect();
    all.sort_by_key(|(id, _)| (id.namespace.clone(), id.gvk.clone(), id.name.clone()));
    all
}

/// The other hubs whose marks the members carry, and the number of objects.
fn found(scans: &[Scan], hub_id: &str) -> View {
    let mut counts: BTreeMap<(Str, Str), usize> = BTreeMap::new();
    for scan in scans {
        let Ok(member) = &scan.result else { continue };
        for (id, live) in &member.objects {
            for hub in holders(id, live).into_iter().filter(|hub| *hub != hub_id) {
                *counts.entry((hub.into(), scan.cluster.clone())).or_default() += 1;
            }
        }
    }
    let rows = counts.into_iter().map(|((hub, cluster), count)| Row {
        name: hub.to_string(),
        cells: vec![hub.to_string(), cluster.to_string(), count.to_string()],
        item: Value::Null,
    });
    View {
        columns: vec![
            ("FORMER HUB", Shown::Always),
            ("CLUSTER", Shown::Always),
            ("OBJECTS", Shown::Always),
        ],
        rows: rows.collect(),
        more: Vec::new(),
    }
}

fn read(scans: &[Scan]) -> impl Iterator<Item = &Member> {
    scans.iter().filter_map(|scan| scan.result.as_ref().ok())
}

/// The members that were read, as a number.
fn members_of(scans: &[Scan]) -> String {
    let count = read(scans).count();
    format!("{count} {}", if count == 1 { "member" } else { "members" })
}

/// Reads the id of a hub: the value of a label.
fn hub_id(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("give the uid of the former hub's namespace kube-system".to_owned());
    }
    args::label_value(text)?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
