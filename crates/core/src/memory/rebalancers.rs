//! The state of rebalancers: their specs, and the workloads for which their requests are open.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::apps::{self, ObservedWorkload, WorkloadRebalancer, WorkloadReference};

use crate::{
    cache::meta_of,
    object::{Gvk, Meta, ResourceId, Str, Time},
};

/// The number of open workloads from which on a rebalancer is planned periodically instead of at each change of one of them.
pub(crate) const MANY: usize = 64;

/// Every rebalancer, and its open requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rebalancers {
    all: BTreeMap<Str, RebalancerState>,
    /// Workload → rebalancers with an open request for it. A finished rebalancer is not in here.
    asking: BTreeMap<ResourceId, BTreeSet<Str>>,
}

/// A rebalancer.
#[derive(Clone, Debug)]
pub(crate) struct RebalancerState {
    meta: Meta,
    object: Arc<WorkloadRebalancer>,
    /// The time when this process first observed its current spec.
    since: Time,
    /// The time when this process last observed a change, of its status too.
    changed: Time,
    /// The final results of workloads in its status.
    final_results: BTreeMap<WorkloadReference, ObservedWorkload>,
    /// The workloads for which its request is open.
    asks: BTreeSet<ResourceId>,
}

impl Rebalancers {
    pub(crate) fn get(&self, name: &str) -> Option<&RebalancerState> {
        self.all.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Str> {
        self.all.keys()
    }

    /// The time of the last open request for a workload.
    pub(crate) fn asked_at(&self, id: &ResourceId) -> Option<Time> {
        let names = self.asking.get(id)?.iter();
        names
            .filter_map(|name| self.all.get(name))
            .map(RebalancerState::asks_at)
            .max()
    }

    /// True if no request is open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asking.is_empty()
    }

    /// The rebalancers to plan when a workload changes. Cost: O(rebalancers with a request for it).
    pub(crate) fn watching(&self, id: &ResourceId) -> impl Iterator<Item = &Str> {
        let names = self.asking.get(id).into_iter().flatten();
        names.filter(|name| self.all.get(*name).is_some_and(|held| held.asks() < MANY))
    }

    /// Inserts a rebalancer. Returns the workloads of its new requests. Cost: O(workloads × log workloads).
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

    /// Removes a rebalancer. Cost: O(workloads × log workloads).
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

    /// The time of its requests.
    pub(crate) fn asks_at(&self) -> Time {
        self.meta.created.unwrap_or(self.since)
    }

    /// The number of its open requests.
    pub(crate) fn asks(&self) -> usize {
        self.asks.len()
    }

    /// The workloads that its spec names, each once.
    pub(crate) fn workloads(&self) -> BTreeSet<&WorkloadReference> {
        self.object.spec.workloads.iter().collect()
    }

    /// The final result of a workload in its status.
    pub(crate) fn final_result(&self, workload: &WorkloadReference) -> Option<&ObservedWorkload> {
        self.final_results.get(workload)
    }

    /// The successful results of workloads that are no longer in its spec.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = &ObservedWorkload> {
        let named = self.workloads();
        let final_results = self.final_results.values();
        final_results.filter(move |each| each.result == apps::SUCCESSFUL && !named.contains(&each.workload))
    }
}

/// The object of a workload.
pub(crate) fn id_of(workload: &WorkloadReference) -> ResourceId {
    let gvk = Gvk::new(&workload.api_version, &workload.kind);
    ResourceId::new(gvk, &workload.namespace, &workload.name)
}
