//! Routes: the keys that each change makes dirty.
//!
//! [`Fleet::route`] is the table. An observer states the change, and the table determines the keys that depend on it; the reach
//! of a change follows the relations of the fleet, below the table. Code that names a key beside the table names its own.

use std::collections::BTreeSet;

use entourage_api::policy::{Preemption, PropagationSpec};

use crate::{
    cache::{Member, Policy, referred},
    fleet::Fleet,
    matching,
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::Watch,
    places::Place,
    plan::Key,
    scheduler::ClusterChange,
    scope::claim_of,
    stored_binding::eviction_from,
};

/// The keys to plan again.
type Dirty = Vec<Key>;

/// A change.
#[derive(Clone, Copy)]
pub(crate) enum Changed<'a> {
    /// A template, its binding, or an input of all its decisions.
    Template(&'a ResourceId),
    /// The policies that may claim a template.
    Claim(&'a ResourceId),
    /// The presence of a template on the hub, and its permission to be propagated.
    Presence(&'a ResourceId),
    /// The dependencies of a template, or whether they are propagated with it.
    PropagatedDependencies(&'a ResourceId),
    /// The allow-list of a namespace's Secrets.
    SecretsOf(&'a Str),
    /// The answer of an allow-list about a Secret on a cluster.
    SecretOn(&'a ResourceId, &'a Str),
    /// The needs of a template.
    Needs(&'a ResourceId),
    /// The requirements of a template's first copies.
    Waits(&'a ResourceId),
    /// The desired state of a binding: its own part, or its referrers.
    Binding(&'a ResourceId),
    /// The clusters of other members of a binding's workload groups.
    Companions(&'a ResourceId),
    /// The state of a binding's dependencies, seen from it.
    Dependencies(&'a ResourceId),
    /// The observed or desired state of a copy.
    Copy(&'a ResourceId, &'a Str),
    /// A write or removal of a copy ended.
    CopyTried(&'a ResourceId, &'a Str),
    /// A list shows the state of a copy.
    CopyListed(&'a ResourceId, &'a Str),
    /// A copy that is not managed is managed now, or vice versa.
    CopyOwner(&'a ResourceId, &'a Str),
    /// A copy was deleted.
    CopyGone(&'a ResourceId, &'a Str),
    /// The existence of a copy on a member, and its removal.
    Existence(&'a ResourceId, &'a Str),
    /// The health of a template's copies.
    Health(&'a ResourceId),
    /// The reported status of a template's copies.
    Report(&'a ResourceId),
    /// The replicas of a copy whose number is left to its member, or whether they are known.
    Scaled(&'a ResourceId),
    /// The problem of a copy.
    Problem(&'a ResourceId),
    /// An object was deleted in a namespace of a member.
    Emptied(&'a Str, &'a Str),
    /// The listability of a kind, or its interpretation.
    Kind(&'a Gvk),
    /// The sync of a watch of templates.
    Listing(&'a Watch),
    /// The status of a policy.
    Policy(&'a NamespacedName),
    /// The selection of a policy.
    Selection(&'a NamespacedName, &'a PropagationSpec),
    /// A policy, in its effect on its claimed templates.
    Claimed(&'a NamespacedName),
    /// A PriorityClass, or whether any of them is known.
    PriorityClass(Option<&'a Str>),
    /// The existence of an override policy that others name.
    DependentOverride(&'a NamespacedName),
    /// A ClusterTaintPolicy, or the sync of all of them.
    TaintPolicies,
    /// A Cluster, its probes, or the reports of its member.
    Cluster(&'a Str),
    /// A Cluster, in the inputs of its execution namespace; or that namespace.
    ExecutionNamespace(&'a Str),
    /// A Cluster, in the inputs of scheduling, and its former state.
    Clusters(&'a Str, Option<&'a Member>),
    /// The removal or use of a member: its copies.
    CopiesOf(&'a Str),
    /// The same, or the overrides of namespaces there: its namespaces.
    NamespacesOf(&'a Str),
    /// The rights or the served kinds of a member.
    Rights(&'a Str, &'a Gvk),
    /// A namespace of a member.
    Namespace(&'a Str, &'a Str),
    /// A namespace of the hub, or its writer on members.
    HubNamespace(&'a Str),
    /// The overrides of namespaces on members: of the one with this name, or of all if it is empty.
    HubNamespaces(&'a str),
    /// The spec of a distribution, or the inputs of its status.
    Distribution(&'a Str),
    /// The status of a distribution.
    DistributionReport(&'a Str),
    /// The status of a distribution in one place.
    Place(&'a Str, &'a Place),
}

impl Fleet {
    /// The table. Cost: that of the relation that is followed, named there; O(1) where none is.
    pub(crate) fn route(&self, change: Changed<'_>, dirty: &mut Dirty) {
        match change {
            // Templates, and their bindings.
            Changed::Template(id) => self.dirty_resource(id, dirty),
            Changed::Claim(id) => dirty.push(Key::Template(id.clone())),
            Changed::Presence(id) => self.dirty_referrers(id, dirty),
            Changed::PropagatedDependencies(id) => self.dirty_dependencies(id, dirty),
            Changed::SecretsOf(namespace) => self.dirty_secrets(namespace, dirty),
            Changed::SecretOn(id, cluster) => {
                self.dirty_referrers(id, dirty);
                dirty.extend([
                    Key::Copy(id.clone(), cluster.clone()),
                    Key::Binding(id.clone()),
                    Key::BindingStatus(id.clone()),
                ]);
            }
            Changed::Needs(id) | Changed::Companions(id) => {
                dirty.extend([Key::Binding(id.clone()), Key::BindingStatus(id.clone())])
            }
            Changed::Waits(id) => self.dirty_waiting(id, dirty),
            Changed::Binding(id) => dirty.push(Key::Binding(id.clone())),
            Changed::Dependencies(id) => dirty.push(Key::BindingStatus(id.clone())),
            // Copies.
            Changed::Copy(id, cluster) => dirty.push(Key::Copy(id.clone(), cluster.clone())),
            Changed::CopyTried(id, cluster) => {
                dirty.extend([
                    Key::Copy(id.clone(), cluster.clone()),
                    Key::BindingStatus(id.clone()),
                ]);
                self.dirty_scaled(id, dirty);
            }
            Changed::CopyListed(id, cluster) | Changed::CopyGone(id, cluster) => dirty.extend([
                Key::Copy(id.clone(), cluster.clone()),
                Key::Binding(id.clone()),
                Key::BindingStatus(id.clone()),
                Key::TemplateStatus(id.clone()),
            ]),
            Changed::Scaled(id) => self.dirty_scaled(id, dirty),
            Changed::CopyOwner(id, cluster) => dirty.extend([
                Key::BindingStatus(id.clone()),
                Key::TemplateStatus(id.clone()),
                Key::Copy(id.clone(), cluster.clone()),
            ]),
            Changed::Existence(id, cluster) => self.dirty_by_existence(id, cluster, dirty),
            Changed::Health(id) => self.dirty_failover(id, dirty),
            Changed::Report(id) => {
                dirty.extend([Key::BindingStatus(id.clone()), Key::TemplateStatus(id.clone())])
            }
            Changed::Problem(id) => self.dirty_reports(id, dirty),
            Changed::Emptied(name, cluster) => self.dirty_emptied(name, cluster, dirty),
            // Kinds and policies.
            Changed::Kind(gvk) => self.dirty_kind(gvk, dirty),
            Changed::Listing(watch) => self.dirty_policies_of(watch, dirty),
            Changed::Policy(name) => dirty.push(Key::Policy(name.clone())),
            Changed::Selection(name, spec) => self.dirty_selected(name, spec, dirty),
            Changed::Claimed(name) => self.dirty_claimed(name, dirty),
            Changed::PriorityClass(name) => self.dirty_priorities(name, dirty),
            Changed::DependentOverride(name) => self.dirty_dependent_policies(name, dirty),
            // Members and namespaces.
            Changed::TaintPolicies => self.dirty_taints(dirty),
            Changed::Cluster(name) => dirty.push(Key::Cluster(name.clone())),
            Changed::ExecutionNamespace(name) => dirty.push(Key::ExecutionNamespace(name.clone())),
            Changed::Clusters(name, before) => {
                self.dirty_scheduled(name, before, dirty);
                dirty.extend(self.cache.policies.keys().cloned().map(Key::Policy));
            }
            Changed::CopiesOf(cluster) => self.dirty_copies_on(cluster, dirty),
            Changed::NamespacesOf(cluster) => {
                let names = self.cache.namespaces.hub.keys().cloned();
                dirty.extend(names.map(|name| Key::Namespace(name, cluster.clone())));
            }
            Changed::Rights(cluster, gvk) => self.dirty_refused(cluster, gvk, dirty),
            Changed::Namespace(name, cluster) => dirty.push(Key::Namespace(name.clone(), cluster.clone())),
            Changed::HubNamespace(name) => {
                let clusters = self.cache.members.keys().cloned();
                dirty.extend(clusters.map(|cluster| Key::Namespace(name.clone(), cluster)));
            }
            Changed::HubNamespaces(name) => self.dirty_namespaces(name, dirty),
            // Distributions.
            Changed::Distribution(name) => dirty.extend([
                Key::Distribution(name.clone()),
                Key::DistributionStatus(name.clone()),
            ]),
            Changed::DistributionReport(name) => dirty.push(Key::DistributionStatus(name.clone())),
            Changed::Place(name, place) => dirty.push(Key::Distributed(name.clone(), place.clone())),
        }
    }
}

// --- the reach of a change

impl Fleet {
    /// Everything of one resource. Cost: O(copies).
    fn dirty_resource(&self, id: &ResourceId, dirty: &mut Dirty) {
        dirty.push(Key::Binding(id.clone()));
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        for cluster in resource.copies.keys() {
            dirty.push(Key::Copy(id.clone(), cluster.clone()));
        }
        if resource.binding.is_some() {
            dirty.push(Key::BindingStatus(id.clone()));
            dirty.push(Key::TemplateStatus(id.clone()));
        }
    }

    /// The keys that depend on the health of a workload's copies: its eviction tasks, the copies that are to be deleted or wait
    /// for that, and an application that fails. Cost: O(1) without either; O(copies + members of its affinity group).
    fn dirty_failover(&self, id: &ResourceId, dirty: &mut Dirty) {
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        let Some(spec) = resource.binding.as_ref().map(|binding| &binding.object.spec) else {
            return;
        };
        let watches = spec
            .failover
            .as_ref()
            .is_some_and(|failover| failover.application.is_some());
        if spec.graceful_eviction_tasks.is_empty() && !watches {
            return;
        }
        dirty.push(Key::Binding(id.clone()));
        dirty.push(Key::BindingStatus(id.clone()));
        if watches && let Some(group) = self.affinity_group(id) {
            self.dirty_confined(&group, dirty);
        }
        if !spec.graceful_eviction_tasks.is_empty() {
            let clusters = resource.copies.keys().cloned();
            dirty.extend(clusters.map(|cluster| Key::Copy(id.clone(), cluster)));
        }
    }

    /// The keys that wait for a template to appear. Cost: O(referrers × copies waiting).
    fn dirty_referrers(&self, id: &ResourceId, dirty: &mut Dirty) {
        let links = self.graph.links.of(id);
        for referrer in &links.referrers {
            dirty.push(Key::BindingStatus(referrer.clone()));
            self.dirty_waiting(referrer, dirty);
        }
    }

    /// The copies of a template that are still to be released for the first time. Cost: O(copies).
    fn dirty_waiting(&self, id: &ResourceId, dirty: &mut Dirty) {
        let Some(waiting) = self.cache.resources.get(id) else {
            return;
        };
        for (cluster, state) in waiting.copies.iter() {
            if state.live.is_none() {
                dirty.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }

    /// The dependencies of a template. Cost: O(references × clusters).
    fn dirty_dependencies(&self, id: &ResourceId, dirty: &mut Dirty) {
        let links = self.graph.links.of(id);
        for reference in links.references.iter() {
            let dependency = referred(reference);
            self.dirty_resource(&dependency, dirty);
        }
    }

    /// The keys that depend on the existence of a copy on a member: its referrers' first release there, and the removal of its
    /// dependencies. Cost: O(referrers + references).
    fn dirty_by_existence(&self, id: &ResourceId, cluster: &Str, dirty: &mut Dirty) {
        let links = self.graph.links.of(id);
        for referrer in &links.referrers {
            let waits = self
                .cache
                .resources
                .get(referrer)
                .and_then(|each| each.copies.get(cluster))
                .is_some_and(|state| state.live.is_none());
            if waits {
                dirty.push(Key::Copy(referrer.clone(), cluster.clone()));
            }
            dirty.push(Key::BindingStatus(referrer.clone()));
        }
        for reference in links.references.iter() {
            dirty.push(Key::Copy(referred(reference), cluster.clone()));
        }
        for dependency in &links.stale_dependencies {
            dirty.push(Key::Copy(dependency.clone(), cluster.clone()));
            dirty.push(Key::Binding(dependency.clone()));
        }
    }

    /// The templates that a policy selects. Cost: O(1) for a selector with a name and a namespace, else O(templates of
    /// the kind, in the selector's namespace where it names one).
    fn dirty_selected(&self, policy: &NamespacedName, spec: &PropagationSpec, dirty: &mut Dirty) {
        for selector in &spec.resource_selectors {
            let gvk = Gvk::new(&selector.api_version, &selector.kind);
            let namespace = if policy.namespace.is_empty() {
                selector.namespace.as_str()
            } else {
                &*policy.namespace
            };
            if !selector.name.is_empty() && !namespace.is_empty() {
                let id = ResourceId::new(gvk, namespace, &selector.name);
                if self.cache.resources.contains_key(&id) {
                    dirty.push(Key::Template(id));
                }
                continue;
            }
            let first = ResourceId::new(gvk.clone(), namespace, "");
            for (id, resource) in self.cache.resources.range(first..) {
                if id.gvk != gvk || (!namespace.is_empty() && *id.namespace != *namespace) {
                    break;
                }
                let Some(template) = &resource.template else {
                    continue;
                };
                // A claim is sticky: a template that another policy has claimed concerns this one only if it preempts.
                let is_held = claim_of(&template.meta)
                    .is_some_and(|claim| claim != *policy && self.cache.policies.contains_key(&claim));
                if (!is_held || spec.preemption == Preemption::Always)
                    && matching::selects(spec, &policy.namespace, id, &template.meta.labels).is_some()
                {
                    dirty.push(Key::Template(id.clone()));
                }
            }
        }
    }

    fn dirty_claimed(&self, policy: &NamespacedName, dirty: &mut Dirty) {
        for id in self.graph.claimed.get(policy).into_iter().flatten() {
            dirty.push(Key::Template(id.clone()));
            dirty.push(Key::Binding(id.clone()));
        }
        dirty.push(Key::Policy(policy.clone()));
    }

    /// The bindings whose policies name a PriorityClass, or any if it is `None`, and these policies. Cost: O(policies + templates).
    fn dirty_priorities(&self, class: Option<&Str>, dirty: &mut Dirty) {
        let names = |policy: &Policy| {
            let asked = policy.object.spec.schedule_priority.as_ref();
            asked.is_some_and(|asked| class.is_none_or(|class| **class == *asked.priority_class_name))
        };
        for (name, _) in self.cache.policies.iter().filter(|(_, policy)| names(policy)) {
            dirty.push(Key::Policy(name.clone()));
            for id in self.graph.claimed.get(name).into_iter().flatten() {
                dirty.extend([Key::Binding(id.clone()), Key::BindingStatus(id.clone())]);
            }
        }
    }

    /// The bindings whose scheduling result, or its report, a change of a Cluster can change, as the scheduler determines.
    /// Cost: O(bindings × what their placements list), and O(members) for each affinity group with one there; only those are planned.
    fn dirty_scheduled(&self, name: &Str, before: Option<&Member>, dirty: &mut Dirty) {
        let after = self.cache.members.get(name);
        let change = ClusterChange::new(
            before.map(|member| member.candidate(name)),
            after.map(|member| member.candidate(name)),
        );
        let mut groups = BTreeSet::new();
        for (id, resource) in &self.cache.resources {
            let Some(binding) = &resource.binding else {
                continue;
            };
            let spec = &binding.object.spec;
            let Some(placement) = &spec.placement else {
                continue;
            };
            let is_target = binding.may_have_left(name)
                || resource.copies.contains_key(name)
                || eviction_from(spec, name).is_some();
            if change.may_change(placement, &id.gvk, is_target)
                || (change.is_count_changed() && !binding.is_scheduled())
            {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
                groups.extend(self.affinity_group(id).filter(|_| is_target));
            }
        }
        for group in &groups {
            self.dirty_confined(group, dirty);
        }
    }

    /// The members of an affinity group: whether one of them has to leave a cluster, where it confines nobody then, may have changed.
    /// Cost: O(members).
    fn dirty_confined(&self, group: &(Str, String), dirty: &mut Dirty) {
        for id in self.affinity_members(group) {
            self.route(Changed::Companions(id), dirty);
        }
    }

    fn dirty_copies_on(&self, cluster: &Str, dirty: &mut Dirty) {
        for (id, resource) in &self.cache.resources {
            if resource.copies.contains_key(cluster) {
                dirty.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }

    /// Everything of a kind. Cost: O(objects of the kind × their referrers and copies).
    fn dirty_kind(&self, gvk: &Gvk, dirty: &mut Dirty) {
        for (id, _) in self.cache.resources.range(ResourceId::new(gvk.clone(), "", "")..) {
            if id.gvk != *gvk {
                break;
            }
            self.dirty_referrers(id, dirty);
            dirty.push(Key::Template(id.clone()));
            self.dirty_resource(id, dirty);
        }
    }

    /// The policies that select the kind of a watch of templates. Cost: O(selectors), when it turns out to be listable or not.
    fn dirty_policies_of(&self, watch: &Watch, dirty: &mut Dirty) {
        let Watch::Templates(gvk) = watch else { return };
        let selects = |policy: &Policy| {
            let mut selectors = policy.object.spec.resource_selectors.iter();
            selectors.any(|each| Gvk::new(&each.api_version, &each.kind) == *gvk)
        };
        let names = self.cache.policies.iter().filter(|(_, policy)| selects(policy));
        dirty.extend(names.map(|(name, _)| Key::Policy(name.clone())));
    }

    fn dirty_refused(&self, cluster: &Str, gvk: &Gvk, dirty: &mut Dirty) {
        dirty.push(Key::Cluster(cluster.clone()));
        let first = ResourceId::new(gvk.clone(), "", "");
        for (id, resource) in self
            .cache
            .resources
            .range(first..)
            .take_while(|(id, _)| id.gvk == *gvk)
        {
            if resource.copies.contains_key(cluster) {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
    }

    /// All Clusters are planned again, once the policies are known: before, none of them counts. Cost: O(Clusters).
    fn dirty_taints(&self, dirty: &mut Dirty) {
        if self.are_taint_policies_listed() {
            dirty.extend(self.cache.members.keys().cloned().map(Key::Cluster));
        }
    }

    /// The namespaces that a rule may change. Cost: O(namespaces × members), O(members) for one.
    fn dirty_namespaces(&self, name: &str, dirty: &mut Dirty) {
        for namespace in self.cache.namespaces.hub.keys() {
            if name.is_empty() || **namespace == *name {
                let clusters = self.cache.members.keys().cloned();
                dirty.extend(clusters.map(|cluster| Key::Namespace(namespace.clone(), cluster)));
            }
        }
    }

    /// The policies whose `dependentOverrides` name this one. Cost: O(policies of the namespace × names there).
    fn dirty_dependent_policies(&self, name: &NamespacedName, dirty: &mut Dirty) {
        let first = NamespacedName::new(&name.namespace, "");
        let dependent = self
            .cache
            .policies
            .range(first..)
            .take_while(|(policy, _)| policy.namespace == name.namespace)
            .filter(|(_, policy)| {
                let named = &policy.object.spec.dependent_overrides;
                named.iter().any(|each| **each == *name.name)
            });
        for (policy, _) in dependent {
            self.dirty_claimed(policy, dirty);
        }
    }

    /// The namespace of a member in which an object was deleted, if the hub no longer has it: it may be deleted there, too. Cost: O(log).
    fn dirty_emptied(&self, name: &Str, cluster: &Str, dirty: &mut Dirty) {
        if !name.is_empty() && !self.cache.namespaces.hub.contains_key(name) {
            dirty.push(Key::Namespace(name.clone(), cluster.clone()));
        }
    }

    /// The bindings that report the problem of a copy: its own, and those of its referrers. Cost: O(referrers).
    fn dirty_reports(&self, id: &ResourceId, dirty: &mut Dirty) {
        let referrers = self.graph.links.of(id).referrers.iter();
        dirty.extend(referrers.cloned().map(Key::BindingStatus));
        dirty.push(Key::BindingStatus(id.clone()));
    }
}
