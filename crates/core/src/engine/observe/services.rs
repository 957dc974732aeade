//! The parts of Services of other clusters: what each change of one makes dirty.

use entourage_api::names;

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    engine::routes::Changed,
    fleet::Fleet,
    object::{NamespacedName, Str, Time},
    observation::{ObjectRef, ServiceObject, ServicePart, Slice, Watch},
    plan::Key,
};

impl Fleet {
    /// A part on the hub was observed. Cost: as [`Self::dirty_part`].
    pub(super) fn service_part_seen(
        &mut self,
        name: &NamespacedName,
        object: ServiceObject,
        dirty: &mut Dirty,
    ) {
        let part = object.part();
        if !part.may_be(&name.name) {
            return;
        }
        let held = self.cache.services.meta(part, name);
        let held = held.map(|held| Held::of(held, object.meta()));
        let which = ObjectRef::ServicePart(part, name.clone());
        if self
            .cache
            .revisions
            .see(&which, held, object.meta().revision())
            .is_none()
        {
            return;
        }
        self.dirty_part(part, name, dirty);
        self.cache.services.insert(name, object);
        self.dirty_part(part, name, dirty);
    }

    /// A part on the hub was deleted. Cost: as [`Self::service_part_seen`].
    pub(super) fn service_part_gone(
        &mut self,
        (part, name): (ServicePart, &NamespacedName),
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.services.meta(part, name) else {
            return;
        };
        let which = ObjectRef::ServicePart(part, name.clone());
        let held_as = (&*held.uid, held.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.dirty_part(part, name, dirty);
        let source = self
            .cache
            .services
            .imported(name)
            .and_then(|slice| slice.source(name));
        self.cache.services.remove(part, name);
        if let Some(source) = source.filter(|_| part == ServicePart::Imported) {
            // It does not keep room any more.
            let (_, lacked) = self.cache.services.counts(&source.cluster);
            self.endpoints_counted(&source.cluster, lacked, dirty);
            self.review_unwatched(&source.cluster, dirty);
        }
    }

    /// An EndpointSlice of a member was observed. Cost: O(log slices).
    pub(super) fn endpoints_seen(
        &mut self,
        (cluster, service, name): (&Str, &NamespacedName, &Str),
        slice: Slice,
        dirty: &mut Dirty,
    ) {
        let watch = Watch::Endpoints(cluster.clone(), service.clone());
        if !self.cache.watches.is_demanded(&watch) {
            return;
        }
        let held = self.cache.services.slice(cluster, service, name);
        let held = held.map(|held| Held::of(&held.slice.meta, &slice.meta));
        let which = ObjectRef::Endpoints(cluster.clone(), service.clone(), name.clone());
        if self
            .cache
            .revisions
            .see(&which, held, slice.meta.revision())
            .is_none()
        {
            return;
        }
        let (_, lacked) = self.cache.services.counts(cluster);
        let limit = self.config.endpoints_per_member;
        self.cache
            .services
            .collect((cluster, service, name), slice, limit);
        dirty.push(Key::Endpoints(cluster.clone(), service.clone()));
        self.endpoints_counted(cluster, lacked, dirty);
    }

    /// An EndpointSlice of a member was deleted. Cost: O(log slices).
    pub(super) fn endpoints_gone(
        &mut self,
        (cluster, service, name): (&Str, &NamespacedName, &Str),
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.services.slice(cluster, service, name) else {
            return;
        };
        let which = ObjectRef::Endpoints(cluster.clone(), service.clone(), name.clone());
        let meta = &held.slice.meta;
        let held_as = (&*meta.uid, meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let (_, lacked) = self.cache.services.counts(cluster);
        let watch = Watch::Endpoints(cluster.clone(), service.clone());
        if !self.cache.watches.is_listing(&watch) {
            self.explain_slices((cluster, service, Some(name)), now);
        }
        self.cache.services.drop_slice(cluster, service, name);
        dirty.push(Key::Endpoints(cluster.clone(), service.clone()));
        self.endpoints_counted(cluster, lacked, dirty);
    }

    /// The number of endpoints of a member changed: the condition of its Cluster may, and a slice that was left out is read again once
    /// it fits. Cost: O(log members); O(slices of the member) while some are left out.
    pub(super) fn endpoints_counted(&mut self, cluster: &Str, lacked: usize, dirty: &mut Dirty) {
        let limit = self.config.endpoints_per_member;
        let lacking = self.cache.services.lacking(cluster, limit).cloned();
        let watch = lacking.map(|service| Watch::Endpoints(cluster.clone(), service));
        // While it lists, the slice may be on its way. What is collected stays: a restart deals nothing anew.
        if let Some(watch) = watch.filter(|watch| self.cache.watches.is_synced(watch))
            && let Watch::Endpoints(_, service) = &watch
        {
            self.cache.services.forget_left_out(cluster, service);
            self.cache.watches.restart(watch);
        }
        let (_, lacks) = self.cache.services.counts(cluster);
        if (lacked > 0) != (lacks > 0) {
            self.route(Changed::Cluster(cluster), dirty);
        }
    }

    /// Forgets the slices of a watch that ends. Cost: O(its slices).
    pub(super) fn forget_collected(&mut self, watch: &Watch) {
        if let Watch::Endpoints(cluster, service) = watch {
            self.cache.services.forget_service(cluster, service);
        }
    }

    /// Parts of the hub were listed. Cost: O(parts), and as [`Self::review_exports`].
    pub(super) fn service_parts_listed(&mut self, part: ServicePart, dirty: &mut Dirty) {
        match part {
            ServicePart::Import | ServicePart::Derived => {
                for part in [ServicePart::Import, ServicePart::Derived] {
                    for name in self.cache.services.names(part) {
                        self.dirty_part(part, &name, dirty);
                    }
                }
            }
            ServicePart::Imported => {
                let sources = self.cache.services.sources().cloned();
                dirty.extend(sources.map(|(cluster, service)| Key::Endpoints(cluster, service)));
                self.review_exports(dirty);
            }
        }
    }

    /// The slices of a Service of a member were listed. Cost: O(1).
    pub(super) fn endpoints_listed(&self, cluster: &Str, service: &NamespacedName, dirty: &mut Dirty) {
        dirty.push(Key::Endpoints(cluster.clone(), service.clone()));
    }

    /// Marks as dirty all that depends on a part on the hub. Cost: O(log parts); O(members + slices in its namespace of those with a matching name) for an
    /// EndpointSlice of another writer, which takes a name.
    fn dirty_part(&self, part: ServicePart, name: &NamespacedName, dirty: &mut Dirty) {
        match part {
            ServicePart::Import => dirty.push(Key::DerivedService(name.clone())),
            ServicePart::Derived => {
                let import = name.name.strip_prefix(names::DERIVED_PREFIX);
                let import = import.map(|import| NamespacedName::new(&name.namespace, import));
                dirty.extend(import.map(Key::DerivedService));
            }
            ServicePart::Imported => {
                let Some(slice) = self.cache.services.imported(name) else {
                    return;
                };
                match slice.source(name) {
                    Some(source) => dirty.push(Key::Endpoints(source.cluster, source.service)),
                    None => self.dirty_named(name, dirty),
                }
            }
        }
    }

    /// The exported Services with a slice for which an EndpointSlice of the hub may have this name. Cost: as [`Self::dirty_part`].
    fn dirty_named(&self, name: &NamespacedName, dirty: &mut Dirty) {
        let Some(rest) = name.name.strip_prefix(names::IMPORTED_PREFIX) else {
            return;
        };
        let of_it = |cluster: &&Str| {
            rest.strip_prefix(&***cluster)
                .is_some_and(|rest| rest.starts_with('-'))
        };
        for cluster in self.cache.members.keys().filter(of_it) {
            for (service, slice) in self.cache.services.collected_in(cluster, &name.namespace) {
                if names::imported_slices(cluster, slice)
                    .iter()
                    .any(|each| **each == *name.name)
                {
                    dirty.push(Key::Endpoints(cluster.clone(), service.clone()));
                }
            }
        }
    }
}
