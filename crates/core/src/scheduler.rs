//! Which clusters a template goes to, and with how many replicas: filter the clusters, choose among those that pass,
//! divide the replicas among those that are chosen.
//!
//! The filters are a table, [`FILTERS`]. What a placement asks for and this version does not do is refused with a
//! message, never ignored. The outcome depends on what a [`Request`] holds and on the clusters, on nothing else; asked
//! again with what came out, the same comes out. Source: Karmada reference 1.2 (placement) and 1.3 (scheduler).

pub(crate) mod affinity;
mod assign;
pub(crate) mod check;
mod divide;
mod explain;
pub(crate) mod filter;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
mod spread;
pub(crate) mod taint;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use entourage_api::{
    cluster::Cluster,
    keys::{condition, reason},
    policy::{ClusterAffinity, Placement},
    work::TargetCluster,
};

use crate::object::{Gvk, Str};
pub use filter::{FILTERS, Filter, Why};

use assign::Miss;
pub(crate) use divide::{apportion, weight};
use explain::Survey;

/// A cluster that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// The labels of its Cluster object.
    pub labels: &'a BTreeMap<Str, Str>,
    /// Its Cluster object; of its metadata nothing is read.
    pub cluster: &'a Cluster,
    /// Whether it answers and says that it is healthy. One that is not counts as tainted with
    /// `cluster.karmada.io/not-ready:NoSchedule`, or with `cluster.karmada.io/unreachable:NoSchedule` when its condition
    /// Ready is Unknown.
    pub ready: bool,
    /// Whether its Cluster object is being deleted.
    pub deleting: bool,
}

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The policy's placement.
    pub placement: &'a Placement,
    /// The kind of the template.
    pub gvk: &'a Gvk,
    /// How many replicas the template asks for; `None` for a kind without replicas.
    pub replicas: Option<i32>,
    /// The uid of the template; it decides who gets a replica that two clusters have the same claim to.
    pub uid: &'a str,
    /// Where it is placed now. Taints and missing APIs do not drive it away from there.
    pub current: &'a [TargetCluster],
    /// The placement that the present targets were chosen by, as JSON; empty if that is not known.
    pub applied: &'a str,
    /// The name of the group of `clusterAffinities` in use, empty for none; `None` if that was not recorded yet: then it
    /// is the first one that selects all present targets.
    pub affinity: Option<&'a str>,
    /// Whether a user asked for a choice as if nothing were placed.
    pub fresh: bool,
    /// The clusters that it is being evicted from.
    pub evicted: &'a [Str],
}

impl<'a> Request<'a> {
    /// Something of which nothing is placed yet.
    #[must_use]
    pub fn first(placement: &'a Placement, gvk: &'a Gvk, replicas: Option<i32>) -> Self {
        Self {
            placement,
            gvk,
            replicas,
            uid: "",
            current: &[],
            applied: "",
            affinity: None,
            fresh: false,
            evicted: &[],
        }
    }

    /// Whether the cluster is a target already.
    fn is_current(&self, cluster: &str) -> bool {
        self.current.iter().any(|target| target.name == cluster)
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is at least one cluster.
    Placed {
        /// The clusters, sorted by name, each with its replicas (0 for a kind without).
        clusters: Vec<TargetCluster>,
        /// The name of the group of `clusterAffinities` that is used; empty without groups.
        affinity: String,
        /// What a reader should know all the same: selected clusters that were left out, names that no Cluster has.
        /// Empty if there is nothing. It says nothing about clusters that the policy does not select, so that the
        /// condition does not change with each cluster that joins.
        note: String,
    },
    /// There is none, or the placement asks for something that this version does not do.
    Failed {
        /// The reason for the condition `Scheduled`; of the table `entourage_api::keys::reason`.
        reason: &'static str,
        /// What was asked for, why it failed and what to do.
        message: String,
    },
}

/// One group of clusters that is tried.
#[derive(Clone, Debug)]
pub struct Round<'a> {
    /// What is to be placed.
    pub request: Request<'a>,
    /// The clusters that are allowed; `None` allows all.
    pub affinity: Option<&'a ClusterAffinity>,
    /// How the policy calls the affinity: `clusterAffinity` or `clusterAffinities[1]`.
    pub path: String,
    /// The name of the group; empty for `clusterAffinity`.
    pub name: &'a str,
}

/// Chooses clusters. The same request and clusters give the same outcome, in whatever order the clusters come.
///
/// `clusterAffinities` are tried in their order, from the one in use on, until one fits; an earlier one is returned to
/// only when a fresh choice is asked for, or when neither the one in use nor any later one fits. Source: Karmada reference
/// 1.3 (the order).
///
/// Cost: O(clusters × what the placement lists), per group that is looked at.
#[must_use]
pub fn schedule(request: &Request<'_>, candidates: &[Candidate<'_>]) -> Outcome {
    if let Err(message) = check::supported(request) {
        return Outcome::Failed {
            reason: reason::SCHEDULER_ERROR,
            message,
        };
    }
    let mut request = if request.fresh {
        unplaced(request)
    } else {
        *request
    };
    request.affinity = request
        .affinity
        .filter(|name| !is_outdated(&request, candidates, name))
        .or_else(|| in_use(&request, candidates))
        .or(request.affinity);
    let rounds = rounds(&request);
    let is_in_use = |round: &Round<'_>| !round.name.is_empty() && Some(round.name) == request.affinity;
    let first = rounds.iter().position(is_in_use).unwrap_or(0);
    let mut story = Story::default();
    let mut fits_again = None;
    for (position, round) in rounds.iter().enumerate() {
        if position < first {
            let mut passed = round.clone();
            passed.request = unplaced(&request);
            let survey = Survey::of(&passed, candidates);
            match assign::assign(&passed, &survey) {
                Ok(_) => {
                    story.fits_again(&survey);
                    fits_again = fits_again.or(Some(round));
                }
                Err(miss) => story.failed(&miss, &survey),
            }
            continue;
        }
        let survey = Survey::of(round, candidates);
        match assign::assign(round, &survey) {
            Ok(clusters) => return placed(round, clusters, story.note(&survey)),
            Err(miss) => story.failed(&miss, &survey),
        }
    }
    if let Some(round) = fits_again {
        let survey = Survey::of(round, candidates);
        if let Ok(clusters) = assign::assign(round, &survey) {
            return placed(round, clusters, story.returned(&survey));
        }
    }
    Outcome::Failed {
        reason: story.reason,
        message: story.messages.join("; "),
    }
}

fn placed(round: &Round<'_>, clusters: Vec<TargetCluster>, note: String) -> Outcome {
    Outcome::Placed {
        clusters,
        affinity: round.name.into(),
        note,
    }
}

/// Whether a change of a Cluster can change where something is placed: its labels, taints, provider, region and
/// zones, its Ready condition, the APIs it serves, and whether it is being deleted. The rest of its status moves often
/// and decides nothing here.
#[must_use]
pub fn relevant_change(old: &Cluster, new: &Cluster) -> bool {
    old.metadata.labels != new.metadata.labels
        || old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some()
        || old.spec.provider != new.spec.provider
        || old.spec.region != new.spec.region
        || affinity::zones(old) != affinity::zones(new)
        || !taint::is_same(&old.spec.taints, &new.spec.taints)
        || ready(old) != ready(new)
        || enablements(old) != enablements(new)
}

/// What the rounds that are not used have to say.
#[derive(Default)]
struct Story {
    /// The reason of the last one that failed.
    reason: &'static str,
    /// For the condition, if no round fits.
    messages: Vec<String>,
    /// For the note, if a later round fits.
    notes: Vec<String>,
    /// For the note, if an earlier round is returned to.
    misses: Vec<String>,
}

impl Story {
    fn failed(&mut self, miss: &Miss, survey: &Survey<'_>) {
        self.reason = miss.reason;
        let note = match &miss.why {
            None => {
                self.messages.push(survey.failure());
                let selects_none = || format!("{} selects no cluster", survey.path());
                survey.note().unwrap_or_else(selects_none)
            }
            Some(why) => {
                self.messages.push(format!("{}; {why}", survey.failure()));
                format!("{} does not fit: {why}", survey.path())
            }
        };
        self.notes.push(note.clone());
        self.misses.push(note);
    }

    fn fits_again(&mut self, survey: &Survey<'_>) {
        let told = format!(
            "{} fits again; set spec.rescheduleTriggeredAt to return to it",
            survey.path()
        );
        self.messages.push(told.clone());
        self.notes.push(told);
    }

    /// The note where nothing but an earlier round fits.
    fn returned(mut self, used: &Survey<'_>) -> String {
        self.notes = std::mem::take(&mut self.misses);
        self.note(used)
    }

    fn note(mut self, used: &Survey<'_>) -> String {
        if !self.notes.is_empty() {
            self.notes.push(format!("{} is used", used.path()));
        }
        self.notes.extend(used.note());
        self.notes.join("; ")
    }
}

/// The request as if nothing were placed.
fn unplaced<'a>(request: &Request<'a>) -> Request<'a> {
    Request {
        current: &[],
        applied: "",
        affinity: None,
        ..*request
    }
}

/// Whether the group that was recorded as the one in use selects none of the present targets: they are newer than the record.
/// One that selects some of them was made smaller.
fn is_outdated(request: &Request<'_>, candidates: &[Candidate<'_>], name: &str) -> bool {
    let mut terms = request.placement.cluster_affinities.iter();
    let mut present = candidates
        .iter()
        .filter(|each| request.is_current(each.name))
        .peekable();
    present.peek().is_some()
        && terms
            .find(|term| term.affinity_name == name)
            .is_some_and(|term| !present.any(|each| affinity::selects(&term.affinity, each)))
}

/// The first group that selects all present targets: the one in use, where none was recorded since they were chosen.
fn in_use<'a>(request: &Request<'a>, candidates: &[Candidate<'_>]) -> Option<&'a str> {
    let mut terms = request.placement.cluster_affinities.iter();
    let present = || candidates.iter().filter(|each| request.is_current(each.name));
    present().next()?;
    terms
        .find(|term| present().all(|each| affinity::selects(&term.affinity, each)))
        .map(|term| term.affinity_name.as_str())
}

fn rounds<'a>(request: &Request<'a>) -> Vec<Round<'a>> {
    let placement = request.placement;
    let round = |affinity, path: String, name| Round {
        request: *request,
        affinity,
        path,
        name,
    };
    if placement.cluster_affinities.is_empty() {
        return vec![round(
            placement.cluster_affinity.as_ref(),
            "clusterAffinity".into(),
            "",
        )];
    }
    let terms = placement.cluster_affinities.iter().enumerate();
    terms
        .map(|(position, term)| {
            let path = format!("clusterAffinities[{position}]");
            round(Some(&term.affinity), path, &term.affinity_name)
        })
        .collect()
}

/// The status of its condition Ready.
fn ready(cluster: &Cluster) -> Option<&str> {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .find(|each| each.type_ == condition::READY)
        .map(|each| each.status.as_str())
}

fn enablements(cluster: &Cluster) -> &[entourage_api::cluster::ApiEnablement] {
    cluster
        .status
        .as_ref()
        .map_or(&[], |status| &status.api_enablements)
}
