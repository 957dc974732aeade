//! Observations: each changes the fleet and returns the keys to plan again.
//!
//! Outdated events are dropped by resourceVersion, per object; so stale, repeated and reordered events change nothing (I7).
//! Keys may be returned more than once and in vain: planning is cheap and a plan without a difference is empty.

mod bindings;
mod closure;
mod consent;
mod contests;
mod copied;
mod copies;
mod copy_outcomes;
mod customizations;
mod cut_off;
mod distributed;
mod distributions;
mod edits;
mod estimates;
mod evaluating;
mod exports;
mod hooks;
mod lacking;
mod late_writes;
mod leading;
mod leases;
mod lists;
mod looking;
mod members;
mod namespaces;
mod outdated;
mod overrides;
mod policies;
mod priority_classes;
mod quotas;
mod rebalancers;
mod restored;
mod rights;
mod room;
mod scaling;
mod secret_lists;
mod selections;
mod services;
mod taint_policies;
mod templates;
mod upkeep;
mod waking;
mod workload_groups;
mod works;

use crate::{
    cache::Deletion,
    engine::routes::Changed,
    fleet::Fleet,
    memory::Origin,
    object::{NamespacedName, Time},
    observation::{ObjectRef, Observation, Server, Subject},
    plan::Key,
};

/// The keys to plan again.
type Dirty = Vec<Key>;

impl Fleet {
    /// Records one observation. Cost: O(what it affects), stated at each handler.
    pub(crate) fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        let mut dirty = Dirty::new();
        let of_watch = match &seen {
            Observation::Listed { watch, .. }
            | Observation::Lost { watch, .. }
            | Observation::Refused { watch, .. }
            | Observation::Unserved { watch, .. } => Some(watch.clone()),
            _ => None,
        };
        let reported = match &seen {
            Observation::Seen(Subject::Binding(binding)) => Some(named(&binding.metadata)),
            _ => None,
        };
        self.memory.origin = self.origin(&seen, now);
        let is_listed = self.memory.origin == Origin::List || matches!(seen, Observation::Listed { .. });
        match seen {
            Observation::Seen(subject) => self.seen(subject, now, &mut dirty),
            Observation::Gone { which, uid, revision } => {
                self.gone(&which, &Deletion { uid, revision }, now, &mut dirty)
            }
            Observation::Listing { watch, revision } => self.list_begins(&watch, revision, now),
            Observation::Reached { watch, revision } => self.watch_reached(&watch, revision),
            Observation::Listed {
                watch,
                present,
                revision,
            } => {
                self.was_listed(&watch, &present, revision, now, &mut dirty);
                self.not_refused(&watch, &mut dirty);
            }
            Observation::Lost { watch, why } => self.lost(&watch, why, now, &mut dirty),
            Observation::Refused { watch, why } => self.was_refused(&watch, why, now, &mut dirty),
            Observation::Unserved { watch, other, why } => {
                self.unserved(&watch, other.as_ref(), why, now, &mut dirty);
                self.not_refused(&watch, &mut dirty);
            }
            Observation::Found(id, template) => {
                self.template_found(&id);
                self.template_seen(&id, template, now, &mut dirty);
                self.route(Changed::Template(&id), &mut dirty);
            }
            Observation::Absent(id) => self.absent(&id, now, &mut dirty),
            Observation::NotPropagatable(id) => {
                self.get_or_create(&id).not_propagatable = true;
                self.route(Changed::Presence(&id), &mut dirty);
                self.route(Changed::Template(&id), &mut dirty);
            }
            Observation::Unreadable(id, why) => {
                self.get_or_create(&id).unreadable = Some(Box::new((now, why)));
                self.route(Changed::Presence(&id), &mut dirty);
            }
            Observation::Unclaimed(id, why) => self.claim_refused(id, why, &mut dirty),
            Observation::Started(cluster, id) => self.started(&cluster, &id),
            Observation::Delivered(cluster, id, outcome) => {
                self.delivered(&cluster, &id, outcome, now, &mut dirty)
            }
            Observation::Removed(cluster, id, outcome) => {
                self.removed(&cluster, &id, outcome, now, &mut dirty)
            }
            Observation::Distributing(name, place) => self.distributing(&name, place),
            Observation::Distributed(name, place, wrote) => {
                self.distributed(&name, &place, wrote, now, &mut dirty)
            }
            Observation::QuotaAssigned(name, cluster, outcome) => {
                self.quota_assigned(&name, &cluster, *outcome, now, &mut dirty)
            }
            Observation::Aggregated(id, asked, failed_operation) => {
                self.aggregated(&id, asked, failed_operation, now, &mut dirty)
            }
            Observation::Estimated(requirements, asked, answers) => {
                self.estimated(&requirements, (asked, answers), now, &mut dirty)
            }
            Observation::Identified(cluster, id) => self.identified(&cluster, id, now, &mut dirty),
            Observation::LookedInto(cluster, name, contents) => {
                self.cache.namespaces.looked_into(&cluster, &name, contents, now);
                self.route(Changed::Namespace(&name, &cluster), &mut dirty);
            }
            Observation::NamespaceEnded(cluster, name) => {
                self.cache.namespaces.forget_contents(&cluster, &name);
                self.route(Changed::Namespace(&name, &cluster), &mut dirty);
            }
            Observation::LeaseRead(cluster, answer) => self.lease_read(&cluster, answer, now, &mut dirty),
            Observation::Probed(cluster, probe) => self.probed(&cluster, probe, now, &mut dirty),
            Observation::Leads(leads) => self.leads(leads, now, &mut dirty),
            Observation::Tick => {}
        }
        self.mark(self.memory.origin, &dirty, now);
        self.end_problems(&mut dirty);
        self.sweep_kinds(now, &mut dirty);
        self.compare_records(is_listed, now, &mut dirty);
        self.dirty_rebalancers(&mut dirty);
        if let Some(watch) = of_watch {
            self.cache.watches.was_taken_in(&watch);
            if watch.server() == Server::Hub {
                self.remember_former();
                self.update_missing_lists(now, &mut dirty);
            }
            self.wake(&watch, now, &mut dirty);
            self.distributions_reported(&watch, now, &mut dirty);
        }
        self.dirty_scaling(&mut dirty);
        self.dirty_services(now, &mut dirty);
        self.dirty_works(reported.as_ref(), &mut dirty);
        dirty.append(&mut self.memory.raised);
        dirty
    }

    fn seen(&mut self, subject: Subject, now: Time, dirty: &mut Dirty) {
        match subject {
            Subject::Policy(policy) => self.policy_seen(&policy, now, dirty),
            Subject::Override(policy) => self.override_seen(&policy, now, dirty),
            Subject::Customization(object) => self.customization_seen(&object, dirty),
            Subject::Hooks(name, configured) => self.hooks_seen(&name, configured, dirty),
            Subject::TaintPolicy(policy) => self.taint_policy_seen(&policy, dirty),
            Subject::Binding(binding) => self.binding_seen(&binding, now, dirty),
            Subject::Cluster(cluster) => self.cluster_seen(cluster, now, dirty),
            Subject::Template(id, template) => self.template_seen(&id, template, now, dirty),
            Subject::Copy(cluster, id, copy) => self.copy_seen(&cluster, &id, copy, now, dirty),
            Subject::Namespace(name, meta) => self.hub_namespace_seen(&name, meta, now, dirty),
            Subject::Distribution(name, object) => self.distribution_seen(&name, object, now, dirty),
            Subject::Distributed(cluster, id, part) => {
                self.part_seen(cluster.as_ref(), &id, part, now, dirty)
            }
            Subject::MemberNamespace(cluster, name, seen) => {
                self.member_namespace_seen(&cluster, &name, seen, now, dirty)
            }
            Subject::Rebalancer(object) => self.rebalancer_seen(object, now, dirty),
            Subject::Quota(object) => self.quota_seen(object, dirty),
            Subject::QuotaCopy(cluster, name, copy) => self.quota_copy_seen(&cluster, &name, *copy, dirty),
            Subject::PriorityClass(name, class) => self.priority_class_seen(&name, *class, dirty),
            Subject::Work(name, work) => self.work_seen(&name, *work, now, dirty),
            Subject::Lease(name, lease) => self.lease_seen(&name, lease, now, dirty),
            Subject::Node(cluster, name, node) => self.node_seen(&cluster, &name, *node),
            Subject::Pod(cluster, number, pod) => self.pod_seen(&cluster, number, pod, now, dirty),
            Subject::ServicePart(name, object) => self.service_part_seen(&name, *object, dirty),
            Subject::Endpoints(cluster, service, name, slice) => {
                self.endpoints_seen((&cluster, &service, &name), *slice, dirty)
            }
        }
    }

    fn gone(&mut self, which: &ObjectRef, deletion: &Deletion, now: Time, dirty: &mut Dirty) {
        match which {
            ObjectRef::Policy(name) => self.policy_gone(name, deletion, now, dirty),
            ObjectRef::Override(name) => self.override_gone(name, deletion, now, dirty),
            ObjectRef::Customization(name) => self.customization_gone(name, deletion, now, dirty),
            ObjectRef::Hooks(contract, name) => self.hooks_gone(*contract, name, deletion, now, dirty),
            ObjectRef::TaintPolicy(name) => self.taint_policy_gone(name, deletion, now, dirty),
            ObjectRef::Binding(name) => self.binding_gone(name, deletion, now, dirty),
            ObjectRef::Cluster(name) => self.cluster_gone(name, deletion, now, dirty),
            ObjectRef::Template(id) => self.template_gone(id, deletion, now, dirty),
            ObjectRef::Copy(cluster, id) => self.copy_gone(cluster, id, deletion, now, dirty),
            ObjectRef::Distribution(name) => self.distribution_gone(name, deletion, now, dirty),
            ObjectRef::Distributed(cluster, id) => self.part_gone(cluster.as_ref(), id, deletion, now, dirty),
            ObjectRef::Namespace(member, name) => {
                self.namespace_gone(member.as_ref(), name, deletion, now, dirty)
            }
            ObjectRef::Rebalancer(name) => self.rebalancer_gone(name, deletion, now),
            ObjectRef::Quota(name) => self.quota_gone(name, deletion, now, dirty),
            ObjectRef::QuotaCopy(cluster, name) => self.quota_copy_gone(cluster, name, deletion, now, dirty),
            ObjectRef::PriorityClass(name) => self.priority_class_gone(name, deletion, now, dirty),
            ObjectRef::Work(name) => self.work_gone(name, deletion, now, dirty),
            ObjectRef::Lease(name) => self.lease_gone(name, deletion, now, dirty),
            ObjectRef::Node(cluster, name) => self.cache.usage.node_gone(cluster, name),
            ObjectRef::Pod(cluster, number) => self.cache.usage.pod_gone(cluster, *number),
            ObjectRef::ServicePart(part, name) => self.service_part_gone((*part, name), deletion, now, dirty),
            ObjectRef::Endpoints(cluster, service, name) => {
                self.endpoints_gone((cluster, service, name), deletion, now, dirty)
            }
        }
    }
}

fn named(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> NamespacedName {
    NamespacedName::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}
