//! Works, and the keys of the Works that a change concerns.

use std::collections::BTreeSet;

use entourage_api::names;

use super::Dirty;
use crate::{
    cache::{Deletion, Held, HeldWork},
    engine::routes::Changed,
    fleet::Fleet,
    object::{NamespacedName, ResourceId, Str, Time},
    observation::{ObjectRef, Work},
    plan::Key,
};

impl Fleet {
    /// A Work was observed. Cost: O(log Works).
    pub(super) fn work_seen(&mut self, name: &NamespacedName, work: Work, now: Time, dirty: &mut Dirty) {
        let before = self.cache.works.get(name);
        let held = before.map(|held| Held::of(&held.work.meta, &work.meta));
        let which = ObjectRef::Work(name.clone());
        if self
            .cache
            .revisions
            .see(&which, held, work.meta.revision())
            .is_none()
        {
            return;
        }
        let was_suspended = self
            .cache
            .works
            .get(name)
            .is_some_and(|held| held.work.is_suspended_by_user());
        let is_turned = was_suspended != work.is_suspended_by_user();
        let id = work.id.clone();
        self.cache
            .works
            .insert(name.clone(), HeldWork { work, since: now });
        self.work_changed(name, id.as_ref(), is_turned, dirty);
    }

    /// A Work was deleted. Cost: O(log Works).
    pub(super) fn work_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.works.get(name) else {
            return;
        };
        let meta = &held.work.meta;
        let held_as = (&*meta.uid, meta.revision());
        let which = ObjectRef::Work(name.clone());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let Some(held) = self.cache.works.remove(name) else {
            return;
        };
        self.work_changed(
            name,
            held.work.id.as_ref(),
            held.work.is_suspended_by_user(),
            dirty,
        );
    }

    /// The Work is planned again, its copy if its suspension turned, and the execution namespace that may wait for its end.
    fn work_changed(
        &self,
        name: &NamespacedName,
        id: Option<&ResourceId>,
        is_turned: bool,
        dirty: &mut Dirty,
    ) {
        let cluster = names::cluster_of_execution_namespace(&name.namespace);
        let Some(cluster) = cluster.map(Str::from) else {
            return;
        };
        if let Some(id) = id {
            dirty.push(Key::Work(id.clone(), cluster.clone()));
            if is_turned {
                self.route(Changed::CopyTried(id, &cluster), dirty);
            }
        }
        let leaves = |held: &crate::cache::Member| held.meta.deleting.is_some();
        if self.cache.members.get(&cluster).is_some_and(leaves) {
            self.route(Changed::ExecutionNamespace(&cluster), dirty);
        }
    }

    /// A Cluster was deleted: nothing accounts for its Works any more. Cost: O(Works there).
    pub(super) fn dirty_works_of(&self, cluster: &Str, dirty: &mut Dirty) {
        let namespace = names::execution_namespace(cluster);
        let of_it = self.cache.works.range(NamespacedName::new(&namespace, "")..);
        let of_it = of_it.take_while(|(name, _)| *name.namespace == *namespace);
        let ids = of_it.filter_map(|(_, held)| held.work.id.clone());
        dirty.extend(ids.map(|id| Key::Work(id, cluster.clone())));
    }

    /// Works are listed, or refused: copies waited for it, and Works may be missing. Cost: O(copies), once.
    pub(super) fn works_listed(&self, dirty: &mut Dirty) {
        for id in self.cache.resources.keys() {
            self.route(Changed::Template(id), dirty);
        }
    }

    /// A change of a copy, or of what its binding says, may change its Work. Cost: O(dirty × copies); O(1) if Works are off.
    pub(super) fn dirty_works(&self, reported: Option<&NamespacedName>, dirty: &mut Dirty) {
        if !self.config.mirror_works {
            return;
        }
        let mut works = BTreeSet::new();
        let mut all_of = |id: &ResourceId| {
            let resource = self.cache.resources.get(id);
            let clusters = resource.into_iter().flat_map(|resource| resource.copies.keys());
            works.extend(clusters.map(|cluster| (id.clone(), cluster.clone())));
        };
        if let Some(id) = reported.and_then(|name| self.graph.by_binding.get(name)) {
            all_of(id);
        }
        let mut copies = Vec::new();
        for key in dirty.iter() {
            match key {
                Key::Copy(id, cluster) => copies.push((id.clone(), cluster.clone())),
                Key::Binding(id) | Key::BindingStatus(id) => all_of(id),
                _ => {}
            }
        }
        works.extend(copies);
        dirty.extend(works.into_iter().map(|(id, cluster)| Key::Work(id, cluster)));
    }
}
