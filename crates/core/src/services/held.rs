//! The EndpointSlices of the hub for those of a Service of a member: which one stands for which, and the names of new ones.

use std::collections::BTreeMap;

use entourage_api::names;

use crate::{
    fleet::Fleet,
    object::{NamespacedName, Str},
    observation::{Slice, SliceSource},
};

/// A slice of a member, and the objects of the hub that stand for it.
pub(super) struct Held<'a> {
    /// The slice.
    pub(super) source: SliceSource,
    /// Sorted by name; more than one only if names were taken and became free again.
    objects: Vec<(&'a NamespacedName, &'a Slice)>,
}

impl<'a> Held<'a> {
    /// All slices of a Service of a member, those that the hub alone has included. Sorted by name. Cost: O(slices × log).
    pub(super) fn all(fleet: &'a Fleet, cluster: &Str, service: &NamespacedName) -> Vec<Self> {
        let services = &fleet.cache.services;
        let mut all: BTreeMap<Str, Vec<_>> = BTreeMap::new();
        for (name, _) in services.collected(cluster, service) {
            all.entry(name.clone()).or_default();
        }
        for (name, slice) in services.standing_for(cluster, service) {
            if let Some(source) = slice.source(name) {
                all.entry(source.slice).or_default().push((name, slice));
            }
        }
        let held = |(slice, objects)| Self {
            source: SliceSource {
                cluster: cluster.clone(),
                service: service.clone(),
                slice,
            },
            objects,
        };
        all.into_iter().map(held).collect()
    }

    /// The object that stands for it from now on.
    pub(super) fn kept(&self) -> Option<(&'a NamespacedName, &'a Slice)> {
        self.objects.first().copied()
    }

    /// All objects that stand for it and are not being deleted.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&'a NamespacedName, &'a Slice)> {
        present(&self.objects)
    }

    /// Those besides [`Self::kept`].
    pub(super) fn others(&self) -> impl Iterator<Item = (&'a NamespacedName, &'a Slice)> {
        present(self.objects.get(1..).unwrap_or_default())
    }
}

fn present<'a>(
    objects: &[(&'a NamespacedName, &'a Slice)],
) -> impl Iterator<Item = (&'a NamespacedName, &'a Slice)> {
    let held = objects.iter().copied();
    held.filter(|(_, slice)| slice.meta.deleting.is_none())
}

/// The name of a new slice of the hub: the first that no other object has. Cost: O(log slices).
pub(super) fn name_for(fleet: &Fleet, source: &SliceSource) -> NamespacedName {
    let [plain, hashed] = names::imported_slices(&source.cluster, &source.slice);
    let named = |name: &str| NamespacedName::new(&source.service.namespace, name);
    let plain = named(&plain);
    match fleet.cache.services.imported(&plain) {
        None => plain,
        Some(_) => named(&hashed),
    }
}
