//! `entourage adopt`: a hub that was rebuilt takes over the copies of its predecessor.
//!
//! A hub's id is the uid of its kube-system namespace; one that is rebuilt from files has another, and the copies that it finds on
//! the members belong to another hub. This command replaces the former id in their metadata, object by object, where this hub has
//! what they were made from. Nothing is deleted, and what is left alone keeps the former id.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::PathBuf,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::cluster::Cluster;
use entourage_core::{
    adoption::{Decision, HubState, Transfer, decide, holders},
    object::{Gvk, ResourceId, Str},
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
mod member;
mod write;

use member::{Member, Scan, Search};
use write::Outcome;

/// The maximum number of members, or of objects of a member, that are read or written at a time.
const AT_ONCE: usize = 8;

/// Flags of `entourage adopt`.
#[derive(Args, Clone, Debug)]
pub struct AdoptArgs {
    /// Id of the former hub: the value of the label entourage.dev/hub on its copies (default: list the ids on the members)
    #[arg(long, value_name = "ID", value_parser = hub_id)]
    pub former_hub: Option<String>,

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

    /// Adopt the objects; without it nothing is written
    #[arg(long, requires = "former_hub")]
    pub yes: bool,
}

/// Runs the command; the table goes to `out`.
///
/// # Errors
/// The cause and the remedy; also if a member was not read, or an object was not written. The next run continues where this one
/// stopped.
pub async fn run(args: AdoptArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    adopt(&args, connect::client(hub)?, out).await
}

async fn adopt(args: &AdoptArgs, hub: Client, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub_id = connect::cluster_id(&hub, "the hub").await?;
    if args.former_hub.as_ref() == Some(&hub_id) {
        bail!("{hub_id} is the id of this hub: its copies need no adoption");
    }
    let clusters = members::clusters(&hub, &args.clusters).await?;
    if clusters.is_empty() {
        bail!("the hub has no members: `entourage join` them under their former names first");
    }
    if let Some(unknown) = unknown(args, &clusters) {
        bail!("--member {unknown}=FILE: the hub has no such member, or --cluster leaves it out");
    }
    let state = hub::state(&hub, &BTreeSet::new()).await?;
    let (hub_ref, search) = (&hub, &Search::of(&hub_id, &state));
    let scans: Vec<Scan> = stream::iter(clusters)
        .map(|cluster| member::scan(args, hub_ref, cluster, search))
        .buffered(AT_ONCE)
        .collect()
        .await;
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
    let view = View {
        columns: vec![
            ("CLUSTER", Shown::Always),
            ("NAMESPACE", Shown::Always),
            ("OBJECT", Shown::Always),
            ("DECISION", Shown::Always),
        ],
        rows: decided.rows,
        more: Vec::new(),
    };
    if view.rows.is_empty() {
        if decided.result.is_ok() {
            writeln!(out, "no objects of hub {former} found on {}", members_of(&scans))?;
        }
        let finished = finish(out, &scans, decided.failed);
        return both(decided.result, finished);
    }
    write!(out, "{}", view.table(false, true))?;
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

/// Both errors, if there are two.
fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Err(one), Err(other)) => bail!("{one:#}; {other:#}"),
        (one, other) => one.and(other),
    }
}

/// The decisions on all objects, and the results of the writes with `--yes`.
struct Decided {
    rows: Vec<Row>,
    /// The number of objects that were adopted, or are to be.
    adopted: usize,
    left: usize,
    failed: usize,
    /// The error that ended the run before all members had their turn.
    result: Result<()>,
}

impl Decided {
    async fn all(args: &AdoptArgs, hub: &Client, (hub_id, former): (&str, &str), scans: &[Scan]) -> Self {
        let mut all = Self {
            rows: Vec::new(),
            adopted: 0,
            left: 0,
            failed: 0,
            result: Ok(()),
        };
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
            let written = if args.yes {
                write::all(state, &transfer, member, &decisions).await
            } else {
                BTreeMap::new()
            };
            for (id, decision) in decisions {
                let words = all.count(&decision, written.get(&id));
                all.rows.push(row(&scan.cluster, &id, words));
            }
        }
        all
    }

    /// Counts an object, and says what happened to it.
    fn count(&mut self, decision: &Decision, written: Option<&Result<Outcome, String>>) -> String {
        let (counter, words) = match (decision, written) {
            (Decision::Adopt, Some(Err(why))) => (&mut self.failed, format!("not adopted: {why}")),
            (Decision::Adopt, Some(Ok(Outcome::Adopted))) => (&mut self.adopted, "adopted".to_owned()),
            (Decision::Adopt, Some(Ok(Outcome::Gone))) => {
                (&mut self.left, "left alone: not found any more".to_owned())
            }
            (Decision::Adopt, None) => (&mut self.adopted, decision.to_string()),
            _ => (&mut self.left, decision.to_string()),
        };
        *counter += 1;
        words
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
    let decided = member
        .objects
        .iter()
        .filter_map(|(id, live)| Some((id.clone(), decide(state, transfer, id, live)?)));
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

fn row(cluster: &str, id: &ResourceId, words: String) -> Row {
    Row {
        name: String::new(),
        cells: vec![
            cluster.to_owned(),
            id.namespace.to_string(),
            format!("{} {}", id.gvk.kind, id.name),
            words,
        ],
        item: Value::Null,
    }
}

/// Reports what was not read; an error if anything is left to do.
fn finish(out: &mut (dyn Write + Send), scans: &[Scan], failed: usize) -> Result<()> {
    let mut unread = 0;
    for scan in scans {
        let (failures, remarks) = match &scan.result {
            Ok(member) => (member.unread.clone(), member.notes.clone()),
            Err(why) => (vec![format!("not read: {why}")], Vec::new()),
        };
        unread += usize::from(!failures.is_empty());
        for note in failures.into_iter().chain(remarks) {
            writeln!(out, "note: {}: {note}", scan.cluster).context("cannot write to the terminal")?;
        }
    }
    let mut problems = Vec::new();
    if failed > 0 {
        problems.push(format!("{} not adopted", objects(failed)));
    }
    if unread > 0 {
        let plural = if unread == 1 { "member was" } else { "members were" };
        problems.push(format!("{unread} {plural} not read completely"));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; correct the cause and run this again to continue",
        problems.join(", ")
    )
}

fn objects(count: usize) -> String {
    format!("{count} {}", if count == 1 { "object" } else { "objects" })
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
