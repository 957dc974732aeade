//! The result of the filters for all clusters, and its message for a person.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    filter::{FILTERS, Filter, FilterReason, objection},
    request::{Candidate, Round},
};

/// The most names that a message lists.
const NAMES_LISTED: usize = 5;

/// All clusters, sorted into those that fit and those that do not.
pub(super) struct FilterResult<'a> {
    round: &'a Round<'a>,
    /// The clusters that fit, by name.
    pub(super) fitting: Vec<&'a Candidate<'a>>,
    /// The number of clusters left out for each reason; the first number is the filter's position in [`FILTERS`].
    left_out: BTreeMap<(usize, FilterReason), usize>,
    /// Names in the affinity, and in its overflow groups, that no Cluster has, by the field that has them.
    unknown: BTreeMap<String, BTreeSet<&'a str>>,
}

impl<'a> FilterResult<'a> {
    /// Applies every filter to every cluster.
    pub(super) fn of(round: &'a Round<'a>, candidates: &'a [Candidate<'a>]) -> Self {
        let mut fitting = Vec::new();
        let mut left_out = BTreeMap::new();
        for candidate in candidates {
            match objection(round, candidate) {
                None => fitting.push(candidate),
                Some(objection) => *left_out.entry(objection).or_insert(0) += 1,
            }
        }
        fitting.sort_by_key(|candidate| candidate.name);
        Self {
            round,
            fitting,
            left_out,
            unknown: unknown(round, candidates),
        }
    }

    /// True if this cluster fits.
    pub(super) fn fits(&self, name: &str) -> bool {
        self.fitting
            .binary_search_by_key(&name, |candidate| candidate.name)
            .is_ok()
    }

    /// The reason, without counts, why none of the clusters fits that no [noted](crate::Filter::is_noted) filter leaves out.
    pub(super) fn is_void(&self) -> String {
        let selects_none = self.left_out.keys().all(|(filter, _)| *filter == 0);
        let why = if selects_none {
            "selects no cluster"
        } else {
            "has no cluster that workloadAffinity permits"
        };
        format!("{} {why}", self.path())
    }

    /// The field of the policy that holds the affinity.
    pub(super) fn path(&self) -> &str {
        &self.round.path
    }

    /// A message with the number of clusters that fit, and the reasons of the others.
    pub(super) fn failure(&self) -> String {
        let all = self.fitting.len() + self.left_out.values().sum::<usize>();
        let is_one_of_several = !self.round.request.placement.cluster_affinities.is_empty();
        let group = if is_one_of_several {
            format!("{}: ", self.path())
        } else {
            String::new()
        };
        let mut message = format!("{group}{} of {all} clusters fit", self.fitting.len());
        if all == 0 {
            message.push_str(": no cluster has joined");
        }
        self.finish(message, |_| true)
    }

    /// A note on a successful result: clusters that were left out by filters that are [noted](crate::Filter::is_noted), and names
    /// that no Cluster has. `None` if there are none.
    pub(super) fn note(&self) -> Option<String> {
        let left_out: usize = self
            .left_out
            .iter()
            .filter(|((filter, _), _)| FILTERS[*filter].is_noted)
            .map(|(_, count)| count)
            .sum();
        if left_out == 0 {
            return self.unknown_names();
        }
        let selected = self.fitting.len() + left_out;
        let by = self
            .round
            .affinity
            .map_or_else(String::new, |_| format!(" selected by {}", self.round.path));
        Some(self.finish(
            format!("{} of {selected} clusters{by} fit", self.fitting.len()),
            |filter| filter.is_noted,
        ))
    }

    /// Adds the counts of some filters, and the unknown names.
    fn finish(&self, mut message: String, is_counted: impl Fn(&Filter) -> bool) -> String {
        let counts: Vec<String> = self
            .left_out
            .iter()
            .filter(|((filter, _), _)| is_counted(&FILTERS[*filter]))
            .map(|((_, why), count)| format!("{count} {}", why.0))
            .collect();
        if !counts.is_empty() {
            message.push_str(": ");
            message.push_str(&counts.join(", "));
        }
        if let Some(unknown) = self.unknown_names() {
            message.push_str("; ");
            message.push_str(&unknown);
        }
        message
    }

    fn unknown_names(&self) -> Option<String> {
        let fields = self.unknown.iter().map(|(path, unknown)| {
            let listed: Vec<&str> = unknown.iter().copied().take(NAMES_LISTED).collect();
            let names = match unknown.len() - listed.len() {
                0 => listed.join(", "),
                rest => format!("{} and {rest} more", listed.join(", ")),
            };
            let it = if unknown.len() == 1 { "it" } else { "them" };
            format!("{names} not found; join {it} or correct placement.{path}.clusterNames")
        });
        let all: Vec<String> = fields.collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The names in the affinities of a round that no Cluster has, by the field that has them; no entry for a field without any.
fn unknown<'a>(round: &Round<'a>, candidates: &[Candidate<'_>]) -> BTreeMap<String, BTreeSet<&'a str>> {
    let own = round.affinity.map(|affinity| (round.path.clone(), affinity));
    let overflow = round.overflow.iter().enumerate().map(|(position, each)| {
        let path = format!("{}.overflowAffinities[{position}]", round.path);
        (path, &each.affinity)
    });
    let mut all = BTreeMap::new();
    for (path, affinity) in own.into_iter().chain(overflow) {
        let mut names: BTreeSet<&str> = affinity.cluster_names.iter().map(String::as_str).collect();
        if !names.is_empty() {
            for candidate in candidates {
                names.remove(candidate.name);
            }
        }
        if !names.is_empty() {
            all.insert(path, names);
        }
    }
    all
}
