//! Which clusters a template goes to: filter the clusters, then give each one that passes all replicas.
//!
//! The filters are a table, [`FILTERS`]. What a placement asks for and this version does not do is refused with a
//! message, never ignored. Source: Karmada reference 1.2 (placement) and 1.3 (scheduler).

mod affinity;
mod check;
mod explain;
mod filter;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
mod spread;
mod taint;
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

use explain::Survey;
use spread::Spread;

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
    /// `cluster.karmada.io/not-ready:NoSchedule`.
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
    /// Where it is placed now. Taints and missing APIs do not drive it away from there.
    pub current: &'a [TargetCluster],
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is at least one cluster.
    Placed {
        /// The clusters, sorted by name, each with all replicas (0 for a kind without).
        clusters: Vec<TargetCluster>,
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
}

/// Chooses clusters. The same request and clusters give the same outcome, in whatever order the clusters come.
///
/// `clusterAffinities` are tried in their order, from the first one each time, until one fits.
#[must_use]
pub fn schedule(request: &Request<'_>, candidates: &[Candidate<'_>]) -> Outcome {
    if let Err(message) = check::supported(request) {
        return Outcome::Failed {
            reason: reason::SCHEDULER_ERROR,
            message,
        };
    }
    let mut failures = Failures::default();
    for round in rounds(request) {
        let survey = Survey::of(&round, candidates);
        if survey.fitting.is_empty() {
            failures.add(reason::NO_CLUSTER_FIT, &survey);
            continue;
        }
        match spread::judge(&request.placement.spread_constraints, survey.fitting.len()) {
            Spread::Holds => return placed(request, &survey, &failures),
            Spread::TooFew(why) => failures.add_with(reason::SCHEDULER_ERROR, &survey, &why),
            Spread::Unsupported(message) => {
                return Outcome::Failed {
                    reason: reason::SCHEDULER_ERROR,
                    message,
                };
            }
        }
    }
    Outcome::Failed {
        reason: failures.reason,
        message: failures.messages.join("; "),
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

/// What the rounds that did not fit have to say.
#[derive(Default)]
struct Failures {
    /// The reason of the last one.
    reason: &'static str,
    /// For the condition, if no round fits.
    messages: Vec<String>,
    /// For the note, if a later round fits.
    notes: Vec<String>,
}

impl Failures {
    fn add(&mut self, reason: &'static str, survey: &Survey<'_>) {
        self.reason = reason;
        self.messages.push(survey.failure());
        self.notes.push(
            survey
                .note()
                .unwrap_or_else(|| format!("{} selects no cluster", survey.path())),
        );
    }

    fn add_with(&mut self, reason: &'static str, survey: &Survey<'_>, why: &str) {
        self.reason = reason;
        self.messages.push(format!("{}; {why}", survey.failure()));
        self.notes.push(format!("{} does not do: {why}", survey.path()));
    }
}

fn rounds<'a>(request: &Request<'a>) -> Vec<Round<'a>> {
    let placement = request.placement;
    if placement.cluster_affinities.is_empty() {
        let affinity = placement.cluster_affinity.as_ref();
        return vec![Round {
            request: *request,
            affinity,
            path: "clusterAffinity".into(),
        }];
    }
    let terms = placement.cluster_affinities.iter().enumerate();
    terms
        .map(|(position, term)| Round {
            request: *request,
            affinity: Some(&term.affinity),
            path: format!("clusterAffinities[{position}]"),
        })
        .collect()
}

fn placed(request: &Request<'_>, survey: &Survey<'_>, failures: &Failures) -> Outcome {
    let replicas = request.replicas.unwrap_or(0);
    let target = |name: &&str| TargetCluster {
        name: (*name).into(),
        replicas,
        components: Vec::new(),
    };
    let mut notes = failures.notes.clone();
    if !notes.is_empty() {
        notes.push(format!("{} is used", survey.path()));
    }
    notes.extend(survey.note());
    Outcome::Placed {
        clusters: survey.fitting.iter().map(target).collect(),
        note: notes.join("; "),
    }
}

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
