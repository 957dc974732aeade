//! The watches of a distribution: of its copies, and of the namespaces and workloads that it may select.

use std::collections::{BTreeMap, BTreeSet};

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    memory::distributions::{DistributionServer, workload_kinds},
    object::{ResourceId, Str, StrMap, Time},
    places::Place,
    selector,
};

impl Fleet {
    /// A namespace was created, changed or deleted; `before` are its former labels. Cost: O(distributions that may select it).
    pub(super) fn namespace_changed(&mut self, place: &Place, before: &StrMap, now: Time, dirty: &mut Dirty) {
        if self.memory.distributions.held.is_empty() {
            return;
        }
        let labels = match &place.cluster {
            None => self
                .cache
                .namespaces
                .hub
                .get(&place.namespace)
                .map(|meta| &meta.labels),
            Some(cluster) => self
                .cache
                .namespaces
                .on(cluster, &place.namespace)
                .map(|seen| &seen.labels),
        };
        let mut names = self.memory.distributions.candidates.of(&place.namespace, before);
        if let Some(labels) = labels {
            names.extend(self.memory.distributions.candidates.of(&place.namespace, labels));
        }
        names.extend(
            self.memory
                .distributions
                .at
                .get(place)
                .into_iter()
                .flatten()
                .cloned(),
        );
        for name in names {
            self.evaluate(&name, place, now, dirty);
        }
    }

    /// A workload was created or deleted, or its labels changed. Cost: O(distributions that select by workloads).
    pub(super) fn workload_changed(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        if self.memory.distributions.by_workload.is_empty() || !workload_kinds().contains(&id.gvk) {
            return;
        }
        let names: Vec<Str> = self.memory.distributions.by_workload.iter().cloned().collect();
        for name in names {
            let matches = self.has_selected(&name, id);
            let Some(held) = self.memory.distributions.held.get_mut(&name) else {
                continue;
            };
            let (mut entered, mut emptied) = (false, false);
            if matches {
                let of_it = held.workloads.entry(id.namespace.clone()).or_default();
                entered = of_it.is_empty();
                of_it.insert(id.clone());
                held.left.remove(&id.namespace);
            } else if let Some(of_it) = held.workloads.get_mut(&id.namespace) {
                emptied = of_it.remove(id) && of_it.is_empty();
                if emptied {
                    held.workloads.remove(&id.namespace);
                    held.left.insert(id.namespace.clone(), now);
                }
            }
            if entered || emptied {
                let place = Place {
                    cluster: None,
                    namespace: id.namespace.clone(),
                };
                self.evaluate(&name, &place, now, dirty);
                // Its copy counts as wanted for a while; the plan sets the time.
                if emptied {
                    self.route(Changed::Place(&name, &place), dirty);
                }
            }
        }
    }

    /// Begins the watches of a distribution. Cost: O(members) for one that selects members, else O(selectors).
    pub(super) fn look(&mut self, name: &Str) {
        for at in self.distribution_servers(name) {
            self.cache.watches.demand(at.watch());
            let looked = self.memory.distributions.looked.entry(at).or_default();
            looked.by.insert(name.clone());
        }
        let Some(Ok(spec)) = self
            .memory
            .distributions
            .held
            .get(name)
            .map(|held| &held.object.spec)
        else {
            return;
        };
        let by_workload = spec.targets.workloads().is_some() && spec.clusters.is_none();
        self.memory.distributions.candidates.insert(name, &spec.targets);
        if by_workload {
            self.memory.distributions.by_workload.insert(name.clone());
            for gvk in workload_kinds() {
                self.use_kind(&gvk);
            }
        }
    }

    /// Removes a distribution from the candidates of namespaces and workloads. Cost: O(selectors).
    pub(super) fn deselect(&mut self, name: &Str) {
        if let Some(Ok(spec)) = self
            .memory
            .distributions
            .held
            .get(name)
            .map(|held| &held.object.spec)
        {
            self.memory.distributions.candidates.remove(name, &spec.targets);
        }
        self.memory.distributions.by_workload.remove(name);
    }

    /// Ends some watches of a distribution. Cost: O(their number).
    pub(super) fn end_watches<'a>(&mut self, name: &Str, from: impl Iterator<Item = &'a DistributionServer>) {
        for at in from {
            let Some(looked) = self.memory.distributions.looked.get_mut(at) else {
                continue;
            };
            looked.by.remove(name);
            if looked.by.is_empty() {
                self.memory.distributions.looked.remove(at);
                self.cache.watches.forget(&at.watch());
            }
        }
    }

    /// Counts the workloads that a distribution selects. Cost: O(workloads) for one that selects by them.
    pub(super) fn count_workloads(&mut self, name: &Str) {
        let mut found: BTreeMap<Str, BTreeSet<ResourceId>> = BTreeMap::new();
        if self.memory.distributions.by_workload.contains(name) {
            for gvk in workload_kinds() {
                let of_kind = self.cache.resources.range(super::lists::first(&gvk)..);
                for (id, _) in of_kind.take_while(|(id, _)| id.gvk == gvk) {
                    if self.has_selected(name, id) {
                        found.entry(id.namespace.clone()).or_default().insert(id.clone());
                    }
                }
            }
        }
        if let Some(held) = self.memory.distributions.held.get_mut(name) {
            held.workloads = found;
            held.left.clear();
        }
    }

    fn has_selected(&self, name: &Str, id: &ResourceId) -> bool {
        let Some(Ok(spec)) = self
            .memory
            .distributions
            .held
            .get(name)
            .map(|held| &held.object.spec)
        else {
            return false;
        };
        let Some(wanted) = spec.targets.workloads() else {
            return false;
        };
        self.cache
            .resources
            .get(id)
            .and_then(|resource| resource.template.as_ref())
            .is_some_and(|template| {
                template.meta.deleting.is_none() && selector::matches(wanted, &template.meta.labels)
            })
    }
}
