//! Lists: objects that a list lacks are deleted, and synced watches permit removals.

use std::collections::BTreeSet;

use super::Dirty;
use crate::{
    cache::Deletion,
    engine::routes::Changed,
    fleet::{Fleet, INTERPRETER_WATCHES, exports::is_export},
    memory::Origin,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::{ObjectRef, Server, ServicePart, Watch},
};

impl Fleet {
    /// A list is complete. Cost: O(objects of the kind).
    pub(super) fn was_listed(
        &mut self,
        watch: &Watch,
        present: &BTreeSet<ObjectRef>,
        revision: u64,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let of_hub = watch.server() == Server::Hub;
        self.memory.origin = if of_hub { Origin::List } else { Origin::Other };
        for which in self.held(watch) {
            if !present.contains(&which) {
                let deletion = Deletion {
                    uid: None,
                    revision: Some(revision),
                };
                self.gone(&which, &deletion, now, dirty);
            }
        }
        self.mark(self.memory.origin, dirty, now);
        self.memory.origin = Origin::Other;
        let (is_first, was_synced) = self.cache.watches.list_ends(watch);
        if !was_synced {
            self.route(Changed::Listing(watch), dirty);
        }
        match watch {
            Watch::Copies(cluster, gvk) if is_first => self.expect_late_writes_of((cluster, gvk), now),
            Watch::Bindings | Watch::ClusterBindings if is_first => self.expect_late_writes(),
            _ => {}
        }
        match watch {
            Watch::Copies(cluster, gvk) => {
                let (mut absent, mut affected, mut certain) = (Vec::new(), Vec::new(), Vec::new());
                for (id, resource) in self.cache.resources.range_mut(first(gvk)..) {
                    if id.gvk != *gvk {
                        break;
                    }
                    if let Some(state) = resource.copies.get_mut(cluster) {
                        affected.push(id.clone());
                        match state.live {
                            None => {
                                absent.push(id.clone());
                                state.note_unlisted(now);
                            }
                            Some(_) if state.in_flight => {}
                            Some(_) => {
                                if state.pending.take().is_some() {
                                    certain.push(id.clone());
                                }
                            }
                        }
                    }
                }
                for id in &affected {
                    self.route(Changed::CopyListed(id, cluster), dirty);
                }
                if !was_synced {
                    for id in &affected {
                        self.lists_came(id, now);
                    }
                }
                for id in &certain {
                    self.stays(id, cluster, dirty);
                }
                // The keys that waited to know whether the copy exists there can be planned.
                for id in absent {
                    self.route(Changed::Existence(&id, cluster), dirty);
                    self.release_stale_dependencies(&id, now, dirty);
                }
                self.route(Changed::Cluster(cluster), dirty);
                if is_export(gvk) {
                    self.services_on(cluster, dirty);
                }
            }
            Watch::Templates(gvk) => {
                self.graph.read_again.remove(gvk);
                if is_export(gvk) {
                    for cluster in self.cache.members.keys().cloned().collect::<Vec<_>>() {
                        self.services_on(&cluster, dirty);
                    }
                }
                self.route(Changed::Kind(gvk), dirty);
                if !was_synced {
                    let affected = self
                        .cache
                        .resources
                        .range(first(gvk)..)
                        .take_while(|(id, _)| id.gvk == *gvk);
                    let affected: Vec<ResourceId> = affected.map(|(id, _)| id.clone()).collect();
                    for id in affected {
                        self.lists_came(&id, now);
                    }
                }
            }
            // Namespaces wait for them, too.
            Watch::Overrides | Watch::ClusterOverrides | Watch::Bindings | Watch::ClusterBindings => {
                self.route(Changed::HubNamespaces(""), dirty)
            }
            Watch::Policies
            | Watch::ClusterPolicies
            | Watch::Clusters
            | Watch::Customizations
            | Watch::Hooks(_)
            | Watch::Distributions
            | Watch::Distributed(..)
            | Watch::Rebalancers => {}
            Watch::Quotas => self.quotas_listed(dirty),
            Watch::QuotaCopies(cluster) => self.quotas_on(cluster, dirty),
            Watch::PriorityClasses if is_first => self.route(Changed::PriorityClass(None), dirty),
            Watch::PriorityClasses => {}
            Watch::Leases => self.leases_listed(now, dirty),
            Watch::Works if was_synced => {}
            Watch::Works => self.works_listed(dirty),
            Watch::TaintPolicies => self.route(Changed::TaintPolicies, dirty),
            Watch::Namespaces => self.hub_namespaces_listed(dirty),
            Watch::MemberNamespaces(cluster) => self.namespaces_listed(cluster, dirty),
            Watch::Nodes(cluster) | Watch::Pods(cluster) => self.route(Changed::Cluster(cluster), dirty),
            Watch::ServiceParts(part) => self.service_parts_listed(*part, dirty),
            Watch::Endpoints(cluster, service) => self.endpoints_listed(cluster, service, dirty),
        }
    }

    /// After a start: a referrer that is named in a stored `requiredBy` and no longer refers to the object may still need it,
    /// and so may its dependencies: which of them referred to the object is not stored. Such a hint only ever delays a removal;
    /// no removal is safe before it (see [`crate::fleet::Fleet::is_removal_safe`]).
    /// Cost: O(bindings × snapshots), and for each that is no longer needed O(dependencies of its former referrers); once, when
    /// all references are known; else O(kinds).
    pub(super) fn remember_former(&mut self) {
        if self.memory.remembers_former || !self.are_referrers_certain() {
            return;
        }
        self.memory.remembers_former = true;
        let mut former = Vec::new();
        for (id, resource) in &self.cache.resources {
            let links = self.graph.links.of(id);
            for snapshot in resource
                .binding
                .iter()
                .flat_map(|binding| &binding.object.spec.required_by)
            {
                let referrer = self
                    .graph
                    .by_binding
                    .get(&NamespacedName::new(&snapshot.namespace, &snapshot.name));
                if let Some(referrer) = referrer.filter(|referrer| !links.referrers.contains(referrer)) {
                    former.push((id.clone(), referrer.clone()));
                    let along = &self.graph.links.of(referrer).references;
                    let between = along.iter().map(|each| &each.id);
                    let between = between.filter(|each| {
                        *each != id && self.refers(&each.gvk) && !links.referrers.contains(each)
                    });
                    former.extend(between.map(|each| (id.clone(), each.clone())));
                }
            }
        }
        for (id, referrer) in former {
            self.get_or_create(&id);
            self.get_or_create(&referrer);
            self.graph.links.hold(&id, &referrer);
        }
    }

    /// The events of the watch prove nothing any more. Cost: O(objects of the kind) when a kind turns out not to be listable.
    pub(super) fn lost(&mut self, watch: &Watch, why: String, now: Time, dirty: &mut Dirty) {
        // The last error of a watch that is no longer demanded: its member was removed.
        if !self.cache.watches.is_demanded(watch) {
            return;
        }
        let loss = self.cache.watches.fails(watch, why, now);
        if let Watch::MemberNamespaces(cluster) = watch {
            self.cache.namespaces.lost(cluster);
        }
        if let Watch::Copies(cluster, _) = watch
            && loss.begins
        {
            self.route(Changed::Cluster(cluster), dirty);
        }
        if !loss.is_first {
            return;
        }
        self.route(Changed::Listing(watch), dirty);
        // The keys that waited for the list wait in vain.
        if let Watch::Templates(gvk) | Watch::Copies(_, gvk) = watch {
            self.route(Changed::Kind(gvk), dirty);
        }
    }

    /// The server does not serve a kind in the version of a watch. If the server is the hub and serves the kind in another
    /// version, that one is watched from now on; if there may be objects all the same, none counts as deleted; if nothing
    /// defines the kind any more, there are no objects of it.
    ///
    /// Cost: O(objects of the kind).
    pub(super) fn unserved(
        &mut self,
        watch: &Watch,
        other: Option<&Str>,
        why: String,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let may_be_undefined = [
            Watch::TaintPolicies,
            Watch::Rebalancers,
            Watch::Quotas,
            Watch::PriorityClasses,
            Watch::Works,
            Watch::ServiceParts(ServicePart::Import),
        ]
        .contains(watch);
        if (INTERPRETER_WATCHES.contains(watch) || may_be_undefined) && other.is_none() {
            return self.says_nothing(watch, now, dirty);
        }
        if *watch == Watch::PriorityClasses && self.cache.watches.is_demanded(watch) {
            let was_unserved = self.cache.watches.is_unserved(watch);
            self.cache.watches.is_not_served(watch, why);
            if !was_unserved {
                self.route(Changed::PriorityClass(None), dirty);
            }
            return;
        }
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = watch else {
            return self.lost(watch, why, now, dirty);
        };
        if !self.cache.watches.is_demanded(watch) {
            return;
        }
        self.cache.watches.is_not_served(watch, why);
        self.search_records(watch);
        self.route(Changed::Listing(watch), dirty);
        self.route(Changed::Kind(gvk), dirty);
        if let Watch::Copies(cluster, _) = watch {
            self.route(Changed::Cluster(cluster), dirty);
        }
        match (other, watch) {
            (Some(version), Watch::Templates(_)) => {
                self.use_version(gvk, version);
                return;
            }
            (Some(_), _) => return,
            (None, _) => {}
        }
        self.cache.watches.has_no_such_kind(watch);
        // If the same objects are served again later, they are news: no earlier revision of theirs counts as newer.
        self.went_back(watch);
        self.forget_held(watch, now, dirty);
        let Watch::Copies(cluster, _) = watch else { return };
        let mut ended = Vec::new();
        for (id, resource) in self.cache.resources.range_mut(first(gvk)..) {
            if id.gvk != *gvk {
                break;
            }
            if let Some(state) = resource.copies.get_mut(cluster) {
                (state.record, state.pending) = (None, None);
                ended.push(id.clone());
            }
        }
        for id in ended {
            self.copy_ended(&id, cluster, now, dirty);
        }
        if is_export(gvk) {
            self.services_on(cluster, dirty);
        }
    }

    /// The objects of a watch are deleted, or no longer watched. Cost: O(objects of the kind).
    pub(crate) fn forget_held(&mut self, watch: &Watch, now: Time, dirty: &mut Dirty) {
        for which in self.held(watch) {
            self.gone(&which, &Deletion::default(), now, dirty);
        }
    }

    /// The objects in the cache that a watch covers.
    pub(super) fn held(&self, watch: &Watch) -> Vec<ObjectRef> {
        match watch {
            Watch::Policies => named(self.cache.policies.keys(), false, ObjectRef::Policy),
            Watch::ClusterPolicies => named(self.cache.policies.keys(), true, ObjectRef::Policy),
            Watch::Overrides => named(self.graph.override_index.names(), false, ObjectRef::Override),
            Watch::ClusterOverrides => named(self.graph.override_index.names(), true, ObjectRef::Override),
            Watch::Bindings => named(self.graph.by_binding.keys(), false, ObjectRef::Binding),
            Watch::ClusterBindings => named(self.graph.by_binding.keys(), true, ObjectRef::Binding),
            Watch::Customizations => self
                .cache
                .customizations
                .keys()
                .cloned()
                .map(ObjectRef::Customization)
                .collect(),
            Watch::Hooks(contract) => {
                let of_it = self.cache.hooks.keys().filter(|(each, _)| each == contract);
                of_it
                    .map(|(contract, name)| ObjectRef::Hooks(*contract, name.clone()))
                    .collect()
            }
            Watch::TaintPolicies => {
                let names = self.cache.taint_policies.keys().cloned();
                names.map(ObjectRef::TaintPolicy).collect()
            }
            Watch::Namespaces => self.cache.namespaces.held(None),
            Watch::MemberNamespaces(cluster) => self.cache.namespaces.held(Some(cluster)),
            Watch::Clusters => self
                .cache
                .members
                .keys()
                .cloned()
                .map(ObjectRef::Cluster)
                .collect(),
            Watch::Distributions => {
                let names = self.memory.distributions.held.keys().cloned();
                names.map(ObjectRef::Distribution).collect()
            }
            Watch::Distributed(cluster, gvk, name) => self.memory.distributions.which(cluster, gvk, name),
            Watch::Templates(gvk) => self
                .cache
                .resources
                .range(first(gvk)..)
                .take_while(|(id, _)| id.gvk == *gvk)
                .filter(|(_, resource)| resource.template.is_some())
                .map(|(id, _)| ObjectRef::Template(id.clone()))
                .collect(),
            Watch::Copies(cluster, gvk) => self
                .cache
                .resources
                .range(first(gvk)..)
                .take_while(|(id, _)| id.gvk == *gvk)
                .filter(|(_, resource)| {
                    let state = resource.copies.get(cluster);
                    state.is_some_and(|state| state.live.is_some() || state.copied.is_some())
                })
                .map(|(id, _)| ObjectRef::Copy(cluster.clone(), id.clone()))
                .collect(),
            Watch::Quotas => {
                let names = self.memory.quotas.names().cloned();
                names.map(ObjectRef::Quota).collect()
            }
            Watch::QuotaCopies(cluster) => {
                let names = self.memory.quotas.copies_on(cluster).cloned();
                names
                    .map(|name| ObjectRef::QuotaCopy(cluster.clone(), name))
                    .collect()
            }
            Watch::PriorityClasses => {
                let names = self.cache.priority_classes.keys().cloned();
                names.map(ObjectRef::PriorityClass).collect()
            }
            Watch::Works => self.cache.works.keys().cloned().map(ObjectRef::Work).collect(),
            Watch::Leases => self
                .cache
                .leases
                .held
                .keys()
                .cloned()
                .map(ObjectRef::Lease)
                .collect(),
            Watch::Nodes(cluster) => self.cache.usage.held_nodes(cluster),
            Watch::Pods(cluster) => self.cache.usage.held_pods(cluster),
            Watch::ServiceParts(part) => {
                let names = self.cache.services.names(*part).into_iter();
                names.map(|name| ObjectRef::ServicePart(*part, name)).collect()
            }
            Watch::Endpoints(cluster, service) => {
                let slices = self.cache.services.collected(cluster, service);
                let which = |name: &Str| ObjectRef::Endpoints(cluster.clone(), service.clone(), name.clone());
                slices.map(|(name, _)| which(name)).collect()
            }
            Watch::Rebalancers => self
                .memory
                .rebalancers
                .names()
                .cloned()
                .map(ObjectRef::Rebalancer)
                .collect(),
        }
    }
}

/// The smallest id of a kind, which sorts before every object of it.
pub(super) fn first(gvk: &Gvk) -> ResourceId {
    ResourceId::new(gvk.clone(), "", "")
}

/// The names of one scope.
fn named<'a>(
    all: impl Iterator<Item = &'a NamespacedName>,
    cluster_scoped: bool,
    which: fn(NamespacedName) -> ObjectRef,
) -> Vec<ObjectRef> {
    all.filter(|name| name.namespace.is_empty() == cluster_scoped)
        .cloned()
        .map(which)
        .collect()
}
