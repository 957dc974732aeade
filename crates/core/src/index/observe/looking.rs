//! Where a distribution looks: for its copies, and for the namespaces and workloads that it may mean.

use std::collections::{BTreeMap, BTreeSet};

use super::Dirty;
use crate::{
    index::{
        Index,
        distributions::{DistributionServer, workload_kinds},
        routes::Changed,
    },
    object::{ResourceId, Str, Time},
    places::Place,
    selector,
};

impl Index {
    /// A namespace came, changed, or went: `before` are the labels that it had. Cost: O(distributions that may mean it).
    pub(super) fn namespace_changed(
        &mut self,
        place: &Place,
        before: &BTreeMap<Str, Str>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        if self.distributions.held.is_empty() {
            return;
        }
        let labels = match &place.cluster {
            None => self.namespaces.hub.get(&place.namespace).map(|meta| &meta.labels),
            Some(cluster) => self
                .namespaces
                .on(cluster, &place.namespace)
                .map(|seen| &seen.labels),
        };
        let mut names = self.distributions.candidates.of(&place.namespace, before);
        if let Some(labels) = labels {
            names.extend(self.distributions.candidates.of(&place.namespace, labels));
        }
        names.extend(self.distributions.at.get(place).into_iter().flatten().cloned());
        for name in names {
            self.evaluate(&name, place, now, dirty);
        }
    }

    /// A workload came, changed its labels, or went. Cost: O(distributions that select by workloads).
    pub(super) fn workload_changed(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        if self.distributions.by_workload.is_empty() || !workload_kinds().contains(&id.gvk) {
            return;
        }
        let names: Vec<Str> = self.distributions.by_workload.iter().cloned().collect();
        for name in names {
            let matches = self.has_selected(&name, id);
            let Some(held) = self.distributions.held.get_mut(&name) else {
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
                // Its copy is as it should be for a while; the plan says for how long.
                if emptied {
                    self.route(Changed::Place(&name, &place), dirty);
                }
            }
        }
    }

    /// Where a distribution looks for its copies: on the hub, where copies may stand from before it meant members, and its
    /// source; and on every member when it means members, since a copy may stand on one that it does not mean any more. When
    /// it does not, on those that may hold copies from before. Cost: O(members).
    pub(crate) fn wheres(&self, name: &Str) -> Vec<DistributionServer> {
        let Some(Ok(spec)) = self.distributions.held.get(name).map(|held| &held.object.spec) else {
            return Vec::new();
        };
        let at = |cluster: Option<&Str>| DistributionServer {
            cluster: cluster.cloned(),
            gvk: spec.gvk.clone(),
            name: spec.name.clone(),
        };
        let mut all = vec![at(None)];
        let held = self.distributions.held.get(name);
        let may_hold = |cluster: &&Str| {
            held.is_some_and(|held| held.object.may_be_on_any_member() || held.object.reported_on(cluster))
        };
        all.extend(
            self.members
                .keys()
                .filter(may_hold)
                .map(|cluster| at(Some(cluster))),
        );
        all
    }

    /// Begins to look. Cost: O(members) for one that means members, else O(selectors).
    pub(super) fn look(&mut self, name: &Str) {
        for at in self.wheres(name) {
            self.watches.demand(at.watch());
            let looked = self.distributions.looked.entry(at).or_default();
            looked.by.insert(name.clone());
        }
        let Some(Ok(spec)) = self.distributions.held.get(name).map(|held| &held.object.spec) else {
            return;
        };
        let by_workload = spec.targets.workloads().is_some() && spec.clusters.is_none();
        self.distributions.candidates.insert(name, &spec.targets);
        if by_workload {
            self.distributions.by_workload.insert(name.clone());
            for gvk in workload_kinds() {
                self.use_kind(&gvk);
            }
        }
    }

    /// Is not asked about namespaces and workloads any more. Cost: O(selectors).
    pub(super) fn deselect(&mut self, name: &Str) {
        if let Some(Ok(spec)) = self.distributions.held.get(name).map(|held| &held.object.spec) {
            self.distributions.candidates.remove(name, &spec.targets);
        }
        self.distributions.by_workload.remove(name);
    }

    /// Ceases to look at some places. Cost: O(their number).
    pub(super) fn look_away<'a>(&mut self, name: &Str, from: impl Iterator<Item = &'a DistributionServer>) {
        for at in from {
            let Some(looked) = self.distributions.looked.get_mut(at) else {
                continue;
            };
            looked.by.remove(name);
            if looked.by.is_empty() {
                self.distributions.looked.remove(at);
                self.watches.forget(&at.watch());
            }
        }
    }

    /// Counts the workloads that a distribution selects afresh. Cost: O(workloads) for one that selects by them.
    pub(super) fn count_workloads(&mut self, name: &Str) {
        let mut found: BTreeMap<Str, BTreeSet<ResourceId>> = BTreeMap::new();
        if self.distributions.by_workload.contains(name) {
            for gvk in workload_kinds() {
                let of_kind = self.resources.range(super::lists::first(&gvk)..);
                for (id, _) in of_kind.take_while(|(id, _)| id.gvk == gvk) {
                    if self.has_selected(name, id) {
                        found.entry(id.namespace.clone()).or_default().insert(id.clone());
                    }
                }
            }
        }
        if let Some(held) = self.distributions.held.get_mut(name) {
            held.workloads = found;
            held.left.clear();
        }
    }

    fn has_selected(&self, name: &Str, id: &ResourceId) -> bool {
        let Some(Ok(spec)) = self.distributions.held.get(name).map(|held| &held.object.spec) else {
            return false;
        };
        let Some(wanted) = spec.targets.workloads() else {
            return false;
        };
        self.resources
            .get(id)
            .and_then(|resource| resource.template.as_ref())
            .is_some_and(|template| {
                template.meta.deleting.is_none() && selector::matches(wanted, &template.meta.labels)
            })
    }
}
