//! The Services that members export: which of their EndpointSlices are watched, and what explains the end of those on the hub.

use std::collections::BTreeSet;

use super::{Dirty, lists::first};
use crate::{
    engine::routes::Changed,
    fleet::{
        Fleet,
        exports::{Export, export, export_of, is_derivable, is_expected, is_export, slice_id},
    },
    kinds,
    memory::{Origin, deletion_pauses::explains},
    object::{NamespacedName, ResourceId, Str, Time},
    observation::{ServicePart, Slice, Watch},
    plan::Key,
};

impl Fleet {
    /// A member, its readiness, or its list of ServiceExports changed. Cost: O(its exported Services + Services that slices of the hub
    /// stand for).
    pub(super) fn services_on(&mut self, cluster: &Str, dirty: &mut Dirty) {
        if !self.config.share_services {
            return;
        }
        let sources = self.cache.services.sources_of(cluster);
        let mut services: BTreeSet<NamespacedName> = sources.map(|(service, _)| service.clone()).collect();
        services.extend(self.exported_by(cluster));
        for service in services {
            self.review_export(cluster, &service, dirty);
        }
    }

    /// A change of a ServiceExport or of its copies may begin or end the watch of its endpoints: a row of its own in every route would say
    /// the same. Cost: O(dirty), and O(copies + members) of the ServiceExports among them; O(1) while the controller is off.
    pub(super) fn dirty_services(&mut self, now: Time, dirty: &mut Dirty) {
        if !self.config.share_services {
            return;
        }
        let mut changed = BTreeSet::new();
        for key in dirty.iter() {
            match key {
                Key::Copy(id, cluster) if is_export(&id.gvk) => {
                    changed.insert((cluster.clone(), NamespacedName::new(&id.namespace, &id.name)));
                }
                Key::Binding(id) | Key::Template(id) if is_export(&id.gvk) => {
                    let service = NamespacedName::new(&id.namespace, &id.name);
                    let copies = self.resource(id).into_iter().flat_map(|each| each.copies.keys());
                    // Also where nothing else is known of it any more.
                    let members = self.cache.members.keys();
                    let held = members.filter(|cluster| self.cache.services.is_held(cluster, &service));
                    changed.extend(
                        copies
                            .chain(held)
                            .map(|cluster| (cluster.clone(), service.clone())),
                    );
                }
                _ => {}
            }
        }
        for (cluster, service) in changed {
            let resource = self.resource(&export_of(&service));
            let is_explained = resource.is_some_and(|resource| explains(resource.edited, now));
            if is_explained && export(self, &cluster, &service) == Export::No {
                self.explain_slices((&cluster, &service, None), now);
            }
            self.review_export(&cluster, &service, dirty);
        }
    }

    /// Watches the endpoints of a Service while a member exports it, and there is room for one more watch. They are watched once the slices
    /// of the hub are listed, which come first. Cost: O(watches of endpoints on the member + Services of it on the hub), and O(its slices)
    /// when that ends.
    fn review_export(&mut self, cluster: &Str, service: &NamespacedName, dirty: &mut Dirty) {
        let is_watchable =
            self.cache.members.contains_key(cluster) && !self.is_pull(cluster) && is_derivable(&service.name);
        let watch = Watch::Endpoints(cluster.clone(), service.clone());
        let is_demanded = self.cache.watches.is_demanded(&watch);
        let exports = match export(self, cluster, service) {
            _ if !is_watchable => Export::No,
            exports => exports,
        };
        let imported = Watch::ServiceParts(ServicePart::Imported);
        match exports {
            Export::Yes if !is_demanded && self.cache.watches.is_listed(&imported) => {
                let has_room = self.has_room_to_watch(cluster, service);
                self.note_unwatched(cluster, service, !has_room, dirty);
                if has_room {
                    self.cache.watches.demand(watch);
                }
            }
            Export::Yes | Export::Unknown => {}
            Export::No => {
                self.note_unwatched(cluster, service, false, dirty);
                self.memory.endpoints.forget(cluster, service);
                if is_demanded {
                    self.end_endpoints(&watch, cluster, dirty);
                }
            }
        }
        dirty.push(Key::Endpoints(cluster.clone(), service.clone()));
    }

    /// Endpoints of a member are not watched any more: there is room for those of another Service. Cost: as [`Self::review_export`].
    fn end_endpoints(&mut self, watch: &Watch, cluster: &Str, dirty: &mut Dirty) {
        let (_, lacked) = self.cache.services.counts(cluster);
        self.forget_collected(watch);
        self.cache.watches.forget(watch);
        self.endpoints_counted(cluster, lacked, dirty);
        self.review_unwatched(cluster, dirty);
    }

    /// There may be room to watch the endpoints of one more Service of a member; first come those that the hub has slices of. Cost:
    /// O(log members) if all are watched; else O(Services that are not), and as [`Self::review_export`].
    pub(super) fn review_unwatched(&mut self, cluster: &Str, dirty: &mut Dirty) {
        let unwatched = self.memory.unwatched_exports.of(cluster);
        let next = unwatched.and_then(|all| {
            let mut held = all
                .iter()
                .filter(|service| self.cache.services.is_held(cluster, service));
            held.next().or(all.first()).cloned()
        });
        if let Some(next) = next {
            self.review_export(cluster, &next, dirty);
        }
    }

    fn note_unwatched(&mut self, cluster: &Str, service: &NamespacedName, is_one: bool, dirty: &mut Dirty) {
        if self.memory.unwatched_exports.set(cluster, service, is_one) {
            self.route(Changed::Cluster(cluster), dirty);
        }
    }

    /// True if the endpoints of one more Service may be watched on a member. One that the hub has no slices of leaves room for those that it
    /// has: a restart changes nothing. Cost: O(watches of endpoints on the member + Services of it on the hub).
    fn has_room_to_watch(&self, cluster: &Str, service: &NamespacedName) -> bool {
        let watched = self.endpoints_of(cluster).count();
        let most = self.config.exports_per_member;
        if watched >= most || self.cache.services.is_held(cluster, service) {
            return watched < most;
        }
        let is_watched = |service: &NamespacedName| {
            let watch = Watch::Endpoints(cluster.clone(), service.clone());
            self.cache.watches.is_demanded(&watch)
        };
        let held = self.cache.services.sources_of(cluster);
        let others = held.filter(|(service, _)| !is_watched(service)).count();
        watched + others < most
    }

    /// All exports of all members are reviewed. Cost: O(ServiceExports × their copies), each as [`Self::review_export`].
    pub(super) fn review_exports(&mut self, dirty: &mut Dirty) {
        let gvk = self.watched(&kinds::service_export());
        let exports = self.cache.resources.range(first(&gvk)..);
        let exports = exports.take_while(|(id, _)| id.gvk == gvk);
        let copies = exports.flat_map(|(id, resource)| {
            let service = NamespacedName::new(&id.namespace, &id.name);
            let clusters = resource.copies.keys().cloned();
            clusters.map(move |cluster| (cluster, service.clone()))
        });
        for (cluster, service) in copies.collect::<Vec<_>>() {
            self.review_export(&cluster, &service, dirty);
        }
    }

    /// Slices end on a member, with an event of its watch and not because a list lacks them; or its export of the Service ends because of an
    /// edit or an eviction; or an edit removes the Cluster. That explains the deletion of their copies on importers
    /// ([`crate::governor`]): it is noted at once, as the ServiceExport may be forgotten before they are deleted. Cost: O(slices of
    /// the Service).
    pub(super) fn explain_slices(
        &mut self,
        (cluster, service, slice): (&Str, &NamespacedName, Option<&Str>),
        now: Time,
    ) {
        let is_it = |(name, held): &(&NamespacedName, &Slice)| {
            let source = held.source(name).map(|source| source.slice);
            slice.is_none_or(|slice| source.as_ref() == Some(slice))
        };
        let ended = self.cache.services.standing_for(cluster, service).filter(is_it);
        let ids: Vec<ResourceId> = ended.map(|(name, _)| slice_id(self, name)).collect();
        for id in ids {
            if let Some(resource) = self.cache.resources.get_mut(&id) {
                resource.edited = Some(now);
            }
        }
    }

    /// The copy of a ServiceExport ended with an event of its watch. Cost: that of [`is_expected`], and O(slices of the Service).
    pub(super) fn export_ended(&mut self, cluster: &Str, id: &ResourceId, now: Time) {
        let service = NamespacedName::new(&id.namespace, &id.name);
        let is_listing = self.cache.watches.is_listing(&self.copies(cluster, &id.gvk));
        if self.config.share_services && !is_listing && !is_expected(self, cluster, &service) {
            self.explain_slices((cluster, &service, None), now);
        }
    }

    /// A Cluster is being deleted, or is gone. Cost: O(slices of the member on the hub).
    pub(super) fn exporter_leaves(&mut self, cluster: &Str, now: Time) {
        if self.memory.origin != Origin::Edit {
            return;
        }
        let services = self.cache.services.sources_of(cluster);
        let services: Vec<NamespacedName> = services.map(|(service, _)| service.clone()).collect();
        for service in services {
            self.explain_slices((cluster, &service, None), now);
        }
    }
}
