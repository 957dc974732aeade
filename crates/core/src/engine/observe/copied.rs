//! Objects on members that carry this hub's ownership metadata and are not managed by it: copied, restored, or cloned with
//! their cluster. They are never changed or deleted, only reported.
//!
//! Invariant: the order of arrival is irrelevant. Whether an object is managed may depend on a binding that is observed after
//! it; an object that is not managed yet is kept, and checked again when its binding changes.

use entourage_api::{keys::annotation, names};
use serde_json::Value;

use super::Dirty;
use crate::{
    cache::CopyState,
    engine::routes::Changed,
    fleet::Fleet,
    object::{Gvk, Meta, ResourceId, Str, Time},
    observation::{Copy, CopyMeta, owner_hash},
    ownership::Claim,
    plan::Key,
};

impl Fleet {
    /// True if an object that carries our hub's id is managed by this hub: see [`crate::ownership`]. Cost: O(clusters of its binding).
    pub(super) fn is_managed(&self, cluster: &Str, id: &ResourceId, meta: &CopyMeta) -> bool {
        let of_it = |name: &str| owner_hash(&id.namespace, name) == meta.binding;
        // The name of its binding may not be known yet, only the possible ones.
        let names = || names::binding_names(&id.gvk.group, &id.gvk.kind, &id.name);
        let claim = Claim {
            hub: meta.hub.as_deref() == Some(&*self.config.hub),
            cluster: meta.names_cluster(cluster),
            binding: of_it(&self.binding_name_of(id)) || names().iter().any(|name| of_it(name)),
        };
        let Some(resource) = self.cache.resources.get(id) else {
            return false;
        };
        let record = resource
            .copies
            .get(cluster)
            .and_then(|state| state.record.as_ref());
        let is_recorded = record.is_some_and(|record| *record.uid == *meta.uid);
        let is_accounted = resource
            .last_binding()
            .is_some_and(|binding| binding.may_have_left(cluster));
        claim.is_managed(is_recorded, is_accounted)
    }

    /// An unmanaged object was observed. In its place there is no copy of ours. Cost: as [`Self::copy_ended`].
    pub(super) fn copied_seen(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        copy: Copy,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let state = self.copy_state(id, cluster);
        state.freshness.set(copy.meta.revision());
        let was_live = state.live.take().is_some();
        let was_pending = !state.in_flight && state.pending.take().is_some();
        let is_new = state.copied.replace(Box::new(copy)).is_none();
        if is_new {
            self.copied_changed(cluster, id, now, dirty);
        }
        if was_live || was_pending {
            self.copy_ended(id, cluster, now, dirty);
        }
    }

    /// Maintains the list of unmanaged objects on a cluster. Cost: O(log of their number); O(its references) when it changes.
    pub(super) fn copied_changed(&mut self, cluster: &Str, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let state = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.copies.get(cluster));
        let is_there = state.is_some_and(|state| state.copied.is_some());
        let held = self.cache.copied.entry(cluster.clone()).or_default();
        let changed = match is_there {
            true => held.objects.insert(id.clone()),
            false => held.objects.remove(id),
        };
        if changed {
            held.changed = Some(now);
            self.route(Changed::Cluster(cluster), dirty);
            // Copies there may wait for it as a dependency.
            for reference in self.graph.links.of(id).references.iter() {
                dirty.push(Key::Binding(reference.id.clone()));
                dirty.push(Key::Copy(reference.id.clone(), cluster.clone()));
            }
        }
    }

    /// Its binding changed: the copies that it accounts for now are managed from now on. Cost: O(copies of one template).
    pub(super) fn manage_accounted_copies(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        let managed = |(cluster, state): (&Str, &CopyState)| {
            let copied = state.copied.as_ref()?;
            self.is_managed(cluster, id, &copied.meta)
                .then(|| cluster.clone())
        };
        let managed: Vec<Str> = resource.copies.iter().filter_map(managed).collect();
        for cluster in managed {
            let state = self.copy_state(id, &cluster);
            state.live = state.copied.take().map(|copied| *copied);
            self.copied_changed(&cluster, id, now, dirty);
            self.answered(id, now);
            self.route(Changed::CopyOwner(id, &cluster), dirty);
            self.route(Changed::Existence(id, &cluster), dirty);
        }
    }
}

/// The kinds of the objects that a Cluster reports: they are watched after a restart, too.
pub(super) fn reported_kinds(cluster: &Meta) -> Vec<Gvk> {
    let report = cluster.annotation(annotation::COPIED_OBJECTS);
    let report: Value = report
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let objects = report["objects"].as_array().into_iter().flatten();
    let kind = |object: &Value| {
        let mut words = object.as_str()?.split(' ');
        Some(Gvk::new(words.next()?, words.next()?))
    };
    objects.filter_map(kind).collect()
}
