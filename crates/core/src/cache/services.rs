//! The parts of Services of other clusters: ServiceImports, what stands for them on the hub, and the EndpointSlices of members.
//!
//! What is kept of a member is limited: its slices, their ports and their addresses count one each. A slice beyond the limit is known by
//! its name alone: nothing is created of it, and it is read again once there is room. What the hub has already comes first, in whatever
//! order slices are observed: a restart changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    object::{Meta, NamespacedName, Str},
    observation::{DerivedService, Endpoints, ServiceImport, ServiceObject, ServicePart, Slice},
};

/// All parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services {
    /// ServiceImports.
    pub(crate) imports: BTreeMap<NamespacedName, ServiceImport>,
    /// Services of the hub that are named as one for a ServiceImport.
    pub(crate) derived: BTreeMap<NamespacedName, DerivedService>,
    /// EndpointSlices of the hub that are named as one for a slice of a member.
    imported: BTreeMap<NamespacedName, Slice>,
    /// The names of those with a source, by its member and Service.
    by_source: BTreeMap<(Str, NamespacedName), BTreeSet<NamespacedName>>,
    /// The weight of those of each member; no entry for zero.
    held_of: BTreeMap<Str, usize>,
    members: BTreeMap<Str, MemberEndpoints>,
}

/// The EndpointSlices of a member.
#[derive(Clone, Debug, Default)]
struct MemberEndpoints {
    services: BTreeMap<NamespacedName, BTreeMap<Str, Collected>>,
    /// The sum of what the slices count that have their content.
    size: usize,
    /// The number of slices without their content.
    left_out: usize,
}

/// An EndpointSlice of a member.
#[derive(Clone, Debug)]
pub(crate) struct Collected {
    /// The slice; without its content if it is left out.
    pub(crate) slice: Slice,
    /// Its weight for the limit of the member.
    count: usize,
    /// True if it exceeds the limit of the member.
    pub(crate) is_left_out: bool,
}

// --- objects of the hub

impl Services {
    /// The metadata of an object of the hub. Cost: O(log parts).
    pub(crate) fn meta(&self, part: ServicePart, name: &NamespacedName) -> Option<&Meta> {
        match part {
            ServicePart::Import => self.imports.get(name).map(|import| &import.meta),
            ServicePart::Derived => self.derived.get(name).map(|service| &service.meta),
            ServicePart::Imported => self.imported.get(name).map(|slice| &slice.meta),
        }
    }

    /// An object of the hub was observed. Cost: O(log parts).
    pub(crate) fn insert(&mut self, name: &NamespacedName, object: ServiceObject) {
        self.remove(object.part(), name);
        match object {
            ServiceObject::Import(import) => drop(self.imports.insert(name.clone(), import)),
            ServiceObject::Derived(service) => drop(self.derived.insert(name.clone(), service)),
            ServiceObject::Imported(slice) => {
                if let Some(source) = slice.source(name) {
                    *self.held_of.entry(source.cluster.clone()).or_default() += slice.content.weight();
                    let of_source = self.by_source.entry((source.cluster, source.service));
                    of_source.or_default().insert(name.clone());
                }
                self.imported.insert(name.clone(), slice);
            }
        }
    }

    /// An object of the hub was deleted. Cost: O(log parts).
    pub(crate) fn remove(&mut self, part: ServicePart, name: &NamespacedName) {
        match part {
            ServicePart::Import => drop(self.imports.remove(name)),
            ServicePart::Derived => drop(self.derived.remove(name)),
            ServicePart::Imported => {
                let Some(slice) = self.imported.remove(name) else {
                    return;
                };
                let Some(source) = slice.source(name) else { return };
                if let Some(held) = self.held_of.get_mut(&source.cluster) {
                    *held -= slice.content.weight();
                    if *held == 0 {
                        self.held_of.remove(&source.cluster);
                    }
                }
                let source = (source.cluster, source.service);
                if let Some(held) = self.by_source.get_mut(&source) {
                    held.remove(name);
                    if held.is_empty() {
                        self.by_source.remove(&source);
                    }
                }
            }
        }
    }

    /// The names of the objects of one part.
    pub(crate) fn names(&self, part: ServicePart) -> Vec<NamespacedName> {
        match part {
            ServicePart::Import => self.imports.keys().cloned().collect(),
            ServicePart::Derived => self.derived.keys().cloned().collect(),
            ServicePart::Imported => self.imported.keys().cloned().collect(),
        }
    }

    /// An EndpointSlice of the hub by its name, whoever wrote it. Cost: O(log slices).
    pub(crate) fn imported(&self, name: &NamespacedName) -> Option<&Slice> {
        self.imported.get(name)
    }

    /// The EndpointSlices of the hub that stand for those of a Service of a member, by name. Cost: O(log slices + those).
    pub(crate) fn standing_for(
        &self,
        cluster: &Str,
        service: &NamespacedName,
    ) -> impl Iterator<Item = (&NamespacedName, &Slice)> {
        let names = self.by_source.get(&(cluster.clone(), service.clone()));
        let names = names.into_iter().flatten();
        names.filter_map(|name| Some((name, self.imported.get(name)?)))
    }

    /// True if some EndpointSlice of the hub stands for one of a Service of a member. Cost: O(log sources).
    pub(crate) fn is_held(&self, cluster: &Str, service: &NamespacedName) -> bool {
        self.by_source.contains_key(&(cluster.clone(), service.clone()))
    }

    /// The Services of a member that some EndpointSlice of the hub stands for, and the names of those. Cost: O(log sources + Services).
    pub(crate) fn sources_of(
        &self,
        cluster: &Str,
    ) -> impl Iterator<Item = (&NamespacedName, &BTreeSet<NamespacedName>)> {
        let first = (cluster.clone(), NamespacedName::new("", ""));
        let of_it = self.by_source.range(first..);
        let of_it = of_it.take_while(move |((of, _), _)| *of == *cluster);
        of_it.map(|((_, service), names)| (service, names))
    }

    /// The members and Services that some EndpointSlice of the hub stands for. Cost: O(those).
    pub(crate) fn sources(&self) -> impl Iterator<Item = &(Str, NamespacedName)> {
        self.by_source.keys()
    }
}

// --- EndpointSlices of members

impl Services {
    /// The EndpointSlices of a Service of a member, by name. Cost: O(log services + those).
    pub(crate) fn collected(
        &self,
        cluster: &str,
        service: &NamespacedName,
    ) -> impl Iterator<Item = (&Str, &Collected)> {
        let member = self.members.get(cluster);
        let slices = member.and_then(|member| member.services.get(service));
        slices.into_iter().flatten()
    }

    /// The EndpointSlices of a member in a namespace: their Services and their names. Cost: O(log Services + those).
    pub(crate) fn collected_in<'a>(
        &'a self,
        cluster: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a NamespacedName, &'a Str)> + use<'a> {
        let services = self.members.get(cluster).map(|member| &member.services);
        let first = NamespacedName::new(namespace, "");
        let services = services
            .into_iter()
            .flat_map(move |all| all.range(first.clone()..));
        let services = services.take_while(move |(service, _)| *service.namespace == *namespace);
        services.flat_map(|(service, slices)| slices.keys().map(move |name| (service, name)))
    }

    /// An EndpointSlice of a member. Cost: O(log slices).
    pub(crate) fn slice(&self, cluster: &str, service: &NamespacedName, name: &str) -> Option<&Collected> {
        self.members.get(cluster)?.services.get(service)?.get(name)
    }

    /// An EndpointSlice of a member was observed: its content is kept if what is kept of the member then counts no
    /// more than `limit`. A slice that the hub does not have, or that grew, leaves room for those of the hub that were not observed yet.
    /// Cost: O(log slices + endpoints); O(slices of the member on the hub) near the limit.
    pub(crate) fn collect(
        &mut self,
        (cluster, service, name): (&Str, &NamespacedName, &Str),
        mut slice: Slice,
        limit: usize,
    ) {
        self.drop_slice(cluster, service, name);
        let count = slice.content.weight();
        let is_left_out = !self.has_room((cluster, service, name), count, limit);
        let member = self.members.entry(cluster.clone()).or_default();
        if is_left_out {
            slice.content = Endpoints::default();
            member.left_out += 1;
        } else {
            member.size += count;
        }
        let slices = member.services.entry(service.clone()).or_default();
        let collected = Collected {
            slice,
            count,
            is_left_out,
        };
        slices.insert(name.clone(), collected);
    }

    /// True if the content of a slice that counts so much may be kept. Cost: as [`Self::collect`].
    fn has_room(
        &self,
        (cluster, service, name): (&Str, &NamespacedName, &Str),
        count: usize,
        limit: usize,
    ) -> bool {
        let (size, _) = self.counts(cluster);
        let held_of = self.held_of.get(cluster).copied().unwrap_or_default();
        if size + count > limit || size + held_of + count <= limit {
            return size + count <= limit;
        }
        let mut others = 0;
        for (of, names) in self.sources_of(cluster) {
            for id in names {
                let Some(slice) = self.imported.get(id) else {
                    continue;
                };
                let Some(source) = slice.source(id) else { continue };
                let held = slice.content.weight();
                if of == service && source.slice == *name {
                    if count <= held {
                        return true;
                    }
                } else if self.slice(cluster, of, &source.slice).is_none() {
                    others += held;
                }
            }
        }
        size + others + count <= limit
    }

    /// An EndpointSlice of a member was deleted. Cost: O(log slices).
    pub(crate) fn drop_slice(&mut self, cluster: &str, service: &NamespacedName, name: &str) {
        let Some(member) = self.members.get_mut(cluster) else {
            return;
        };
        let Some(slices) = member.services.get_mut(service) else {
            return;
        };
        if let Some(held) = slices.remove(name) {
            match held.is_left_out {
                true => member.left_out -= 1,
                false => member.size -= held.count,
            }
        }
        if slices.is_empty() {
            member.services.remove(service);
        }
        if member.services.is_empty() {
            self.members.remove(cluster);
        }
    }

    /// A Service of a member is not exported any more. Cost: O(its slices).
    pub(crate) fn forget_service(&mut self, cluster: &str, service: &NamespacedName) {
        let names: Vec<Str> = self
            .collected(cluster, service)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.drop_slice(cluster, service, &name);
        }
    }

    /// The slices of a Service of a member that are left out are read again. Cost: O(its slices).
    pub(crate) fn forget_left_out(&mut self, cluster: &str, service: &NamespacedName) {
        let left_out = self
            .collected(cluster, service)
            .filter(|(_, each)| each.is_left_out);
        for name in left_out.map(|(name, _)| name.clone()).collect::<Vec<Str>>() {
            self.drop_slice(cluster, service, &name);
        }
    }

    /// A member was removed. Cost: O(its slices).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.members.remove(cluster);
    }

    /// The weight of the slices of a member in the cache, and the number of those that are left out. Cost: O(log members).
    pub(crate) fn counts(&self, cluster: &str) -> (usize, usize) {
        let member = self.members.get(cluster);
        member.map_or((0, 0), |member| (member.size, member.left_out))
    }

    /// A Service of a member with a slice that is left out and for which there is room now. Cost: O(slices of the member), and
    /// as [`Self::collect`] for each that may fit; O(log members) if none is left out.
    pub(crate) fn lacking(&self, cluster: &Str, limit: usize) -> Option<&NamespacedName> {
        let member = self.members.get(cluster).filter(|member| member.left_out > 0)?;
        let fits = |service: &NamespacedName, (name, each): (&Str, &Collected)| {
            each.is_left_out
                && member.size + each.count <= limit
                && self.has_room((cluster, service, name), each.count, limit)
        };
        let mut services = member.services.iter();
        services
            .find(|(service, slices)| slices.iter().any(|slice| fits(service, slice)))
            .map(|(service, _)| service)
    }
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::{ENDPOINTS_DISPATCHED, annotation, label};
    use serde_json::{Value, json};

    use super::*;

    /// A slice that counts so much.
    fn slice(count: usize) -> Slice {
        let all: Vec<Value> = (1..count).map(|_| json!({"addresses": ["10.0.0.1"]})).collect();
        Slice::of(&json!({"addressType": "IPv4", "endpoints": all}))
    }

    #[test]
    fn what_exceeds_the_limit_of_a_member_is_known_and_not_kept() {
        let mut services = Services::default();
        let (m1, web) = (Str::from("m1"), NamespacedName::new("shop", "web"));
        let collect = |services: &mut Services, name: &str, count| {
            services.collect((&m1, &web, &name.into()), slice(count), 10);
        };
        collect(&mut services, "a", 6);
        collect(&mut services, "b", 5);
        assert_eq!(services.counts("m1"), (6, 1));
        assert_eq!(services.lacking(&m1, 10), None);
        let left_out = services.slice("m1", &web, "b").unwrap();
        assert!(left_out.is_left_out);
        assert_eq!(left_out.slice.content, Endpoints::default());
        // Those that were collected first stay.
        collect(&mut services, "a", 5);
        assert_eq!(services.counts("m1"), (5, 1));
        assert_eq!(services.lacking(&m1, 10), Some(&web));
        collect(&mut services, "b", 5);
        assert_eq!(
            (services.counts("m1"), services.lacking(&m1, 10)),
            ((10, 0), None)
        );
        let of_shop = services.collected_in("m1", "shop").map(|(_, name)| &**name);
        assert_eq!(of_shop.collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(services.collected_in("m1", "shoe").count(), 0);
        services.drop_slice("m1", &web, "a");
        assert_eq!(services.counts("m1"), (5, 0));
        services.forget_service("m1", &web);
        assert_eq!(services.counts("m1"), (0, 0));
        assert!(services.members.is_empty());
        // Slices without endpoints count, too.
        for at in 0..20 {
            collect(&mut services, &format!("s{at}"), 1);
        }
        assert_eq!(services.counts("m1"), (10, 10));
    }

    #[test]
    fn what_the_hub_has_comes_first_in_any_order() {
        let (m1, web) = (Str::from("m1"), NamespacedName::new("shop", "web"));
        for (case, order, left_out) in [
            ("after a restart", [("a", 9), ("c", 7), ("d", 3)], vec!["a"]),
            ("in another order", [("d", 3), ("c", 7), ("a", 9)], vec!["a"]),
            (
                "new ones do not fit",
                [("a", 9), ("c", 8), ("d", 3)],
                vec!["a", "c"],
            ),
            ("what grew is new", [("d", 10), ("e", 4), ("c", 2)], vec!["d"]),
        ] {
            let mut services = Services::default();
            let mut hold = |name: &str, count| {
                let mut held = slice(count);
                held.meta = Meta::of(&json!({
                    "metadata": {
                    "labels": {label::SERVICE_NAME: "derived-web", label::ENDPOINTS_MANAGED_BY: ENDPOINTS_DISPATCHED},
                    "annotations": {annotation::PROVISION_CLUSTER: "m1", annotation::COLLECTED_SLICE: name},
                }}));
                let id = NamespacedName::new("shop", &format!("imported-m1-{name}"));
                services.insert(&id, ServiceObject::Imported(held));
            };
            hold("d", 3);
            if case == "what grew is new" {
                hold("e", 4);
            }
            for (name, count) in order {
                services.collect((&m1, &web, &name.into()), slice(count), 10);
            }
            let found = services
                .collected("m1", &web)
                .filter(|(_, each)| each.is_left_out);
            assert_eq!(
                found.map(|(name, _)| &**name).collect::<Vec<_>>(),
                left_out,
                "{case}"
            );
            assert_eq!(services.lacking(&m1, 10), None, "{case}");
        }
    }

    #[test]
    fn slices_of_the_hub_are_found_by_their_source() {
        let object = |cluster: &str| {
            ServiceObject::Imported(Slice::of(&json!({"metadata": {
                "labels": {label::SERVICE_NAME: "derived-web", label::ENDPOINTS_MANAGED_BY: ENDPOINTS_DISPATCHED},
                "annotations": {annotation::PROVISION_CLUSTER: cluster, annotation::COLLECTED_SLICE: "x"},
            }})))
        };
        let mut services = Services::default();
        let (name, web) = (
            NamespacedName::new("shop", "imported-x"),
            NamespacedName::new("shop", "web"),
        );
        services.insert(&name, object("m1"));
        assert_eq!(services.standing_for(&"m1".into(), &web).count(), 1);
        services.insert(&name, object("m2"));
        assert_eq!(services.standing_for(&"m1".into(), &web).count(), 0);
        assert_eq!(services.sources().count(), 1);
        services.remove(ServicePart::Imported, &name);
        assert_eq!(services.sources().count(), 0);
    }
}
