//! Lists: what is not in one is gone, and what is known decides what may be removed.

use std::collections::BTreeSet;

use super::{Deletion, Dirty};
use crate::{
    index::Index,
    object::{Id, Named, Time},
    observation::{Watch, Which},
    plan::Key,
};

impl Index {
    /// Cost: O(objects of the kind); O(everything) once, when the hub becomes known.
    pub(super) fn was_listed(
        &mut self,
        watch: &Watch,
        present: &BTreeSet<Which>,
        revision: u64,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let before = self.list_revisions.insert(watch.clone(), revision);
        if before.is_some_and(|before| revision < before) {
            self.forget_floors(watch);
        }
        for which in self.held(watch) {
            if !present.contains(&which) {
                let deletion = Deletion {
                    uid: None,
                    revision: Some(revision),
                };
                self.gone(&which, &deletion, now, dirty);
            }
        }
        let known = self.is_hub_listed() && self.is_base_synced() && self.listed.contains(watch);
        self.unlistable.remove(watch);
        self.listed.insert(watch.clone());
        self.synced.insert(watch.clone());
        let on_hub = !matches!(watch, Watch::Copies(..));
        match watch {
            Watch::Copies(cluster, gvk) => {
                let mut absent = Vec::new();
                for (id, entity) in &mut self.entities {
                    if id.gvk == *gvk
                        && let Some(state) = entity.copies.get_mut(cluster)
                    {
                        state.uncertain &= state.in_flight;
                        if state.live.is_none() {
                            absent.push(id.clone());
                        }
                        dirty.push(Key::Copy(id.clone(), cluster.clone()));
                        dirty.push(Key::BindingStatus(id.clone()));
                        dirty.push(Key::Binding(id.clone()));
                        dirty.push(Key::TemplateStatus(id.clone()));
                    }
                }
                // What waited to know whether it stands there knows now.
                for id in absent {
                    self.dirty_neighbours(&id, cluster, dirty);
                    self.settle(&id, now, dirty);
                }
                dirty.push(Key::Cluster(cluster.clone()));
            }
            Watch::Templates(gvk) => {
                let ids: Vec<Id> = self
                    .entities
                    .keys()
                    .filter(|id| id.gvk == *gvk)
                    .cloned()
                    .collect();
                for id in ids {
                    self.dirty_referrers(&id, dirty);
                    dirty.push(Key::Template(id.clone()));
                    self.dirty_entity(&id, dirty);
                }
            }
            Watch::Policies | Watch::Bindings | Watch::Clusters => {}
        }
        if on_hub && !known && self.is_hub_listed() {
            self.remember_former();
            dirty.extend(self.policies.keys().cloned().map(Key::Policy));
            dirty.extend(self.members.keys().cloned().map(Key::Cluster));
            let ids: Vec<Id> = self.entities.keys().cloned().collect();
            for id in ids {
                dirty.push(Key::Template(id.clone()));
                self.dirty_entity(&id, dirty);
            }
        }
    }

    /// After a start: who is named in a stored `requiredBy` and does not refer to the object any more may still hold it.
    /// A hint that only ever delays a removal. Cost: O(bindings × snapshots), once.
    pub(super) fn remember_former(&mut self) {
        let mut former = Vec::new();
        for (id, entity) in &self.entities {
            for snapshot in entity
                .binding
                .iter()
                .flat_map(|binding| &binding.object.spec.required_by)
            {
                let referrer = self
                    .by_binding
                    .get(&Named::new(&snapshot.namespace, &snapshot.name));
                if let Some(referrer) = referrer.filter(|referrer| !entity.referrers.contains(*referrer)) {
                    former.push((id.clone(), referrer.clone()));
                }
            }
        }
        for (id, referrer) in former {
            self.unbury(&id).former.insert(referrer.clone());
            self.unbury(&referrer).left_behind.insert(id);
        }
    }

    /// Cost: O(objects of the kind) when a kind turns out not to be listable.
    pub(super) fn lost(&mut self, watch: &Watch, why: String, dirty: &mut Dirty) {
        self.synced.remove(watch);
        if self.listed.contains(watch) || self.unlistable.insert(watch.clone(), why).is_some() {
            return;
        }
        // Who waited for the list waits in vain.
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = watch else {
            return;
        };
        let ids: Vec<Id> = self
            .entities
            .keys()
            .filter(|id| id.gvk == *gvk)
            .cloned()
            .collect();
        for id in ids {
            self.dirty_referrers(&id, dirty);
            dirty.push(Key::Template(id.clone()));
            self.dirty_entity(&id, dirty);
        }
    }

    /// The server's resourceVersions went back (it was restored from a backup, or made anew): what was known of
    /// versions is worth nothing.
    fn forget_floors(&mut self, watch: &Watch) {
        for (id, entity) in &mut self.entities {
            match watch {
                Watch::Templates(gvk) if id.gvk == *gvk => entity.floor = 0,
                Watch::Bindings => entity.binding_floor = 0,
                Watch::Copies(cluster, gvk) if id.gvk == *gvk => {
                    if let Some(state) = entity.copies.get_mut(cluster) {
                        state.floor = 0;
                    }
                }
                _ => {}
            }
        }
        self.tombstones.clear();
        self.buried.clear();
        self.gone_floors.clear();
    }

    /// What the index holds of what a watch covers.
    pub(super) fn held(&self, watch: &Watch) -> Vec<Which> {
        match watch {
            Watch::Policies => self.policies.keys().cloned().map(Which::Policy).collect(),
            Watch::Bindings => self.by_binding.keys().cloned().map(Which::Binding).collect(),
            Watch::Clusters => self.members.keys().cloned().map(Which::Cluster).collect(),
            Watch::Templates(gvk) => self
                .entities
                .iter()
                .filter(|(id, entity)| id.gvk == *gvk && entity.template.is_some())
                .map(|(id, _)| Which::Template(id.clone()))
                .collect(),
            Watch::Copies(cluster, gvk) => self
                .entities
                .iter()
                .filter(|(id, entity)| {
                    id.gvk == *gvk
                        && entity
                            .copies
                            .get(cluster)
                            .is_some_and(|state| state.live.is_some())
                })
                .map(|(id, _)| Which::Copy(cluster.clone(), id.clone()))
                .collect(),
        }
    }
}
