//! An index of distributions by their possible targets.
//!
//! Targets are in one bucket for each way in which they may match a namespace. A label selector is in the bucket of one of its
//! requirements, since it can only match a namespace that meets it:
//!
//! | requirement | buckets |
//! |---|---|
//! | a label with one of some values | one for each of the values |
//! | a label, whatever its value | one for the key |
//! | only that labels or values are absent | the one that is always visited |

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Targets;
use entourage_model::object::{Str, StrMap};

/// The bucket of targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bucket {
    /// They may match any namespace: all are targets, or the selector cannot be indexed.
    Any,
    /// They select by workloads.
    Workloads,
    /// They name this namespace.
    NamespacedName(Str),
    /// They require this label with this value.
    Labelled(Str, Str),
    /// They require this label.
    Keyed(Str),
}

/// An index of the distributions that may match a namespace: a namespace event costs the number of candidates, not of all
/// distributions. A distribution is in it once: before it is inserted with other targets, it is removed with the previous ones.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    buckets: BTreeMap<Bucket, BTreeSet<Str>>,
}

impl Candidates {
    /// Adds a distribution. Cost: O(names and values in the targets · log size).
    pub fn insert(&mut self, distribution: &Str, targets: &Targets) {
        for bucket in buckets(targets) {
            self.buckets
                .entry(bucket)
                .or_default()
                .insert(distribution.clone());
        }
    }

    /// Removes a distribution that was added with the same targets. Cost: as [`insert`](Self::insert).
    pub fn remove(&mut self, distribution: &Str, targets: &Targets) {
        for bucket in buckets(targets) {
            if let Some(distributions) = self.buckets.get_mut(&bucket) {
                distributions.remove(distribution);
                if distributions.is_empty() {
                    self.buckets.remove(&bucket);
                }
            }
        }
    }

    /// The distributions that may match a namespace with these labels, including those that select by workloads. Some of them
    /// may not match; none that matches is missing. Cost: O(labels · log size + candidates).
    #[must_use]
    pub fn of(&self, namespace: &str, labels: &StrMap) -> BTreeSet<Str> {
        let found = wanted(namespace, labels).filter_map(|bucket| self.buckets.get(&bucket));
        found.flatten().cloned().collect()
    }

    /// Distributions that select by workloads. Cost: O(them).
    pub fn by_workloads(&self) -> impl Iterator<Item = &Str> {
        self.buckets.get(&Bucket::Workloads).into_iter().flatten()
    }

    /// The number of entries; 0 once all distributions are removed.
    #[must_use]
    pub fn size(&self) -> usize {
        self.buckets.values().map(BTreeSet::len).sum()
    }

    /// The number of entries that [`of`](Self::of) visits.
    #[cfg(test)]
    pub(super) fn looked_at(&self, namespace: &str, labels: &StrMap) -> usize {
        let found = wanted(namespace, labels).filter_map(|bucket| self.buckets.get(&bucket));
        found.map(BTreeSet::len).sum()
    }
}

/// The buckets of the distributions that may match a namespace with these labels.
fn wanted<'a>(namespace: &'a str, labels: &'a StrMap) -> impl Iterator<Item = Bucket> + use<'a> {
    let always = [
        Bucket::Any,
        Bucket::Workloads,
        Bucket::NamespacedName(namespace.into()),
    ];
    let labelled = labels.iter().flat_map(|(key, value)| {
        [
            Bucket::Labelled(key.clone(), value.clone()),
            Bucket::Keyed(key.clone()),
        ]
    });
    always.into_iter().chain(labelled)
}

/// The buckets of targets: always the same for equal targets.
fn buckets(targets: &Targets) -> Vec<Bucket> {
    if targets.everything || targets.all_but.is_some() {
        // They are found there, whatever else they select.
        let workloads = targets.workloads.as_ref().map(|_| Bucket::Workloads);
        return [Bucket::Any].into_iter().chain(workloads).collect();
    }
    let mut buckets: Vec<Bucket> = targets
        .named
        .iter()
        .cloned()
        .map(Bucket::NamespacedName)
        .collect();
    if targets.workloads.is_some() {
        buckets.push(Bucket::Workloads);
    }
    if let Some(selector) = &targets.labels {
        buckets.extend(demanded(selector));
    }
    buckets
}

/// The buckets of a selector's requirement, as few as possible: the first of its labels, else the shortest list of values, else
/// the first key.
fn demanded(selector: &LabelSelector) -> Vec<Bucket> {
    if let Some((key, value)) = selector.match_labels.iter().flatten().next() {
        return vec![Bucket::Labelled(key.as_str().into(), value.as_str().into())];
    }
    let requirements = || selector.match_expressions.iter().flatten();
    let values = requirements()
        .filter(|each| each.operator == "In")
        .map(|each| (each.key.as_str(), each.values.as_deref().unwrap_or_default()))
        .min_by_key(|(_, values)| values.len());
    if let Some((key, values)) = values {
        let labelled = |value: &String| Bucket::Labelled(key.into(), value.as_str().into());
        return values.iter().map(labelled).collect();
    }
    let exists = requirements().find(|each| each.operator == "Exists");
    vec![exists.map_or(Bucket::Any, |each| Bucket::Keyed(each.key.as_str().into()))]
}
