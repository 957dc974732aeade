//! What is held of rebalancers: what they say, and which workloads they still ask for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::apps::{self, ObservedWorkload, WorkloadRebalancer, WorkloadReference};

use crate::{
    cache::meta_of,
    object::{Gvk, Meta, ResourceId, Str, Time},
};

/// While so many workloads or more are open, a rebalancer is looked at every now and then instead of when one of them changes.
pub(crate) const MANY: usize = 64;

/// Every rebalancer, and who asks for what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rebalancers {
    all: BTreeMap<Str, RebalancerState>,
    /// Workload → rebalancers that still ask for it. One that has finished stands nowhere here.
    asking: BTreeMap<ResourceId, BTreeSet<Str>>,
}

/// A rebalancer.
#[derive(Clone, Debug)]
pub(crate) struct RebalancerState {
    meta: Meta,
    object: Arc<WorkloadRebalancer>,
    /// When this process first saw it say what it says now.
    since: Time,
    /// When this process saw it change, its status too.
    changed: Time,
    /// What its status says came of workloads, so far as that is final.
    final_results: BTreeMap<WorkloadReference, ObservedWorkload>,
    /// The workloads that it still asks for.
    asks: BTreeSet<ResourceId>,
}

impl Rebalancers {
    pub(crate) fn get(&self, name: &str) -> Option<&RebalancerState> {
        self.all.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Str> {
        self.all.keys()
    }

    /// The last question about a workload that is still open.
    pub(crate) fn asked_at(&self, id: &ResourceId) -> Option<Time> {
        let names = self.asking.get(id)?.iter();
        names
            .filter_map(|name| self.all.get(name))
            .map(RebalancerState::asks_at)
            .max()
    }

    /// Whether nobody asks for anything.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asking.is_empty()
    }

    /// Who is looked at when something of a workload changes. Cost: O(rebalancers that ask for it).
    pub(crate) fn watching(&self, id: &ResourceId) -> impl Iterator<Item = &Str> {
        let names = self.asking.get(id).into_iter().flatten();
        names.filter(|name| self.all.get(*name).is_some_and(|held| held.asks() < MANY))
    }

    /// Takes in what a rebalancer says; answers with what it asks for that it did not before. Cost: O(workloads × log workloads).
    pub(crate) fn insert(
        &mut self,
        name: &Str,
        object: Arc<WorkloadRebalancer>,
        now: Time,
    ) -> Vec<ResourceId> {
        let before = self.remove(name);
        let held = RebalancerState::new(object, before.as_ref(), now);
        for id in &held.asks {
            self.asking.entry(id.clone()).or_default().insert(name.clone());
        }
        let asked = before.map(|held| held.asks).unwrap_or_default();
        let new = held.asks.difference(&asked).cloned().collect();
        self.all.insert(name.clone(), held);
        new
    }

    /// Cost: O(workloads × log workloads).
    pub(crate) fn remove(&mut self, name: &str) -> Option<RebalancerState> {
        let held = self.all.remove(name)?;
        for id in &held.asks {
            if let Some(names) = self.asking.get_mut(id) {
                names.remove(name);
                if names.is_empty() {
                    self.asking.remove(id);
                }
            }
        }
        Some(held)
    }
}

impl RebalancerState {
    fn new(object: Arc<WorkloadRebalancer>, before: Option<&Self>, now: Time) -> Self {
        let meta = meta_of(&object.metadata);
        let same = before.filter(|held| held.meta.uid == meta.uid && held.meta.generation == meta.generation);
        let status = object.status.as_ref();
        let is_current = status.is_some_and(|status| Some(status.observed_generation) == meta.generation);
        let is_final = |each: &&ObservedWorkload| {
            each.result == apps::SUCCESSFUL || (is_current && each.result == apps::FAILED)
        };
        let all = status.into_iter().flat_map(|status| &status.observed_workloads);
        let final_results: BTreeMap<_, _> = all
            .filter(is_final)
            .map(|each| (each.workload.clone(), each.clone()))
            .collect();
        let open = object.spec.workloads.iter();
        let open = open.filter(|workload| meta.deleting.is_none() && !final_results.contains_key(*workload));
        Self {
            asks: open.map(id_of).collect(),
            since: same.map_or(now, |held| held.since),
            changed: now,
            final_results,
            meta,
            object,
        }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn object(&self) -> &WorkloadRebalancer {
        &self.object
    }

    pub(crate) fn since(&self) -> Time {
        self.since
    }

    pub(crate) fn changed(&self) -> Time {
        self.changed
    }

    pub(crate) fn generation(&self) -> i64 {
        self.meta.generation.unwrap_or_default()
    }

    /// The time with which it asks.
    pub(crate) fn asks_at(&self) -> Time {
        self.meta.created.unwrap_or(self.since)
    }

    /// How many workloads it still asks for.
    pub(crate) fn asks(&self) -> usize {
        self.asks.len()
    }

    /// The workloads that its spec names, each once.
    pub(crate) fn workloads(&self) -> BTreeSet<&WorkloadReference> {
        self.object.spec.workloads.iter().collect()
    }

    /// What its status says came of a workload, so far as that is final.
    pub(crate) fn final_result(&self, workload: &WorkloadReference) -> Option<&ObservedWorkload> {
        self.final_results.get(workload)
    }

    /// What went well and is not in its spec any more.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = &ObservedWorkload> {
        let named = self.workloads();
        let final_results = self.final_results.values();
        final_results.filter(move |each| each.result == apps::SUCCESSFUL && !named.contains(&each.workload))
    }
}

/// The object that a workload is.
pub(crate) fn id_of(workload: &WorkloadReference) -> ResourceId {
    let gvk = Gvk::new(&workload.api_version, &workload.kind);
    ResourceId::new(gvk, &workload.namespace, &workload.name)
}
