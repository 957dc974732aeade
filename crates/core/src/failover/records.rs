//! What a binding remembers of failovers beyond its eviction tasks: annotations of ours, each with its reason.

use std::collections::BTreeMap;

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};

use super::{data, home, state};
use crate::{
    eviction::data::Awaited,
    index::Index,
    object::{Meta, Str, Time},
    stored_binding::{
        Labels, RECORDS, WISHES, eviction_from,
        purge::{self, Shares},
    },
};

/// What is remembered from now on.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// Where the application failed in the version that its template has now.
    failed: Vec<Str>,
    /// Where it belongs, and goes back to.
    homes: home::Homes,
    /// The labels that replacements get.
    preserved: BTreeMap<Str, Labels>,
    /// Where it waits for data.
    data: Awaited,
    /// The replicas that clusters keep until a copy is purged.
    shares: Shares,
}

/// What a decision puts in the place of what.
pub(super) struct Exchange<'a> {
    /// The tasks that are made now, in order.
    pub(super) made: Vec<&'a GracefulEvictionTask>,
    /// The clusters that are chosen now.
    pub(super) chosen: &'a [TargetCluster],
    /// Those of them where the workload was not.
    pub(super) new: Vec<&'a str>,
}

impl<'a> Exchange<'a> {
    fn of(held: &ResourceBinding, tasks: &'a [GracefulEvictionTask], chosen: &'a [TargetCluster]) -> Self {
        let spec = &held.spec;
        let was_there = |name: &str| spec.clusters.iter().any(|target| target.name == *name);
        let names = chosen.iter().map(|target| target.name.as_str());
        let made = tasks
            .iter()
            .filter(|task| eviction_from(spec, &task.from_cluster).is_none());
        Self {
            made: made.collect(),
            chosen,
            new: names.filter(|name| !was_there(name)).collect(),
        }
    }

    /// The cluster that takes the place of the one that a task leaves: one for one, in order. Where there are more or fewer,
    /// which one it is cannot be told.
    pub(super) fn place_of(&self, task: &GracefulEvictionTask) -> Option<&'a str> {
        let at = self
            .made
            .iter()
            .position(|made| made.from_cluster == task.from_cluster)?;
        let is_one_for_one = self.made.len() == self.new.len();
        is_one_for_one.then(|| self.new.get(at).copied()).flatten()
    }

    /// The clusters that may take its place.
    pub(super) fn instead_of(&self, task: &GracefulEvictionTask) -> Vec<String> {
        match self.place_of(task) {
            Some(name) => vec![name.to_owned()],
            None => self.new.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

impl Records {
    /// By what is stored, the tasks that the binding is to have, and the clusters that are chosen.
    /// Cost: O(tasks × clusters + size of what is stored).
    pub(super) fn of(
        index: &Index,
        (held, placement): (&ResourceBinding, &Placement),
        failed: Vec<Str>,
        (tasks, chosen): (&[GracefulEvictionTask], &[TargetCluster]),
        now: Time,
    ) -> Self {
        let exchange = Exchange::of(held, tasks, chosen);
        Self {
            failed,
            homes: home::remembered(index, held, placement, &exchange, now),
            preserved: state::handed_on(held, &exchange),
            data: data::awaited((held, placement), &exchange, now),
            shares: purge::remembered(held, placement, (tasks, chosen)),
        }
    }

    /// Stores of them where the application failed: the rest is of clusters that are not chosen after all.
    pub(crate) fn store_failed(&self, binding: &mut ResourceBinding) {
        let annotations = binding.metadata.annotations.get_or_insert_default();
        if self.failed.is_empty() {
            annotations.remove(annotation::FAILED_CLUSTERS);
        } else {
            annotations.insert(annotation::FAILED_CLUSTERS.into(), self.failed.join(","));
        }
    }

    /// Stores them on a binding.
    pub(crate) fn store(&self, binding: &mut ResourceBinding) {
        let annotations = binding.metadata.annotations.get_or_insert_default();
        let json = |text: Option<String>, is_empty: bool| text.filter(|_| !is_empty);
        let texts = [
            (!self.failed.is_empty()).then(|| self.failed.join(",")),
            json(serde_json::to_string(&self.homes).ok(), self.homes.is_empty()),
            json(
                serde_json::to_string(&self.preserved).ok(),
                self.preserved.is_empty(),
            ),
            json(serde_json::to_string(&self.data).ok(), self.data.is_empty()),
            json(serde_json::to_string(&self.shares).ok(), self.shares.is_empty()),
        ];
        for (key, text) in RECORDS.into_iter().zip(texts) {
            match text {
                Some(text) => annotations.insert(key.into(), text),
                None => annotations.remove(key),
            };
        }
    }
}

/// Has a binding say what its policy says of failovers.
pub(crate) fn wish(policy: &Meta, binding: &mut ResourceBinding) {
    let annotations = binding.metadata.annotations.get_or_insert_default();
    for key in WISHES {
        match policy.annotation(key) {
            Some(wish) => annotations.insert(key.into(), wish.to_owned()),
            None => annotations.remove(key),
        };
    }
}

/// A binding that is made again says what the one before it said.
pub(crate) fn carry_over(before: &ResourceBinding, binding: &mut ResourceBinding) {
    let keys = WISHES
        .iter()
        .chain(&RECORDS)
        .chain(&[annotation::APPLIED_PLACEMENT]);
    let before = before.metadata.annotations.iter();
    for (key, value) in before
        .flatten()
        .filter(|(key, _)| keys.clone().any(|each| each == key))
    {
        let annotations = binding.metadata.annotations.get_or_insert_default();
        annotations.insert(key.clone(), value.clone());
    }
}

/// Nothing is remembered where no policy places anything.
pub(crate) fn forget(annotations: &mut BTreeMap<String, String>) {
    for key in WISHES.iter().chain(&RECORDS) {
        annotations.remove(*key);
    }
}
