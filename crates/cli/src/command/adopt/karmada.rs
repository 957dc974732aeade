//! `entourage adopt --from-karmada`: the copies of a Karmada that exists change hands, go back, or are this hub's for good.
//!
//! The step that a fleet is in is read off the objects; nothing is recorded elsewhere, so that every step may be interrupted and run
//! again. No step changes an object's content. Before anything is written it is proven that nobody else writes: the Leases of the
//! other side's controllers are watched, and looked at again before each member and while it is written. What is decided on is read after the proof.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::{Result, bail};
use entourage_api::cluster::{Cluster, SyncMode};
use entourage_core::{
    adoption::{
        Decision, HubState, Transfer,
        karmada::{self as decisions, Allowed, Hazard, Karmada, Next},
    },
    object::{Gvk, Meta, NamespacedName, ResourceId, Str},
};
use kube::Client;
use serde_json::Value;

use super::{
    AdoptArgs, Decided, Member, Scan, Search, both, finish, hub, objects, row, sorted, table, write,
};
use crate::connect;

mod back;
mod compare;
mod read;
mod retire;
mod stopped;

use compare::Nexts;
use stopped::Watched;

/// The maximum number of notes of a kind.
const MOST_NOTES: usize = 20;

/// The servers, and what was read of them.
struct Fleet<'a> {
    args: &'a AdoptArgs,
    hub: &'a Client,
    hub_id: Str,
    server: &'a Client,
    karmada: Karmada,
    scans: Vec<Scan>,
    /// The members of the hub in Pull mode.
    pulled: BTreeSet<Str>,
    /// The clusters that Karmada has Works for, and that the hub does not have.
    missing: Vec<String>,
}

pub(super) async fn run(
    args: &AdoptArgs,
    hub: &Client,
    server: &Client,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let hub_id = connect::cluster_id(hub, "the hub").await?;
    let mut karmada = read::karmada(server).await?;
    if *karmada.id == *hub_id {
        bail!(
            "--from-karmada names the API server of this hub: a Karmada is taken over by a hub of its own, with the same members"
        );
    }
    let clusters = super::members_to_read(args, hub).await?;
    let is_pulled = |cluster: &&Cluster| matches!(cluster.spec.sync_mode, SyncMode::Pull);
    let pulled: BTreeSet<Str> = clusters.iter().filter(is_pulled).map(name_of).collect();
    let agents = pulled_of(&karmada);
    let mut watched = if args.undo {
        Watched::hub(hub, &pulled)
    } else {
        Watched::karmada(server, &karmada)
    };
    if args.yes {
        writeln!(out, "{}", watched.announcement())?;
        watched.prove().await?;
        karmada = read::karmada(server).await?;
        if !args.undo && pulled_of(&karmada) != agents {
            bail!("the clusters of Karmada in Pull mode have changed meanwhile; run this again");
        }
    } else {
        for note in watched.holders().await {
            writeln!(out, "note: {note}")?;
        }
    }
    let others = others(&karmada, &clusters);
    let missing = missing(&karmada, args, &clusters);
    let state = hub::state(hub, &BTreeSet::new()).await?;
    let search = Search::of_karmada(&state, &karmada);
    let mut scans = super::scan(args, hub, clusters, &search).await;
    for scan in &mut scans {
        if let Some(why) = others.get(&scan.cluster) {
            scan.result = Err(why.clone());
        }
    }
    let (works, bindings) = (karmada.works.len(), karmada.bindings.len());
    writeln!(
        out,
        "Karmada {}: {works} Works, {bindings} bindings, {} policies, clusters {}",
        karmada.id,
        karmada.policies.len(),
        stopped::clusters(&karmada)
    )?;
    for cluster in &missing {
        writeln!(
            out,
            "note: {cluster}: Karmada has Works for it, and it is no member of this hub"
        )?;
    }
    if !args.confirm {
        for note in notes_of(&decisions::hazards(&karmada)) {
            writeln!(out, "note: {note}")?;
        }
    }
    let fleet = Fleet {
        args,
        hub,
        hub_id: hub_id.into(),
        server,
        karmada,
        scans,
        pulled,
        missing,
    };
    if args.confirm {
        retire::confirm(&fleet, &mut watched, out).await
    } else if args.undo {
        fleet.give_back(&mut watched, out).await
    } else {
        fleet.adopt(&mut watched, out).await
    }
}

impl Fleet<'_> {
    async fn adopt(&self, watched: &mut Watched, out: &mut (dyn Write + Send)) -> Result<()> {
        let found = self.kinds();
        let state = hub::state(self.hub, &found).await?;
        for note in first_of(hub::overwriting(self.hub, &state).await?) {
            writeln!(
                out,
                "note: {note}: conflictResolution overwrites what others manage, Karmada too, while it runs and without a way back"
            )?;
        }
        let mut plans =
            self.plans(|transfer, id, live| decisions::decide(&state, &self.karmada, transfer, id, live));
        let (nexts, remarks) = compare::nexts(self, &plans).await;
        for remark in remarks {
            writeln!(out, "note: {remark}")?;
        }
        let allowed = Allowed {
            restarts: self.args.allow_restarts,
            unknown: self.args.allow_unknown,
        };
        settle(&mut plans, &nexts, allowed);
        let mut all = Decided::new();
        for scan in &self.scans {
            let Some(plan) = plans.get(&scan.cluster) else {
                continue;
            };
            let (written, ended) = match self.adopt_on(scan, plan, &found, watched).await {
                Ok(result) => result,
                Err(error) => {
                    all.result = Err(error.context(format!("nothing was written on {}", scan.cluster)));
                    break;
                }
            };
            for (id, decision) in plan {
                let mut words = all.count(decision, written.get(id));
                let next = nexts.get(&(scan.cluster.clone(), id.clone()));
                let is_kept = write::is_written(decision);
                if let Some(path) = next.and_then(|next| next.changes()).filter(|_| is_kept) {
                    words.push_str(&format!("; this hub changes {path} next"));
                }
                all.rows.push(row(&scan.cluster, id, words));
            }
            if let Err(error) = ended {
                all.result = Err(error.context(format!("stopped on {}", scan.cluster)));
                break;
            }
        }
        let words = if self.args.yes { "adopted" } else { "to adopt" };
        let mut line = format!(
            "{} {words}, {} adopted before, {} left alone",
            objects(all.adopted),
            all.already,
            all.left
        );
        if !self.args.yes {
            line.push_str("; nothing was written");
            if all.adopted > 0 {
                line.push_str(": stop Karmada's controllers and its agents, then add --yes");
            }
        }
        let rows = std::mem::take(&mut all.rows);
        write!(out, "{}", table(rows))?;
        writeln!(out, "{line}")?;
        let finished = finish(out, &self.scans, all.failed);
        both(all.result, finished)
    }

    /// Writes what is to be adopted on a member. Writes take their time: Karmada is looked at again, and what the hub wants is read
    /// again.
    async fn adopt_on(
        &self,
        scan: &Scan,
        plan: &[(ResourceId, Decision)],
        found: &BTreeSet<Gvk>,
        watched: &mut Watched,
    ) -> Result<(Written, Result<()>)> {
        let (true, Ok(member)) = (self.args.yes && is_written(plan), &scan.result) else {
            return Ok((Written::new(), Ok(())));
        };
        watched.look().await?;
        let state = hub::state(self.hub, found).await?;
        let rule = Adoption {
            state: &state,
            karmada: &self.karmada,
            transfer: &self.transfer(&scan.cluster),
        };
        Ok(write_watched(&rule, member, plan, watched).await)
    }

    /// The decisions on the objects of each member that was read.
    fn plans(&self, decide: impl Fn(&Transfer, &ResourceId, &Meta) -> Option<Decision>) -> Plans {
        let mut plans = Plans::new();
        for scan in &self.scans {
            if let Ok(member) = &scan.result {
                let transfer = self.transfer(&scan.cluster);
                let plan = sorted(member, |id, live| decide(&transfer, id, live));
                plans.insert(scan.cluster.clone(), plan);
            }
        }
        plans
    }

    /// The kinds of the objects that Karmada manages on members.
    fn kinds(&self) -> BTreeSet<Gvk> {
        let members = super::read(&self.scans);
        let objects = members.flat_map(|member| member.objects.keys());
        objects.map(|id| id.gvk.clone()).collect()
    }

    fn transfer(&self, cluster: &Str) -> Transfer {
        Transfer {
            former: self.karmada.id.clone(),
            hub: self.hub_id.clone(),
            cluster: cluster.clone(),
            namespaces: BTreeMap::new(),
        }
    }
}

/// The decisions on the objects of a member, in order.
type Plan = Vec<(ResourceId, Decision)>;

/// Those of each member that was read.
type Plans = BTreeMap<Str, Plan>;

/// The results of the writes.
type Written = BTreeMap<ResourceId, write::Written>;

/// Writes to a member while it is watched that nobody else begins to write: then it ends, with what was written until then.
async fn write_watched(
    rule: &dyn write::Rule,
    member: &Member,
    plan: &[(ResourceId, Decision)],
    watched: &mut Watched,
) -> (Written, Result<()>) {
    let mut written = Written::new();
    let ended = watched.during(write::all(rule, member, plan, &mut written)).await;
    if ended.is_err() {
        let open = plan.iter().filter(|(_, decision)| write::is_written(decision));
        for (id, _) in open {
            let unknown = || Err("stopped before there was a response".to_owned());
            written.entry(id.clone()).or_insert_with(unknown);
        }
    }
    (written, ended)
}

fn is_written(plan: &[(ResourceId, Decision)]) -> bool {
    plan.iter().any(|(_, decision)| write::is_written(decision))
}

/// Decides on the copies that would be adopted by the next write of this hub, too.
fn settle(plans: &mut Plans, nexts: &Nexts, allowed: Allowed) {
    let unknown = Next::Unknown("no plan shows it".to_owned());
    for (cluster, plan) in plans {
        for (id, decision) in plan {
            if *decision == Decision::Adopt {
                let next = nexts.get(&(cluster.clone(), id.clone()));
                *decision = next.unwrap_or(&unknown).decided(allowed);
            }
        }
    }
}

/// The copies of Karmada are adopted.
struct Adoption<'a> {
    state: &'a HubState,
    karmada: &'a Karmada,
    transfer: &'a Transfer,
}

impl write::Rule for Adoption<'_> {
    fn decide(&self, id: &ResourceId, live: &Meta) -> Option<Decision> {
        decisions::decide(self.state, self.karmada, self.transfer, id, live)
    }

    fn patch(&self, live: &Meta) -> Value {
        decisions::patch(self.karmada, self.transfer, live)
    }

    fn is_done(&self, decision: Option<&Decision>) -> bool {
        decision == Some(&Decision::Adopted)
    }

    fn version_of(&self, binding: &NamespacedName) -> Option<&Gvk> {
        self.state.version_of(binding)
    }
}

/// The members that Karmada knows as another cluster of the same name, and the words about them.
fn others(karmada: &Karmada, clusters: &[Cluster]) -> BTreeMap<Str, String> {
    let mut all = BTreeMap::new();
    for cluster in clusters {
        let (name, ours) = (name_of(cluster), &cluster.spec.id);
        let theirs = karmada.clusters.get(&name).map(|cluster| cluster.id.clone());
        let theirs = theirs.filter(|theirs| !theirs.is_empty() && !ours.is_empty() && **theirs != **ours);
        if let Some(theirs) = theirs {
            let words = format!("Karmada's cluster {name} is another one (id {theirs}, not {ours})");
            all.insert(name, words);
        }
    }
    all
}

/// The Works whose objects are not safe with a Karmada that is started, for a user.
fn notes_of(hazards: &BTreeMap<NamespacedName, Hazard>) -> Vec<String> {
    let notes = hazards
        .iter()
        .map(|(name, hazard)| format!("Work {name}: {hazard}"));
    first_of(notes.collect())
}

/// The first notes, and the number of the rest.
fn first_of(mut notes: Vec<String>) -> Vec<String> {
    let rest = notes.len().saturating_sub(MOST_NOTES);
    notes.truncate(MOST_NOTES);
    if rest > 0 {
        notes.push(format!("{rest} more"));
    }
    notes
}

/// The clusters that Karmada has Works for, and that the hub does not have.
fn missing(karmada: &Karmada, args: &AdoptArgs, clusters: &[Cluster]) -> Vec<String> {
    if !args.clusters.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<Str> = clusters.iter().map(name_of).collect();
    let of_works = karmada.clusters_of_works().into_iter();
    of_works
        .filter(|name| !names.contains(*name))
        .map(str::to_owned)
        .collect()
}

/// The clusters of a Karmada whose agents are watched.
fn pulled_of(karmada: &Karmada) -> BTreeSet<Str> {
    let pulled = karmada.clusters.iter().filter(|(_, cluster)| cluster.is_pulled);
    pulled.map(|(name, _)| name.clone()).collect()
}

fn name_of(cluster: &Cluster) -> Str {
    cluster.metadata.name.as_deref().unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
