//! The records of failovers on a binding beyond its eviction tasks: annotations of this control plane.

use std::collections::BTreeMap;

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};

use super::{data, home, state};
use crate::{
    eviction::data::Awaited,
    fleet::Fleet,
    object::{Meta, Str, Time},
    stored_binding::{
        FAILOVER_SETTINGS, Labels, RECORDS, eviction_from,
        purge::{self, Shares},
    },
};

/// The records from now on.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// The clusters where the application failed in the current version of its template.
    failed: Vec<Str>,
    /// The clusters that it left because its placement no longer selects them, while no cluster fits.
    unselected: Vec<Str>,
    /// The home clusters.
    homes: home::Homes,
    /// The labels that replacements get.
    preserved: BTreeMap<Str, Labels>,
    /// The clusters where the workload waits for data.
    data: Awaited,
    /// The replicas that clusters keep until a copy is purged.
    shares: Shares,
}

/// The evictions of a decision and their replacements.
pub(super) struct Exchange<'a> {
    /// The tasks that are created now, in order.
    pub(super) made: Vec<&'a GracefulEvictionTask>,
    /// The clusters that are scheduled now.
    pub(super) chosen: &'a [TargetCluster],
    /// The clusters among them where the workload was not before.
    pub(super) new: Vec<&'a str>,
}

impl<'a> Exchange<'a> {
    fn of(held: &ResourceBinding, tasks: &'a [GracefulEvictionTask], chosen: &'a [TargetCluster]) -> Self {
        let spec = &held.spec;
        let was_there = |name: &str| TargetCluster::find(&spec.clusters, name).is_some();
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

    /// The replacement of the cluster that a task evicts from: one for one, in order. `None` if their numbers differ, because it
    /// is then ambiguous.
    pub(super) fn place_of(&self, task: &GracefulEvictionTask) -> Option<&'a str> {
        let at = self
            .made
            .iter()
            .position(|made| made.from_cluster == task.from_cluster)?;
        let is_one_for_one = self.made.len() == self.new.len();
        is_one_for_one.then(|| self.new.get(at).copied()).flatten()
    }

    /// The clusters that may be its replacement.
    pub(super) fn instead_of(&self, task: &GracefulEvictionTask) -> Vec<String> {
        match self.place_of(task) {
            Some(name) => vec![name.to_owned()],
            None => self.new.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

impl Records {
    /// Computes the records from the stored ones, the tasks that the binding is to have, and the scheduled clusters. Cost:
    /// O(tasks × clusters + size of the stored records).
    pub(super) fn of(
        fleet: &Fleet,
        (held, placement): (&ResourceBinding, &Placement),
        (failed, unselected): (Vec<Str>, Vec<Str>),
        (tasks, chosen): (&[GracefulEvictionTask], &[TargetCluster]),
        now: Time,
    ) -> Self {
        let exchange = Exchange::of(held, tasks, chosen);
        Self {
            failed,
            unselected,
            homes: home::remembered(fleet, held, placement, &exchange, now),
            preserved: state::handed_on(held, &exchange),
            data: data::awaited((held, placement), &exchange, now),
            shares: purge::remembered(held, placement, (tasks, chosen)),
        }
    }

    /// The clusters that it left because its placement no longer selects them, while no cluster fits.
    pub(crate) fn unselected(&self) -> &[Str] {
        &self.unselected
    }

    /// Stores only the clusters where the application failed: the other records belong to clusters that were not scheduled after
    /// all.
    pub(crate) fn store_failed(&self, binding: &mut ResourceBinding) {
        let annotations = binding.metadata.annotations.get_or_insert_default();
        if self.failed.is_empty() {
            annotations.remove(annotation::FAILED_CLUSTERS);
        } else {
            annotations.insert(annotation::FAILED_CLUSTERS.into(), self.failed.join(","));
        }
    }

    /// Stores the records on a binding.
    pub(crate) fn store(&self, binding: &mut ResourceBinding) {
        let annotations = binding.metadata.annotations.get_or_insert_default();
        let json = |text: Option<String>, is_empty: bool| text.filter(|_| !is_empty);
        let texts = [
            (!self.failed.is_empty()).then(|| self.failed.join(",")),
            (!self.unselected.is_empty()).then(|| self.unselected.join(",")),
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

/// Copies the failover settings of its policy to a binding.
pub(crate) fn copy_settings(policy: &Meta, binding: &mut ResourceBinding) {
    let annotations = binding.metadata.annotations.get_or_insert_default();
    for key in FAILOVER_SETTINGS {
        match policy.annotation(key) {
            Some(value) => annotations.insert(key.into(), value.to_owned()),
            None => annotations.remove(key),
        };
    }
}

/// Copies the settings and records of an earlier binding to one that is created again.
pub(crate) fn carry_over(before: &ResourceBinding, binding: &mut ResourceBinding) {
    let keys = FAILOVER_SETTINGS
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

/// Removes the settings and records where no policy schedules the workload.
pub(crate) fn forget(annotations: &mut BTreeMap<String, String>) {
    for key in FAILOVER_SETTINGS.iter().chain(&RECORDS) {
        annotations.remove(*key);
    }
}
